"""Rules of the layout operations: dtypes, shapes, live extents, and their meaning in NumPy on live parts."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, cast

import numpy as np

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.graph import Graph, TensorType, Value
from pypto_dsl.compiler.index import Index, as_index, at_most, minimum
from pypto_dsl.compiler.ops import live
from pypto_dsl.compiler.ops.bounds import require_within
from pypto_dsl.compiler.ops.definition import Call, Typing
from pypto_dsl.compiler.ops.recording import current_builder
from pypto_dsl.compiler.ops.shapes import axis_of, from_attribute, require_elements, require_equal, same, shape_text
from pypto_dsl.compiler.ops.typing import atype
from pypto_dsl.compiler.promotion.families import assign
from pypto_dsl.compiler.promotion.refusal import PromotionError
from pypto_dsl.compiler.promotion.rulesets import rule_set

Array = np.ndarray[Any, np.dtype[Any]]
Shapes = tuple[tuple[Index, ...], ...]
declared = from_attribute
__all__ = ["declared", "same"]


def destination(call: Call) -> Typing:
    """The first operand keeps its dtype, and the second must join to it (PT205)."""
    target, value = (cast(Value, o) for o in call.operands)
    try:
        typing = assign(rule_set(call.graph.rules), atype(target), atype(value), op="out[:]",
                        names=[target.name or "the destination", value.name or "value"])
    except PromotionError as refused:
        raise refused.located(call.span) from None
    return Typing(typing, (typing.result,))


# ---- shapes --------------------------------------------------------------------------------------------------------------


def _source(call: Call) -> Value:
    return cast(Value, call.operands[0])


def _indexes(call: Call, name: str) -> tuple[Index, ...]:
    return tuple(as_index(e) for e in call.attributes[name])


def _as_rank(value: TensorType, rank: int) -> str:
    """What to write for a value of another rank than its destination's."""
    if value.rank < rank:
        wide = shape_text((as_index(1),) * (rank - value.rank) + value.shape)
        return f"reshape the value, pypto.reshape(v, {wide}), and give {rank} offsets"
    return f"reshape the value to {rank} axes, and give one offset per axis"


def view(call: Call) -> Shapes:
    """Attributes `shape` and `offsets`, one entry per axis; constant windows must begin inside."""
    source = _source(call).type
    shape, offsets = _indexes(call, "shape"), _indexes(call, "offsets")
    if not len(shape) == len(offsets) == source.rank:
        raise call.refuse("PT310", f"view of a tensor of rank {source.rank} with {len(shape)} extents and {len(offsets)} offsets",
                          help="give one extent and one offset per axis; reshape changes the rank")
    for axis, (extent, offset, have) in enumerate(zip(shape, offsets, source.shape, strict=True)):
        if (offset.constant is not None and offset.constant < 0) or (extent.constant is not None and extent.constant < 0):
            raise call.refuse("PT311", f"view: axis {axis} begins at {offset} with extent {extent}; neither may be negative")
        room = (have - offset).constant
        if room is not None and (room < 0 or (room == 0 and extent.constant not in (0, None))):
            raise call.refuse("PT311", f"view: axis {axis} begins at {offset}, and the tensor's extent is {have}",
                              help="a window may reach beyond the end (its live part is clipped), but must begin inside")
    return (shape,)


def insert(call: Call) -> Shapes:
    """The first operand's shape; the second, of the same rank, must fit at `offsets`."""
    target, value = (cast(Value, o).type for o in call.operands)
    offsets = _indexes(call, "offsets")
    if not target.rank == value.rank == len(offsets):
        raise call.refuse("PT312", f"a tensor of rank {value.rank} cannot be written into one of rank {target.rank} "
                          f"at {len(offsets)} offsets", help=_as_rank(value, target.rank))
    for axis, (have, extent, offset) in enumerate(zip(target.shape, value.live, offsets, strict=True)):
        beyond = (offset + extent - have).constant
        if (beyond is not None and beyond > 0) or (offset.constant is not None and offset.constant < 0):
            raise call.refuse("PT314", f"axis {axis} of the destination has extent {have}, and {extent} elements are written at {offset}",
                              help=f"the destination has shape {shape_text(target.shape)}, the value {shape_text(value.shape)}")
        _within(call, offset, extent, have)
    return (target.shape,)


