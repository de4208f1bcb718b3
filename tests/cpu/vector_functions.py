"""Single operations of the CPU backend as functions on arrays, compiled once per feature level."""
from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from pypto_dsl.codegen.llvm import elements, intrinsics
from pypto_dsl.codegen.llvm.builder import I64, PTR, Builder, Module, Type
from pypto_dsl.codegen.llvm.intrinsics import Use
from pypto_dsl.compiler.dtypes import BY_NAME, DType
from pypto_dsl.runtime.cpu import jit

LEVELS = tuple(level.name for level in jit.host_levels())
Array = np.ndarray[Any, np.dtype[Any]]


class Function:
    """One operation on dense one-dimensional arrays, in vectors of the level."""

    def __init__(self, name: str, sources: tuple[DType, ...], result: DType, level: str, attributes: Mapping[str, Any],
                 literal: float | None) -> None:
        self.result = result
        machine = jit.machine(level)
        module = Module(machine.level)
        self.step = machine.level.float_lanes

        def write(module: Module) -> str:
            b = Builder(module)

            def body(i: Any, _: list[Any]) -> None:
                operands = []
                for k, dtype in enumerate(sources):
                    pointer = b.offset(b.named(PTR, f"%in{k}"), i, elements.memory_element(dtype))
                    operands.append(elements.from_memory(b, b.load(Type(elements.memory_element(dtype), self.step), pointer), dtype))
                literals = (None, literal) if literal is not None else (None,) * len(sources)
                use = Use(tuple(operands), sources, result, attributes, (None,) * len(sources), literals, None)
                value = elements.to_memory(b, intrinsics.write(b, name, use), result)
                b.store(value, b.offset(b.named(PTR, "%out"), i, value.type.element))

            b.loop(0, b.named(I64, "%n"), self.step, body)
            return b.finish(f"void @run({', '.join(f'ptr %in{k}' for k in range(len(sources)))}, ptr %out, i64 %n)")

        module.define("run", write)
        self.text = module.text()
        self._library = jit.Library(jit.compile_object(self.text, machine), ["run"])
        signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(sources) + 1), ctypes.c_int64)
        self._call = signature(self._library.address("run"))

    def __call__(self, *arrays: Array) -> Array:
        count = arrays[0].size
        whole = -(-count // self.step) * self.step
        padded = [np.ascontiguousarray(np.concatenate([a, np.ones(whole - count, a.dtype)])) for a in arrays]
        out = np.empty(whole, self.result.numpy)
        self._call(*(p.ctypes.data for p in padded), out.ctypes.data, whole)
        return out[:count]


@cache
def function(name: str, sources: str, result: str, level: str, literal: float | None = None, **attributes: Any) -> Function:
    """The operation on comma-separated dtypes; keyword arguments are its attributes."""
    dtypes = tuple(BY_NAME[s] for s in sources.split(","))
    return Function(name, dtypes, BY_NAME[result], level, attributes, literal)


def bits(x: Array) -> Array:
    """The bit patterns, with every NaN the same."""
    x = np.asarray(x)
    return np.where(np.isnan(x), np.array(-1, f"i{x.dtype.itemsize}"), x.view(f"i{x.dtype.itemsize}"))


def ulps(got: Array, want: Array) -> tuple[Array, Array]:
    """Error of each finite f32 or f64 result in ulp of the exact value, and where a special value is wrong.

    ``want`` is exact to well below the result's precision (longdouble or float64). Subnormal results count in the subnormal ulp.
    """
    got = np.asarray(got)
    digits, smallest = (24, -149) if got.dtype == np.float32 else (53, -1074)
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        _, exponent = np.frexp(np.abs(want).astype(np.float64))
        unit = np.ldexp(np.longdouble(1), np.maximum(exponent - digits, smallest))
        error = np.abs(got.astype(np.longdouble) - want.astype(np.longdouble)) / unit
    finite = np.isfinite(rounded) & np.isfinite(got)
    same = (got == rounded) & (np.signbit(got) == np.signbit(rounded)) | np.isnan(got) & np.isnan(rounded)
    zero = finite & (got == 0) & (rounded == 0) & (np.signbit(got) != np.signbit(rounded))
    # a value within half an ulp of overflow may round either way
    largest = np.longdouble(np.finfo(got.dtype).max)
    edge = ~finite & (np.abs(want) > largest * (1 - 2.0**-22)) & (np.abs(want) < largest * (1 + 2.0**-22))
    return np.where(finite, error, 0).astype(np.float64), (~finite & ~same & ~edge) | zero
