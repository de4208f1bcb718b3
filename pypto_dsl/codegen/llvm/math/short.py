"""Functions by polynomials of a low degree in 32 intervals, above all those of 16-bit floats.

An f32 function whose operand is a 16-bit float and whose result is rounded to one has few operands. Its short form's polynomials lie so
between the results' neighbours that each of the 65,536 operands gives the same 16-bit number as by the f32 function
(`tools/fit_short_math.py`). Whether a function is written so is therefore a matter of time alone, decided wherever one is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from pypto_dsl.codegen.llvm.builder import Builder, Guarded, Module, Value
from pypto_dsl.codegen.llvm.math.tables import (
    ROUNDING,
    at_least,
    at_most,
    by_interval,
    coefficients,
    copysign,
    magnitude,
    nearest,
)
from pypto_dsl.compiler.dtypes import DType

TANH_LIMIT, TANH_SHIFT = 7.25, 20  # beyond the limit tanh rounds to 1; eight intervals in each octave of a + 1/2


@dataclass(frozen=True)
class Intervals:
    """A function's coefficients by degree, one of each for 32 intervals; ``width`` is theirs where it is the same for all."""

    name: str
    tables: list[list[float]]
    width: float = 0.0


@cache
def form(name: str, dtype: DType | None) -> Intervals | None:
    """The short form of a function for a 16-bit dtype; None where there is none."""
    found = None if dtype is None else coefficients("short.json").get(name, {}).get(dtype.name)
    return None if found is None or dtype is None else Intervals(f"{name}_{dtype.name}", **found)


def tanh(b: Builder, x: Value, intervals: Intervals) -> Value:
    """tanh x of a 16-bit number."""
    a = at_most(b, magnitude(b, x), TANH_LIMIT)
    index = b.bits(a + 0.5).lshr(TANH_SHIFT)
    return copysign(b, by_interval(b, intervals.name, intervals.tables, a, index), x)


def gated(b: Builder, x: Value, intervals: Intervals, name: str, everywhere: Callable[[Builder, Value], Value]) -> Guarded:
    """x g(x) of a function g with g(x) + g(-x) = 1: x - a g(-a) or -a g(-a) with a = |x|, by polynomials around the intervals' centres.

    a beyond the last interval changes nothing for x > 0; for x < 0 the function ``everywhere`` takes the place.
    """
    last = intervals.width * 31.4
    a = at_most(b, magnitude(b, x), last)
    shifted = b.fma(a, 1 / intervals.width, ROUNDING)
    t = b.fma(nearest(b, shifted), -intervals.width, a)
    tail = by_interval(b, intervals.name, intervals.tables, t, b.bits(shifted))
    fast = at_least(b, x, -0.0) - tail  # zeros keep their sign
    limit = b.bits(b.constant(x.type, -last))  # the bits of negative numbers go up as these go down

    def write(module: Module) -> str:
        inner = Builder(module)
        value = everywhere(inner, inner.named(x.type, "%x"))
        return inner.finish(f"{x.type} @{name}_everywhere({x.type} %x) noinline cold", value)

    def cold() -> Value:
        return b.select(guarded.special, b.call(x.type, b.module.share(f"{name}_everywhere", write), x), fast)

    guarded = Guarded(fast, b.bits(x), limit, cold, name)
    return guarded
