"""numexpr: the expression as text, evaluated block by block; float32 only."""
from __future__ import annotations

import math

import numexpr
import numpy as np

from benchmarks.peers import Inputs, Prepare, Prepared
from benchmarks.workloads import Workload

EXPRESSIONS = {
    "add": "a + b", "fma_relu": "where(a * b + c > zero, a * b + c, zero)", "exp": "exp(x)", "log": "log(x)", "tanh": "tanh(x)",
    "sin": "sin(x)", "gelu": "half * x * (one + tanh(scale * (x + cubic * x * x * x)))", "swiglu": "a / (one + exp(-a)) * b",
    "pow": "x ** y", "pow_2": "x ** 2", "pow_half": "sqrt(x)", "pow_2p7": "x ** p2p7",
    "sum_last": "sum(x, axis=1)", "max_last": "max(x, axis=1)", "sum_first": "sum(x, axis=0)", "max_first": "max(x, axis=0)",
}
NUMBERS = {name: np.float32(value) for name, value in
           {"zero": 0, "half": 0.5, "one": 1, "scale": math.sqrt(2 / math.pi), "cubic": 0.044715, "p2p7": 2.7}.items()}


def load(threads: int) -> Prepare:
    """Holds numexpr to ``threads`` threads."""
    numexpr.set_num_threads(threads)
    return prepare


def prepare(workload: Workload, inputs: Inputs) -> Prepared | None:
    """The workload as an expression; None for other dtypes and for what no expression says."""
    text = EXPRESSIONS.get(workload.operation.name)
    if text is None or workload.dtype != "f32":
        return None
    names = {**NUMBERS, **inputs}
    if workload.operation.reduces:
        return Prepared(lambda: numexpr.evaluate(text, local_dict=names))
    out = workload.output()
    return Prepared(lambda: numexpr.evaluate(text, local_dict=names, out=out, casting="same_kind"))
