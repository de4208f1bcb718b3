"""A compiled program on the CPU: emit, compile (or take from the cache), load, and call with NumPy arrays."""

from __future__ import annotations

import ctypes
import math
import struct
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto_dsl.codegen.llvm import kernel as emitter
from pypto_dsl.codegen.llvm.kernel import Signature
from pypto_dsl.compiler import targets
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.tile_ir.nodes import Accumulate, For, Program, Statement, TileKernel
from pypto_dsl.runtime.cpu import jit
from pypto_dsl.runtime.cpu.arguments import Array, bind
from pypto_dsl.runtime.cpu.cache import ObjectCache
from pypto_dsl.runtime.cpu.pool import MAX_CHUNKS, Pool, shared_pool

_ALIGNMENT = 64


@dataclass(frozen=True)
class Loaded:
    """One kernel in memory."""

    signature: Signature
    address: int
    whole_items: bool  # an item is work enough for a chunk of its own


class Scratch(threading.local):
    """Scratch memory of the calling thread, grown as kernels ask for it, one part per worker."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def get(self, size: int) -> int:
        """The address of ``size`` bytes on a cache line."""
        if self._memory.size < size + _ALIGNMENT:
            self._memory = np.empty(size + _ALIGNMENT, np.uint8)
        address: int = self._memory.ctypes.data
        return -(-address // _ALIGNMENT) * _ALIGNMENT


_SCRATCH = Scratch()


class Executable:
    """The kernels of one program, ready to be called.

    ``run`` takes arrays and run-time scalars by name. Inputs may have any strides and alignment; outputs are written in place, and
    elements that the program does not write are untouched.
    """

    def __init__(self, program: Program, *, level: str | None = None, cache: ObjectCache | None = None,
                 pool: Pool | None = None) -> None:
        """Compile ``program`` for the host, or for one of its smaller feature levels.

        Raises KernelError PT524 for a level that the host lacks, and what emission refuses.
        """
        self.program = program
        self.machine = jit.machine(level)
        kernels = [k for step in program.steps for k in step]
        self.text = emitter.emit(kernels, self.machine.level)
        parts = (self.text, self.machine.fingerprint)
        code = (cache or ObjectCache(None)).get(parts, lambda: jit.compile_object(self.text, self.machine))
        self._library = jit.Library(code, [k.name for k in kernels])
        self._steps = tuple(tuple(self._loaded(k) for k in step) for step in program.steps)
        self._pool = pool
        self._launch = targets.load("llvm-cpu").table("launch")

    def _loaded(self, kernel: TileKernel) -> Loaded:
        return Loaded(emitter.signature(kernel), self._library.address(kernel.name), _has_product(kernel.body))

    def run(self, arrays: Mapping[str, Array], scalars: Mapping[str, float | int] | None = None) -> None:
        """Run the program on arrays by name. See `bind` for the errors; nothing is written when one is raised."""
        bound = bind(self.program, arrays, {n: v for n, v in (scalars or {}).items() if isinstance(v, int)})
        memory = dict(bound.arrays)
        for workspace in self.program.workspaces:
            shape = tuple(e.evaluate(bound.symbols) for e in workspace.shape)
            memory[workspace.name] = np.empty(shape, workspace.dtype.numpy)
        numbers: dict[str, float | int] = {**bound.symbols, **(scalars or {})}
        chosen = [self._choose(step, bound.symbols) for step in self._steps]
        for kernel in chosen:
            self._call(kernel, memory, bound.symbols, numbers)
        for copy, original in bound.back:
            original[...] = copy

    def _choose(self, variants: Sequence[Loaded], symbols: Mapping[str, int]) -> Loaded:
        for variant in variants:
            if all(r.evaluate(symbols) >= 0 for r in variant.signature.requires):
                return variant
        raise error("PT707", f"no schedule of `{variants[0].signature.name}` takes these extents: {dict(symbols)}")

    def _call(self, kernel: Loaded, memory: Mapping[str, Array], symbols: Mapping[str, int], numbers: Mapping[str, float | int]) -> None:
        call = kernel.signature
        items = call.items.evaluate(symbols)
        if items <= 0:
            return
        slots = bytearray()
        elements = 1
        for name in call.tensors:
            array = memory[name]
            elements = max(elements, array.size)
            slots += struct.pack("=Q", array.ctypes.data)
        for name, dtype in call.scalars:
            slots += pack_scalar(numbers[name], dtype)
        arguments = (ctypes.c_char * max(8, len(slots))).from_buffer(slots or bytearray(8))
        pool = self._pool or shared_pool()
        chunk = self._chunk(kernel, items, elements, pool.threads)
        if chunk < items:
            pool.start()
        stride = -(-call.scratch.evaluate(symbols) // _ALIGNMENT) * _ALIGNMENT
        workers = pool.threads if chunk < items else 1
        pool.run(kernel.address, ctypes.addressof(arguments), items, chunk, _SCRATCH.get(stride * workers), stride)

    def _chunk(self, kernel: Loaded, items: int, elements: int, threads: int) -> int:
        """Items per chunk: everything at once for little work, else chunks that are worth handing over."""
        if threads == 1 or (elements < self._launch["serial_elements"] and not kernel.whole_items):
            return items
        per_item = max(1, elements // items)
        least = 1 if kernel.whole_items else math.ceil(int(self._launch["chunk_elements"]) / per_item)
        fair = items // (threads * int(self._launch["chunks_per_thread"]))
        return min(items, max(1, least, min(fair, 16 * least), -(-items // MAX_CHUNKS)))


def _has_product(body: Sequence[Statement]) -> bool:
    return any(isinstance(s, Accumulate) or (isinstance(s, For) and _has_product(s.body)) for s in body)


def pack_scalar(number: float | int, dtype: DType) -> bytes:
    """A run-time scalar as the 8 bytes of its slot. Integers that do not fit raise OverflowError."""
    if dtype.is_integer:
        return int(number).to_bytes(8, "little", signed=dtype.signed)
    value: Any = np.asarray(number).astype(dtype.numpy)
    return bytes(value.tobytes().ljust(8, b"\0"))


