"""Dtype rules of operations: each asks the graph's promotion rule set for its family's typing."""
from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import cast as typed

from pypto_dsl.compiler.dtypes import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, DType
from pypto_dsl.compiler.graph import Value
from pypto_dsl.compiler.ops.definition import Call, TypeRule, Typing
from pypto_dsl.compiler.promotion.atype import AType, strong, weak
from pypto_dsl.compiler.promotion.families import OpTyping, assign, result_type
from pypto_dsl.compiler.promotion.families import in_place as family_in_place
from pypto_dsl.compiler.promotion.refusal import PromotionError
from pypto_dsl.compiler.promotion.rulesets import rule_set

# Which dtypes an operation accepts, for the `dtypes` of definitions. FP8 and block formats are storage: moved and cast, not computed in.
FLOATS: tuple[DType, ...] = (F16, BF16, F32, F64)
SIGNED: tuple[DType, ...] = (I8, I16, I32, I64)
INTEGERS: tuple[DType, ...] = (*SIGNED, U8, U16, U32, U64)
NUMBERS: tuple[DType, ...] = (*FLOATS, *INTEGERS)
COMPARABLE: tuple[DType, ...] = (*NUMBERS, BOOL)
BITS: tuple[DType, ...] = (BOOL, *INTEGERS)


def atype(value: Value) -> AType:
    """The abstract type of a Value, with where it came from for messages."""
    made = value.op
    if made is not None and made.opcode == "constant":
        number = made.attributes["value"]
        return AType(value.type.dtype, value.type.weak, f"{type(number).__name__} {number!r}")
    return AType(value.type.dtype, value.type.weak, f"`{value.name}`" if value.name else "")


def family(name: str) -> TypeRule:
    """The rule of a family of `promotion.families.FAMILIES`, over all tensor operands."""

    def rule(call: Call) -> Typing:
        present = call.present
        try:
            return _known(call.graph.rules, name, call.name, tuple([(o.type.dtype, o.type.weak) for o in present]))
        except PromotionError:
            names = [o.name or f"operand {i}" for i, o in enumerate(present, 1)]
        try:
            typing = result_type(rule_set(call.graph.rules), name, *map(atype, present), op=call.name, names=names)
        except PromotionError as refused:
            raise refused.located(call.span) from None
        return Typing(typing, (typing.result,))

    return rule


@cache
def _known(rules: str, family: str, name: str, types: tuple[tuple[DType, bool], ...]) -> Typing:
    """A family's typing: dtypes and weakness alone decide it. Names and origins only take part in refusals, which are not kept."""
    typing = result_type(rule_set(rules), family, *(AType(*t) for t in types), op=name)
    return Typing(typing, (typing.result,))


arithmetic = family("arithmetic")
compare = family("compare")
logical = family("logical")
predicate = family("predicate")
divide = family("divide")
pow = family("pow")
bitwise = family("bitwise")
keep = family("keep")
where = family("where")
concat = family("concat")
accumulate = family("sum")
product = family("prod")
scan = family("scan")
mean = family("mean")
index = family("index")
ldexp = family("ldexp")
_float_unary = family("float_unary")


def float_unary(call: Call) -> Typing:
    """The first operand decides (integers become floats); further operands (gamma, beta) join it."""
    present = [o for o in call.operands if o is not None]
    if len(present) == 1:
        return _float_unary(call)
    rules = rule_set(call.graph.rules)
    names = [o.name or f"operand {i}" for i, o in enumerate(present, 1)]
    try:
        joined = rules.fold([atype(o) for o in present], op=call.name, names=names)
        typing = result_type(rules, "float_unary", joined, op=call.name, names=names)
    except PromotionError as refused:
        raise refused.located(call.span) from None
    casts = typing.operand_casts * len(present)
    if any(o.type.dtype != typing.operand_casts[0] for o in present) and typing.compute != typing.operand_casts[0]:
        # mixed operands compute from their exact values and round once
        casts = (typing.compute,) * len(present)
        typing = replace(typing, rounds_to=typing.result.dtype)
    return Typing(replace(typing, operand_casts=casts, landings=casts), (typing.result,))


