"""The exact functions of exact.cpp, and the comparison of results with them."""
from __future__ import annotations

import ctypes
from functools import cache
from importlib.resources import files

import numpy as np

from benchmarks.sweep.cases import Array, Case
from pypto_dsl.runtime import toolchain


class Report(ctypes.Structure):
    """What a sweep has found so far: `Report` of exact.cpp."""

    _fields_ = (("worst", ctypes.c_double), ("worst_at", ctypes.c_uint64), ("wrong", ctypes.c_uint64), ("wrong_at", ctypes.c_uint64),
                ("misrounded", ctypes.c_uint64))

    def numbers(self) -> dict[str, float | int]:
        """The fields by name."""
        return {name: getattr(self, name) for name, *_ in self._fields_}


@cache
def library() -> ctypes.CDLL:
    """exact.cpp, compiled by the host's C++ compiler. Raises KernelError PT901 where there is none."""
    source = files("benchmarks.sweep").joinpath("exact.cpp").read_text("utf-8")
    flags = ("-std=c++17", "-O2", "-ftree-vectorize", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
    path = toolchain.build_shared_object("exact", {"exact.cpp": source}, ["exact.cpp"], flags=flags)
    loaded = ctypes.CDLL(str(path))
    loaded.sweep_unary.argtypes = [ctypes.c_int, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
    loaded.sweep_listed.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
    loaded.sweep_binary.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_uint64,
                                    ctypes.c_void_p]
    loaded.evaluate_unary.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
    loaded.evaluate_binary.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
    return loaded


class Exact:
    """The exact function of a case."""

    def __init__(self, case: Case) -> None:
        self.compiled = library()
        self.binary = case.operands == 2
        find = self.compiled.find_binary if self.binary else self.compiled.find_unary
        self.function: int = find(case.name.encode())
        if self.function < 0:
            raise LookupError(f"exact.cpp has no function {case.name}")

    def __call__(self, *arrays: Array) -> Array:
        """The values for float64 inputs, in float64."""
        wide = [np.ascontiguousarray(a, np.float64) for a in arrays]
        out = np.empty(wide[0].shape)
        evaluate = self.compiled.evaluate_binary if self.binary else self.compiled.evaluate_unary
        evaluate(self.function, *(a.ctypes.data for a in wide), wide[0].size, out.ctypes.data)
        return out

    def compare(self, start: int, step: int, got: Array, report: Report) -> None:
        """Compare results for the f32 inputs with the bits ``start``, ``start + step``, ..."""
        self.compiled.sweep_unary(self.function, start, step, got.size, got.ctypes.data, ctypes.byref(report))

    def compare_listed(self, x: Array, got: Array, report: Report) -> None:
        """Compare results for listed f32 inputs."""
        self.compiled.sweep_listed(self.function, x.ctypes.data, got.size, got.ctypes.data, ctypes.byref(report))

    def compare_pairs(self, x: Array, y: Array, got: Array, first: int, report: Report) -> None:
        """Compare results for listed f32 pairs, of which the first has the number ``first``."""
        self.compiled.sweep_binary(self.function, x.ctypes.data, y.ctypes.data, got.size, got.ctypes.data, first, ctypes.byref(report))
