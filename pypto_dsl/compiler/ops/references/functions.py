"""Functions of one or two floats, evaluated in float64."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import F32, DType
from pypto_dsl.compiler.ops import reference
from pypto_dsl.compiler.ops.reference import within

Array = np.ndarray[Any, np.dtype[Any]]


def quiet(function: Callable[..., Any]) -> Callable[..., Array]:
    """``function`` without floating-point warnings, blind to attributes."""

    def called(*operands: Array, **_: Any) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(*operands))

    called.__name__ = getattr(function, "__name__", "function")
    return called


def on_floats(function: Callable[[Array], Array]) -> Callable[..., Array]:
    """A rounding function: integers and bool are what they are."""

    def called(x: Array, **_: Any) -> Array:
        if not np.issubdtype(np.asarray(x).dtype, np.floating):
            return x
        with np.errstate(all="ignore"):
            return np.asarray(function(x))

    return called


def _guarded(function: Callable[[float], float]) -> Callable[[float], float]:
    def called(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return called


def _each(function: Callable[[float], float]) -> Callable[..., Array]:
    spread = np.frompyfunc(_guarded(function), 1, 1)

    def called(x: Array, **_: Any) -> Array:
        return np.asarray(spread(x), dtype=np.float64)

    return called


erfc = _each(math.erfc)


def _lgamma(x: float) -> float:
    """ln |gamma(x)|; at the poles, 0 and the negative integers, inf."""
    if x == -math.inf or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


lgamma = _each(_lgamma)


def _digamma(x: float) -> float:
    """The recurrence up to 12, then the asymptotic series (DLMF 5.11.2); reflection for negative arguments (DLMF 5.5.4)."""
    if math.isnan(x) or x == -math.inf:
        return math.nan
    if x == 0:
        return math.copysign(math.inf, -x)
    if x < 0:
        if x == math.floor(x):
            return math.nan
        return _digamma(1.0 - x) - math.pi / math.tan(math.pi * math.remainder(x, 1.0))
    if x == math.inf:
        return math.inf
    shift = 0.0
    while x < 12.0:
        shift -= 1.0 / x
        x += 1.0
    z = 1.0 / (x * x)
    series = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z * (1 / 132 - z * (691 / 32760 - z / 12))))))
    return shift + math.log(x) - 0.5 / x - series


digamma = _each(_digamma)


def digamma_terms(x: Array, **_: Any) -> Array:
    """The larger of psi(1 - x) and pi cot(pi x), of which digamma is the difference below 0, and cancels beside its zeros; 0 elsewhere."""
    with np.errstate(all="ignore"):
        fraction = x - np.rint(x)
        larger = np.maximum(np.abs(digamma(1.0 - x)), np.abs(np.pi / np.tan(np.pi * fraction)))
    return np.where((x < 0) & (fraction != 0), larger, 0.0)


def _erfinv(y: float) -> float:
    """Newton's method on erf (erfc in the tail), from Winitzki's elementary approximation."""
    if abs(y) >= 1.0 or math.isnan(y):
        return math.copysign(math.inf, y) if abs(y) == 1.0 else math.nan
    if abs(y) < 1e-9:
        return y * math.sqrt(math.pi) / 2
    ln = math.log((1.0 - y) * (1.0 + y))
    half = 2.0 / (math.pi * 0.147) + ln / 2
    x = math.sqrt(math.sqrt(half * half - ln / 0.147) - half)
    target = abs(y)
    for _ in range(6):
        error = (math.erf(x) - target) if target < 0.5 else (1.0 - target) - math.erfc(x)
        x -= error * math.sqrt(math.pi) / 2 * math.exp(x * x)
    return math.copysign(x, y)


erfinv = _each(_erfinv)


def bessel_i0(x: Array, **_: Any) -> Array:
    """The modified Bessel function of order 0."""
    return _bessel(np.asarray(x, dtype=np.float64), 0)


def bessel_i1(x: Array, **_: Any) -> Array:
    """The modified Bessel function of order 1."""
    return _bessel(np.asarray(x, dtype=np.float64), 1)


def _bessel(x: Array, order: int) -> Array:
    """The power series, of positive terms, up to 30 (DLMF 10.25.2); the asymptotic one beyond (DLMF 10.40.1). In long double, because
    the terms' roundings add up."""
    x = x.astype(np.longdouble)
    size = np.abs(x)
    with np.errstate(all="ignore"):
        small = np.where(size < 30, x, 0.0)
        term = np.ones_like(small) if order == 0 else small / 2
        series = term
        for k in range(1, 90):
            term = term * (small * small / 4) / (k * (k + order))
            series = series + term
        large = np.where((size >= 30) & np.isfinite(x), size, 30.0)
        term = decaying = np.ones_like(large)
        for k in range(1, 40):
            term = term * ((2 * k - 1) ** 2 - 4 * order * order) / (8.0 * k * large)
            decaying = decaying + term
        root = np.exp(large / 2)  # twice a factor, so that only the result overflows
        far = root * (decaying / np.sqrt(2 * math.pi * large)) * root
        far = np.where(np.isinf(x), np.inf, far)
        far = np.where((x < 0) & (order == 1), -far, far)
        return np.where(np.isnan(x), np.nan, np.where(size < 30, series, far)).astype(np.float64)


