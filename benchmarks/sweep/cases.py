"""What is swept: the operations of one and of two numbers, compiled as a kernel of their own, and the exact results beside them."""
from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from pypto_dsl.compiler import pipeline, targets
from pypto_dsl.compiler.dtypes import BY_NAME
from pypto_dsl.compiler.graph import Builder, Graph, Value, tensor_type
from pypto_dsl.compiler.ops import REGISTRY, OpDefinition
from pypto_dsl.compiler.ops.definition import building
from pypto_dsl.runtime import toolchain
from pypto_dsl.runtime.cpu.executable import Executable
from pypto_dsl.runtime.cpu.pool import Pool

Array = np.ndarray[Any, np.dtype[Any]]

# Operations of one tensor whose results depend on the place of an element, or on a random number, and not on its value alone.
PLACES = {"tril", "triu", "one_hot", "dropout"}
PAIRS = ("pow", "ldexp", "atan2", "hypot", "fmod", "remainder", "logaddexp")


@dataclass(frozen=True)
class Case:
    """One function: an operation with its attributes, and which of its results is meant. ``name`` is the exact function's too."""

    name: str
    operation: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    result: int = 0
    operands: int = 1

    @property
    def bound(self) -> float:
        """The largest error that the CPU may have in f32, in ulp: the target's own, else the expansion's."""
        return bound(self.operation, "f32")


def bound(operation: str, dtype: str) -> float:
    """The bound that is published for the CPU: of the target's data, else of the op table (for f32; f64 expansions share it)."""
    own = targets.load("llvm-cpu").data["bounds"].get(dtype, {})
    found = own.get(operation, REGISTRY[operation].bounds.get(dtype, REGISTRY[operation].bounds.get("f32", 0)))
    return float(found)


def tensors(definition: OpDefinition) -> int:
    """How many tensors an operation needs."""
    return sum(p.kind == "tensor" and not p.optional for p in definition.parameters)


def unary() -> dict[str, Case]:
    """Every operation of the op table that maps one float to one number."""
    found = {}
    for name, definition in REGISTRY.items():
        floats = not definition.dtypes or BY_NAME["f32"] in definition.dtypes
        if definition.family not in ("elementwise", "compare") or tensors(definition) != 1 or name in PLACES or not floats:
            continue
        found[name] = Case(name, name)
    del found["frexp"]
    found["frexp_significand"] = Case("frexp_significand", "frexp")
    found["frexp_exponent"] = Case("frexp_exponent", "frexp", result=1)
    found["gelu_tanh"] = Case("gelu_tanh", "gelu", {"approximate": "tanh"})
    return found


UNARY = unary()
BINARY = {name: Case(name, name, operands=2) for name in PAIRS}
CASES = {**UNARY, **BINARY}


class Kernel:
    """A case compiled for arrays of one length, on the calling thread."""

    def __init__(self, case: Case, dtype: str, count: int, level: str | None = None) -> None:
        graph = Graph(case.name)
        kind = BY_NAME[dtype]
        graph.parameters.extend(Value(tensor_type(kind, [count]), f"x{i}") for i in range(case.operands))
        with building(Builder(graph)):
            made = REGISTRY[case.operation](*graph.parameters, **case.attributes)
        value = made[case.result] if isinstance(made, tuple) else made
        graph.parameters.append(Value(value.type.with_dtype(value.type.dtype), "out"))
        graph.outputs["out"] = value
        self.executable = Executable(pipeline.lower(graph, "llvm-cpu"), level=level, pool=Pool(1))
        self.out = np.empty(count, value.type.dtype.numpy)

    def __call__(self, *arrays: Array) -> Array:
        """The results; the next call overwrites them."""
        self.executable.run({**{f"x{i}": a for i, a in enumerate(arrays)}, "out": self.out})
        return self.out


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
    path = toolchain.build_shared_object("exact", {"exact.cpp": source}, ["exact.cpp"],
                                         flags=("-std=c++17", "-O2", "-ffp-contract=off", "-fno-math-errno"))
    loaded = ctypes.CDLL(str(path))
    loaded.sweep_unary.argtypes = [ctypes.c_int, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
    loaded.sweep_binary.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_uint64,
                                    ctypes.c_void_p]
    loaded.evaluate_unary.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
    loaded.evaluate_binary.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
    return loaded


class Exact:
    """The exact function of a case."""

    def __init__(self, case: Case) -> None:
        self.library = library()
        self.binary = case.operands == 2
        find = self.library.find_binary if self.binary else self.library.find_unary
        self.function: int = find(case.name.encode())
        if self.function < 0:
            raise LookupError(f"exact.cpp has no function {case.name}")

    def __call__(self, *arrays: Array) -> Array:
        """The values for float64 inputs, in float64."""
        wide = [np.ascontiguousarray(a, np.float64) for a in arrays]
        out = np.empty(wide[0].shape)
        evaluate = self.library.evaluate_binary if self.binary else self.library.evaluate_unary
        evaluate(self.function, *(a.ctypes.data for a in wide), wide[0].size, out.ctypes.data)
        return out

    def compare(self, start: int, step: int, got: Array, report: Report) -> None:
        """Compare results for the f32 inputs with the bits ``start``, ``start + step``, ..."""
        self.library.sweep_unary(self.function, start, step, got.size, got.ctypes.data, ctypes.byref(report))

    def compare_pairs(self, x: Array, y: Array, got: Array, first: int, report: Report) -> None:
        """Compare results for listed f32 pairs, of which the first has the number ``first``."""
        self.library.sweep_binary(self.function, x.ctypes.data, y.ctypes.data, got.size, got.ctypes.data, first, ctypes.byref(report))


# ---- inputs of two numbers ---------------------------------------------------------------------------------------------

