"""The element types: one record per dtype with its IR name, PyPTO name, kind, width, precision and NumPy twin."""
from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np

Kind = Literal["bool", "uint", "int", "float", "block"]


_BEYOND_NUMPY = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"})


def _extension() -> Any:
    """`ml_dtypes`, loaded when one of its dtypes is first asked for: that takes longer than importing all else here."""
    return importlib.import_module("ml_dtypes")


@dataclass(frozen=True, eq=False)
class DType:
    """An element type; there is one object of each, so they compare by identity.

    ``name`` is the short name used in IR text ("f32"), ``pypto`` the constant's name ("DT_FP32"), ``bits`` the storage
    width, ``mantissa`` the significand precision in bits (hidden bit included; magnitude bits for integers).
    ``block`` dtypes share one exponent among 16 elements and exist only as storage formats of the ttmetal targets.
    """

    name: str
    pypto: str
    kind: Kind
    bits: int
    mantissa: int
    numpy_name: str | None

    @cached_property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype of one element; block formats have none and raise TypeError."""
        if self.numpy_name is None:
            raise TypeError(f"{self.name} is a block storage format and has no NumPy dtype")
        return np.dtype(getattr(_extension(), self.numpy_name) if self.beyond_numpy else self.numpy_name)

    @property
    def beyond_numpy(self) -> bool:
        """Whether NumPy itself lacks it, and `ml_dtypes` has it."""
        return self.numpy_name in _BEYOND_NUMPY

    @property
    def finfo(self) -> Any:
        """The limits of a float dtype, as `np.finfo` gives them."""
        return (_extension() if self.beyond_numpy else np).finfo(self.numpy)

    @property
    def itemsize(self) -> int:
        """Bytes of one element (block formats: of one mantissa)."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.kind in ("float", "block")

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def signed(self) -> bool:
        return self.kind != "uint" and self.kind != "bool"

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer dtype or bool."""
        if self.kind == "bool":
            return 0, 1
        if not self.is_integer:
            raise TypeError(f"{self.name} has no integer range")
        return (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1) if self.signed else (0, (1 << self.bits) - 1)

    def __reduce__(self) -> tuple[Callable[[str], DType], tuple[str]]:
        """Copies and pickles are the one object again."""
        return _named, (self.name,)

    def __str__(self) -> str:
        return self.name


BOOL = DType("bool", "DT_BOOL", "bool", 8, 1, "bool")
I8 = DType("i8", "DT_INT8", "int", 8, 7, "int8")
I16 = DType("i16", "DT_INT16", "int", 16, 15, "int16")
I32 = DType("i32", "DT_INT32", "int", 32, 31, "int32")
I64 = DType("i64", "DT_INT64", "int", 64, 63, "int64")
U8 = DType("u8", "DT_UINT8", "uint", 8, 8, "uint8")
U16 = DType("u16", "DT_UINT16", "uint", 16, 16, "uint16")
U32 = DType("u32", "DT_UINT32", "uint", 32, 32, "uint32")
U64 = DType("u64", "DT_UINT64", "uint", 64, 64, "uint64")
F16 = DType("f16", "DT_FP16", "float", 16, 11, "float16")
BF16 = DType("bf16", "DT_BF16", "float", 16, 8, "bfloat16")
F32 = DType("f32", "DT_FP32", "float", 32, 24, "float32")
F64 = DType("f64", "DT_DOUBLE", "float", 64, 53, "float64")
F8E4M3 = DType("f8e4m3", "DT_FP8E4M3", "float", 8, 4, "float8_e4m3fn")
F8E5M2 = DType("f8e5m2", "DT_FP8E5M2", "float", 8, 3, "float8_e5m2")
F8E8M0 = DType("f8e8m0", "DT_FP8E8M0", "float", 8, 1, "float8_e8m0fnu")
BFP8 = DType("bfp8_b", "BFLOAT8_B", "block", 8, 7, None)
BFP4 = DType("bfp4_b", "BFLOAT4_B", "block", 4, 3, None)

ALL: tuple[DType, ...] = (
    BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, F8E4M3, F8E5M2, F8E8M0, BFP8, BFP4)
BY_NAME: dict[str, DType] = {d.name: d for d in ALL}
BY_PYPTO: dict[str, DType] = {d.pypto: d for d in ALL}
BY_NUMPY: dict[str, DType] = {d.numpy_name: d for d in ALL if d.numpy_name is not None}


def _named(name: str) -> DType:
    return BY_NAME[name]


SIXTEEN_BIT_FLOATS = (F16, BF16)


@cache
def of_numpy(dtype: np.dtype[np.generic]) -> DType | None:
    """The DType of a NumPy (or ml_dtypes) dtype, or None when there is no twin."""
    return BY_NUMPY.get(np.dtype(dtype).name)
