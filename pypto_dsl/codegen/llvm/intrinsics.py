"""The CPU's operations: one row per operation of the op table, from its name to the function that writes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from pypto_dsl.codegen.llvm import elements
from pypto_dsl.codegen.llvm.bfloat import ROUNDED_TO, Known
from pypto_dsl.codegen.llvm.builder import I1, I32, Builder, Guarded, Value
from pypto_dsl.codegen.llvm.features import FeatureLevel
from pypto_dsl.codegen.llvm.math import (
    division,
    double,
    error,
    exponential,
    fast,
    gamma,
    logarithm,
    power,
    root,
    short,
    tables,
    trigonometric,
    wide,
)
from pypto_dsl.compiler import dtypes
from pypto_dsl.compiler.dtypes import BY_NAME, DType
from pypto_dsl.compiler.errors import error as refusal
from pypto_dsl.compiler.graph import TIER
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.tile_ir.nodes import BlockOp


@dataclass(frozen=True)
class Use:
    """One operation to write: operands as register values of one width, their dtypes, the result's dtype, the attributes.

    ``uniform[i]`` is operand i as a scalar where it is the same for every lane, ``literals[i]`` its number where it is known.
    """

    operands: tuple[Value, ...]
    sources: tuple[DType, ...]
    result: DType
    attributes: Mapping[str, Any]
    uniform: tuple[Value | None, ...]
    literals: tuple[float | int | None, ...]
    span: Span | None
    known: Known = Known.NOTHING  # about operand 0

    @property
    def rounded_to(self) -> DType | None:
        """The 16-bit dtype that both operand 0 comes from and the result is only rounded to, where the Block says so."""
        name = self.attributes.get(ROUNDED_TO)
        return None if name is None else BY_NAME[name]


Writer = Callable[[Builder, Use], Value | Guarded]
Unary = Callable[[Builder, Value], Value]
Function = Callable[[Builder, Value], Value | Guarded]
Binary = Callable[[Builder, Value, Value], Value | Guarded]


def _unary(function: Function) -> Writer:
    return lambda b, use: function(b, use.operands[0])


def _binary(function: Binary) -> Writer:
    return lambda b, use: function(b, use.operands[0], use.operands[1])


def _by_precision(single: Function, double_precision: Unary) -> Writer:
    return lambda b, use: (single if use.sources[0] is dtypes.F32 else double_precision)(b, use.operands[0])


def _function(single: Function, name: str) -> Writer:
    return _by_precision(single, double.by_libm(name))


def _wide(name: str) -> Writer:
    """A function of f32 that is computed in f64, and the f64 function."""

    def write(b: Builder, use: Use) -> Value:
        if use.sources[0] is dtypes.F64:
            return double.FUNCTIONS[name](b, *use.operands, **use.attributes)
        return wide.FUNCTIONS[name](b, *use.operands, **use.attributes)

    return write


def _rounding(intrinsic: str) -> Writer:
    def write(b: Builder, use: Use) -> Value:
        return b.intrinsic(intrinsic, use.operands[0]) if use.sources[0].is_float else use.operands[0]

    return write


def _absolute(b: Builder, use: Use) -> Value:
    x, dtype = use.operands[0], use.sources[0]
    if dtype.is_float:
        return b.intrinsic("llvm.fabs", x)
    if not dtype.signed:
        return x
    return b.call(x.type, f"llvm.abs.{x.type.mangled}", x, b.constant(I1, 0))


def extreme(b: Builder, x: Value, y: Value, dtype: DType, largest: bool) -> Value:
    """Maximum or minimum: NaN propagates, -0 < +0."""
    if dtype is dtypes.F32 and b.level.has_ranges and x.type.lanes >= 8:
        return _range(b, x, y, largest)
    if dtype.is_float:
        return b.intrinsic("llvm.maximum" if largest else "llvm.minimum", x, y)
    if dtype is dtypes.BOOL:
        return x | y if largest else x & y
    return b.intrinsic(f"llvm.{'s' if dtype.signed else 'u'}{'max' if largest else 'min'}", x, y)


def _range(b: Builder, x: Value, y: Value, largest: bool) -> Value:
    """The number by one instruction, and NaN put back."""
    return b.select(b.compare("uno", x, y), x + y, larger_number(b, x, y, largest))


def larger_number(b: Builder, x: Value, y: Value, largest: bool) -> Value:
    """Maximum or minimum by the instruction that orders the zeros; it prefers numbers to NaN."""
    return tables.avx512(b, "range", x, y, b.constant(I32, 5 if largest else 4))


def _extreme(largest: bool) -> Writer:
    def write(b: Builder, use: Use) -> Value:
        for x, number in zip(use.operands, reversed(use.literals), strict=True):
            if use.sources[0].is_float and number is not None and number == number:
                return _limit(b, x, float(number), largest)
        return extreme(b, use.operands[0], use.operands[1], use.sources[0], largest)

    return write


def _limit(b: Builder, x: Value, limit: float, largest: bool) -> Value:
    """Maximum or minimum with a number: a comparison that NaN fails, and the zero that a comparison cannot tell apart mended."""
    limited = b.select(b.compare("olt" if largest else "ogt", x, limit), limit, x)
    if limit != 0 or largest == (math.copysign(1, limit) < 0):
        return limited
    return limited + limit if largest else b.select(b.compare("oeq", x, 0.0), limit, limited)


def _gcd(b: Builder, use: Use) -> Value:
    """Euclid's algorithm on magnitudes, all lanes until the last is done."""
    x, y = use.operands
    if use.sources[0].signed:
        x, y = (b.call(v.type, f"llvm.abs.{v.type.mangled}", v, b.constant(I1, 0)) for v in (x, y))

    def turn(values: list[Value]) -> tuple[Value, list[Value]]:
        large, small = values
        done = b.compare("eq", small, 0)
        rest = b.binary("urem", large, b.select(done, b.constant(small.type, 1), small))
        following = [b.select(done, large, small), b.select(done, b.constant(small.type, 0), rest)]
        return b.any(b.compare("ne", following[1], 0)), following

    return b.repeat(turn, [x, y], "euclid")[0]


