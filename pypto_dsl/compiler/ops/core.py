"""The primitives: operations without expansion, which every target provides or refuses.

Floats reach a reference as float64 and are rounded once to the result's dtype afterwards (16-bit results by way of f32), so
a reference here is the mathematically exact operation as far as float64 carries it.
"""
from __future__ import annotations

import numpy as np

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.graph import Attribute
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.ops import reference, shapes, typing
from pypto_dsl.compiler.ops.definition import Number, Tensor, op
from pypto_dsl.compiler.ops.references import reductions

IEEE = "IEEE 754: correctly rounded"

# ---- constants and generators -----------------------------------------------------------------------------------------


@op(types=typing.declared, shape=shapes.scalar, reference=reference.constant, family="generator")
def constant(value: Attribute = 0, dtype: DType | None = None) -> Tensor:
    """A scalar. Python numbers are weak: they take the dtype of the tensor they meet."""
    ...


@op(types=typing.extent, shape=shapes.scalar, reference=reference.extent, family="generator")
def extent(value: Index, dtype: DType | None = None, weak: bool | None = None) -> Tensor:
    """An extent, or an expression of extents, as a scalar of ``dtype``; weak like a Python int when ``weak``."""
    ...


@op(types=typing.declared, shape=shapes.from_attribute, reference=reference.iota, family="generator")
def iota(shape: tuple[Index, ...] = (), axis: int = 0, dtype: DType | None = None) -> Tensor:
    """The position along ``axis`` of every element of a tensor of ``shape``."""
    ...


@op(types=typing.declared, shape=shapes.from_attribute, reference=reference.full, family="generator")
def full(shape: tuple[Index, ...] = (), value: Attribute = 0, dtype: DType | None = None) -> Tensor:
    """A tensor whose every element is ``value``."""
    ...


# ---- conversion --------------------------------------------------------------------------------------------------------


@op(types=typing.conversion, shape=shapes.same, reference=reference.cast, family="cast")
def cast(input: Tensor, dtype: DType | None = None, mode: str = "CAST_NONE", satmode: str = "OFF") -> Tensor:
    """``input`` converted to ``dtype``.

    Float to float rounds once, to nearest even or as ``mode`` says; beyond the largest float is inf, in FP8E4M3 NaN (its largest value
    with ``satmode`` ON). Float to integer rounds as ``mode`` says (default: truncates), then saturates, and NaN gives 0; integer to
    integer wraps, and saturates with ``satmode`` ON. A mode that the pair does not have is refused. The result's dtype is never weak.
    """
    ...


@op(types=typing.reinterpretation, shape=shapes.same, reference=reference.bitcast, family="cast", widens=False)
def bitcast(input: Tensor, dtype: DType | None = None) -> Tensor:
    """The bits of ``input`` read as another dtype of the same width."""
    ...


# ---- arithmetic --------------------------------------------------------------------------------------------------------


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=reference.wrapping(np.add), family="elementwise", bound={"f32": 0.5},
    derivation=IEEE, dtypes=typing.NUMBERS)
def add(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input + other``, element by element. Integers wrap."""
    ...


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=reference.wrapping(np.subtract), family="elementwise", bound={"f32": 0.5},
    derivation=IEEE, dtypes=typing.NUMBERS)
def sub(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input - other``, element by element. Integers wrap."""
    ...


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=reference.wrapping(np.multiply), family="elementwise", bound={"f32": 0.5},
    derivation=IEEE, dtypes=typing.NUMBERS)
