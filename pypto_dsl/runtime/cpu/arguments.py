"""Arrays as kernels take them: checked against the program's signature, aligned, and free of harmful overlap."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import of_numpy
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.layouts import apart, layout_of
from pypto_dsl.compiler.tile_ir.nodes import Param, Program

Array = np.ndarray[Any, np.dtype[Any]]
_log = logging.getLogger("pypto_dsl.run")


@dataclass(frozen=True)
class Bound:
    """Arguments ready to be read and written in place; ``back`` are (dense copy, the user's array) to copy back afterwards."""

    arrays: Mapping[str, Array]
    symbols: Mapping[str, int]
    back: tuple[tuple[Array, Array], ...]

    def layouts(self, program: Program) -> dict[str, str]:
        """How the arrays lie that are not dense."""
        every = {a.name: self.arrays[a.name] for a in program.arguments}
        return {name: found for name, a in every.items() if (found := layout_of(a.shape, a.strides, a.itemsize))}


def bind(program: Program, arrays: Mapping[str, Array], symbols: Mapping[str, int] | None = None, strided: bool = False) -> Bound:
    """Check arrays by name against the program's arguments. They are made dense, unless they may be ``strided``.

    Raises KernelError PT702 (dtype), PT703 (rank), PT704 (a fixed extent), PT706 (read-only output), PT707 (extents that must agree),
    PT709 (outputs that overlap); nothing has been written when it does.
    """
    known = dict(symbols or {})
    for argument in program.arguments:
        _check(argument, arrays[argument.name])
        _learn(argument, arrays[argument.name], known)
    for argument in program.arguments:
        _agree(argument, arrays[argument.name], known)
    for scalar in program.scalars:
        if scalar.value is not None:
            known[scalar.name] = scalar.value.evaluate(known)
    _outputs_apart(program, arrays)
    ready: dict[str, Array] = {}
    back: list[tuple[Array, Array]] = []
    outputs = [arrays[a.name] for a in program.arguments if a.role != "in"]
    for argument in program.arguments:
        array = arrays[argument.name]
        if argument.role == "in":
            overlaps = any(np.may_share_memory(array, o) for o in outputs)
            if overlaps:
                _log.debug("the input %s overlaps an output and is copied", argument.name)
            ready[argument.name] = array if not overlaps and (strided or array.flags.c_contiguous) and _as_it_lies(array) else (
                _compact(array) if strided else _dense_copy(array))
            continue
        in_place = strided and _as_it_lies(array) and apart(array.shape, array.strides, array.itemsize)
        ready[argument.name] = array if in_place else dense(array)
        if ready[argument.name] is not array:
            back.append((ready[argument.name], array))
    return Bound(ready, known, tuple(back))


def dense(array: Array) -> Array:
    """The array itself when a kernel can read it as it lies, else a dense, aligned copy in native byte order."""
    return array if array.flags.c_contiguous and _as_it_lies(array) else _dense_copy(array)


def _as_it_lies(array: Array) -> bool:
    """Whether the elements are where a processor loads them from, in its byte order. NumPy asks the strides too, of axes that have some."""
    return bool(array.flags.aligned) and array.dtype.isnative


def _dense_copy(array: Array) -> Array:
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def _compact(array: Array) -> Array:
    """A copy that has the elements of a broadcast once."""
    once = tuple(slice(1) if stride == 0 and size else slice(None) for stride, size in zip(array.strides, array.shape, strict=True))
    return np.broadcast_to(_dense_copy(array[once]), array.shape)


def _check(argument: Param, array: Array) -> None:
    dtype = of_numpy(array.dtype)
    if dtype is not argument.dtype:
        raise error("PT702", f"`{argument.name}` is {array.dtype} and the kernel was compiled for {argument.dtype}", argument=argument.name)
    if array.ndim != len(argument.shape):
        raise error("PT703", f"`{argument.name}` has {array.ndim} dimensions and the kernel was compiled for {len(argument.shape)}",
                    argument=argument.name)
    if argument.role != "in" and not array.flags.writeable:
        raise error("PT706", f"`{argument.name}` is written by the kernel and its array is read-only", argument=argument.name)


def _learn(argument: Param, array: Array, known: dict[str, int]) -> None:
    for extent, size in zip(argument.shape, array.shape, strict=True):
        if extent.name is not None:
            known.setdefault(extent.name, size)


def _agree(argument: Param, array: Array, known: Mapping[str, int]) -> None:
    for axis, (extent, size) in enumerate(zip(argument.shape, array.shape, strict=True)):
        wanted = extent.evaluate(known)
        if wanted == size:
            continue
        if extent.constant is not None:
            raise error("PT704", f"axis {axis} of `{argument.name}` has {size} elements and the kernel was compiled for {wanted}",
                        argument=argument.name, axis=axis)
        raise error("PT707", f"axis {axis} of `{argument.name}` has {size} elements, and {_spelled(extent)} is {wanted} in this call",
                    argument=argument.name, axis=axis)


def _spelled(extent: Index) -> str:
    return f"`{extent}`"


def _outputs_apart(program: Program, arrays: Mapping[str, Array]) -> None:
    outputs = [(a.name, arrays[a.name]) for a in program.arguments if a.role != "in"]
    for name, array in outputs:
        if array.size and any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True)):
            raise error("PT709", f"`{name}` has several indices for one place in memory and is written", argument=name)
    for i, (first, a) in enumerate(outputs):
        for second, b in outputs[i + 1:]:
            if np.may_share_memory(a, b) and np.shares_memory(a, b):
                raise error("PT709", f"`{first}` and `{second}` are both written and share memory", argument=first)
