"""`pypto.constant`: numbers and nested lists of numbers as tensors, weak or of a dtype, by the kernel's promotion rules."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import F32, DType
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.graph import Value
from pypto_dsl.compiler.index import as_index
from pypto_dsl.compiler.ops import reference
from pypto_dsl.compiler.ops.core import add, cast, eq, iota, mul, where
from pypto_dsl.compiler.ops.layout import expand_clone
from pypto_dsl.compiler.ops.typing import atype
from pypto_dsl.compiler.promotion import AType, PromotionError, RuleSet, rule_set, strong
from pypto_dsl.compiler.promotion.refusal import NO_JOIN, cast_fix
from pypto_dsl.compiler.promotion.scalars import describe, misfit
from pypto_dsl.frontend.operations import need_dtype, own
from pypto_dsl.frontend.scalar import is_symbolic
from pypto_dsl.frontend.spans import here
from pypto_dsl.frontend.tensor import Tensor, wrap
from pypto_dsl.frontend.trace import Trace, need
from pypto_dsl.frontend.vocabulary import Element

# A list becomes a choice by position, one step per element: beyond this a parameter is cheaper, and clearer.
MOST_ELEMENTS = 256


@own
def constant(value: Any, dtype: DType | None = None) -> Any:
    """``value`` as a tensor: a number without axes, or a nested list or NumPy array of at most 256 numbers with its shape.

    Without ``dtype`` it has the type that the kernel's rule set infers: Python numbers are weak and take the dtype of the tensor that they
    meet, BOOL and NumPy's values are strong, a list is weak under the tf rules alone. With ``dtype`` it is strong, and allowed only where
    the rules join it to that dtype: a narrowing needs `cast`. A tensor is taken as it is. Raises PT202 for what does not join, PT204 for an
    integer that does not fit, PT201 for what is no number, PT203 for block formats, PT111 for lists that are ragged or too long.
    """
    trace = need("pypto.constant")
    rules = rule_set(trace.graph.rules)
    if dtype is not None and need_dtype(dtype, "constant").kind == "block":
        raise error("PT203", f"a constant of {dtype} does not exist: block formats are storage", here(), help="make it FP32, and cast that")
    if is_symbolic(value):
        value = wrap(trace.emit(lambda: trace.number(value)))
    if isinstance(value, Element):
        value = wrap(trace.emit(lambda: _scalar(trace, value.value, value.dtype)))
    if isinstance(value, Tensor):
        return _typed(trace, rules, value, dtype)
    try:
        inferred = rules.infer(value)
    except PromotionError as refused:
        raise refused.located(here()) from None
    return wrap(trace.emit(lambda: _recorded(trace, rules, value, inferred, dtype)))


def _typed(trace: Trace, rules: RuleSet, tensor: Tensor, dtype: DType | None) -> Tensor:
    """A tensor in ``dtype``, which its own type must join to."""
    made = tensor.value
    if dtype is None or (made.type.dtype is dtype and not made.type.weak):
        return tensor
    _require_join(rules, atype(made), dtype, tensor.name)
    handle: Tensor = wrap(trace.emit(lambda: cast(made, dtype)))
    return handle


def _require_join(rules: RuleSet, found: AType, dtype: DType, name: str = "") -> None:
    """Refuse (PT202) a type that does not join to ``dtype``."""
    wanted = strong(dtype, "the dtype that is asked for")
    try:
        joined = rules.join(wanted, found, op="constant", names=("", name))
    except PromotionError as refused:
        raise refused.located(here()) from None
    if joined.dtype is not dtype:
        fix = cast_fix(name, dtype.name) if name else ""
        raise PromotionError(NO_JOIN, "constant", found, wanted, rules.name, f"the join is {joined.node}, and {dtype} was asked for",
                             (joined.dtype.name,), (fix,) if fix else ()).located(here())


def _recorded(trace: Trace, rules: RuleSet, value: Any, inferred: AType, dtype: DType | None) -> Value:
    """The graph's value of a number, or of nested numbers."""
    shape = np.shape(value) if isinstance(value, np.ndarray) else _shape(value)
    leaves = _leaves(value)
    if dtype is not None:
        for leaf in leaves:
            _require_join(rules, rules.infer(leaf), dtype)
    dtype = dtype or (None if inferred.weak else inferred.dtype)
    numbers = [_weak_number(leaf, inferred.dtype) if dtype is None else _number(leaf, dtype) for leaf in leaves]
    if not shape:
        return _scalar(trace, numbers[0], dtype)
    if len(numbers) > MOST_ELEMENTS:
        raise error("PT111", f"constant takes at most {MOST_ELEMENTS} numbers, and got {len(numbers)}", here(),
                    help="make the array a parameter of the kernel, and pass it")
    return _table(trace, numbers, shape, inferred.dtype if dtype is None else dtype, weak=dtype is None)


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of nested lists. Raises PT111 where they are ragged."""
    if not isinstance(value, (list, tuple)):
        return np.shape(value)
    inner = {_shape(v) for v in value}
    if len(inner) > 1:
        raise error("PT111", f"constant: the lists in {describe(value)} have different lengths", here(), help="pad them to one length")
    return (len(value), *(inner.pop() if inner else ()))


def _leaves(value: Any) -> list[Any]:
    """The numbers of nested lists in row-major order; those of an array as NumPy's scalars."""
    if isinstance(value, np.ndarray):
        return list(value.reshape(-1))
    return [leaf for v in value for leaf in _leaves(v)] if isinstance(value, (list, tuple)) else [value]


def _number(leaf: Any, dtype: DType) -> int | float | bool:
    """A leaf as the number that ``dtype`` holds. Raises PT204 for an integer that does not fit."""
    plain: int | float | bool = leaf.item() if isinstance(leaf, np.generic) else leaf
    if why := misfit(plain, dtype):
        raise error("PT204", f"constant: {why}", here(), help=f"write a number that {dtype} holds, or ask for a wider dtype")
    if dtype.is_float:
        return float(reference.round_to(np.asarray(float(plain)), dtype).astype(np.float64))
    return plain


def _weak_number(leaf: Any, dtype: DType) -> int | float | bool:
    """A leaf as it is, rounded where it lands; an integer among floats is a float."""
    plain: int | float | bool = leaf.item() if isinstance(leaf, np.generic) else leaf
    return float(plain) if dtype.is_float else plain


def _scalar(trace: Trace, number: int | float | bool, dtype: DType | None) -> Value:
    return trace.number(number, dtype)


def _table(trace: Trace, numbers: Sequence[int | float | bool], shape: tuple[int, ...], dtype: DType, weak: bool) -> Value:
    """Numbers in row-major order as a tensor: by position, from the most frequent one."""
    extents = tuple(as_index(n) for n in shape)
    keys: list[object] = [np.float64(n).tobytes() if isinstance(n, float) else n for n in numbers]  # 0.0 and -0.0 differ
    usual = Counter(keys).most_common(1)[0][0] if keys else None
    known = None if weak else dtype
    base = numbers[keys.index(usual)] if keys else 0.0 if dtype.is_float else 0
    made: Value = expand_clone(_scalar(trace, base, known), extents)
    if len(set(keys)) < 2:
        return made
    position = iota(extents, len(shape) - 1, F32)
    step = shape[-1]
    for axis in reversed(range(len(shape) - 1)):
        position = add(position, mul(iota(extents, axis, F32), float(step)))
        step *= shape[axis]
    for at, (key, number) in enumerate(zip(keys, numbers, strict=True)):
        if key != usual:
            made = where(eq(position, float(at)), _scalar(trace, number, known), made)
    return made
