"""Quantization to and from integers, and the block formats of the OCP Microscaling specification (MX 1.0)."""
from __future__ import annotations

from pypto_dsl.compiler.dtypes import F8E4M3, F32, I8, DType
from pypto_dsl.compiler.ops import index_rules as rules
from pypto_dsl.compiler.ops.core import add, cast, mul, reshape, sub
from pypto_dsl.compiler.ops.definition import Tensor, op
from pypto_dsl.compiler.ops.references import quantization
from pypto_dsl.compiler.ops.rounding import rint


def _along(scale: Tensor, x: Tensor, axis: int) -> Tensor:
    """A scale of one axis as one that broadcasts against x along ``axis``."""
    behind = x.type.rank - 1 - axis % x.type.rank
    if scale.type.rank != 1 or scale.type.shape[0].constant == 1 or behind == 0:
        return scale
    return reshape(scale, (scale.type.shape[0], *(1,) * behind))


@op(types=rules.quantize_types, shape=rules.scaled, reference=quantization.quantize, family="elementwise",
    derivation="the product and the rounding are the reference's own")
def quantize(input: Tensor, scale: Tensor, otype: DType = I8, axis: int = -1, zero_points: Tensor | None = None) -> Tensor:
    """``saturate(rint(input * scale) + zero_points)`` as ``otype`` (INT8 or UINT8), with one scale per slice along ``axis``.

    The product is rounded to f32 before halves go to even; NaN gives 0.
    """
    scaled = rint(mul(input, _along(scale, input, axis)))
    shifted = scaled if zero_points is None else add(scaled, _along(zero_points, input, axis))
    return cast(shifted, otype, "CAST_RINT")


@op(types=rules.dequantize_types, shape=rules.scaled, reference=quantization.dequantize, family="elementwise", bound={"f32": 1.5},
    derivation="a difference (exact below 2**24) and a product", scale=quantization.dequantize_scale)
def dequantize(input: Tensor, scale: Tensor, otype: DType = F32, axis: int = -1, zero_points: Tensor | None = None) -> Tensor:
    """``(input - zero_points) * scale`` as ``otype``, computed in f32."""
    wide = cast(input, F32)
    shifted = wide if zero_points is None else sub(wide, _along(zero_points, input, axis))
    return mul(shifted, _along(scale, input, axis))


@op(types=rules.quant_mx_types, shape=rules.quant_mx, reference=quantization.quant_mx, family="index", results=("quantized", "scale"))
def quant_mx(input: Tensor, quant_dtype: DType = F8E4M3, mode: str = "FLOOR", axis: int = -1,
             performance_mode: bool = False) -> tuple[Tensor, Tensor]:
    """(elements, scales): blocks of 32 along ``axis`` share the power of two floor(log2(max)) - emax, as MX 1.0, 6.3 has it.

    Elements are rounded to nearest even and saturate. ``performance_mode`` is a hint for devices.
    """
    ...


@op(types=rules.scaled_mm_types, shape=rules.scaled_mm, reference=quantization.scaled_mm, family="index", bound={"f32": 32},
    derivation="as matmul's: the scales are powers of two", scale=quantization.scaled_mm_scale)
def scaled_mm(input: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, out_dtype: DType | None = None, bias: Tensor | None = None,
              a_trans: bool = False, b_trans: bool = False) -> Tensor:
    """``(input * scale_a) @ (mat2 * scale_b) + bias`` with one scale per 32 of the contracted axis, accumulated in f32."""
    ...
