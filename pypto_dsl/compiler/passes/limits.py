"""The sizes of tensors that a target takes (`[limits]` of its file): how many axes and elements, and whether they may be empty."""
from __future__ import annotations

from collections.abc import Iterator, Mapping

from pypto_dsl.compiler.errors import KernelError, error
from pypto_dsl.compiler.graph import Graph, Value
from pypto_dsl.compiler.ops.shapes import element_count, shape_text
from pypto_dsl.compiler.targets import Target


def check_limits(graph: Graph, target: Target, symbols: Mapping[str, int] | None = None) -> None:
    """Refuse (PT526) tensors of ``graph`` that ``target`` does not take: what is known, and with ``symbols`` the rest.

    The limits are those of arguments and results; between them a kernel may reshape as it likes.
    """
    for value in (*graph.parameters, *graph.outputs.values(), *graph.returns):
        for what in _excesses(value, target, symbols):
            raise _beyond(graph, value, target, what)


def _excesses(value: Value, target: Target, symbols: Mapping[str, int] | None) -> Iterator[str]:
    shape = value.type.shape
    rank, elements, empty = (target.limit(name) for name in ("rank", "elements", "empty"))
    if rank is not None and len(shape) > rank:
        yield f"{len(shape)} axes, and takes at most {rank}"
    count = element_count(shape)
    number = count.constant if symbols is None else count.evaluate(symbols)
    if number is None:
        return
    if elements is not None and number > elements:
        yield f"{number} elements, and takes at most {elements}"
    if number == 0 and empty is False:
        yield "no elements, and takes no empty tensors"


def _beyond(graph: Graph, value: Value, target: Target, what: str) -> KernelError:
    has, takes = what.split(", and ")
    name = f"`{value.name}`" if value.name else "a result"
    message = f"{name} of shape {shape_text(value.type.shape)} has {has}, and {target.name} {takes}"
    return error("PT526", message, value.op.span if value.op is not None else graph.span,
                 help="reshape or split it outside the kernel, or choose another target", target=target.name)