_SIGNED = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}
_FLOAT = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def _comparison(name: str) -> Writer:
    def write(b: Builder, use: Use) -> Value:
        dtype = use.sources[0]
        table = _FLOAT if dtype.is_float else _SIGNED if dtype.signed and dtype is not dtypes.BOOL else _UNSIGNED
        return b.compare(table[name], use.operands[0], use.operands[1])

    return write


def _pow(b: Builder, use: Use) -> Value | Guarded:
    x, y = use.operands
    if use.sources[0].is_integer:
        return power.pow_integer(b, x, y, use.sources[0].signed)
    if use.sources[0] is dtypes.F64:
        return double.per_lane(b, "pow", x, y)
    return _power(b, use, power.pow)


def _power(b: Builder, use: Use, other: power.Power) -> Value | Guarded:
    """An f32 power, by ``other`` unless the exponent is one of a form of its own."""
    x, y = use.operands
    literal, uniform = use.literals[1], use.uniform[1]
    if literal is not None:
        return power.pow_literal(b, x, float(literal), other)
    if uniform is not None:
        return power.pow_uniform(b, x, uniform, other)
    return other(b, x, y)


def _ldexp(b: Builder, use: Use) -> Value:
    x, exponent = use.operands
    whole = not use.sources[1].is_float
    if use.sources[0] is dtypes.F32:
        return (exponential.ldexp if whole else exponential.ldexp_real)(b, x, exponent)
    return (double.ldexp if whole else double.ldexp_real)(b, x, exponent)