def logaddexp(a: Array, b: Array, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.logaddexp(a, b))


def logaddexp2(a: Array, b: Array, **_: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.logaddexp2(a, b))


def xlogy(x: Array, y: Array, **_: Any) -> Array:
    """x * log(y), and 0 where x is 0 and y is no NaN."""
    with np.errstate(all="ignore"):
        return np.where((x == 0) & ~np.isnan(y), 0.0, x * np.log(y))


# Sums of products: each step reaches as far as its dtype does, so that what overflows on the way is inf, and NaN beside another.


def mac(x: Array, a: Array, b: Array, source: DType = F32, **_: Any) -> Array:
    """x * a + b."""
    with np.errstate(all="ignore"):
        return np.asarray(within(x * a, source) + b)


def axpy(y: Array, x: Array, alpha: float = 1.0, source: DType = F32, **_: Any) -> Array:
    """alpha * x + y."""
    return mac(x, np.asarray(float(alpha)), y, source)


def addcmul(x: Array, a: Array, b: Array, value: float = 1.0, source: DType = F32, **_: Any) -> Array:
    """x + a * b * value."""
    with np.errstate(all="ignore"):
        return np.asarray(x + within(within(a * b, source) * value, source))


def addcdiv(x: Array, a: Array, b: Array, source: DType = F32, **_: Any) -> Array:
    """x + a / b."""
    with np.errstate(all="ignore"):
        return np.asarray(x + within(a / b, source))


def lerp(x: Array, end: Array, weight: Array, source: DType = F32, **_: Any) -> Array:
    """x + weight * (end - x)."""
    with np.errstate(all="ignore"):
        return np.asarray(x + within(weight * within(end - x, source), source))


def nextafter(a: Array, b: Array, source: DType = F32, **_: Any) -> Array:
    """The neighbour of ``a`` in its own dtype, towards ``b``."""
    first, second = (reference.round_to(v, source) for v in (a, b))
    if source.bits >= 32:
        return np.asarray(np.nextafter(first, second)).astype(np.float64)
    bits = first.view(np.int16)
    wide_a, wide_b = first.astype(np.float64), second.astype(np.float64)
    away = (np.abs(wide_b) > np.abs(wide_a)) & (np.signbit(wide_a) == np.signbit(wide_b))
    stepped = (bits + np.where(away, 1, -1)).astype(np.int16).view(source.numpy).astype(np.float64)
    smallest = np.copysign(np.array(1, np.int16).view(source.numpy).astype(np.float64), wide_b)
    moved = np.where(wide_a == 0, smallest, stepped)
    return np.where(np.isnan(wide_a) | np.isnan(wide_b), np.nan, np.where(wide_a == wide_b, wide_b, moved))


def frexp(x: Array, **_: Any) -> tuple[Array, Array]:
    """Significand in [0.5, 1) and exponent; zeros, inf and NaN are their own significand with exponent 0."""
    fraction, exponent = np.frexp(x)
    return np.asarray(fraction), np.where(np.isfinite(x), exponent, 0).astype(np.int32)


def fmod(a: Array, b: Array, **_: Any) -> Array:
    """The remainder of the truncated quotient, with the sign of ``a``; integers: 0 for a zero divisor."""
    with np.errstate(all="ignore"):
        if np.issubdtype(np.asarray(a).dtype, np.floating):
            return np.asarray(np.fmod(a, b))
        return np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b))).astype(np.asarray(a).dtype)


def remainder(a: Array, b: Array, **_: Any) -> Array:
    """The remainder of the floored quotient, with the sign of ``b``; integers: 0 for a zero divisor."""
    with np.errstate(all="ignore"):
        if np.issubdtype(np.asarray(a).dtype, np.floating):
            return np.asarray(np.remainder(a, b))
        return np.where(b == 0, 0, np.remainder(a, np.where(b == 0, 1, b))).astype(np.asarray(a).dtype)


def floor_div(a: Array, b: Array, **_: Any) -> Array:
    """Floor of the exact quotient. Floats: a zero divisor gives inf or NaN, an infinite dividend NaN. Integers: a zero divisor gives 0."""
    with np.errstate(all="ignore"):
        if np.issubdtype(np.asarray(a).dtype, np.floating):
            return np.asarray(np.floor_divide(a, b))
        return np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b))).astype(np.asarray(a).dtype)


