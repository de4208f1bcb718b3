"""How dtypes lie in memory and in registers, and every conversion between them.

bool is a byte in memory and a mask in registers. bf16 is an i16 in registers: its arithmetic is always done in f32, and its
conversions are integer operations, because the hardware's flush subnormals. f16 is an i16 too and is converted where the level
has an instruction for it, otherwise by integers. 8-bit floats are bytes that are moved and never computed with.
"""

from __future__ import annotations

import numpy as np

from pypto_dsl.codegen.llvm.bfloat import Known
from pypto_dsl.codegen.llvm.builder import Builder, Type, Value
from pypto_dsl.compiler import dtypes
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.span import Span

_MEMORY = {
    "bool": "i8", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "u8": "i8", "u16": "i16", "u32": "i32", "u64": "i64",
    "f16": "i16", "bf16": "i16", "f32": "float", "f64": "double", "f8e4m3": "i8", "f8e5m2": "i8", "f8e8m0": "i8",
}
_REGISTER = {**_MEMORY, "bool": "i1"}


def memory_element(dtype: DType, span: Span | None = None) -> str:
    """LLVM's element of ``dtype`` in memory; PT502 for a dtype that the CPU only stores."""
    if dtype.name not in _MEMORY:
        raise error("PT502", f"the CPU target does not compute with {dtype.name}", span, help="cast it to f32, bf16 or f16 before")
    return _MEMORY[dtype.name]


def register_element(dtype: DType, span: Span | None = None) -> str:
    """LLVM's element of ``dtype`` in a register."""
    memory_element(dtype, span)
    return _REGISTER[dtype.name]


def bits_of(number: float | int, dtype: DType) -> int:
    """The bit pattern of a number rounded to a float dtype of 16 or 8 bits."""
    return int(np.asarray(number, dtype=np.float32).astype(dtype.numpy).view(f"u{dtype.itemsize}"))


def constant(b: Builder, number: float | int, dtype: DType, lanes: int) -> Value:
    """A literal in registers; NumPy rounds it to the dtype."""
    type = Type(register_element(dtype), lanes)
    if dtype.is_float and dtype.bits <= 16:
        return b.constant(type, bits_of(number, dtype))
    if dtype.is_integer:
        low, high = dtype.range
        return b.constant(type, (int(number) - low) % (high - low + 1) + low)
    if dtype is dtypes.F32:
        with np.errstate(over="ignore"):
            return b.constant(type, float(np.float32(number)))
    return b.constant(type, bool(number) if dtype is dtypes.BOOL else float(number))


def from_memory(b: Builder, value: Value, dtype: DType) -> Value:
    """A loaded value as the dtype's register form."""
    return b.compare("ne", value, 0) if dtype is dtypes.BOOL else value


def to_memory(b: Builder, value: Value, dtype: DType) -> Value:
    """A register value as it is stored."""
    return b.convert("zext", value, "i8") if dtype is dtypes.BOOL else value


# ---- 16-bit floats ---------------------------------------------------------------------------------------------------


def widen_bf16(b: Builder, value: Value) -> Value:
    """bf16 bits to f32: the upper half of the word."""
    return b.from_bits(b.convert("zext", value, "i32") << 16, "float")


def narrow_bf16(b: Builder, value: Value, known: Known = Known.NOTHING) -> Value:
    """f32 to bf16 bits, nearest even, subnormals kept; a NaN stays a (quiet) NaN. What is ``known`` saves steps, never changes bits."""
    bits = b.bits(value)
    nearest = bits + 0x8000 if Known.UNTIED in known else (bits + 0x7FFF) + (bits.lshr(16) & 1)
    rounded = bits if Known.EXACT in known else nearest
    # a quiet NaN whose lower half is 0 passes through the rounding as it is
    if Known.SHORT | Known.QUIET not in known:
        rounded = b.select(b.compare("uno", value, value), bits | 0x00400000, rounded)
    return b.convert("trunc", rounded.lshr(16), "i16")


def widen_f16(b: Builder, value: Value) -> Value:
    """f16 bits to f32, exact."""
    if b.level.converts_half:
        return b.convert("fpext", b.from_bits(value, "half"), "float")
    word = b.convert("zext", value, "i32")
    magnitude = word & 0x7FFF
    scaled = b.from_bits(magnitude << 13, "float") * 2.0**112  # right for subnormals too
    special = (magnitude << 13) | 0x7F800000
    bits = b.select(b.compare("uge", magnitude, 0x7C00), special, b.bits(scaled))
    quiet = b.select(b.compare("ugt", magnitude, 0x7C00), b.constant(bits.type, 0x00400000), 0)
    return b.from_bits((bits | quiet) | ((word & 0x8000) << 16), "float")