def literal(value: Value | None) -> int | float | bool | None:
    """The number that an operand is known to be, or None."""
    made = value.op if value is not None else None
    number = made.attributes["value"] if made is not None and made.opcode == "constant" else None
    return number if isinstance(number, (bool, int, float)) else None


def integer_division(call: Call) -> Typing:
    """The join; an integer divided by the constant 0 is refused (PT111)."""
    typing = arithmetic(call)
    if typing.typing.compute.is_integer and literal(call.operands[1]) == 0:
        raise call.refuse("PT111", f"{call.name} divides integers by the constant 0", help="a divisor that is 0 only at run time gives 0")
    return typing


def integer_power(call: Call) -> Typing:
    """As the pow page says; an integer to a constant negative power is refused (PT111)."""
    typing = pow(call)
    exponent = literal(call.operands[1])
    if typing.typing.compute.is_integer and exponent is not None and exponent < 0:
        raise call.refuse("PT111", f"an integer is raised to the power {exponent}, which is no integer",
                          help="cast the base to a float; a negative exponent known only at run time gives 0 except for the bases 1 and -1")
    return typing


def shift(call: Call) -> Typing:
    """Integers only; the result has the first operand's dtype, whatever the count's. A constant count outside its width is PT111."""
    typing = _shift(call)
    count, width = literal(call.operands[1]), typing.results[0].dtype.bits
    if count is not None and not 0 <= count < width:
        raise call.refuse("PT111", f"{call.name} by {count} bits, and {typing.results[0].dtype} has {width}",
                          help=f"shift by 0 to {width - 1} bits")
    return typing


def _shift(call: Call) -> Typing:
    typing = bitwise(call)
    first = typed(Value, call.operands[0]).type
    if typing.results[0].weak or first.weak:
        return typing
    kept = (first.dtype,) * len(typing.casts)
    return Typing(replace(typing.typing, operand_casts=kept, landings=kept, compute=first.dtype, result=strong(first.dtype)),
                  (strong(first.dtype),))


def declared(call: Call) -> Typing:
    """The `dtype` attribute, or for constants the dtype they were recorded with."""
    dtype = call.attributes.get("dtype")
    if dtype is None:
        raise call.refuse("PT111", f"{call.name} needs a dtype")
    result = strong(typed(DType, dtype))
    casts = tuple(o.type.dtype for o in call.operands if o is not None)
    return Typing(OpTyping(result.dtype, casts, result, casts, "the declared dtype"), (result,))


def extent(call: Call) -> Typing:
    """The `dtype` attribute, weak when the `weak` attribute says so."""
    typing = declared(call)
    if not call.attributes.get("weak"):
        return typing
    result = weak(typing.results[0].dtype, "a symbolic integer")
    return Typing(replace(typing.typing, result=result), (result,))


CAST_MODES = ("CAST_NONE", "CAST_RINT", "CAST_ROUND", "CAST_FLOOR", "CAST_CEIL", "CAST_TRUNC", "CAST_ODD")


def conversion(call: Call) -> Typing:
    """A cast: strong, even to the dtype it has. PT111 for a mode that the pair does not have."""
    typing = declared(call)
    source, target = typed(Value, call.operands[0]).type.dtype, typing.results[0].dtype
    mode, saturation = call.attributes["mode"], call.attributes["satmode"]
    if mode not in CAST_MODES:
        raise call.refuse("PT111", f"cast has no mode {mode!r}", help=f"one of {', '.join(CAST_MODES)}")
    if saturation not in ("OFF", "ON"):
        raise call.refuse("PT111", f"cast has no satmode {saturation!r}", help="OFF or ON")
    if not target.is_float or not source.is_float:
        exact = source.is_float == target.is_float or (not source.is_float and source.mantissa <= target.mantissa)
        allowed = CAST_MODES if exact or target is BOOL else CAST_MODES[:-1] if source.is_float else CAST_MODES[:2]
    else:
        rounds = source.mantissa > target.mantissa and target.bits > 1 and target.mantissa > 1
        allowed = CAST_MODES if rounds or source.mantissa <= target.mantissa else CAST_MODES[:2]
    if mode not in allowed:
        raise call.refuse("PT111", f"a cast of {source} to {target} does not round by {mode}", help=f"one of {', '.join(allowed)}")
    return typing