def _gelu(single: Mapping[str, Function], double_precision: Mapping[str, Function]) -> Writer:
    return lambda b, use: (single if use.sources[0] is dtypes.F32 else double_precision)[_gelu_form(use)](b, use.operands[0])


def _gelu_form(use: Use) -> str:
    return "gelu_tanh" if use.attributes.get("approximate", "none") == "tanh" else "gelu_erf"


def _cast(b: Builder, use: Use) -> Value:
    mode = str(use.attributes.get("mode", "CAST_NONE"))
    saturate = use.attributes.get("satmode", "OFF") == "ON"
    return elements.cast(b, use.operands[0], use.sources[0], use.result, mode, saturate, use.span, use.known)


def _shift(left: bool) -> Writer:
    def write(b: Builder, use: Use) -> Value:
        x, count = use.operands
        dtype = use.sources[0]
        width = dtype.bits
        inside = b.compare("ult", count, width)
        if left or not dtype.signed:
            shifted = x << b.select(inside, count, 0) if left else x.lshr(b.select(inside, count, 0))
            return b.select(inside, shifted, 0)
        return x >> b.select(inside, count, width - 1)

    return write


WRITERS: dict[str, Writer] = {
    "add": _binary(lambda b, x, y: x + y),
    "sub": _binary(lambda b, x, y: x - y),
    "mul": _binary(lambda b, x, y: x * y),
    "div": _binary(lambda b, x, y: x / y),
    "neg": _unary(lambda b, x: -x),
    "abs": _absolute,
    "square": _unary(lambda b, x: x * x),
    "reciprocal": _unary(lambda b, x: 1.0 / x),
    "maximum": _extreme(True),
    "minimum": _extreme(False),
    "pow": _pow,
    "ldexp": _ldexp,
    "exp": _function(exponential.exp, "exp"),
    "exp2": _function(exponential.exp2, "exp2"),
    "expm1": _function(exponential.expm1, "expm1"),
    "log": _function(logarithm.log, "log"),
    "log2": _function(logarithm.log2, "log2"),
    "log10": _function(logarithm.log10, "log10"),
    "log1p": _function(logarithm.log1p, "log1p"),
    "sin": _function(trigonometric.sin, "sin"),
    "cos": _function(trigonometric.cos, "cos"),
    "tan": _function(trigonometric.tan, "tan"),
    "erf": _function(error.erf, "erf"),
    "tanh": _by_precision(exponential.tanh, lambda b, x: double.per_lane(b, "tanh", x)),
    "sigmoid": _by_precision(exponential.sigmoid, double.sigmoid),
    "silu": _by_precision(exponential.silu, double.silu),
    "gelu": _gelu({"gelu_tanh": error.gelu_tanh, "gelu_erf": error.gelu_erf},
                  {"gelu_tanh": double.gelu_tanh, "gelu_erf": double.gelu_erf}),
    "sqrt": _unary(root.sqrt),
    "rsqrt": _by_precision(root.rsqrt, double.rsqrt),
    **{name: _wide(name) for name in (*wide.FUNCTIONS, "mish", "logit")},
    "rint": _rounding("llvm.rint"),
    "fmod": _binary(division.fmod),
    "floor_div": lambda b, use: division.floor_quotient(b, use.operands[0], use.operands[1], use.sources[0].signed),
    "lgamma": _by_precision(wide.in_double(double.by_libm("lgamma")), gamma.lgamma),
    "digamma": _by_precision(wide.in_double(gamma.digamma), gamma.digamma),
    "gcd": _gcd,
    "positive": _unary(lambda b, x: x),
    "floor": _rounding("llvm.floor"),
    "ceil": _rounding("llvm.ceil"),
    "trunc": _rounding("llvm.trunc"),
    **{name: _comparison(name) for name in _SIGNED},
    "where": lambda b, use: b.select(use.operands[0], use.operands[1], use.operands[2]),
    "bitwise_and": _binary(lambda b, x, y: x & y),
    "bitwise_or": _binary(lambda b, x, y: x | y),
    "bitwise_xor": _binary(lambda b, x, y: x ^ y),
    "bitwise_not": _unary(lambda b, x: ~x),
    "bitwise_left_shift": _shift(True),
    "bitwise_right_shift": _shift(False),
    "cast": _cast,
    "bitcast": lambda b, use: elements.bitcast(b, use.operands[0], use.result),
}