EDGES = np.array(
    [0.0, 1.4e-45, 2.8e-45, 1e-40, 1.1754942e-38, 1.1754944e-38, 1.1754945e-38, 1e-30, 1e-20, 2.0**-24, 1e-5, 0.1, 0.25, 1 / 3, 0.5,
     0.6931472, 0.99999994, 1.0, 1.0000001, 1.5, 2.0, 2.5, 3.0, 3.1415927, 4.0, 5.0, 7.0, 8.0, 10.0, 16.0, 20.0, 87.0, 88.72284, 103.97,
     126.0, 127.0, 128.0, 149.0, 150.0, 255.0, 4095.0, 8388607.0, 8388608.0, 16777215.0, 16777216.0, 33554432.0, 1e10, 1e20,
     1.8446744e19, 1e38, 1.7014118e38, 3.4028233e38, 3.4028235e38, np.inf, np.nan], np.float32)
SPECIAL = np.concatenate([EDGES, -EDGES])


def grid(case: str, number: int, count: int) -> tuple[Array, Array]:
    """Chunk ``number`` of the pairs of a case: the same in every run."""
    rng = np.random.default_rng([number, len(case)])
    if number == 0:
        x, y = (g.ravel() for g in np.meshgrid(SPECIAL, SPECIAL))
        return np.resize(x, count), np.resize(y, count)
    kinds = KINDS.get(case, ()) + COMMON
    x, y = kinds[number % len(kinds)](rng, count)
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(x, np.float32), np.ascontiguousarray(y, np.float32)


Generator = np.random.Generator


def _bits(rng: Generator, count: int) -> Array:
    return rng.integers(0, 1 << 32, count, np.uint32).view(np.float32)


def _any(rng: Generator, count: int) -> tuple[Array, Array]:
    return _bits(rng, count), _bits(rng, count)


def _normal(rng: Generator, count: int) -> tuple[Array, Array]:
    return rng.normal(size=count) * 3, rng.normal(size=count) * 3


def _special_beside_any(rng: Generator, count: int) -> tuple[Array, Array]:
    x, y = rng.choice(SPECIAL, count), _bits(rng, count)
    return (x, y) if rng.integers(2) else (y, x)


def _near(rng: Generator, count: int) -> tuple[Array, Array]:
    """Magnitudes within a few binades, and within a few ulp of each other."""
    x = np.abs(_bits(rng, count))
    steps = rng.integers(-40, 40, count) if rng.integers(2) else rng.integers(-1 << 26, 1 << 26, count)
    y = np.clip(x.view(np.int32) + steps, 0, 0x7F7FFFFF).astype(np.int32).view(np.float32)
    return x * rng.choice([-1, 1], count), y * rng.choice([-1, 1], count)


def _ordinary_powers(rng: Generator, count: int) -> tuple[Array, Array]:
    return np.exp(rng.uniform(-3, 3, count)), rng.uniform(-6, 6, count)


def _powers_of_near_one(rng: Generator, count: int) -> tuple[Array, Array]:
    x = (1 + rng.uniform(-1, 1, count) * 2.0 ** rng.uniform(-23, -4, count)).astype(np.float32)
    return x, rng.uniform(-150, 128, count) / np.log2(np.where(x == 1, 1.0000001, x).astype(np.float64))


def _powers_of_any(rng: Generator, count: int) -> tuple[Array, Array]:
    x = np.exp(rng.uniform(-103, 88.7, count)).astype(np.float32)
    return x, rng.uniform(-152, 129, count) / np.log2(x.astype(np.float64))


def _whole_powers(rng: Generator, count: int) -> tuple[Array, Array]:
    return rng.uniform(-40, 40, count), rng.integers(-60, 60, count)


def _scaled(rng: Generator, count: int) -> tuple[Array, Array]:
    return _bits(rng, count), rng.uniform(-290, 290, count)


def _scaled_by_whole(rng: Generator, count: int) -> tuple[Array, Array]:
    return _bits(rng, count), rng.integers(-290, 290, count)


def _close_sums(rng: Generator, count: int) -> tuple[Array, Array]:
    """e^x + e^y close to 1, where the logarithm of the sum cancels."""
    x = -(2.0 ** rng.uniform(-20, 6, count)).astype(np.float32)
    y = np.log(-np.expm1(x.astype(np.float64))).astype(np.float32)
    steps = rng.integers(-3, 4, count) if rng.integers(2) else np.zeros(count, np.int64)
    return x, (y.view(np.int32) + steps).astype(np.int32).view(np.float32)


def _sums(rng: Generator, count: int) -> tuple[Array, Array]:
    x = rng.uniform(-110, 110, count)
    return x, x + rng.normal(size=count) * 2.0 ** rng.uniform(-10, 6, count)


def _quotients(rng: Generator, count: int) -> tuple[Array, Array]:
    """Quotients up to 2^24, and exact multiples."""
    y = rng.uniform(0.1, 100, count).astype(np.float32)
    whole = np.floor(2.0 ** rng.uniform(0, 24, count))
    return whole * y + rng.choice([0, 1], count) * rng.uniform(-100, 100, count), y * rng.choice([-1, 1], count)


def _whole(rng: Generator, count: int) -> tuple[Array, Array]:
    return rng.integers(-(1 << 24), 1 << 24, count), rng.integers(-3000, 3000, count)


COMMON = (_any, _normal, _special_beside_any, _near)
KINDS: Mapping[str, tuple[Any, ...]] = {
    "pow": (_ordinary_powers, _powers_of_near_one, _powers_of_any, _whole_powers),
    "ldexp": (_scaled, _scaled_by_whole),
    "logaddexp": (_close_sums, _sums),
    "fmod": (_quotients, _whole),
    "remainder": (_quotients, _whole),
}
