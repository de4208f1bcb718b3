"""What the host of a device program runs between kernels: loops, branches, guards and element reads. Everything else is refused."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pypto_dsl.compiler.conditions import is_condition
from pypto_dsl.compiler.errors import KernelError, error
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import BranchStep, HostCall, LoopStep, Program, ReadElement, Step, TileKernel

# Dtypes of elements that a host program reads back and computes with.
READABLE = frozenset({"f32", "i32", "i64", "i8", "i16", "u8", "u16", "u32", "bool"})

Place = Callable[[tuple[TileKernel, ...]], tuple[Step, ...]]


def names_between(program: Program) -> dict[str, bool]:
    """Names that only a step gives a value: loop indices and elements read; True for an index that starts at 0 or above."""
    found: dict[str, bool] = {}
    waiting = list(program.steps)
    while waiting:
        step = waiting.pop()
        if isinstance(step, LoopStep):
            found[step.var] = step.start.constant is not None and step.start.constant >= 0
            waiting += step.steps
        elif isinstance(step, BranchStep):
            waiting += (*step.steps, *step.orelse)
        elif isinstance(step, ReadElement):
            found.update({name: False for name in (step.name, step.symbol) if name})
    return found


def place_steps(program: Program, target: Target, place: Place) -> tuple[Step, ...]:
    """The steps of a program with every kernel step replaced by what ``place`` makes of it, inside loops and branches too.

    Raises KernelError PT503 for what an emitted host program does not do: operations of the CPU's host, conditions that are more than
    comparisons, elements of 16-bit floats.
    """
    return _steps(program.steps, program, target, place)


def _steps(steps: tuple[Step, ...], program: Program, target: Target, place: Place) -> tuple[Step, ...]:
    placed: list[Step] = []
    for step in steps:
        if isinstance(step, tuple):
            placed += place(step)
        elif isinstance(step, LoopStep):
            placed.append(replace(step, steps=_steps(step.steps, program, target, place)))
        elif isinstance(step, BranchStep):
            _check_condition(step, program, target)
            taken, other = (_steps(side, program, target, place) for side in (step.steps, step.orelse))
            placed.append(replace(step, steps=taken, orelse=other))
        elif isinstance(step, HostCall):
            raise _refuse(step, f"has an operation that has no kernel, `{step.opcode}`", program, target)
        elif isinstance(step, ReadElement) and step.param.dtype.name not in READABLE:
            raise _refuse(step, f"reads an element of {step.param.dtype} for its control flow", program, target)
        else:
            placed.append(step)
    return tuple(placed)


def _check_condition(step: BranchStep, program: Program, target: Target) -> None:
    for op in step.ops:
        if not is_condition(op.name, op.dtype):
            raise _refuse(step, f"branches on `{op.name}`", program, target)


def _refuse(step: BranchStep | ReadElement | HostCall, what: str, program: Program, target: Target) -> KernelError:
    return error("PT503", f"`{program.name}` {what}, and host programs of {target.name} run kernels, loops and branches on comparisons",
                 step.span, help='run it with target="llvm-cpu", or compute it in the caller', target=target.name)