# The forms of `[fast.bounds]`, for Block operations with the attribute `tier`.
FAST: dict[str, Writer] = {
    "mac": lambda b, use: b.fma(*use.operands),
    "pow": lambda b, use: _power(b, use, fast.pow),
    "gelu": lambda b, use: (fast.gelu_tanh if use.attributes["approximate"] == "tanh" else fast.gelu_erf)(b, use.operands[0]),
    **{name: _unary(function) for name, function in fast.FUNCTIONS.items()},
}

# Operations that cost tens of instructions, and how many vectors of them are worth working on at the same time: their chains of
# dependences are longer than what the processor looks ahead, and beyond these numbers registers run out. [measured on Zen 5]
HEAVY = {
    "pow": 4, "ldexp": 1, "lgamma": 1, "digamma": 1, "fmod": 1, "exp": 4, "exp2": 2, "expm1": 4, "log": 2, "log2": 4, "log10": 4,
    "log1p": 2, "erf": 4, "tanh": 4, "sigmoid": 4, "silu": 4, "gelu": 2, "rsqrt": 4,
    "sin": 4, "cos": 4, "tan": 4, **dict.fromkeys(wide.FUNCTIONS, 4), "hypot": 1,
}

# Of these, what is written for vectors of any number of lanes; the others have tables and functions for the level's own.
ANY_WIDTH = frozenset({"ldexp", "rsqrt"})


def _short(b: Builder, name: str, use: Use, dtype: DType) -> Value | Guarded:
    return short.FUNCTIONS[_gelu_form(use) if name == "gelu" else name](b, use.operands[0], dtype)


# Operations that have a shorter form where their result is only rounded to the 16-bit dtype of their operand, and as above how many
# vectors of them are worth working on at the same time.
SHORT = {
    "tanh": 4, "gelu": 2, "silu": 4, "exp": 4, "exp2": 4, "log": 2, "log2": 2, "log10": 2, "sin": 2, "cos": 2,
}

# Of them, what takes longer than the f32 function where a table is permuted eight entries at a time.
MANY_TABLES = frozenset({"silu"})


def short_at(level: FeatureLevel) -> Set[str]:
    """The operations that have a shorter form worth writing at a level."""
    return SHORT.keys() - MANY_TABLES if level.permutes_eights else SHORT.keys()


def together(op: BlockOp) -> int | None:
    """How many vectors of an operation are worth working on at the same time, where it costs tens of instructions."""
    return (SHORT if ROUNDED_TO in dict(op.attributes) else HEAVY).get(op.name)


def write(b: Builder, name: str, use: Use) -> Value:
    """The operation's value; PT502 for an operation that the CPU does not have."""
    return write_together(b, name, [use])[0]


def write_together(b: Builder, name: str, uses: Sequence[Use]) -> list[Value]:
    """One operation at independent places, with the instructions taking turns; PT502 as above."""
    dtype, cheaper = uses[0].rounded_to, TIER in uses[0].attributes
    if dtype is not None and not (cheaper and name in MANY_TABLES):  # bits with `precision="fast"` are those of all levels
        return b.settled(b.woven([lambda use=use: _short(b, name, use, dtype) for use in uses]))  # type: ignore[misc]
    writer = (FAST if cheaper else WRITERS).get(name)
    if writer is None:
        raise refusal("PT502", f"the CPU target does not have `{name}`", uses[0].span)
    return b.settled(b.woven([lambda use=use: writer(b, use) for use in uses]))  # type: ignore[misc]
