"""How each primitive operation is spelled in instructions of the vector unit, given a place for its result."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pypto_dsl.compiler.dtypes import BF16, BOOL, F16, F32, I32, U16, DType
from pypto_dsl.compiler.errors import CompilerBug, KernelError, error
from pypto_dsl.compiler.index import as_index
from pypto_dsl.compiler.placement.ascend.block import ZERO, BlockSelector, Held
from pypto_dsl.compiler.placement.ascend.extents import Extent
from pypto_dsl.compiler.tile_ir.ascend import Mode
from pypto_dsl.compiler.tile_ir.nodes import BlockOp, Constant, IndexValue, Operand, ReadBuffer, ScalarRead
from pypto_dsl.compiler.tile_ir.placed import BufferRef

Spell = Callable[[BlockSelector, BlockOp, BufferRef, Extent], None]


@dataclass(frozen=True)
class Rule:
    """One operation. ``in_place``: whether its result may lie over a dying operand; asked per use, since the answer may
    depend on which operands are numbers."""

    spell: Spell
    in_place: Callable[[BlockOp], bool] = lambda op: True


def immediate(operand: Operand) -> bool:
    """Whether an operand is a number of the call rather than a buffer."""
    return isinstance(operand, (Constant, ScalarRead, IndexValue))


def refuse(s: BlockSelector, op: BlockOp, why: str, advice: str) -> KernelError:
    """An operation that this target cannot compute in the form it is used in."""
    target = s.machine.target.name
    return error("PT502", f"{op.name} is not supported on target {target} {why}".rstrip(), op.span, help=advice, target=target, op=op.name)


# ---- arithmetic ----------------------------------------------------------------------------------------------------------


def _commutative(name: str) -> Spell:
    def spell(s: BlockSelector, op: BlockOp, dst: BufferRef, extent: Extent) -> None:
        first, second = op.operands
        if immediate(first) and not immediate(second):
            first, second = second, first
        if immediate(second) and s.machine.has(f"{name}_scalar", op.dtype):
            assert isinstance(second, (Constant, ScalarRead, IndexValue))
            s.call(f"{name}_scalar", dst, s.at(first, extent), arguments=(second,), count=s.count(extent))
            return
        s.combine(name, dst, first, second, extent)

    return spell


def _sub(s: BlockSelector, op: BlockOp, dst: BufferRef, extent: Extent) -> None:
    first, second = op.operands
    negated = _negated(second)
    if negated is not None and not immediate(first):  # x - c is x + (-c), exactly
        s.call("add_scalar", dst, s.at(first, extent), arguments=(negated,), count=s.count(extent))
        return
    if isinstance(first, (Constant, ScalarRead, IndexValue)) and not immediate(second):  # c - x is (-x) + c, exactly
        s.call("mul_scalar", dst, s.at(second, extent), arguments=(_number(-1, op.dtype),), count=s.count(extent))
        s.call("add_scalar", dst, dst, arguments=(first,), count=s.count(extent))
        return
    s.combine("sub", dst, first, second, extent)


def _negated(operand: Operand) -> Constant | None:
    """The constant with its sign flipped, where that is exact."""
    if not isinstance(operand, Constant):
        return None
    if operand.dtype.is_integer and operand.value == operand.dtype.range[0]:
        return None
    return Constant(-operand.value, operand.dtype)


def _div(s: BlockSelector, op: BlockOp, dst: BufferRef, extent: Extent) -> None:
    s.combine("div", dst, op.operands[0], op.operands[1], extent)


def _neg(s: BlockSelector, op: BlockOp, dst: BufferRef, extent: Extent) -> None:
    s.call("mul_scalar", dst, s.at(op.operands[0], extent), arguments=(_number(-1, op.dtype),), count=s.count(extent))


def _abs(s: BlockSelector, op: BlockOp, dst: BufferRef, extent: Extent) -> None:
    source = s.at(op.operands[0], extent)
    if s.machine.has("abs", op.dtype):
        s.call("abs", dst, source, count=s.count(extent))
        return
    s.call("mul_scalar", dst, source, arguments=(_number(-1, op.dtype),), count=s.count(extent))
    s.call("maximum", dst, source, dst, count=s.count(extent))


def _unary(name: str) -> Spell:
    def spell(s: BlockSelector, op: BlockOp, dst: BufferRef, extent: Extent) -> None:
        s.call(name, dst, s.at(op.operands[0], extent), count=s.count(extent))

    return spell


def _number(value: float, dtype: DType) -> Constant:
    return Constant(float(value) if dtype.is_float else int(value), dtype)


def _shift(name: str) -> Spell:
    def spell(s: BlockSelector, op: BlockOp, dst: BufferRef, extent: Extent) -> None:
        count = op.operands[1]
        if not isinstance(count, Constant):
            raise refuse(s, op, "with a count that differs by element", "shift by a constant, or multiply by a power of two")
        s.call(name, dst, s.at(op.operands[0], extent), arguments=(count,), count=s.count(extent))

    return spell


# ---- pow -------------------------------------------------------------------------------------------------------------------

# Exponents that are multiplied out: exact for exact results and at most 1.5 ulp otherwise, where Power is exp(y * ln|x|).
_POWERS: Mapping[float, tuple[tuple[str, str, str], ...]] = {
    1: (("maximum", "x", "x"),),
    2: (("mul", "x", "x"),),
    3: (("mul", "x", "x"), ("mul", "y", "x")),
    4: (("mul", "x", "x"), ("mul", "y", "y")),
}


def _pow(s: BlockSelector, op: BlockOp, dst: BufferRef, extent: Extent) -> None:
    base, exponent = op.operands
    count = s.count(extent)
    if isinstance(exponent, Constant) and exponent.value in _POWERS and not immediate(base):
        source = s.at(base, extent)
        for name, a, b in _POWERS[exponent.value]:
            pair = {"x": source, "y": dst}
            s.call(name, dst, pair[a], pair[b], count=count)
        return
    if isinstance(exponent, Constant) and exponent.value == 0:
        s.call("fill", dst, arguments=(_number(1, op.dtype),), count=count)
        return
    if isinstance(exponent, Constant) and exponent.value == -1 and op.dtype == F32:
        s.call("fill", dst, arguments=(_number(1, op.dtype),), count=count)
        s.call("div", dst, dst, s.at(base, extent), count=count)
        return
    if isinstance(exponent, (Constant, ScalarRead, IndexValue)):
        s.call("pow_scalar", dst, s.at(base, extent), arguments=(exponent,), count=count)
        return
    s.call("pow", dst, s.at(base, extent), s.at(exponent, extent), count=count)


# ---- masks: comparison, selection, logic -------------------------------------------------------------------------------------

_COMPARISONS = {"lt": "LT", "le": "LE", "gt": "GT", "ge": "GE", "eq": "EQ", "ne": "NE"}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
# Integers compare with EQ only: a <= b where max(a, b) == b, a >= b where min(a, b) == b, the others negated.
_INTEGER_COMPARISONS = {"eq": ("", False), "ne": ("", True), "le": ("maximum", False), "gt": ("maximum", True), "ge": ("minimum", False),
                        "lt": ("minimum", True)}


def _compare(s: BlockSelector, op: BlockOp, dst: BufferRef, extent: Extent) -> None:
    name, (first, second) = op.name, op.operands
    if immediate(first) and not immediate(second):
        name, first, second = _MIRRORED[name], second, first
    dtype = s.dtype_of(first)
    if dtype == I32:
        _compare_integers(s, name, dst, first, second, extent)
    elif dtype == BOOL:
        raise refuse(s, op, "on BOOL operands", "use logical operations on BOOL")
    else:
        _compare_call(s, _COMPARISONS[name], dst, s.at(first, extent), second, extent)


def _compare_call(s: BlockSelector, mode: str, dst: BufferRef, first: BufferRef, second: Operand | BufferRef, extent: Extent) -> None:
    dtype = first.dtype or first.buffer.dtype
    count = s.whole_repeats(extent, dtype)
    if isinstance(second, (Constant, ScalarRead, IndexValue)):
        s.call("compare_scalar", dst, first, arguments=(second, Mode("compare", mode)), count=count)
        return
    other = second if isinstance(second, BufferRef) else s.at(second, extent)
    s.call("compare", dst, first, other, arguments=(Mode("compare", mode),), count=count)


def _compare_integers(s: BlockSelector, name: str, dst: BufferRef, first: Operand, second: Operand, extent: Extent) -> None:
    extreme, negated = _INTEGER_COMPARISONS[name]
    left = s.at(first, extent)
    if extreme:
        between = BufferRef(s.temporary("extreme", I32, extent), ZERO)
        if isinstance(second, (Constant, ScalarRead, IndexValue)):
            s.call(f"{extreme}_scalar", between, left, arguments=(second,), count=s.count(extent))
        else:
            s.call(extreme, between, left, s.at(second, extent), count=s.count(extent))
        left = between
    _compare_call(s, "EQ", dst, left, second, extent)
    if negated:
        words = s.mask_words(dst.buffer)
        s.call("not", words, words, count=as_index(dst.buffer.elements // 2))


def mask_at(s: BlockSelector, operand: Operand, extent: Extent) -> BufferRef:
    """A BOOL operand as a mask of bits: as it is, or made from a buffer of bytes or a number. PT502 for one known when the kernel runs."""
    if isinstance(operand, str):
        held = s.held[operand]
        if held.extent != extent:
            raise CompilerBug("ascend.instructions", f"the mask {operand} extends over {held.extent} and is read over {extent}")
        return held.ref
    mask = BufferRef(s.mask_buffer("mask", extent), ZERO)
    if isinstance(operand, ReadBuffer):
        source = s.load(operand)
        half = BufferRef(s.temporary("half", F16, source.extent), ZERO)
        s.call("cast", half, source.ref, arguments=(Mode("round", "NONE"),), count=s.count(source.extent))
        whole = half if source.extent == extent else s.expand(Held(half, source.extent), extent)
        _compare_call(s, "NE", mask, whole, Constant(0.0, F16), extent)
        return mask
    if isinstance(operand, ScalarRead):
        name = s.machine.target.name
        raise error("PT502", f"`{operand.name}` is a BOOL known when the kernel runs, of which {name} makes no mask", s.span,
                    help="pass a tensor of shape [1], or an INT32 and compare it with 0", target=name)
    if not isinstance(operand, Constant):
        raise CompilerBug("ascend.instructions", f"{operand} is no mask")
    bits = Constant(0xFFFF if operand.value else 0, U16)
    s.call("fill", s.mask_words(mask.buffer), arguments=(bits,), count=as_index(mask.buffer.elements // 2))
    return mask


def store_mask(s: BlockSelector, value: Operand, dst: BufferRef, extent: Extent) -> None:
    """A mask of bits into a buffer of BOOL bytes."""
    half = _choose_ones(s, value, F16, extent)
    s.call("cast", dst, half, arguments=(Mode("round", "NONE"),), count=s.count(extent))


def _choose_ones(s: BlockSelector, value: Operand, dtype: DType, extent: Extent, dst: BufferRef | None = None) -> BufferRef:
    """1 where a mask holds, else 0, as numbers of a float dtype."""
    mask = mask_at(s, value, extent)
    result = dst or BufferRef(s.temporary("ones", dtype, extent), ZERO)
    s.call("fill", result, arguments=(Constant(1.0, dtype),), count=s.count(extent))
    s.call("select_scalar", result, mask, result, arguments=(Constant(0.0, dtype), Mode("select", "SCALAR")), count=s.count(extent))
    return result


_SELECTED_AS = {I32: F32, BF16: F16}  # Select moves bits; it is declared for floats only


def _where(s: BlockSelector, op: BlockOp, dst: BufferRef, extent: Extent) -> None:
    condition, first, second = op.operands
    mask, via = mask_at(s, condition, extent), _SELECTED_AS.get(op.dtype)

    def seen(ref: BufferRef) -> BufferRef:
        return BufferRef(ref.buffer, ref.offset, via) if via else ref

    chosen = s.at(first, extent)
    if isinstance(second, (Constant, ScalarRead, IndexValue)) and via is None:
        s.call("select_scalar", dst, mask, chosen, arguments=(second, Mode("select", "SCALAR")), count=s.count(extent))
        return
    other = s.at(second, extent)
    s.call("select", seen(dst), mask, seen(chosen), seen(other), arguments=(Mode("select", "TENSOR"),), count=s.count(extent))


def _and(s: BlockSelector, op: BlockOp, dst: BufferRef, extent: Extent) -> None:
    first, second = op.operands
    if op.dtype == BOOL:
        words = [s.mask_words(mask_at(s, o, extent).buffer) for o in (first, second)]
        s.call("and", s.mask_words(dst.buffer), *words, count=as_index(dst.buffer.elements // 2))
        return
    s.combine("and", dst, first, second, extent)


# ---- conversions ---------------------------------------------------------------------------------------------------------------


def _cast(s: BlockSelector, op: BlockOp, dst: BufferRef, extent: Extent) -> None:
    source = op.operands[0]
    have, want = s.dtype_of(source), op.dtype
    if want == BOOL:
        _compare_call(s, "EQ" if have == I32 else "NE", dst, s.at(source, extent), Constant(0 if have == I32 else 0.0, have), extent)
        if have == I32:
            words = s.mask_words(dst.buffer)
            s.call("not", words, words, count=as_index(dst.buffer.elements // 2))
        return
    if have == BOOL:
        if want == I32:
            ones = _choose_ones(s, source, F32, extent)
            s.call("cast", dst, ones, arguments=(Mode("round", "RINT"),), count=s.count(extent))
        else:
            _choose_ones(s, source, want, extent, dst)
        return
    mode = _rounding(s, op, have, want)
    s.call("cast", dst, s.at(source, extent), arguments=(Mode("round", mode.upper()),), count=s.count(extent))


def _rounding(s: BlockSelector, op: BlockOp, have: DType, want: DType) -> str:
    """The rounding mode: as the user says; by default float to integer truncates and everything else goes to nearest even."""
    asked = str(dict(op.attributes).get("mode", "CAST_NONE")).removeprefix("CAST_").lower()
    modes = s.machine.cast_modes(have, want)
    if not modes:
        raise refuse(s, op, f"from {have} to {want}", "cast in two steps, through f32")
    if asked == "none":
        asked = "trunc" if have.is_float and want.is_integer else "rint" if "rint" in modes else "none"
    if modes == ("none",):
        return "none"  # the conversion is exact, so that every mode is the same
    if asked not in modes:
        has = ", ".join(f"CAST_{mode.upper()}" for mode in modes)
        raise refuse(s, op, f"with mode CAST_{asked.upper()} from {have} to {want}", f"choose one of {has}")
    return asked


def _rint(s: BlockSelector, op: BlockOp, dst: BufferRef, extent: Extent) -> None:
    s.call("cast", dst, s.at(op.operands[0], extent), arguments=(Mode("round", "RINT"),), count=s.count(extent))


# ---- the table -----------------------------------------------------------------------------------------------------------------


def _never(op: BlockOp) -> bool:
    return False


RULES: Mapping[str, Rule] = {
    "add": Rule(_commutative("add")),
    "mul": Rule(_commutative("mul")),
    "maximum": Rule(_commutative("maximum")),
    "minimum": Rule(_commutative("minimum")),
    "sub": Rule(_sub),
    "div": Rule(_div),
    "neg": Rule(_neg),
    "abs": Rule(_abs, in_place=lambda op: op.dtype.is_float),
    "exp": Rule(_unary("exp")),
    "log": Rule(_unary("log")),
    "sqrt": Rule(_unary("sqrt")),
    "erf": Rule(_unary("erf"), _never),
    "tanh": Rule(_unary("tanh"), _never),
    **{name: Rule(_unary(name), _never) for name in ("sin", "cos", "floor", "ceil", "trunc")},
    "rint": Rule(_rint, _never),
    "pow": Rule(_pow, _never),
    "bitwise_left_shift": Rule(_shift("shift_left")),
    "bitwise_right_shift": Rule(_shift("shift_right")),
    "bitwise_and": Rule(_and, lambda op: op.dtype != BOOL),
    "where": Rule(_where, lambda op: not immediate(op.operands[1])),
    "cast": Rule(_cast, _never),
    **{name: Rule(_compare, _never) for name in _COMPARISONS},
}


def rule_of(s: BlockSelector, op: BlockOp) -> Rule:
    """The row of an operation; a KernelError for one that the target has not, on these dtypes."""
    row = RULES.get(op.name)
    if row is None:
        raise refuse(s, op, "", "write it with operations that `ptc targets` lists for the target")
    if not s.machine.target.native(op.name, tuple(s.dtype_of(o) for o in op.operands), op.dtype):
        dtypes = ", ".join(s.dtype_of(o).name for o in op.operands)
        raise refuse(s, op, f"on {dtypes}", "cast the operands to a dtype that the target has")
    return row