def trunc_div(a: Array, b: Array, **_: Any) -> Array:
    """The quotient without its fraction; floats: of a zero divisor inf or NaN; integers: 0 for a zero divisor."""
    a, b = np.asarray(a), np.asarray(b)
    with np.errstate(all="ignore"):
        if np.issubdtype(a.dtype, np.floating):
            magnitude = floor_div(np.abs(a), np.abs(b))
            return np.where(np.signbit(a) == np.signbit(b), magnitude, -magnitude)
        quotient, rest = floor_div(a, b), remainder(a, b)
        towards = (rest != 0) & ((a < 0) != (b < 0))
        return (quotient + towards.astype(a.dtype)).astype(np.asarray(a).dtype)


def ceil_div(a: Array, b: Array, **_: Any) -> Array:
    """The quotient of integers rounded up; 0 for a zero divisor."""
    with np.errstate(all="ignore"):
        return (floor_div(a, b) + (remainder(a, b) != 0).astype(np.asarray(a).dtype)).astype(np.asarray(a).dtype)


def gcd(a: Array, b: Array, **_: Any) -> Array:
    """The greatest common divisor, not negative (the smallest integer's magnitude wraps)."""
    return np.asarray(np.gcd(a, b))


def lcm(a: Array, b: Array, **_: Any) -> Array:
    """The least common multiple, not negative; wraps."""
    with np.errstate(all="ignore"):
        divisor = np.gcd(a, b)
        return np.asarray(np.abs(np.where(divisor == 0, 0, floor_div(a, divisor) * b)).astype(np.asarray(a).dtype))


def isclose(a: Array, b: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False, source: DType = F32, **_: Any) -> Array:
    """|a - b| <= rtol * |b| + atol, step by step; infinities are close to themselves only."""
    def step(x: Array) -> Array:
        return x if source.bits >= 64 else reference.round_to(x, F32).astype(np.float64)

    with np.errstate(all="ignore"):  # a truth has no bound: every step is rounded
        near = (step(np.abs(a - b)) <= step(atol + step(rtol * np.abs(b)))) & np.isfinite(a) & np.isfinite(b)
        same = (a == b) | (np.isnan(a) & np.isnan(b) & equal_nan)
    return near | same


def round_decimals(x: Array, decimals: int = 0, source: DType = F32, **_: Any) -> Array:
    """rint(x * 10**decimals) / 10**decimals, scaled in f64 for f64 and in f32 for all narrower floats; x where it has no digits there."""
    x = np.asarray(x)
    if not np.issubdtype(x.dtype, np.floating):
        return x
    if decimals == 0:
        return np.rint(x)
    single = source.bits < 64
    with np.errstate(all="ignore"):
        factor = np.asarray(float(10 ** abs(decimals)), np.float32 if single else np.float64)
        given: Array = x.astype(factor.dtype)
        scaled = np.asarray(given * factor if decimals > 0 else given / factor, np.float64)
        near, wide = np.rint(scaled), factor.astype(np.float64)
        made = near / wide if decimals > 0 else near * wide
        return np.where(np.abs(scaled) < (2.0**24 if single else 2.0**53), made, x)


def sign(x: Array, **_: Any) -> Array:
    """-1, 0 or 1; zeros and NaN are themselves."""
    if not np.issubdtype(np.asarray(x).dtype, np.floating):
        return np.asarray(np.sign(x))
    return np.where((x == 0) | np.isnan(x), x, np.sign(x))


def signbit(x: Array, **_: Any) -> Array:
    """Whether the sign is set, of -0 too; false for NaN, as PyPTO has it."""
    x = np.asarray(x)
    if not np.issubdtype(x.dtype, np.floating):
        return x < 0
    return np.signbit(x) & ~np.isnan(x)


def clip(x: Array, min: Array | None = None, max: Array | None = None, **_: Any) -> Array:
    """minimum(maximum(x, min), max): min > max gives max, NaN anywhere gives NaN."""
    with np.errstate(all="ignore"):
        low = x if min is None else reference.maximum(x, min)
        return low if max is None else reference.minimum(low, max)


def ignoring(extreme: Callable[..., Array]) -> Callable[..., Array]:
    """maximum or minimum in which a NaN loses to a number."""

    def called(a: Array, b: Array, **_: Any) -> Array:
        if not np.issubdtype(np.asarray(a).dtype, np.floating):
            return extreme(a, b)
        return np.where(np.isnan(a), b, np.where(np.isnan(b), a, extreme(a, b)))

    return called


def fclip(x: Array, min: Array | None = None, max: Array | None = None, **_: Any) -> Array:
    """clip in which a NaN loses to a number."""
    low = x if min is None else ignoring(reference.maximum)(x, min)
    return low if max is None else ignoring(reference.minimum)(low, max)
