"""Every public operation with arguments of wrong number, type, shape and value: a KernelError or a graph, never a traceback of ours."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.frontend import operations


class Odd:
    """An object that is nothing to the language."""


POSITIONAL: list[Callable[[Any, Any], tuple[Any, ...]]] = [
    lambda x, i: (), lambda x, i: (None,), lambda x, i: ("x",), lambda x, i: (Odd(),), lambda x, i: ([],), lambda x, i: (i,),
    lambda x, i: (x, "y"), lambda x, i: (x, None), lambda x, i: (x, Odd()), lambda x, i: (x, 99), lambda x, i: (x, -99),
    lambda x, i: (x, 1.5),
    lambda x, i: (x, 10**30), lambda x, i: (x, complex(1)), lambda x, i: (x, {}), lambda x, i: (x, True), lambda x, i: (x, [1, 2]),
    lambda x, i: (x, [[1]], 2), lambda x, i: (x, pypto.DT_INT8), lambda x, i: (x, slice(0, 2)), lambda x, i: (x, x.shape[0]),
    lambda x, i: (x, x[0:2, :]), lambda x, i: (x[0], x[0]), lambda x, i: (x,) * 8, lambda x, i: (x, x, 1.5),
    lambda x, i: (x, "a", "b"),
    lambda x, i: (x, [5, 5], [9, 9]), lambda x, i: (x, [4, 4], ["a", 0]), lambda x, i: ([x, None], 0), lambda x, i: (x, i, x),
    lambda x, i: (x, i, 99), lambda x, i: (x, 0, i, x), lambda x, i: (x, 9, i, x), lambda x, i: (x, -1, x, x),
    lambda x, i: (i, i),
    lambda x, i: ([4, -1], 1.0, pypto.DT_FP32), lambda x, i: ([4], "a", pypto.DT_FP32), lambda x, i: ([4], 1, "f32"),
    lambda x, i: (0, 10, 0)]
KEYWORDS: list[dict[str, Any]] = [
    {"dim": 99}, {"dim": "a"}, {"dim": None}, {"dim": True}, {"dim": (0, 0)}, {"foo": 1}, {"keepdim": []}, {"dtype": "x"},
    {"axis": None},
    {"shape": [2]}, {"valid_shape": ["a"]},
    {"out_dtype": 3}, {"mode": "zzz"}, {"reduce": "zzz"}, {"k": 99}, {"k": -1}, {"precision_type": "Z"}]


@pytest.mark.parametrize("name", operations.operation_names())
def test_wrong_arguments_of(name: str) -> None:
    function = operations.function_named(name)
    uses: list[Callable[[Any, Any], Any]] = [lambda x, i, make=make: function(*make(x, i)) for make in POSITIONAL]
    uses += [lambda x, i, named=named: function(x, **named) for named in KEYWORDS]
    x, i = np.ones((4, 4), np.float32), np.ones((4, 4), np.int32)
    for use in uses:

        @pypto.jit(target="interpreter")
        def k(x: pypto.Tensor(), i: pypto.Tensor([], pypto.DT_INT32), use: Any):
            use(x, i)
            return x

        try:
            k.graph(x, i, use)
        except pypto.KernelError as refused:
            assert refused.diagnostic.primary is not None and refused.diagnostic.primary.span.file == __file__
