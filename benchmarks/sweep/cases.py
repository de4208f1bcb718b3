"""What is swept: the operations of one and of two numbers, each compiled as a kernel of its own."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pypto_dsl.compiler import pipeline, targets
from pypto_dsl.compiler.dtypes import BY_NAME
from pypto_dsl.compiler.graph import Builder, Graph, Value, tensor_type
from pypto_dsl.compiler.ops import REGISTRY, OpDefinition
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.runtime.cpu.executable import Executable
from pypto_dsl.runtime.cpu.pool import Pool

Array = np.ndarray[Any, np.dtype[Any]]

# Operations of one tensor whose results depend on the place of an element, or on a random number, and not on its value alone.
PLACES = {"tril", "triu", "one_hot", "dropout"}
# f(-x) = -f(x), and f(-x) = f(x), as mathematics has it
ODD = {"neg", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "erfinv", "i1", "cbrt", "tanhshrink", "softsign",
       "hardtanh", "hardshrink", "softshrink", "trunc", "rint", "round", "frac", "sign", "deg2rad", "rad2deg", "reciprocal",
       "frexp_significand", "positive", "clip", "fclip"}
EVEN = {"abs", "square", "cos", "cosh", "i0", "isnan", "isinf", "isfinite", "eqz", "nez", "logical_not", "frexp_exponent"}
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
    def parity(self) -> str | None:
        """Whether the function is odd or even."""
        return "odd" if self.name in ODD else "even" if self.name in EVEN else None

    @property
    def bound(self) -> float:
        """The largest error that the CPU may have in f32, in ulp: the target's own, else the expansion's."""
        return bound(self.operation, "f32")

    @property
    def fast_bound(self) -> float | None:
        """The same of the form that `precision="fast"` takes; None where that is the exact one."""
        found = targets.load("llvm-cpu").data["fast"]["bounds"]["f32"].get(self.operation)
        return None if found is None else float(found)


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
FAST = {name: case for name, case in CASES.items() if case.fast_bound is not None}


def graph(case: Case, dtype: str, count: int, precision: str = "exact") -> Graph:
    """The case alone, from x0 (and x1) of ``count`` elements to out."""
    made = Graph(case.name, options={} if precision == "exact" else {"precision": precision})
    made.parameters.extend(Value(tensor_type(BY_NAME[dtype], [count]), f"x{i}") for i in range(case.operands))
    with building(Builder(made)):
        results = REGISTRY[case.operation](*made.parameters, **case.attributes)
    value = results[case.result] if isinstance(results, tuple) else results
    made.parameters.append(Value(value.type.with_dtype(value.type.dtype), "out"))
    made.outputs["out"] = value
    return made


class Kernel:
    """A case compiled for arrays of one length, on the calling thread."""

    def __init__(self, case: Case, dtype: str, count: int, level: str | None = None, precision: str = "exact") -> None:
        recorded = graph(case, dtype, count, precision)
        self.executable = Executable(pipeline.lower(recorded, "llvm-cpu"), level=level, pool=Pool(1))
        self.out = np.empty(count, recorded.parameters[-1].type.dtype.numpy)

    def __call__(self, *arrays: Array) -> Array:
        """The results; the next call overwrites them."""
        self.executable.run({**{f"x{i}": a for i, a in enumerate(arrays)}, "out": self.out})
        return self.out
