"""Loops and branches on the CPU: numbers and tensors that are carried, conditions that are computed, against the interpreter."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto

Array = np.ndarray[Any, np.dtype[Any]]
D, T = pypto.DYNAMIC, pypto.Tensor
CASES: dict[str, Callable[..., Any]] = {}


def case(function: Callable[..., Any]) -> Callable[..., Any]:
    CASES[function.__name__] = function
    return function


@case
def counter(x: T([D, 8]), n: T()):
    turns = 0
    for i in pypto.loop(x.shape[0]):
        if n[i] > 1:
            turns += 1
    return x * turns


@case
def float_counter(x: T([D, 8]), n: T()):
    factor = 1.0
    for _ in pypto.loop(3):
        factor = factor * 1.5
    return x * factor


@case
def offset_by_a_counter(x: T([D, 8]), n: T()):
    out = pypto.full([8, 8], -1.0, pypto.DT_FP32)
    at = 0
    for i in pypto.loop(x.shape[0]):
        if n[i] > 0:
            out[at:at + 1, :] = x[i:i + 1, :] * 2.0
            at += 1
    return out


@case
def scalar_tensor(x: T([D, 8]), n: T()):
    best = pypto.amax(x)
    for i in pypto.loop(x.shape[0]):
        best = best + pypto.amax(x[i:i + 1, :])
    return x + best


@case
def chosen_scalar(x: T([D, 8]), n: T()):
    best = pypto.amax(x)
    if n[0] > n[1]:
        best = pypto.amin(x)
    return x + best


@case
def flag(x: T([D, 8]), n: T()):
    seen = n[0] > 100
    for i in pypto.loop(x.shape[0]):
        seen = seen or n[i] == 2
    y = x * 1.0
    if seen:
        y = y * 3.0
    return y


@case
def elements_of_computed_tensors(x: T([D, 8]), n: T()):
    twice = n * 2
    out = pypto.full([8, 8], 0.0, pypto.DT_FP32)
    for i in pypto.loop(x.shape[0]):
        out[i:i + 1, :] = x[i:i + 1, :] * twice[i]
    return out


@case
def elements_of_generated_tensors(x: T([D, 8]), n: T()):
    steps = pypto.arange(8)
    out = pypto.zeros(8, 8)
    for i in pypto.loop(x.shape[0]):
        out[i:i + 1, :] = x[i:i + 1, :] * steps[i]
    return out


@case
def zero_trips(x: T([D, 8]), n: T()):
    y, turns = x * 2.0, 5
    for _ in pypto.loop(n[0] - n[0]):
        y, turns = y + 1.0, turns + 1
    return y * turns


@case
def unrolled(x: T([D, 8]), n: T()):
    total = pypto.zeros(1, 8)
    for i, k in pypto.loop_unroll(x.shape[0], unroll_list=[4, 2]):
        total = total + pypto.sum(pypto.abs(pypto.view(x, [k, 8], [i, 0])), 0, keepdim=True) * 0.5
        if pypto.is_loop_end(i):
            total = total * 2.0
    return total


@case
def nested_bounds(x: T([D, 8]), n: T()):
    total = pypto.zeros(1, 8)
    for i in pypto.loop(x.shape[0]):
        for j in pypto.loop(pypto.min(n[i], i + 1)):
            if pypto.is_loop_begin(j):
                total = total + x[i:i + 1, :]
            elif i > 1 and not (j == 1):  # noqa: SIM201 (`not` of a symbolic comparison is what is tested)
                total = total - x[j:j + 1, :]
    return total


@case
def uniform_branch_values(x: T([D, 8]), n: T()):
    if n[0] > n[1]:
        y = pypto.full([4, 8], 1.0, pypto.DT_FP32)
    else:
        y = pypto.full([4, 8], 2.0, pypto.DT_FP32)
    return y + 1.0


@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize("name", CASES)
def test_as_on_the_interpreter(name: str, rows: int) -> None:
    rng = np.random.default_rng(rows)
    x = rng.integers(-8, 9, (rows, 8)).astype(np.float32)
    for n in (np.array([2, 1, 0, 3, 2, 0, 1, 2], np.int32), np.array([0, 1, 2, 0, 0, 3, 1, 1], np.int32)):
        got, wanted = (pypto.jit(CASES[name]).run(x.copy(), n.copy(), target=t) for t in ("llvm-cpu", "interpreter"))
        np.testing.assert_array_equal(got, wanted)
        assert not np.isnan(got).any()
