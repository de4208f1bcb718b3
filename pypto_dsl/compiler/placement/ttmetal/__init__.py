"""Placement on TT-Metal: structured kernels become tile statements, rings and slots, and three kernel bodies."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pypto_dsl.compiler.placement.host_steps import place_steps
from pypto_dsl.compiler.placement.ttmetal.configure import configure
from pypto_dsl.compiler.placement.ttmetal.rings import allocate_rings
from pypto_dsl.compiler.placement.ttmetal.roles import bind_arguments, slice_roles
from pypto_dsl.compiler.placement.ttmetal.scalars import hoist_scalars
from pypto_dsl.compiler.placement.ttmetal.select import select
from pypto_dsl.compiler.placement.ttmetal.verify import verify_placed
from pypto_dsl.compiler.placement.ttmetal.views import whole_tensors
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
    """Place every kernel of a program. Raises KernelError PT503 for what no host program does, and what `place_kernel` raises."""
    shapes = {p.name: p.shape for p in program.arguments} | {w.name: w.shape for w in program.workspaces}

    def place_variants(variants: tuple[TileKernel, ...]) -> tuple[Step, ...]:
        return (tuple(place_kernel(whole_tensors(k, shapes, target), target) for k in variants),)

    return replace(program, steps=place_steps(program, target, place_variants))
