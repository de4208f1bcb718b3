"""The fast way to call a program: its launcher as a Python function, and the proof at import that NumPy's arrays lie as it reads them.

Where the proof fails (a free-threaded build, another Python, an unknown NumPy) there is no launcher and every call takes the long way.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from pypto_dsl.codegen.llvm import launcher as emitter
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.runtime.cpu.jit import Library
from pypto_dsl.runtime.cpu.pool import Pool

METH_FASTCALL = 0x80


class MethodDefinition(ctypes.Structure):
    """A PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


def builtin(definition: MethodDefinition, *used: object) -> Callable[..., Any]:
    """The function of a definition. It keeps the definition, and what its code uses, as what a method calls self."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    made: Callable[..., Any] = make(ctypes.addressof(definition), (definition, *used), None)
    return made


@cache
def supported() -> bool:
    """Whether this interpreter's objects have the layout that launchers read."""
    if sys.implementation.name != "cpython" or sys.maxsize != 2**63 - 1 or not sys.platform.startswith("linux"):
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    probe = np.zeros((3, 5, 7), np.float32)
    frozen = probe[::2]
    frozen.flags.writeable = False
    return _lies_as_read(probe) and _lies_as_read(frozen) and _float_lies_as_read(-2.75)


def _word(obj: object, offset: int) -> int:
    return ctypes.c_uint64.from_address(id(obj) + offset).value


def _lies_as_read(probe: np.ndarray[Any, np.dtype[Any]]) -> bool:
    if _word(probe, emitter.TYPE) != id(np.ndarray) or _word(probe, emitter.DATA) != probe.ctypes.data:
        return False
    if ctypes.c_int.from_address(id(probe) + emitter.RANK).value != probe.ndim or _word(probe, emitter.DESCRIPTOR) != id(probe.dtype):
        return False
    dimensions = (ctypes.c_int64 * probe.ndim).from_address(_word(probe, emitter.DIMENSIONS))
    flags = ctypes.c_int.from_address(id(probe) + emitter.FLAGS).value
    known = {emitter.CONTIGUOUS: probe.flags.c_contiguous, emitter.ALIGNED: probe.flags.aligned, emitter.WRITEABLE: probe.flags.writeable}
    return tuple(dimensions) == probe.shape and all(bool(flags & bit) == told for bit, told in known.items())


def _float_lies_as_read(probe: float) -> bool:
    return _word(probe, emitter.TYPE) == id(float) and ctypes.c_double.from_address(id(probe) + emitter.FLOAT_VALUE).value == probe


class FastCall:
    """A loaded launcher. ``function(*tensors, *numbers)`` gives True when it ran the program, False when the long way must be taken.

    The function alone keeps alive what it uses.
    """

    def __init__(self, library: Library, tensors: Sequence[tuple[str, DType]], numbers: Sequence[str], pool: Pool,
                 launch: Mapping[str, Any]) -> None:
        """``tensors`` and ``numbers`` are what the launcher takes, by name."""
        self._library, self._pool = library, pool
        self.tensors, self.numbers = [name for name, _ in tensors], list(numbers)
        # every array of a built-in dtype shares one descriptor object; others take the long way
        self._dtypes = [dtype.numpy for _, dtype in tensors]
        entries = {"array_type": id(np.ndarray), "float_type": id(float), "int_type": id(int), "true": id(True), "false": id(False),
                   "following": 0, "pool_run": pool.run_address, "pool_workers": pool.workers_address, "threads": pool.threads,
                   **{k: int(launch[k]) for k in ("serial_elements", "chunk_elements", "chunks_per_thread")}}
        table = (ctypes.c_uint64 * (len(emitter.ENTRIES) + len(self._dtypes))).from_address(library.address("launch_table"))
        for i, name in enumerate(emitter.ENTRIES):
            table[i] = entries[name]
        for i, dtype in enumerate(self._dtypes, len(emitter.ENTRIES)):
            table[i] = id(dtype)
        self._table = table
        self._following: list[FastCall] = []
        definition = MethodDefinition(b"launch", library.address("launch"), METH_FASTCALL, None)
        self.function: Callable[..., bool] = builtin(definition, library, pool, self._dtypes, self._following)

    def follow(self, other: FastCall) -> None:
        """Let ``other``, which takes the same arguments, be asked for what this launcher does not take itself, before earlier ones."""
        if (self.tensors, self.numbers) != (other.tensors, other.numbers):
            return
        at = emitter.ENTRIES.index("following")
        self._following.append(other)
        other._table[at] = self._table[at]
        self._table[at] = other._library.address("launch")