def _within(call: Call, offset: Index, extent: Index, have: Index) -> None:
    """What happens on every path is checked before the kernel runs; what happens in a loop or a branch is guarded there."""
    builder = current_builder()
    if builder is not None and builder.region is builder.graph.body:
        require_within(call.graph, offset, extent, have, call.span, call.name)


def concat(call: Call) -> Shapes:
    """Extents add up along `dim` and are equal elsewhere."""
    values = [cast(Value, o) for o in call.operands]
    if not values:
        raise call.refuse("PT110", "concat takes at least one tensor", help="pypto.concat([a, b], 0)")
    rank = values[0].type.rank
    axis = axis_of(call, call.attributes["dim"], rank)
    total = as_index(0)
    first = values[0].type.shape
    for value in values:
        shape = value.type.shape
        if len(shape) != rank or not all(require_equal(call, e, f) for i, (e, f) in enumerate(zip(first, shape, strict=True)) if i != axis):
            shapes = " and ".join(shape_text(v.type.shape) for v in values)
            raise call.refuse("PT313", f"concat along axis {axis}: shapes {shapes} differ elsewhere")
        total = total + shape[axis]
    return (tuple(total if i == axis else e for i, e in enumerate(first)),)


def expand(call: Call) -> Shapes:
    """The `shape` attribute; the operand broadcasts to it."""
    source, shape = _source(call).type.shape, _indexes(call, "shape")
    added = len(shape) - len(source)
    if added < 0 or not all(e.constant == 1 or require_equal(call, e, shape[added + i]) for i, e in enumerate(source)):
        raise call.refuse("PT315", f"{call.name}: {shape_text(source)} cannot be expanded to {shape_text(shape)}",
                          help="only axes of extent 1 and new leading axes grow")
    require_elements(call, [_source(call)], shape)
    return (shape,)


def transpose(call: Call) -> Shapes:
    """The operand's shape with axes `dim0` and `dim1` exchanged."""
    shape = list(_source(call).type.shape)
    a, b = (axis_of(call, call.attributes[n], len(shape), n) for n in ("dim0", "dim1"))
    shape[a], shape[b] = shape[b], shape[a]
    return (tuple(shape),)


def unsqueeze(call: Call) -> Shapes:
    """The operand's shape with an axis of extent 1 more."""
    shape = list(_source(call).type.shape)
    shape.insert(axis_of(call, call.attributes["dim"], len(shape) + 1), as_index(1))
    return (tuple(shape),)


def arange(call: Call) -> Shapes:
    """One axis: as many elements as `start`, `stop`, `step` give."""
    start, stop, step = (call.attributes[n] for n in ("start", "stop", "step"))
    if step == 0:
        raise call.refuse("PT111", "arange: `step` is 0", help="give a positive or negative step")
    if not all(abs(x) < 2.0 ** 62 for x in (start, stop, step)):
        raise call.refuse("PT111", f"arange({start}, {stop}, {step}) has no end", help="give finite numbers")
    return ((as_index(max(0, ceil((stop - start) / step))),),)


def element(call: Call) -> Shapes:
    """A scalar; one offset per axis."""
    source, offsets = _source(call).type, _indexes(call, "offsets")
    if len(offsets) != source.rank:
        raise call.refuse("PT130", f"{len(offsets)} indices for a tensor of rank {source.rank}", help=f"give {source.rank}, one per axis")
    for axis, (offset, have) in enumerate(zip(offsets, source.shape, strict=True)):
        room = (have - offset).constant
        if (room is not None and room <= 0) or (offset.constant is not None and offset.constant < 0):
            raise call.refuse("PT132", f"index {offset} is outside axis {axis} of extent {have}")
        _within(call, offset, as_index(1), have)
    return ((),)


# ---- live extents --------------------------------------------------------------------------------------------------------


def _view_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    source = operands[0].type
    offsets = [as_index(o) for o in attributes["offsets"]]
    inside = live.clip(shape, source.live, offsets, graph)
    if attributes.get("valid") is None:
        return inside
    given = [as_index(v) for v in attributes["valid"]]
    return tuple(v if v == e or live.is_never_negative(have - o - v, graph) or v == minimum(extent, have - o) else at_most(v, e)
                 for v, e, have, o, extent in zip(given, inside, source.live, offsets, shape, strict=True))