def narrow_f16(b: Builder, value: Value) -> Value:
    """f32 to f16 bits, nearest even, subnormals kept."""
    if b.level.converts_half:
        return b.bits(b.convert("fptrunc", value, "half"))
    word = b.bits(value)
    magnitude = word & 0x7FFFFFFF
    normal = ((magnitude + (0xFFF - 0x38000000)) + (magnitude.lshr(13) & 1)).lshr(13)
    # adding 0.5 leaves the subnormal's integer in the low bits, rounded to nearest even
    small = b.bits(b.from_bits(magnitude, "float") + 0.5) - 0x3F000000
    quiet_nan = (magnitude.lshr(13) & 0x3FF) | 0x7E00
    result = b.select(b.compare("ult", magnitude, 0x38800000), small, normal)
    result = b.select(b.compare("uge", magnitude, 0x47800000), b.constant(word.type, 0x7C00), result)
    result = b.select(b.compare("ugt", magnitude, 0x7F800000), quiet_nan, result)
    return b.convert("trunc", result | (word.lshr(16) & 0x8000), "i16")


# ---- casts -------------------------------------------------------------------------------------------------------------

_ROUNDING: dict[str, str | None] = {
    "CAST_NONE": None, "CAST_TRUNC": None, "CAST_RINT": "llvm.rint", "CAST_FLOOR": "llvm.floor", "CAST_CEIL": "llvm.ceil",
    "CAST_ROUND": "llvm.round",
}
_NEAREST = ("CAST_NONE", "CAST_RINT")
_DIRECTED = ("CAST_TRUNC", "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", "CAST_ODD")


def cast(b: Builder, value: Value, source: DType, target: DType, mode: str, saturate: bool, span: Span | None,
         known: Known = Known.NOTHING) -> Value:
    """``value`` of ``source`` as ``target``, rounded once: see the operation `cast`. PT502 for a mode that the pair lacks."""
    register_element(source, span), register_element(target, span)
    if source is target:
        return value
    if target is dtypes.BOOL:
        return _to_bool(b, value, source)
    if source in dtypes.SIXTEEN_BIT_FLOATS:
        wide = widen_bf16(b, value) if source is dtypes.BF16 else widen_f16(b, value)
        return cast(b, wide, dtypes.F32, target, mode, saturate, span)
    if target.is_float:
        return _to_float(b, value, source, target, mode, span, known)
    if source.is_float:
        return _float_to_integer(b, value, target, mode, span)
    return _integer_to_integer(b, value, source, target, saturate)


def _to_float(b: Builder, value: Value, source: DType, target: DType, mode: str, span: Span | None, known: Known) -> Value:
    """f32, f64 or an integer as a float dtype."""
    if mode not in _NEAREST and mode not in _DIRECTED:
        modes = ", ".join(_NEAREST + _DIRECTED)
        raise error("PT502", f"{source.name} is not rounded to {target.name} by {mode}", span, help=f"one of {modes}")
    if target.bits > source.bits and source.is_float:
        return b.convert("fpext", value, "double")
    if target is dtypes.F64 or (target is dtypes.F32 and not source.is_float and mode in _NEAREST):
        return b.convert("sitofp" if source.signed else "uitofp", value, register_element(target))
    wide = value if source.is_float else _integer_to_double(b, value, source)
    if target is dtypes.F32:
        near = b.convert("fptrunc", wide, "float")
        return near if mode in _NEAREST else b.from_bits(_directed(b, wide, b.bits(near), target, mode), "float")
    exact = wide if source is dtypes.F32 else _double_to_odd(b, wide)
    near = narrow_bf16(b, exact, known if exact is value else Known.NOTHING) if target is dtypes.BF16 else narrow_f16(b, exact)
    return near if mode in _NEAREST else _directed(b, exact, near, target, mode)


