"""Numbers of the host: workspaces of one integer that only numbers and control flow read are kept by the host, and no kernel runs for them.

Lengths and offsets that a loop carries, or branches choose between, come out of tiling as tensors of rank 0.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pypto_dsl.compiler.conditions import is_condition
from pypto_dsl.compiler.tile_ir.nodes import (
    Block,
    BlockOp,
    BranchStep,
    HostCall,
    Load,
    LoopStep,
    Operand,
    Param,
    ReadBuffer,
    ReadElement,
    ScalarRead,
    Step,
    Store,
    StoreNumber,
    TileKernel,
    Workspace,
)


@dataclass(frozen=True)
class Number:
    """What a kernel that writes one number does: its value from a Block of one lane, and the numbers that it loads, by buffer."""

    name: str
    block: Block
    loads: Mapping[str, Param]


def host_numbers(steps: tuple[Step, ...], workspaces: Sequence[Workspace]) -> tuple[tuple[Step, ...], tuple[Workspace, ...]]:
    """Steps without the kernels that only write numbers, and the workspaces, those of the host marked."""
    kept = {w.name: w for w in workspaces if not w.shape and (w.dtype.is_integer or w.dtype.kind == "bool")}
    names = set(kept)
    everything = list(_below(steps))
    while names:
        refused = {name for step in everything for name in _needed_on_the_device(step, names)}
        if not refused & names:
            break
        names -= refused
    if not names:
        return steps, tuple(workspaces)
    return _Rewriter(names).steps(steps), tuple(replace(w, host=True) if w.name in names else w for w in workspaces)


def _below(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        if isinstance(step, LoopStep):
            yield from _below(step.steps)
        elif isinstance(step, BranchStep):
            yield from _below((*step.steps, *step.orelse))


def _needed_on_the_device(step: Step, names: set[str]) -> set[str]:
    """The tensors among ``names`` that a step uses as more than a number of the host."""
    if isinstance(step, HostCall):
        return {o.bound_to for o in (*step.operands, *step.results) if isinstance(o, Param)}
    if not isinstance(step, tuple):
        return set()
    used = {p.bound_to for kernel in step for p in kernel.params}
    if not used & names:
        return set()
    number = _computed(step)
    return set() if number is not None and used <= names else used


def _computed(variants: tuple[TileKernel, ...]) -> Number | None:
    """What the kernel of a step computes, when that is one number."""
    if len(variants) != 1 or variants[0].once or variants[0].grid.extents:
        return None
    kernel = variants[0]
    loads = {s.buffer.name: s.region.param for s in kernel.body if isinstance(s, Load)}
    blocks = [s for s in kernel.body if isinstance(s, Block)]
    stores = [s for s in kernel.body if isinstance(s, Store)]
    if len(loads) + 2 != len(kernel.body) or len(blocks) != 1 or len(stores) != 1:
        return None
    (block,), (store,) = blocks, stores
    one_lane = block.rows.constant == 1 and block.cols.constant == 1 and len(block.writes) == 1 and not block.reduces
    spelled = all(is_condition(op.name, op.dtype) for op in block.ops)
    if not one_lane or not spelled or block.writes[0].buffer.name != store.buffer.name:
        return None
    return Number(store.region.param.bound_to, block, loads)


class _Rewriter:
    """Replaces the kernels of numbers, and names what they read."""

    def __init__(self, names: set[str]) -> None:
        self.names, self.read = names, 0

    def steps(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple(made for step in steps for made in self.step(step))

    def step(self, step: Step) -> tuple[Step, ...]:
        if isinstance(step, LoopStep):
            return (replace(step, steps=self.steps(step.steps)),)
        if isinstance(step, BranchStep):
            return (replace(step, steps=self.steps(step.steps), orelse=self.steps(step.orelse)),)
        number = _computed(step) if isinstance(step, tuple) else None
        if number is None or number.name not in self.names:
            return (step,)
        reads: list[Step] = []

        def read(operand: Operand) -> Operand:
            if not isinstance(operand, ReadBuffer):
                return operand
            param = number.loads[operand.buffer.name]
            self.read += 1
            name = f"{param.bound_to}_now{self.read}"
            reads.append(ReadElement(name, "", replace(param, shape=(), strides=None), ()))
            return ScalarRead(name, param.dtype)

        ops = tuple(_operands(op, read) for op in number.block.ops)
        stored = StoreNumber(number.name, ops, read(number.block.writes[0].value), number.block.span)
        return (*reads, stored)


def _operands(op: BlockOp, change: Callable[[Operand], Operand]) -> BlockOp:
    return replace(op, operands=tuple(map(change, op.operands)))