def _insert_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    return operands[0].type.live


def _concat_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    axis = attributes["dim"] % len(shape)
    common = live.broadcast(operands, len(shape))
    total = as_index(0)
    for value in operands:
        total = total + value.type.live[axis]
    return tuple(total if i == axis else e for i, e in enumerate(common))


def _expand_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    if attributes.get("valid") is not None:
        return tuple(as_index(v) for v in attributes["valid"])
    source = operands[0].type
    added = len(shape) - source.rank
    return tuple(e if i < added or source.shape[i - added].constant == 1 else source.live[i - added] for i, e in enumerate(shape))


def _transpose_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    extents = list(operands[0].type.live)
    a, b = attributes["dim0"], attributes["dim1"]
    extents[a], extents[b] = extents[b], extents[a]
    return tuple(extents)


def _unsqueeze_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    extents = list(operands[0].type.live)
    extents.insert(attributes["dim"] % (len(extents) + 1), as_index(1))
    return tuple(extents)


def _scalar_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    return ()


live.BY_NAME.update(view=_view_live, insert=_insert_live, concat=_concat_live, expand_clone=_expand_live, transpose=_transpose_live,
                    unsqueeze=_unsqueeze_live, load_scalar=_scalar_live)
live.MAKES_TAILS.update({"view", "expand_clone"})


# ---- meaning, on arrays that hold the live part only -------------------------------------------------------------------------


def _values(indexes: Sequence[Index], symbols: Mapping[str, int]) -> list[int]:
    return [as_index(i).evaluate(symbols) for i in indexes]


def view_reference(x: Array, shape: Sequence[Index], offsets: Sequence[Index], symbols: Mapping[str, int],
                   valid: Sequence[Index] | None = None, **_: Any) -> Array:
    extents, begins = _values(shape, symbols), _values(offsets, symbols)
    limits = _values(valid, symbols) if valid is not None else extents
    return x[tuple(slice(b, b + max(0, min(e, v, n - b))) for b, e, v, n in zip(begins, extents, limits, x.shape, strict=True))]


def insert_reference(x: Array, value: Array, offsets: Sequence[Index], symbols: Mapping[str, int], **_: Any) -> Array:
    begins = _values(offsets, symbols)
    for axis, (begin, extent, have) in enumerate(zip(begins, value.shape, x.shape, strict=True)):
        if begin < 0 or begin + extent > have:
            raise IndexError(f"axis {axis} of the destination has extent {have}, and {extent} elements are written at {begin}")
    result = x.copy()
    result[tuple(slice(b, b + e) for b, e in zip(begins, value.shape, strict=True))] = value
    return result


def concat_reference(*tensors: Array, dim: int = 0, **_: Any) -> Array:
    return np.concatenate(tensors, axis=dim)


def expand_reference(x: Array, shape: Sequence[Index], symbols: Mapping[str, int], valid: Sequence[Index] | None = None, **_: Any) -> Array:
    return np.broadcast_to(x, _values(valid if valid is not None else shape, symbols))


def clone_reference(x: Array, **_: Any) -> Array:
    return x.copy()


def transpose_reference(x: Array, dim0: int = -2, dim1: int = -1, **_: Any) -> Array:
    return np.swapaxes(x, dim0, dim1)


def unsqueeze_reference(x: Array, dim: int = 0, **_: Any) -> Array:
    return np.expand_dims(x, dim)


def empty_reference(shape: Sequence[Index], dtype: DType, symbols: Mapping[str, int], **_: Any) -> Array:
    """NaN for floats, a conspicuous pattern for integers: nobody may rely on it."""
    extents = _values(shape, symbols)
    if dtype.is_float:
        return np.full(extents, np.nan, dtype.numpy)
    return np.full(extents, dtype.range[1], dtype.numpy)


def arange_reference(start: float, stop: float, step: float, dtype: DType, **_: Any) -> Array:
    count = max(0, ceil((stop - start) / step))
    return np.asarray(start + np.arange(count) * step)


def element_reference(x: Array, offsets: Sequence[Index], symbols: Mapping[str, int], **_: Any) -> Array:
    return np.asarray(x[tuple(_values(offsets, symbols))])