def reinterpretation(call: Call) -> Typing:
    """Another dtype of the same width over the same bits (PT203)."""
    typing = declared(call)
    source, target = typed(Value, call.operands[0]).type.dtype, typing.results[0].dtype
    if source.bits != target.bits:
        raise call.refuse("PT203", f"{call.name} reads {source} ({source.bits} bits) as {target} ({target.bits} bits)",
                          help="the widths must be equal; cast converts values, pack and unpack take bytes")
    return typing


def matmul(call: Call) -> Typing:
    """The operands' join accumulated in 32 bits; `out_dtype` when given."""
    typing = family("matmul")(call)
    out = call.attributes.get("out_dtype")
    if out is None:
        return typing
    result = strong(typed(DType, out))
    return Typing(replace(typing.typing, result=result), (result,))


def _plain(call: Call, result: AType, first: DType, more: tuple[AType, ...] = ()) -> Typing:
    """The first operand read as ``first``, all others as they are."""
    present = [o for o in call.operands if o is not None]
    casts = (first, *(o.type.dtype for o in present[1:]))
    return Typing(OpTyping(first, casts, result, casts, "the first operand's dtype", 0), (result, *more))


def first_keeps(call: Call) -> Typing:
    """The first operand's dtype; every other operand (indices, masks) is read as it is."""
    value = typed(Value, call.operands[0])
    return _plain(call, AType(value.type.dtype, value.type.weak), value.type.dtype)


def require_index(call: Call, position: int) -> None:
    """PT203 unless the operand at ``position`` is INT32 or INT64."""
    value = typed(Value, call.operands[position])
    if value.type.dtype not in (I32, I64):
        raise call.refuse("PT203", f"{call.name} takes INT32 or INT64 indices, and got {value.type.dtype}",
                          help="cast the index: pypto.cast(index, pypto.DT_INT32)")


def indexed(call: Call) -> Typing:
    """The first operand's dtype; the second is an index."""
    require_index(call, 1)
    return first_keeps(call)


def written(value: int, *indices: int) -> TypeRule:
    """The first operand keeps its dtype, the operand at ``value`` must join to it (PT205), those at ``indices`` are indices."""

    def rule(call: Call) -> Typing:
        for position in indices:
            require_index(call, position)
        target, source = typed(Value, call.operands[0]), typed(Value, call.operands[value])
        try:
            found = assign(rule_set(call.graph.rules), atype(target), atype(source), op=call.name,
                           names=[target.name or "the destination", source.name or "the source"])
        except PromotionError as refused:
            raise refused.located(call.span) from None
        dtype = found.result.dtype
        casts = tuple(dtype if i in (0, value) else typed(Value, o).type.dtype for i, o in enumerate(call.operands))
        return Typing(replace(found, operand_casts=casts, landings=casts), (found.result,))

    return rule


def in_place(name: str) -> TypeRule:
    """The family ``name`` writing into its first operand, whose dtype stays (PT205)."""

    def rule(call: Call) -> Typing:
        present = [typed(Value, o) for o in call.operands]
        try:
            found = family_in_place(rule_set(call.graph.rules), name, *map(atype, present), op=call.name,
                                    names=[o.name or f"operand {i}" for i, o in enumerate(present, 1)])
        except PromotionError as refused:
            raise refused.located(call.span) from None
        return Typing(found, (found.result,))

    return rule


def keeps_and(*others: DType) -> TypeRule:
    """The first result has the operand's dtype, the others these."""

    def rule(call: Call) -> Typing:
        value = typed(Value, call.operands[0])
        return _plain(call, AType(value.type.dtype, value.type.weak), value.type.dtype, tuple(strong(d) for d in others))

    return rule


def gives(dtype: DType) -> TypeRule:
    """A fixed dtype, whatever the operand's."""

    def rule(call: Call) -> Typing:
        return _plain(call, strong(dtype), typed(Value, call.operands[0]).type.dtype)

    return rule


def both(call: Call) -> Typing:
    """Two results of the operands' join."""
    typing = concat(call)
    return Typing(typing.typing, typing.results * 2)
