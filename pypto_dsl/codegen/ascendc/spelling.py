"""Numbers, types, names and index expressions as Ascend C text."""
from __future__ import annotations

import math
import re

import numpy as np

from pypto_dsl.codegen.ascendc.intrinsics import MODES, api_names
from pypto_dsl.codegen.keywords import CPP_KEYWORDS
from pypto_dsl.compiler.dtypes import BF16, F16, F32, I32, I64, U32, DType
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.index import C, Index, IndexLike, Spelling, as_index
from pypto_dsl.compiler.index import text as index_text
from pypto_dsl.compiler.placement.ascend import CORE, CORES
from pypto_dsl.compiler.tile_ir.ascend import CallArgument, IsZero, Mode
from pypto_dsl.compiler.tile_ir.nodes import Constant, IndexValue, ScalarRead
from pypto_dsl.compiler.tile_ir.placed import OWN

TYPES = {
    "bool": "uint8_t", "i8": "int8_t", "u8": "uint8_t", "i16": "int16_t", "u16": "uint16_t", "i32": "int32_t", "u32": "uint32_t",
    "i64": "int64_t", "u64": "uint64_t", "f16": "half", "bf16": "bfloat16_t", "f32": "float",
}
# Words that a variable of an emitted kernel cannot be called.
RESERVED = CPP_KEYWORDS | api_names() | frozenset(re.findall(r"\w+", """
half bfloat16_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t pipe main block load product item line AscendC
"""))
COORDINATES = {CORE: "GetBlockIdx()", CORES: "GetBlockNum()"}


def type_name(dtype: DType) -> str:
    """The element type of a tensor; CompilerBug for one that the language does not have."""
    if dtype.name not in TYPES:
        raise CompilerBug("codegen.ascendc", f"{dtype} has no element type in Ascend C")
    return TYPES[dtype.name]


def identifier(name: str) -> str:
    """A name as a variable: placement's own names plain, in users' dots become underscores, and reserved words get one at the end."""
    if name.startswith(OWN):
        return name.removeprefix(OWN)
    plain = name.replace(".", "_")
    return f"{plain}_" if plain in RESERVED or plain.endswith("Step") else plain


_SPELLING = Spelling(C.floordiv, C.modulo, C.minimum, C.maximum, C.call_like, lambda name: COORDINATES.get(name) or identifier(name))


def index(value: IndexLike, bracket: bool = False) -> str:
    """An index expression; ``bracket`` wraps what is more than a name or number."""
    return index_text(as_index(value), _SPELLING, bracket)


def scaled(value: Index, dtype: DType) -> str:
    """Elements as bytes."""
    return "0" if value.constant == 0 else f"{index(value, bracket=True)} * sizeof({type_name(dtype)})"


def number(value: float, dtype: DType) -> str:
    """A literal of a dtype that reads back as the same value."""
    if dtype == F32:
        return _float(value)
    if dtype == F16:
        return f"static_cast<half>({_float(value)})"
    if dtype == BF16:
        return f"ToBfloat16({_float(value)})"
    if dtype == I32 and value != I32.range[0]:
        return str(int(value))
    if dtype == U32:
        return f"{int(value)}u"
    return f"static_cast<{type_name(dtype)}>({int(value)})"


def _float(value: float) -> str:
    if math.isnan(value):
        return '__builtin_nanf("")'
    if math.isinf(value):
        return "__builtin_inff()" if value > 0 else "-__builtin_inff()"
    digits = str(np.float32(value))
    return f"{digits}f" if "." in digits or "e" in digits else f"{digits}.0f"


def argument(value: CallArgument) -> str:
    """An argument of a call."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Index):
        return index(value)
    if isinstance(value, Constant):
        return number(value.value, value.dtype)
    if isinstance(value, Mode):
        return MODES[value.kind][value.name]
    if isinstance(value, IsZero):
        return f"{index(value.value, bracket=True)} == 0"
    if isinstance(value, IndexValue):
        return f"static_cast<{type_name(value.dtype)}>({index(value.value)})"
    if isinstance(value, ScalarRead):
        return _scalar(value)
    raise CompilerBug("codegen.ascendc", f"{value!r} is no argument of a call")


def _scalar(value: ScalarRead) -> str:
    name = identifier(value.name)
    if value.dtype == BF16:
        return f"ToBfloat16({name})"
    return name if value.dtype in (F32, I64) else f"static_cast<{type_name(value.dtype)}>({name})"


def scalar_type(dtype: DType) -> str:
    """The parameter type of a run-time scalar: floats pass as float, integers as int64_t."""
    return "float" if dtype.is_float else "int64_t"
