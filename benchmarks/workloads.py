"""What is measured, as data: operations with operands and references, crossed with dtypes and shapes."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32), "bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype(np.float16), "i32": np.dtype(np.int32)}
SHAPES = {"64": (64, 64), "1M": (1024, 1024), "16M": (4096, 4096)}
FLOATS = ("f32", "bf16", "f16")
_TANH_SCALE = math.sqrt(2 / math.pi)
_ERF = np.vectorize(math.erf, otypes=[np.float64])


def _gelu(x: Array) -> Array:
    inner = _TANH_SCALE * (x + 0.044715 * x ** 3)
    result: Array = x / (1 + np.exp(-2 * inner))  # 0.5 x (1 + tanh(inner)) without its cancellation
    return result


def _softmax(x: Array) -> Array:
    weights = np.exp(x - x.max(-1, keepdims=True))
    result: Array = weights / weights.sum(-1, keepdims=True)
    return result


def _layer_norm(x: Array, gamma: Array, beta: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    result: Array = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * gamma + beta
    return result


def _attention(query: Array, key: Array, value: Array) -> Array:
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
    return np.asarray(_softmax(scores) @ value)


@dataclass(frozen=True)
class Operation:
    """What one workload computes.

    ``operands``: kind of contents by name; kinds ending in "/row" have the last extent only. ``mixes``: the axis along which a result
    depends on other elements (None: element by element); accuracy is sampled along another one.
    """

    name: str
    group: str
    operands: Mapping[str, str]
    reference: Callable[..., Array]
    mixes: int | None = None
    reduces: bool = False
    dtypes: tuple[str, ...] = FLOATS


ELEMENTWISE = (
    Operation("add", "elementwise", {"a": "normal", "b": "normal"}, lambda a, b: a + b),
    Operation("fma_relu", "elementwise", {"a": "normal", "b": "normal", "c": "normal"}, lambda a, b, c: np.maximum(a * b + c, 0)),
    Operation("exp", "elementwise", {"x": "normal"}, lambda x: np.exp(x)),
    Operation("log", "elementwise", {"x": "positive"}, lambda x: np.log(x)),
    Operation("tanh", "elementwise", {"x": "normal"}, lambda x: np.tanh(x)),
    Operation("sin", "elementwise", {"x": "normal"}, lambda x: np.sin(x)),
    Operation("gelu", "elementwise", {"x": "normal"}, _gelu),
    Operation("gelu_erf", "elementwise", {"x": "normal"}, lambda x: 0.5 * x * (1 + _ERF(x * math.sqrt(0.5)))),
    Operation("swiglu", "elementwise", {"a": "normal", "b": "normal"}, lambda a, b: a / (1 + np.exp(-a)) * b),
    Operation("pow", "elementwise", {"x": "positive", "y": "exponent"}, lambda x, y: x ** y),
    Operation("pow_2", "elementwise", {"x": "positive"}, lambda x: x ** 2.0),
    Operation("pow_half", "elementwise", {"x": "positive"}, lambda x: x ** 0.5),
    Operation("pow_2p7", "elementwise", {"x": "positive"}, lambda x: x ** np.float64(np.float32(2.7)), dtypes=("f32",)),
    Operation("ldexp", "elementwise", {"x": "normal", "n": "integer"}, lambda x, n: np.ldexp(x, n.astype(np.int64)), dtypes=("f32",)),
)
ROWS = (
    Operation("softmax", "row", {"x": "normal"}, _softmax, -1),
    Operation("rms_norm", "row", {"x": "normal", "gamma": "normal/row"},
              lambda x, gamma: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gamma, -1),
    Operation("layer_norm", "row", {"x": "normal", "gamma": "normal/row", "beta": "normal/row"}, _layer_norm, -1),
)
REDUCTIONS = (
    Operation("sum_last", "reduction", {"x": "normal"}, lambda x: x.sum(-1), -1, True),
    Operation("max_last", "reduction", {"x": "normal"}, lambda x: x.max(-1), -1, True),
    Operation("sum_first", "reduction", {"x": "normal"}, lambda x: x.sum(0), 0, True),
    Operation("max_first", "reduction", {"x": "normal"}, lambda x: x.max(0), 0, True),
)
MATMUL = Operation("matmul", "matmul", {"a": "normal", "b": "normal"}, lambda a, b: a @ b, -1, dtypes=("f32", "bf16"))
MATMUL_GELU = Operation("matmul_bias_gelu", "matmul", {"a": "normal", "b": "weight", "bias": "normal/row"},
                        lambda a, b, bias: _gelu(a @ b + bias), -1, dtypes=("f32",))
ATTENTION = Operation("attention", "matmul", {"query": "normal", "key": "normal", "value": "normal"}, _attention, -1, dtypes=("f32",))


@dataclass(frozen=True)
class Workload:
    """One operation at one dtype and shape. ``flops`` are the useful ones of matrix products, 0 elsewhere."""

    name: str
    operation: Operation
    dtype: str
    shape: tuple[int, ...]
    size: str
    flops: int = 0

    def inputs(self) -> dict[str, Array]:
        """The operands, the same in every run."""
        return {name: _contents(kind, self.shape, DTYPES[self.dtype], seed)
                for seed, (name, kind) in enumerate(self.operation.operands.items())}

    def output(self) -> Array:
        """Fresh memory for the result."""
        reduced = self.operation.reduces
        axis = self.operation.mixes
        shape = tuple(n for i, n in enumerate(self.shape) if not reduced or axis is None or i != axis % len(self.shape))
        return aligned(shape, DTYPES[self.dtype])

    def traffic(self, inputs: Mapping[str, Array]) -> int:
        """Bytes that must be read and written at least; 0 for matrix products, which are not bound by it."""
        return 0 if self.flops else sum(a.nbytes for a in inputs.values()) + self.output().nbytes


def aligned(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Uninitialised memory that begins on a cache line."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start:start + size].view(dtype).reshape(tuple(shape))


def _contents(kind: str, shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> Array:
    generator = np.random.default_rng(seed)
    kind, _, where = kind.partition("/")
    extents = shape[-1:] if where == "row" else shape
    made: dict[str, Callable[[], Array]] = {
        "normal": lambda: generator.standard_normal(extents, np.float32),
        "weight": lambda: generator.standard_normal(extents, np.float32) / np.float32(math.sqrt(extents[0])),
        "positive": lambda: np.exp(generator.uniform(-3, 3, extents)),
        "exponent": lambda: generator.uniform(-3, 3, extents) if dtype.itemsize == 2 else generator.uniform(-6, 6, extents),
        "integer": lambda: generator.integers(-20, 20, extents),
    }
    result = aligned(extents, DTYPES["i32"] if kind == "integer" else dtype)
    result[...] = made[kind]()
    return result


def _every() -> list[Workload]:
    crossed = [Workload(f"{o.name}_{d}_{s}", o, d, shape, s) for s, shape in SHAPES.items() for o in (*ELEMENTWISE, *ROWS, *REDUCTIONS)
               for d in o.dtypes]
    for n in (64, 512, 1024, 2048):
        for d in MATMUL.dtypes if n == 1024 else ("f32",):
            crossed.append(Workload(f"matmul_{d}_{n}", MATMUL, d, (n, n), str(n), 2 * n ** 3))
    crossed.append(Workload("matmul_bias_gelu_f32_1024", MATMUL_GELU, "f32", (1024, 1024), "1024", 2 * 1024 ** 3))
    crossed.append(Workload("attention_f32_8x1024x64", ATTENTION, "f32", (1, 8, 1024, 64), "8x1024x64", 4 * 8 * 1024 ** 2 * 64))
    return crossed


WORKLOADS: dict[str, Workload] = {w.name: w for w in _every()}


def select(patterns: Sequence[str]) -> list[Workload]:
    """Workloads by name, or by words that are joined with "+": an operation, group, dtype or size each; "all" is everything.

    Raises ValueError for a pattern that selects nothing.
    """
    chosen: dict[str, Workload] = {}
    for pattern in patterns:
        words = pattern.split("+")
        found = [w for w in WORKLOADS.values() if pattern in ("all", w.name)
                 or all(word in (w.operation.name, w.operation.group, w.dtype, w.size) for word in words)]
        if not found:
            raise ValueError(f"no workload is called `{pattern}`; names, operations, groups, dtypes and sizes select")
        chosen |= {w.name: w for w in found}
    return list(chosen.values())
