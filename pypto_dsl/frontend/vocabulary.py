"""The constants of the language: dtypes under their PyPTO names, enumerations, shape markers, typed scalars, annotations."""
from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import BY_NAME, BY_PYPTO, DType
from pypto_dsl.compiler.errors import error, value_text
from pypto_dsl.frontend.pass_config import PassConfigKey
from pypto_dsl.frontend.spans import here

# PyPTO's dtypes that exist here under another name, or not at all.
ALIASES = {"DT_FP64": "DT_DOUBLE", "DT_FP8": "DT_FP8E4M3"}
UNAVAILABLE = ("DT_INT4", "DT_HF4", "DT_HF8", "DT_FP4E2M1", "DT_FP4_E2M1X2", "DT_FP4_E1M2X2", "DT_BOTTOM")


def dtype_named(name: str) -> DType:
    """The DType of a `DT_*` name. Raises PT210 for one that PyPTO has and this compiler lacks, KeyError for others."""
    if name in UNAVAILABLE:
        raise error("PT210", f"{name} has no arithmetic in this compiler", here(),
                    help="use pypto.DT_INT8 or pypto.DT_FP8E4M3 to store, pypto.DT_BF16 or pypto.DT_FP32 to compute")
    return BY_PYPTO[ALIASES.get(name, name)]


def dtype_meant(given: object) -> str:
    """What to write for something that is no dtype of the language: its twin, for a NumPy or torch dtype or the name of one."""
    name = str(getattr(given, "__name__", None) or getattr(given, "name", None) or given).removeprefix("torch.").removeprefix("DT_").lower()
    short = {"float": "f32", "double": "f64", "half": "f16", "int": "i32", "long": "i64", "short": "i16", "boolean": "bool"}
    digits = re.sub(r"^(bfloat|float|uint|int)", lambda m: {"bfloat": "bf", "float": "f", "uint": "u", "int": "i"}[m[0]], name)
    found = BY_NAME.get(short.get(name, digits)) or BY_NAME.get(re.sub(r"^(fp|bfp)", lambda m: {"fp": "f", "bfp": "bf"}[m[0]], name))
    return f"write pypto.{found.pypto}" if found is not None else "dtypes are pypto.DT_FP32, pypto.DT_BF16, pypto.DT_INT32, ..."


class _DataTypeMeta(type):
    """`DataType.DT_FP32`, and `isinstance(x.dtype, DataType)`."""

    def __getattr__(cls, name: str) -> DType:
        try:
            return dtype_named(name)
        except KeyError:
            raise AttributeError(f"DataType has no member {name}") from None

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, DType)

    def __iter__(cls) -> Any:
        return iter(BY_PYPTO.values())


class DataType(metaclass=_DataTypeMeta):
    """The namespace of dtypes."""


class RunMode(enum.Enum):
    """Where PyPTO would run. Both run on the CPU here, with real numbers."""

    NPU = 0
    SIM = 1


class StatusType(enum.Enum):
    """Marks of an annotation's dimensions: DYNAMIC never causes a recompile, STATIC does when it changes."""

    DYNAMIC = -1
    STATIC = -2


class TileOpFormat(enum.Enum):
    """Memory layout of a tensor; only ND exists here."""

    TILEOP_ND = 0
    TILEOP_NZ = 1


class CastMode(enum.Enum):
    """Rounding of a cast."""

    CAST_NONE = 0
    CAST_RINT = 1
    CAST_ROUND = 2
    CAST_FLOOR = 3
    CAST_CEIL = 4
    CAST_TRUNC = 5
    CAST_ODD = 6


class SaturationMode(enum.Enum):
    """Whether a narrowing cast saturates."""

    OFF = 0
    ON = 1


class PrecisionType(enum.Enum):
    """Which of a product's two implementations of a function is wanted."""

    INTRINSIC = 0
    HIGH_PRECISION = 1


class ReLuType(enum.Enum):
    """Activation behind a matrix product."""

    NO_RELU = 0
    RELU = 1


class OutType(enum.Enum):
    """How a comparison delivers its mask."""

    BOOL = 0
    BIT = 1


class TopKAlgo(enum.Enum):
    """Algorithm of topk."""

    MERGE_SORT = 0
    RADIX_SELECT = 1


class CachePolicy(enum.Enum):
    """A hint for the device's cache."""

    PREFETCH = 0
    NONE_CACHEABLE = 1


class TransMode(enum.Enum):
    """Rounding of matrix operands on devices that multiply in a narrower format."""

    CAST_NONE = 0
    CAST_RINT = 1
    CAST_ROUND = 2


