"""Grids of pairs: special values crossed, random bits, and where each function of two numbers is hard."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.sweep.cases import Array

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
