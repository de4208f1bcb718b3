"""sin, cos and tan on f32 vectors: a reduction by three parts of pi/2, and an exact one in f64 for the lanes beyond its reach.

Both give x = n pi/2 + r with |r| at most a little above pi/4, of which n modulo 4 and r matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from pypto_dsl.codegen.llvm.builder import Builder, Guarded, Module, Value
from pypto_dsl.codegen.llvm.math import wide
from pypto_dsl.codegen.llvm.math.tables import INFINITY, ROUNDING, constant, look_up_wide, magnitude, nearest, polynomial

REACH = 100000.0  # below it n has 16 bits, and what the three parts of pi/2 leave out is below 2^-58
FIRST_EXPONENT = 16  # of the smallest argument that the exact reduction is for
EXPONENTS = 128  # entries of its table: exponents up to 127, then zeros


@dataclass(frozen=True)
class Angle:
    """x = n pi/2 + r: the remainder, and n as an integer of which the last two bits are right."""

    r: Value
    quadrant: Value


def _near(b: Builder, x: Value) -> Angle:
    """The angle of 0 <= x < REACH; ``r`` within one ulp: the first step is exact, a multiple of 2^-24 below 1."""
    shifted = b.fma(x, constant("two_over_pi"), ROUNDING)
    n = -nearest(b, shifted)
    r = x
    for part in polynomial("half_pi"):
        r = b.fma(n, part, r)
    return Angle(r, b.bits(shifted))


def _far(b: Builder, x: Value) -> Angle:
    """The angle of any x >= 2^16; ``r`` within half an ulp."""
    n, r = _exactly(b, x)
    return Angle(b.convert("fptrunc", r, "float"), b.convert("fptosi", n, "i32"))


def _exactly(b: Builder, x: Value) -> tuple[Value, Value]:
    """n and r of any x >= 2^16 in f64.

    x = m 2^e with 24 bits in m, 1 <= m < 2. The table has 2^e 2/pi with the multiples of 4 2^23 left out, in two parts: the first
    is so short that its product with m is exact in f64, the second so precise that r has 2^-27 relative error at the worst x.
    """
    word = b.bits(x)
    index = word.lshr(23) - (127 + FIRST_EXPONENT)
    m = b.convert("fpext", b.from_bits((word & 0x7FFFFF) | 0x3F800000, "float"), "double")
    high, low = (look_up_wide(b, f"two_over_pi_{name}", numbers, index)
                 for name, numbers in zip(("high", "low"), two_over_pi_by_exponent(), strict=True))
    turns = m * high
    n = b.intrinsic("llvm.rint", b.fma(m, low, turns))
    return n, b.fma(m, low, turns - n) * 1.5707963267948966


@cache
def two_over_pi_by_exponent() -> tuple[list[float], list[float]]:
    """``2^e 2/pi`` modulo 4 2^23 for e from FIRST_EXPONENT on, as the sum of two f64: a multiple of 1/16, and the rest."""
    digits = 2**224 * 10**80 // _PI  # 2^223 2/pi, rounded down
    scaled = [(digits << e) % (1 << (223 + 25)) for e in range(FIRST_EXPONENT, 128)]  # in units of 2^-223
    parts = [divmod(s, 1 << (223 - 4)) for s in scaled] + [(0, 0)] * (EXPONENTS + FIRST_EXPONENT - 128)
    return [first / 16 for first, _ in parts], [rest / 2**223 for _, rest in parts]


_PI = 314159265358979323846264338327950288419716939937510582097494459230781640628620899  # 10^80 pi


def _sine(b: Builder, r: Value) -> Value:
    z = r * r
    return b.fma(r * z, b.horner(z, polynomial("sin_rest")), r)


def _cosine(b: Builder, r: Value) -> Value:
    z = r * r
    return b.fma(z * z, b.horner(z, polynomial("cos_rest")), b.fma(z, -0.5, 1.0))


def _odd(b: Builder, quadrant: Value) -> Value:
    return b.compare("ne", quadrant & 1, 0)


def _negated(b: Builder, value: Value, by: Value) -> Value:
    """``value`` with its sign changed where the sign bit of ``by`` is set."""
    return b.from_bits(b.bits(value) ^ (by & -0x80000000), "float")


def _sin_of(b: Builder, x: Value, angle: Angle) -> Value:
    chosen = b.select(_odd(b, angle.quadrant), _cosine(b, angle.r), _sine(b, angle.r))
    return _negated(b, chosen, (angle.quadrant << 30) ^ b.bits(x))


def _cos_of(b: Builder, x: Value, angle: Angle) -> Value:
    chosen = b.select(_odd(b, angle.quadrant), _sine(b, angle.r), _cosine(b, angle.r))
    return _negated(b, chosen, (angle.quadrant + 1) << 30)


def _guarded(b: Builder, x: Value, name: str, near: Callable[[Builder, Value], Value], far: Callable[[Builder, Value], Value]) -> Guarded:
    """A function by its form for magnitudes below REACH and its form beyond; infinities and NaN give NaN."""
    fast = near(b, x)
    size, limit = b.bits(magnitude(b, x)), b.bits(b.constant(x.type, REACH))

    def write(module: Module) -> str:
        inner = Builder(module)
        argument = inner.named(x.type, "%x")
        finite = inner.compare("olt", magnitude(inner, argument), INFINITY)
        value = inner.select(finite, far(inner, argument), argument - argument)
        return inner.finish(f"{x.type} @{name}_far({x.type} %x) noinline cold", value)

    def cold() -> Value:
        return b.select(guarded.special, b.call(x.type, b.module.share(f"{name}_far", write), x), fast)

    guarded = Guarded(fast, size, limit, cold, name)
    return guarded


def _tan_of(b: Builder, x: Value, angle: Angle) -> Value:
    sine, cosine, odd = _sine(b, angle.r), _cosine(b, angle.r), _odd(b, angle.quadrant)
    return _negated(b, b.select(odd, cosine, sine) / b.select(odd, sine, cosine), (angle.quadrant << 31) ^ b.bits(x))


OF_ANGLE: dict[str, Callable[[Builder, Value, Angle], Value]] = {"sin": _sin_of, "cos": _cos_of, "tan_single": _tan_of}


def of_angle(b: Builder, x: Value, name: str, near: Callable[[Builder, Value], Value] | None = None) -> Guarded:
    """A function of `OF_ANGLE` of arguments of any size, of those within REACH by ``near`` where that is given."""
    of = OF_ANGLE[name]
    return _guarded(b, x, name, near or (lambda b, x: of(b, x, _near(b, magnitude(b, x)))),
                    lambda b, x: of(b, x, _far(b, magnitude(b, x))))


def sin(b: Builder, x: Value) -> Guarded:
    """The sine, at most 2 ulp for arguments of any size; NaN of infinities."""
    return of_angle(b, x, "sin")


def cos(b: Builder, x: Value) -> Guarded:
    """The cosine, at most 2 ulp for arguments of any size; NaN of infinities."""
    return of_angle(b, x, "cos")


def _tan_near(b: Builder, x: Value) -> Value:
    bits, r = wide.turned(b, b.convert("fpext", x, "double"))
    return b.convert("fptrunc", wide.tangent(b, b.compare("ne", bits & 1, 0), r), "float")


def _tan_far(b: Builder, x: Value) -> Value:
    n, r = _exactly(b, magnitude(b, x))
    odd = b.compare("ne", b.convert("fptosi", n, "i32") & 1, 0)
    return _negated(b, b.convert("fptrunc", wide.tangent(b, odd, r), "float"), b.bits(x))


def tan(b: Builder, x: Value) -> Guarded:
    """The tangent in f64, at most 1 ulp for arguments of any size; NaN of infinities.

    In f32 the roundings of the angle, sine, cosine and quotient would add up to 3.4 ulp.
    """
    return _guarded(b, x, "tan", _tan_near, _tan_far)