class ScatterMode(enum.Enum):
    """What scatter does with elements that meet."""

    NONE = 0
    ADD = 1
    MULTIPLY = 2


class ReduceMode(enum.Enum):
    """How concurrent writes to one element meet."""

    ATOMIC_ADD = 0


class DequantScaleRoundingMode(enum.Enum):
    """How the shared scale of a block is rounded; here always down, as MX 1.0 has it."""

    ROUND_DOWN = 0
    ROUND_UP = 1


class OpType(enum.Enum):
    """A comparison of symbolic integers."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5


class CompStage(enum.Enum):
    """Where PyPTO stops compiling when asked to (`compile_stage`); accepted, without meaning here."""

    ALL_COMPLETE = 0
    TENSOR_GRAPH = 1
    TILE_GRAPH = 2
    EXECUTE_GRAPH = 3
    CODEGEN_INSTRUCTION = 4
    CODEGEN_BINARY = 5


class LogBaseType(enum.Enum):
    """Base of a logarithm."""

    LOG_E = 0
    LOG_2 = 1
    LOG_10 = 2


ENUMERATIONS: tuple[type[enum.Enum], ...] = (
    RunMode, StatusType, TileOpFormat, CastMode, SaturationMode, PrecisionType, ReLuType, OutType, TopKAlgo, CachePolicy, TransMode,
    ScatterMode, LogBaseType, CompStage, ReduceMode, DequantScaleRoundingMode, OpType, PassConfigKey)
DYNAMIC, STATIC = StatusType.DYNAMIC, StatusType.STATIC


@dataclass(frozen=True)
class Element:
    """A number with a dtype of its own: strong where a Python number is weak."""

    dtype: DType
    value: int | float | bool


@dataclass(frozen=True)
class Annotation:
    """What a parameter promises: a shape pattern of ints, DYNAMIC, STATIC and a final `...`, and a dtype; None promises nothing.

    ``format`` is PyPTO's layout on a device. Arrays are strided here whatever it says, and so are a tensor's elements and their order.
    """

    shape: tuple[Any, ...] | None = None
    dtype: DType | None = None
    format: TileOpFormat = TileOpFormat.TILEOP_ND

    def pattern(self, rank: int) -> tuple[Any, ...] | None:
        """The pattern with one entry per axis, or None when it has another rank.

        An empty pattern means "anything"; a pattern of STATIC alone promises nothing about the rank (public programs rely on it).
        """
        entries = list(self.shape or (...,))
        if entries[-1] is ...:
            entries = entries[:-1] + [STATIC] * (rank - len(entries) + 1)
        if all(e is STATIC for e in entries):
            entries = [STATIC] * rank
        return tuple(entries) if len(entries) == rank else None

    def is_dynamic(self, entry: Any) -> bool:
        """Whether a pattern's entry stays a symbol."""
        return entry is DYNAMIC or (isinstance(entry, int) and entry == -1)


def annotation(shape: Any = None, dtype: Any = None, format: Any = None) -> Annotation:
    """An Annotation from what stands in `pypto.Tensor(...)`. Raises PT116 for entries that are no dimension, PT117 for no dtype,
    PT118 for no layout."""
    if shape is ...:
        shape = None
    if isinstance(shape, DType):
        shape, dtype = None, shape
    if isinstance(shape, (int, StatusType)):
        shape = (shape,)
    if shape is not None:
        if not isinstance(shape, Sequence) or isinstance(shape, str):
            raise error("PT116", f"a shape pattern is a list, and got {value_text(shape)}", here(),
                        help="pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32)")
        for i, entry in enumerate(shape):
            last = i == len(shape) - 1
            is_dimension = isinstance(entry, (StatusType, int, np.integer)) or (entry is ... and last)
            if not is_dimension or isinstance(entry, bool):
                raise error("PT116", f"{value_text(entry)} is no dimension of a shape pattern", here(),
                            help="dimensions are ints, pypto.DYNAMIC, pypto.STATIC, and `...` at the end")
        shape = tuple(e if e is ... or isinstance(e, StatusType) else int(e) for e in shape)
    if dtype is not None and not isinstance(dtype, DType):
        raise error("PT117", f"a dtype is needed, and got {value_text(dtype)}", here(), help=dtype_meant(dtype))
    if format is not None and not isinstance(format, TileOpFormat):
        raise error("PT118", f"{value_text(format)} is no layout", here(), help="layouts are pypto.TileOpFormat.TILEOP_ND and TILEOP_NZ")
    return Annotation(shape or None, dtype, format or TileOpFormat.TILEOP_ND)
