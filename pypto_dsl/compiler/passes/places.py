"""How memory is seen: a tensor of the program under a shape, base and strides, and what views make of it."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

from pypto_dsl.compiler.graph import Op, Value
from pypto_dsl.compiler.index import Index, as_index, dense_strides


@dataclass(frozen=True)
class Place:
    """A tensor of the program seen under a shape; ``strides`` None is dense row-major from element ``base`` on."""

    tensor: str
    shape: tuple[Index, ...]
    strides: tuple[Index, ...] | None = None
    base: Index = field(default_factory=lambda: as_index(0))

    def stride_list(self) -> tuple[Index, ...]:
        """The strides in elements, dense ones written out."""
        return dense_strides(self.shape) if self.strides is None else self.strides

    @property
    def dense(self) -> bool:
        return self.strides is None or self.strides == dense_strides(self.shape)


def place_at(place: Place, offsets: tuple[Index | int, ...], shape: tuple[Index, ...]) -> Place:
    """The window of a place at ``offsets``."""
    strides = place.stride_list()
    base = place.base
    for offset, stride in zip(offsets, strides, strict=True):
        base = base + as_index(offset) * stride
    if not base.terms and shape == place.shape:
        return replace(place, shape=shape)
    return Place(place.tensor, shape, strides, base)


def view_of(source: Place, op: Op, result: Value) -> Place | None:
    """How a reshape, permutation or slice sees its operand's place; None for a reshape whose elements lie in another order there."""
    if op.opcode == "permute":
        perm = cast("tuple[int, ...]", op.attributes["perm"])
        strides = source.stride_list()
        return replace(source, shape=result.type.shape, strides=tuple(strides[p] for p in perm))
    if op.opcode == "view":
        return place_at(source, cast("tuple[Index | int, ...]", op.attributes["offsets"]), result.type.shape)
    operand = op.operands[0]
    if source.dense and _compact(operand) and _compact(result):
        return replace(source, shape=result.type.shape, strides=None)
    if _real(operand.type.live, operand.type.shape) == _real(result.type.live, result.type.shape):
        return _regrouped(source, result.type.shape)
    return None


def _compact(value: Value) -> bool:
    """Whether the live elements of a dense tensor lie next to each other: only its first axis of more than one element is a tail."""
    shape, live = value.type.shape, value.type.live
    leading = next((i for i, e in enumerate(shape) if e.constant != 1), 0)
    return live[leading + 1:] == shape[leading + 1:]


def _real(extents: tuple[Index, ...], shape: tuple[Index, ...]) -> list[Index]:
    """The extents of the axes that have more than one element."""
    return [e for e, n in zip(extents, shape, strict=True) if n.constant != 1]


def _regrouped(source: Place, shape: tuple[Index, ...]) -> Place | None:
    """A strided place under a shape that differs in extents of 1 only."""
    if _real(source.shape, source.shape) != _real(shape, shape):
        return None
    strides = iter(_real(source.stride_list(), source.shape))
    return replace(source, shape=shape, strides=tuple(as_index(0) if e.constant == 1 else next(strides) for e in shape))


def compacted(tensor: str, value: Value) -> Place:
    """A tensor that holds only the live elements of ``value``, in row-major order."""
    return Place(tensor, value.type.shape, dense_strides(value.type.live))
