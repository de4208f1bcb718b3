"""Placement on TT-Metal: structured kernels become tile statements, rings and slots, and three kernel bodies."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.placement.ttmetal.configure import configure
from pypto_dsl.compiler.placement.ttmetal.rings import allocate_rings
from pypto_dsl.compiler.placement.ttmetal.roles import bind_arguments, slice_roles
from pypto_dsl.compiler.placement.ttmetal.scalars import hoist_scalars
from pypto_dsl.compiler.placement.ttmetal.select import select
from pypto_dsl.compiler.placement.ttmetal.verify import verify_placed
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import Program, Step, TileKernel

# The passes in order, each TileKernel -> TileKernel.
PASSES: dict[str, Callable[[TileKernel, Target], TileKernel]] = {
    "select": select, "allocate": allocate_rings, "slice": slice_roles, "configure": configure, "hoist": hoist_scalars,
    "bind": bind_arguments, "verify": verify_placed}


def place_kernel(kernel: TileKernel, target: Target) -> TileKernel:
    """Run every placement pass on one kernel. Raises KernelError for what the target cannot do or hold."""
    for run in PASSES.values():
        kernel = run(kernel, target)
    return kernel


def place(program: Program, target: Target) -> Program:
    """Place every kernel of a program."""
    return replace(program, steps=tuple(_step(step, target, program) for step in program.steps))


def _step(step: Step, target: Target, program: Program) -> Step:
    if not isinstance(step, tuple):
        span = getattr(step, "span", None)
        raise error("PT503", f"`{program.name}` needs control flow of the host between its kernels, which {target.name} programs do not "
                    "have", span, help='run it with target="interpreter", or write the loop or branch outside the kernel',
                    target=target.name)
    return tuple(place_kernel(k, target) for k in step)
