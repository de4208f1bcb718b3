"""Matrix products as PyPTO spells them: options behind the product, and block-scaled operands."""
from __future__ import annotations

from typing import Any

from pypto_dsl.compiler.dtypes import F32, I32, DType
from pypto_dsl.compiler.errors import error
from pypto_dsl.frontend.operations import cast, own, recorded, reshape, tensor_operand
from pypto_dsl.frontend.spans import here
from pypto_dsl.frontend.tensor import Tensor
from pypto_dsl.frontend.vocabulary import ReLuType

_EXTENDED = frozenset({"bias_tensor", "scale", "scale_tensor", "relu_type", "trans_mode"})


@own
def matmul(input: Any, mat2: Any, out_dtype: DType | None = None, *, a_trans: bool = False, b_trans: bool = False,
           c_matrix_nz: bool = False, extend_params: dict[str, Any] | None = None) -> Any:
    """The matrix product of the last two axes, accumulated in f32 (integers: INT32), rounded once to ``out_dtype``.

    Without ``out_dtype`` the result has the inputs' dtype.

    ``extend_params`` may name ``bias_tensor`` (added before the rounding), ``scale`` and ``relu_type``. Where a result lies on a device
    is the compiler's choice: ``c_matrix_nz`` changes nothing. Raises PT303, PT304 for shapes, PT111 for options without meaning here.
    """
    a, b = tensor_operand(input, "matmul"), tensor_operand(mat2, "matmul")
    extra = dict(extend_params or {})
    if set(extra) - _EXTENDED or extra.get("scale_tensor") is not None:
        what = next(k for k in extra if k not in _EXTENDED or k == "scale_tensor")
        raise error("PT111", f"matmul cannot take `{what}`", here(), help="apply it to the product: pypto.mul(pypto.matmul(a, b), scale)")
    integers = a.dtype.is_integer and b.dtype.is_integer
    inner = I32 if integers else F32
    fused = {k: v for k, v in extra.items() if k != "trans_mode" and v is not None}
    product = recorded("matmul", a, b, inner if fused else out_dtype, a_trans, b_trans)
    if not fused:
        return product
    if "bias_tensor" in fused:
        product = recorded("add", product, cast(fused["bias_tensor"], inner))
    if "scale" in fused:
        product = recorded("mul", product, fused["scale"])
    if fused.get("relu_type") not in (None, ReLuType.NO_RELU):
        product = recorded("relu", product)
    return cast(product, out_dtype or a.dtype)


@own
def scaled_mm(mat_a: Any, mat_b: Any, out_dtype: DType, scale_a: Any, scale_b: Any, *, a_trans: bool = False, b_trans: bool = False,
              scale_a_trans: bool = False, scale_b_trans: bool = False, c_matrix_nz: bool = False,
              extend_params: dict[str, Any] | None = None) -> Any:
    """The product of block-scaled matrices [m, k] and [k, n], accumulated in f32: a power of two per 32 of k in each row and column.

    ``scale_a`` is [m, k / 32] or PyPTO's [m, k / 64, 2], ``scale_b`` [k / 32, n] or [k / 64, n, 2]; ``scale_a_trans`` and
    ``scale_b_trans`` say that their first two axes are exchanged. ``extend_params`` may name ``bias_tensor``. Raises PT111, PT303,
    PT304, PT307.
    """
    extra = {k: v for k, v in (extend_params or {}).items() if v is not None}
    unknown_ = [k for k in extra if k != "bias_tensor"]
    if unknown_:
        raise error("PT111", f"scaled_mm cannot take `{unknown_[0]}`", here(), help="apply it to the product")
    left, right = (tensor_operand(s, "scaled_mm") for s in (scale_a, scale_b))
    left = recorded("transpose", left, 0, 1) if scale_a_trans else left
    right = recorded("transpose", right, 0, 1) if scale_b_trans else right
    if left.dim == 3:
        left = reshape(left, [left.shape[0], left.shape[1] * left.shape[2]])
    if right.dim == 3:
        right = reshape(recorded("permute", right, (0, 2, 1)), [right.shape[0] * right.shape[2], right.shape[1]])
    bias = extra.get("bias_tensor")
    if bias is not None and bias.dim == 2:
        bias = reshape(bias, [bias.shape[1]])
    return recorded("scaled_mm", mat_a, mat_b, left, right, out_dtype, bias, a_trans, b_trans)


def _matmul_method(self: Tensor, other: Any) -> Any:
    """``self @ other``."""
    return matmul(self, other)


for _name, _method in (("matmul", matmul), ("scaled_mm", scaled_mm), ("__matmul__", _matmul_method)):
    setattr(Tensor, _name, _method)
