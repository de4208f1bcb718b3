"""Steps of a program as a manifest holds them: kernels, and what the host does between them, with every number as index text.

A step is a list of kernels, alternatives in order of preference, or an object: `loop` with start, stop and step around `steps`;
`branch`, a condition with `steps` and `orelse`; `number`, one that the host keeps in a workspace of
its own; `guard`, a number that must not exceed another; `read`, an element of a tensor as
a number of the host. A condition is ["index", text], ["number", name], ["constant", value] or an operation and its operands.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.index import Index, dense_strides
from pypto_dsl.compiler.index import text as index_text
from pypto_dsl.compiler.tile_ir.nodes import (
    BlockOp,
    BranchStep,
    Constant,
    GuardStep,
    IndexValue,
    LoopStep,
    Operand,
    ReadElement,
    ScalarRead,
    Step,
    StoreNumber,
    TileKernel,
)

Kernel = Callable[[TileKernel], dict[str, Any]]


def rows(steps: Sequence[Step], kernel: Kernel) -> list[Any]:
    """The steps as plain data; ``kernel`` gives the record of a kernel. CompilerBug for a step that placement refuses."""
    return [_row(step, kernel) for step in steps]


def _row(step: Step, kernel: Kernel) -> Any:
    if isinstance(step, tuple):
        return [kernel(k) for k in step]
    if isinstance(step, LoopStep):
        return {"loop": step.var, "start": index_text(step.start), "stop": index_text(step.stop), "step": index_text(step.step),
                "steps": rows(step.steps, kernel)}
    if isinstance(step, BranchStep):
        return {"branch": _value(step.ops, step.condition), "steps": rows(step.steps, kernel), "orelse": rows(step.orelse, kernel)}
    if isinstance(step, StoreNumber):
        return {"number": step.name, "value": _value(step.ops, step.value)}
    if isinstance(step, GuardStep):
        return {"guard": step.what or "an access", "needed": index_text(step.needed), "available": index_text(step.available)}
    if isinstance(step, ReadElement):
        return {"read": step.name, "symbol": step.symbol, "tensor": step.param.bound_to, "dtype": step.param.dtype.name,
                "element": index_text(_element(step))}
    raise CompilerBug("codegen.host_steps", f"{type(step).__name__} is no step of an emitted host program")


def _element(step: ReadElement) -> Index:
    """Which element of its tensor, counted row by row, a read takes."""
    strides = step.param.strides if step.param.strides is not None else dense_strides(step.param.shape)
    position = step.param.base
    for offset, stride in zip(step.offsets, strides, strict=True):
        position = position + offset * stride
    return position


def _value(ops: Sequence[BlockOp], value: Operand) -> list[Any]:
    made: dict[str, list[Any]] = {}

    def operand(o: Operand) -> list[Any]:
        if isinstance(o, str):
            return made[o]
        if isinstance(o, IndexValue):
            return ["index", index_text(o.value)]
        if isinstance(o, ScalarRead):
            return ["number", o.name]
        if isinstance(o, Constant):
            return ["constant", o.value]
        raise CompilerBug("codegen.host_steps", f"{o!r} in a condition of the host")

    for op in ops:
        made[op.result] = [op.name, *(operand(o) for o in op.operands)]
    return operand(value)


def kernel_rows(steps: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """Every kernel of a manifest's steps, alternatives in order, those inside loops and branches too."""
    for step in steps:
        if isinstance(step, list):
            yield from step
        else:
            yield from kernel_rows((*step.get("steps", ()), *step.get("orelse", ())))


def host_rows(steps: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """Every step of a manifest that is not a kernel, inside loops and branches too."""
    for step in steps:
        if isinstance(step, Mapping):
            yield step
            yield from host_rows((*step.get("steps", ()), *step.get("orelse", ())))


def condition(row: Sequence[Any], spelling: Mapping[str, str], index: Callable[[str], str], name: Callable[[str], str]) -> str:
    """A condition in the words of a language: ``spelling`` has a pattern per operation, ``index`` and ``name`` spell its leaves."""
    head, *operands = row
    if head == "index":
        return index(operands[0])
    if head == "number":
        return name(operands[0])
    if head == "constant":
        return repr(operands[0])
    return spelling[head].format(*(condition(o, spelling, index, name) for o in operands))