def mul(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input * other``, element by element. Integers wrap."""
    ...


@op(types=typing.divide, shape=shapes.broadcast, reference=np.true_divide, family="elementwise", bound={"f32": 0.5}, derivation=IEEE,
    dtypes=typing.FLOATS)
def div(input: Tensor | Number, other: Tensor | Number, precision_type: str = "HIGH_PRECISION") -> Tensor:
    """``input / other``, element by element. Integers are divided in f32 and give f32."""
    ...


@op(types=typing.keep, shape=shapes.same, reference=reference.wrapping(np.negative), family="elementwise", bound={"f32": 0},
    derivation="the sign bit alone changes", dtypes=typing.NUMBERS)
def neg(input: Tensor) -> Tensor:
    """``-input``: the sign is flipped, of zeros and NaN too; the smallest integer wraps to itself."""
    ...


@op(types=typing.keep, shape=shapes.same, reference=reference.wrapping(np.abs), family="elementwise", bound={"f32": 0},
    derivation="the sign bit alone changes", dtypes=typing.NUMBERS)
def abs(input: Tensor) -> Tensor:
    """The magnitude of ``input``; the smallest integer wraps to itself."""
    ...


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=reference.maximum, family="elementwise", bound={"f32": 0},
    derivation="selects", dtypes=typing.NUMBERS, variants={("nan", "ignore"): "fmax"})
def maximum(input: Tensor | Number, other: Tensor | Number, nan: str = "propagate") -> Tensor:
    """The larger of the two, element by element. NaN in either gives NaN (``nan="ignore"``: the other); -0 is less than +0."""
    ...


@op(types=typing.arithmetic, shape=shapes.broadcast, reference=reference.minimum, family="elementwise", bound={"f32": 0},
    derivation="selects", dtypes=typing.NUMBERS, variants={("nan", "ignore"): "fmin"})
def minimum(input: Tensor | Number, other: Tensor | Number, nan: str = "propagate") -> Tensor:
    """The smaller of the two, element by element. NaN in either gives NaN (``nan="ignore"``: the other); -0 is less than +0."""
    ...


@op(types=typing.integer_power, shape=shapes.broadcast, reference=reference.power, family="elementwise", bound={"f32": 1},
    derivation="a logarithm in two parts; SEMANTICS of pow: 1 ulp", dtypes=typing.NUMBERS)
def pow(input: Tensor | Number, other: Tensor | Number, precision_type: str = "HIGH_PRECISION") -> Tensor:
    """``input`` raised to ``other``, element by element, with C99's special values.

    Integers wrap; 0**0 is 1; a negative integer exponent gives 0 except for bases 1 and -1. f32 is within 1 ulp, and exact
    where the exact result is representable. A number as exponent keeps the input's dtype; a float exponent lifts INT32 to FP32.
    """
    ...


# ---- functions -----------------------------------------------------------------------------------------------------------


@op(types=typing.float_unary, shape=shapes.same, reference=np.exp, family="elementwise", bound={"f32": 1},
    derivation="argument reduction in two parts and a minimax polynomial", dtypes=typing.FLOATS)
def exp(input: Tensor, precision_type: str = "INTRINSIC") -> Tensor:
    """e raised to ``input``."""
    ...


@op(types=typing.float_unary, shape=shapes.same, reference=np.log, family="elementwise", bound={"f32": 1},
    derivation="argument reduction and a minimax polynomial", dtypes=typing.FLOATS)
def log(input: Tensor, precision_type: str = "INTRINSIC") -> Tensor:
    """The natural logarithm: log(0) is -inf, of negative numbers NaN."""
    ...


@op(types=typing.float_unary, shape=shapes.same, reference=np.sqrt, family="elementwise", bound={"f32": 0.5},
    derivation="IEEE 754's own operation", dtypes=typing.FLOATS)
def sqrt(input: Tensor, precision_type: str = "INTRINSIC") -> Tensor:
    """The square root, correctly rounded; of negative numbers NaN, of -0 it is -0."""
    ...


@op(types=typing.float_unary, shape=shapes.same, reference=reference.erf, family="elementwise", bound={"f32": 2},
    derivation="a minimax fit per interval and two roundings", dtypes=typing.FLOATS)
def erf(input: Tensor) -> Tensor:
    """The error function."""
    ...


@op(types=typing.float_unary, shape=shapes.same, reference=np.tanh, family="elementwise", bound={"f32": 2},
    derivation="expm1 in two parts and a quotient", dtypes=typing.FLOATS)
def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    ...


# ---- comparison and selection ------------------------------------------------------------------------------------------


@op(types=typing.compare, shape=shapes.broadcast, reference=np.equal, family="compare")
def eq(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input == other``; false where either is NaN."""
    ...


@op(types=typing.compare, shape=shapes.broadcast, reference=np.not_equal, family="compare")
def ne(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input != other``; true where either is NaN."""
    ...


@op(types=typing.compare, shape=shapes.broadcast, reference=np.less, family="compare")
def lt(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input < other``."""
    ...


@op(types=typing.compare, shape=shapes.broadcast, reference=np.less_equal, family="compare")
def le(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input <= other``."""
    ...


@op(types=typing.compare, shape=shapes.broadcast, reference=np.greater, family="compare")
def gt(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input > other``."""
    ...


@op(types=typing.compare, shape=shapes.broadcast, reference=np.greater_equal, family="compare")
def ge(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input >= other``."""
    ...


@op(types=typing.where, shape=shapes.broadcast, reference=np.where, family="elementwise", bound={"f32": 0},
    derivation="selects")
def where(condition: Tensor, input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input`` where ``condition`` (BOOL) holds, else ``other``."""
    ...


# ---- bits ----------------------------------------------------------------------------------------------------------------


@op(types=typing.bitwise, shape=shapes.broadcast, reference=np.bitwise_and, family="elementwise", dtypes=typing.BITS)
def bitwise_and(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Bitwise and of integers or BOOL."""
    ...


@op(types=typing.shift, shape=shapes.broadcast, reference=reference.shift_left, family="elementwise", dtypes=typing.INTEGERS)
def bitwise_left_shift(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input`` shifted left by ``other`` bits; 0 where the count is outside [0, width)."""
    ...


@op(types=typing.shift, shape=shapes.broadcast, reference=reference.shift_right, family="elementwise", dtypes=typing.INTEGERS)
def bitwise_right_shift(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input`` shifted right by ``other`` bits, arithmetic on signed and logical on unsigned dtypes.

    Where the count is outside [0, width): the sign fill on signed dtypes, 0 on unsigned.
    """
    ...


# ---- reductions, matrices, layout ----------------------------------------------------------------------------------------


@op(types=typing.accumulate, shape=shapes.reduce, reference=reference.sum, family="reduce", bound={"f32": 4},
    derivation="blocked pairwise sums: log2(n) / 2 roundings of partial sums; counted in ulp of the sum of magnitudes",
    scale=lambda x, dim=None, keepdim=False, **_: reference.sum(np.abs(x), dim, keepdim), dtypes=typing.NUMBERS,
    variants={("nan", "ignore"): "nansum"})
def sum(input: Tensor, dim: Attribute = None, keepdim: bool = False, nan: str = "propagate") -> Tensor:
    """The sum along ``dim`` (an axis, several, or None for all); of nothing 0. NaN propagates (``nan="ignore"``: it counts as 0).

    f16 and bf16 accumulate in f32 and round once. f32 sums are blocked: the error grows with log(n). BOOL, INT8 and UINT8
    give INT32 (UINT8: UINT32), and integers wrap.
    """
    ...


@op(types=typing.keep, shape=shapes.reduce_nonempty, reference=reference.amax, family="reduce", bound={"f32": 0}, derivation="selects",
    dtypes=typing.NUMBERS, variants={("nan", "ignore"): "nanmax"})
def amax(input: Tensor, dim: Attribute = None, keepdim: bool = False, nan: str = "propagate") -> Tensor:
    """The largest element along ``dim``. NaN propagates (``nan="ignore"``: it is passed over); -0 is less than
    +0. Nothing to reduce is an error."""
    ...


@op(types=typing.keep, shape=shapes.reduce_nonempty, reference=reference.amin, family="reduce", bound={"f32": 0}, derivation="selects",
    dtypes=typing.NUMBERS, variants={("nan", "ignore"): "nanmin"})
def amin(input: Tensor, dim: Attribute = None, keepdim: bool = False, nan: str = "propagate") -> Tensor:
    """The smallest element along ``dim``. NaN propagates (``nan="ignore"``: it is passed over); -0 is less than
    +0. Nothing to reduce is an error."""
    ...


@op(types=typing.product, shape=shapes.reduce, reference=reductions.prod, family="reduce", bound={"f32": 64},
    derivation="one rounding per factor: n / 2 ulp; the tests take up to 128 factors", dtypes=typing.NUMBERS,
    variants={("nan", "ignore"): "nanprod"})
def prod(input: Tensor, dim: Attribute = None, keepdim: bool = False, nan: str = "propagate") -> Tensor:
    """The product along ``dim`` (an axis, several, or None for all); of nothing 1. Dtypes as those of `sum`; integers wrap.

    NaN propagates (``nan="ignore"``: it counts as 1).
    """
    ...


@op(types=typing.matmul, shape=shapes.matmul, reference=reference.matmul, family="matmul", bound={"f32": 32},
    derivation="one rounding per product added: k / 2 ulp; counted in ulp of the product of the magnitudes; the tests take k up to 64",
    scale=lambda a, b, a_trans=False, b_trans=False, **_: reference.matmul(np.abs(a), np.abs(b), a_trans, b_trans))
def matmul(input: Tensor, mat2: Tensor, out_dtype: DType | None = None, a_trans: bool = False, b_trans: bool = False) -> Tensor:
    """The matrix product of the last two axes, accumulated in f32 (integers: INT32), rounded once to ``out_dtype``
    (None: the inputs' dtype).

    The CPU takes k in blocks of 256: each one ascending chain of multiply-adds, and the blocks' sums in ascending order.
    """
    ...


@op(types=typing.keep, shape=shapes.reshape, reference=reference.reshape, family="layout")
def reshape(input: Tensor, shape: tuple[Index, ...] = (), valid: tuple[Index, ...] | None = None) -> Tensor:
    """The same elements in row-major order under another shape; one extent may be -1.

    Of a tail the live elements are compacted: they fill ``valid``, which must multiply out, or without it the leading axis.
    """
    ...


@op(types=typing.keep, shape=shapes.permute, reference=reference.permute, family="layout")
def permute(input: Tensor, perm: tuple[int, ...] = ()) -> Tensor:
    """The axes in another order: axis i of the result is axis ``perm[i]`` of ``input``."""
    ...