def _integer_to_double(b: Builder, value: Value, source: DType) -> Value:
    """An integer as f64: exact up to 53 bits, beyond with what is cut off marked in the last bit (rounded to odd)."""
    if source.bits < 64:
        return b.convert("sitofp" if source.signed else "uitofp", value, "double")
    negative = b.compare("slt", value, 0) if source.signed else b.constant(value.type.of("i1"), 0)
    magnitude = b.select(negative, -value, value)
    lost = b.convert("zext", b.compare("ne", magnitude & 0x7FF, 0), "i64") << 11
    short = b.select(b.compare("ult", magnitude, 1 << 53), magnitude, (magnitude & -0x800) | lost)
    wide = b.convert("uitofp", short, "double")
    return b.select(negative, -wide, wide)


def _double_to_odd(b: Builder, wide: Value) -> Value:
    """f64 to f32, inexact values to the neighbour with an odd significand: a second rounding, to 16 bits, is then right."""
    near = b.convert("fptrunc", wide, "float")
    back = b.convert("fpext", near, "double")
    bits = b.bits(near)
    beyond = b.compare("ogt", b.intrinsic("llvm.fabs", back), b.intrinsic("llvm.fabs", wide))
    even = b.compare("one", back, wide) & b.compare("eq", bits & 1, 0)
    step = b.select(beyond, b.constant(bits.type, -1), 1)
    return b.from_bits(b.select(even, bits + step, bits), "float")


def _directed(b: Builder, exact: Value, near: Value, target: DType, mode: str) -> Value:
    """The bits of ``exact`` rounded by a mode other than nearest even, from its nearest float's bits."""
    def widen(bits: Value) -> Value:
        if target is dtypes.F32:
            return b.convert("fpext", b.from_bits(bits, "float"), "double")
        return widen_bf16(b, bits) if target is dtypes.BF16 else widen_f16(b, bits)

    size = b.intrinsic("llvm.fabs", exact)
    back = b.intrinsic("llvm.fabs", widen(near))
    inexact = b.convert("zext", b.compare("one", back, size), near.type.element)
    inner = near - b.convert("zext", b.compare("ogt", back, size), near.type.element)  # the neighbour towards zero
    outer = inner + inexact
    negative = b.compare("slt", b.bits(exact), 0)
    if mode == "CAST_TRUNC":
        chosen = inner
    elif mode == "CAST_ODD":
        chosen = b.select(b.compare("eq", inner & 1, 0), outer, inner)
    elif mode == "CAST_ROUND":
        low, high = (b.intrinsic("llvm.fabs", widen(v)) for v in (inner, outer))
        away = b.compare("oge", size - low, high - size) | b.compare("oeq", back, float("inf"))
        chosen = b.select(away, outer, inner)
    else:
        chosen = b.select(negative if mode == "CAST_FLOOR" else ~negative, outer, inner)
    finite = b.compare("olt", size, float("inf"))
    return b.select(finite, chosen, near)


def _to_bool(b: Builder, value: Value, source: DType) -> Value:
    if source in dtypes.SIXTEEN_BIT_FLOATS:
        return b.compare("ne", value & 0x7FFF, 0)
    return b.compare("une" if source.is_float else "ne", value, 0)


def _float_to_integer(b: Builder, value: Value, target: DType, mode: str, span: Span | None) -> Value:
    if mode not in _ROUNDING:
        raise error("PT502", f"a float is not rounded to {target.name} by {mode}", span, help=f"one of {', '.join(_ROUNDING)}")
    intrinsic = _ROUNDING[mode]
    rounded = value if intrinsic is None else b.intrinsic(intrinsic, value)
    type = value.type.of(register_element(target))
    opcode = "fptosi" if target.signed else "fptoui"
    return b.call(type, f"llvm.{opcode}.sat.{type.mangled}.{value.type.mangled}", rounded)


def _integer_to_integer(b: Builder, value: Value, source: DType, target: DType, saturate: bool) -> Value:
    if saturate:
        (low, high), (floor, ceiling) = source.range, target.range
        kind = "s" if source.signed else "u"
        if low < floor:
            value = b.intrinsic(f"llvm.{kind}max", value, floor)
        if high > ceiling:
            value = b.intrinsic(f"llvm.{kind}min", value, ceiling)
    if target.bits < source.bits:
        return b.convert("trunc", value, register_element(target))
    if target.bits == source.bits and source is not dtypes.BOOL:
        return value
    return b.convert("sext" if source.signed else "zext", value, register_element(target))


def bitcast(b: Builder, value: Value, target: DType) -> Value:
    """The same bits as another dtype of the width."""
    element = register_element(target)
    return value if value.type.element == element else b.from_bits(value, element)


