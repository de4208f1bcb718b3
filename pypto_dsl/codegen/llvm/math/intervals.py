"""Functions by polynomials of a low degree in 32 intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pypto_dsl.codegen.llvm.builder import Builder, Guarded, Module, Value
from pypto_dsl.codegen.llvm.math.tables import ROUNDING, at_least, at_most, by_interval, magnitude, nearest


@dataclass(frozen=True)
class Intervals:
    """A function's coefficients by degree, one of each for 32 intervals; ``width`` is theirs where it is the same for all."""

    name: str
    tables: list[list[float]]
    width: float = 0.0


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
