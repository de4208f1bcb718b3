"""What an emitted host program is told about extents: the symbols that it needs, and the equalities that it checks before it launches."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.tile_ir.nodes import (
    BranchStep,
    GuardStep,
    IndexValue,
    LoopStep,
    Param,
    Program,
    ReadElement,
    Step,
    StoreNumber,
    TileKernel,
    kernels_of,
)


def stated(program: Program) -> Program:
    """``program`` without symbols that nothing reads but a check: `out_d0 == x_d0` says what `out_d0` is, so nobody needs to give it.

    The tensors of a host program are checked against the remaining symbols; equalities between those stay as checks, each once.
    """
    needed = _needed(program)
    known: dict[str, Index] = {}
    checks = list(dict.fromkeys((left, right) for left, right, _ in program.checks))
    pending = True
    while pending:
        pending = False
        for left, right in checks:
            name, value = next(((a.name, b) for a, b in ((left, right), (right, left))
                                if a.name is not None and a.name not in needed and a.name not in b.variables()), (None, left))
            if name is not None:
                known[name] = value
                checks = list(dict.fromkeys((a.substitute({name: value}), b.substitute({name: value})) for a, b in checks))
                pending = True
                break
    checks = [(left, right) for left, right in checks if left != right]
    read = needed.union(*(left.variables() | right.variables() for left, right in checks))
    return replace(program, scalars=tuple(s for s in program.scalars if s.name in read), checks=tuple((a, b, None) for a, b in checks))


def _needed(program: Program) -> frozenset[str]:
    """Every name that shapes, derived scalars, conditions, grids and kernels of a placed program read."""
    kernels = list(kernels_of(program.steps))
    tensors: list[Param] = [*program.arguments, *(p for k in kernels for p in k.params)]
    extents = [e for p in tensors for e in (*p.shape, *(p.strides or ()), p.base)]
    extents += [e for w in program.workspaces for e in w.shape]
    extents += [e for k in kernels for e in _extents(k)]
    extents += _between(program.steps)
    extents += [s.value for s in program.scalars if s.value is not None]
    taken = {s.name for k in kernels for s in k.scalars if s.value is None} | {s.name for s in program.scalars if s.value is not None}
    return frozenset(taken).union(*(e.variables() for e in extents))


def _extents(kernel: TileKernel) -> list[Index]:
    return [*kernel.requires, *kernel.grid.extents, *(s.value for s in kernel.scalars if s.value is not None)]


def _between(steps: Sequence[Step]) -> list[Index]:
    """What the host itself computes with: bounds of loops, guards, positions of elements, conditions."""
    found: list[Index] = []
    for step in steps:
        if isinstance(step, LoopStep):
            found += [step.start, step.stop, step.step, *_between(step.steps)]
        elif isinstance(step, BranchStep):
            found += [o.value for op in step.ops for o in op.operands if isinstance(o, IndexValue)]
            found += _between((*step.steps, *step.orelse))
        elif isinstance(step, StoreNumber):
            found += [o.value for o in (step.value, *(o for op in step.ops for o in op.operands)) if isinstance(o, IndexValue)]
        elif isinstance(step, GuardStep):
            found += [step.needed, step.available]
        elif isinstance(step, ReadElement):
            found += [*step.offsets, *step.param.shape, *(step.param.strides or ()), step.param.base]
    return found
