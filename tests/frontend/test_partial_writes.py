"""PT107: outputs that writes provably leave out a part of; nothing is said where they cover it, or where nobody can know."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto

T = pypto.Tensor([64, 8], pypto.DT_FP32)
D = pypto.Tensor([pypto.DYNAMIC, 8], pypto.DT_FP32)
COUNT = pypto.Tensor([1], pypto.DT_INT32)
X, N = np.ones((64, 8), np.float32), np.ones(1, np.int32)


def first_rows(x: T, out: T):
    out[0:2, :] = x[2:4, :]


def all_but_a_column(x: T, out: T):
    out[:, 0:7] = x[:, 0:7]


def two_parts_and_a_hole(x: T, out: T):
    out[0:32, :] = x[0:32, :]
    out[32:63, :] = x[32:63, :]


def seven_turns_of_eight(x: T, out: T):
    for i in pypto.loop(7):
        out[i * 8:i * 8 + 8, :] = x[i * 8:i * 8 + 8, :] * 2.0


def half_of_each_turn(x: T, out: T):
    for i in pypto.loop(8):
        for j in pypto.loop(1):
            out[i * 8:i * 8 + 8, j * 4:j * 4 + 4] = x[i * 8:i * 8 + 8, j * 4:j * 4 + 4] * 2.0


def returned(x: T):
    y = pypto.tensor([64, 8], pypto.DT_FP32)
    y[0:2, :] = x[2:4, :]
    return y


def two_parts(x: T, out: T):
    out[0:32, :] = x[0:32, :]
    out[32:, :] = x[32:, :]


def every_turn(x: T, out: T):
    for i in pypto.loop(8):
        out[i * 8:i * 8 + 8, :] = x[i * 8:i * 8 + 8, :] * 2.0


def every_tile(x: T, out: T):
    for i in pypto.loop(8):
        for j in pypto.loop(2):
            out[i * 8:i * 8 + 8, j * 4:j * 4 + 4] = x[i * 8:i * 8 + 8, j * 4:j * 4 + 4] * 2.0


def turns_of_python(x: T, out: T):
    for i in range(64):
        out[i:i + 1, :] = x[i:i + 1, :]


def all_and_then_a_part(x: T, out: T):
    out[:] = x
    out[0:1, :] = x[0:1, :] * 2.0


def in_place(x: T, out: T):
    out[0:2, :] = out[0:2, :] + x[0:2, :]


def a_cache(x: T, out: T, n: COUNT):
    out[n[0]:n[0] + 1, :] = x[0:1, :]


def one_row_of_any_number(x: D, out: D):
    out[0:1, :] = x[0:1, :]


def turns_by_extent(x: D, out: D):
    for i in pypto.loop(x.shape[0]):
        out[i:i + 1, :] = x[i:i + 1, :]


def told(function: Callable[..., Any]) -> list[str]:
    """The warnings of a kernel's capture."""
    arrays = {"returned": (X,), "a_cache": (X, X, N)}.get(function.__name__, (X, X))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pypto.jit(function).graph(*arrays)
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(("function", "left"), [
    (first_rows, 496), (all_but_a_column, 64), (two_parts_and_a_hole, 8), (seven_turns_of_eight, 64), (half_of_each_turn, 256),
    (returned, 496)])
def test_a_part_that_is_left_out_is_told(function: Callable[..., Any], left: int) -> None:
    (warning,) = told(function)
    assert "PT107" in warning and f"at least {left} elements are left out of 512" in warning
    assert ("nothing says what they are" if function is returned else "what the caller has") in warning


@pytest.mark.parametrize("function", [two_parts, every_turn, every_tile, turns_of_python, all_and_then_a_part, in_place, a_cache,
                                      one_row_of_any_number, turns_by_extent])
def test_nothing_is_said_of_the_others(function: Callable[..., Any]) -> None:
    assert not told(function)


def test_lint_off_silences_it() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pypto.jit(first_rows, lint="off").graph(X, X)
