"""Numbers given as attributes land on the dtype that an operation computes in: reference, expansion and CPU choose alike at a threshold."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machine import evaluate, execute, expanded, ulps
from samples import elementwise_names
from test_overflow import on_cpu

from pypto_dsl.compiler.dtypes import F32, F64, DType
from pypto_dsl.compiler.ops import REGISTRY

# Attributes that are numbers of the formula; counts, axes and seeds are none.
FORMULA = {name: [p.name for p in REGISTRY[name].attributes if p.annotation is float or p.name == "eps"] for name in elementwise_names()}
NAMES = [n for n, attributes in FORMULA.items() if attributes and n != "dropout"]
NUMBERS = (0.1, 0.3, 1e-8, 0.7)  # none of them is a float of any width


def around(numbers: tuple[float, ...], dtype: DType) -> np.ndarray:
    """The numbers as floats, their neighbours, negatives, and one minus them."""
    x = np.array([*numbers, *(1 - n for n in numbers)]).astype(dtype.numpy)
    kind = x.dtype.type
    x = np.concatenate([x, np.nextafter(x, kind(9)), np.nextafter(x, kind(-9))])
    return np.concatenate([x, -x])


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_thresholds_are_floats_of_the_dtype(name: str, dtype: DType) -> None:
    definition = REGISTRY[name]
    x = around(NUMBERS, dtype)
    count = sum(1 for p in definition.operands if not p.optional)
    arrays = [np.roll(x, 5 * i) for i in range(count)]
    for number in NUMBERS:
        if name == "hardtanh":
            attributes: dict[str, Any] = {"min_val": -number, "max_val": number}
        elif name == "logit":
            attributes = {"eps": min(number, 0.3)}
        else:
            attributes = dict.fromkeys(FORMULA[name], number)
        want = evaluate(name, *arrays, **attributes)
        g = expanded(lambda *p, a=attributes: definition(*p, **a), *arrays)
        for got in (execute(g, *arrays)[0], on_cpu(name, arrays, **attributes)):
            if want.dtype == bool:
                np.testing.assert_array_equal(got, want, err_msg=f"{name} {attributes}")
                continue
            bound = definition.bound(dtype)
            with np.errstate(all="ignore"):
                scale = None if definition.scale is None else definition.scale(*(a.astype(np.float64) for a in arrays), **attributes)
            assert bound is not None and float(ulps(got, want, scale).max()) <= bound + 1, (name, attributes)


def test_a_threshold_keeps_what_lies_on_it() -> None:
    """FP32's 0.1 is above 0.1, and is within [-0.1, 0.1] all the same."""
    x = np.float32([0.1, -0.1, np.nextafter(np.float32(0.1), np.float32(1))])
    assert evaluate("hardshrink", x, lambd=0.1).tolist() == [0.0, 0.0, float(x[2])]
    assert evaluate("threshold", x, threshold=0.1, value=-1.0).tolist() == [-1.0, -1.0, float(x[2])]
    assert evaluate("softshrink", x, lambd=0.1)[0] == 0.0
