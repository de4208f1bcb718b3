"""Structured kernels to placed ones, pass after pass: split_units, select, queues, allocate, sync."""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from pypto_dsl.compiler.dtypes import BOOL
from pypto_dsl.compiler.errors import CompilerBug, KernelError, error
from pypto_dsl.compiler.index import Index, as_index, most_without, var
from pypto_dsl.compiler.placement.ascend.allocate import allocate, plan
from pypto_dsl.compiler.placement.ascend.cube import place_cube
from pypto_dsl.compiler.placement.ascend.machine import Machine, machine
from pypto_dsl.compiler.placement.ascend.queues import queues
from pypto_dsl.compiler.placement.ascend.select import select
from pypto_dsl.compiler.placement.ascend.split import in_strips, items, split_units
from pypto_dsl.compiler.placement.ascend.sync import sync
from pypto_dsl.compiler.placement.ascend.walk import Body, buffers_of, replace_buffers, statements
from pypto_dsl.compiler.placement.host_steps import names_between, place_steps
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import Accumulate, For, Grid, Let, Load, Program, Statement, Step, TileKernel, Workspace
from pypto_dsl.compiler.tile_ir.placed import own

CORE, CORES, ITEM = own("core"), own("cores"), own("item")  # what an emitter spells as the core's number, their count, and the item in hand
ITEMS = "items"  # property: how many items a launch has, as index text


def place(program: Program, target: Target) -> Program:
    """The program with every kernel placed; a step whose kernels need both units becomes two, with a workspace between.

    Raises KernelError: PT502 unsupported on the target, PT503 host steps, PT410 to PT413 and PT525 beyond its limits.
    """
    chip = machine(target)
    workspaces: list[Workspace] = list(program.workspaces)
    unknown = names_between(program)

    def place_variants(variants: tuple[TileKernel, ...]) -> tuple[Step, ...]:
        placed = _fitting(variants, chip)
        workspaces.extend(_sized(workspace, unknown, variants[0], target) for _, workspace in placed if workspace is not None)
        stages = max(len(kernels) for kernels, _ in placed)
        if any(len(kernels) != stages for kernels, _ in placed):
            raise CompilerBug("ascend.place", f"variants of {variants[0].name} split differently")
        return tuple(tuple(kernels[i] for kernels, _ in placed) for i in range(stages))

    steps = place_steps(program, target, place_variants)
    return dataclasses.replace(program, workspaces=tuple(workspaces), steps=steps)


def _sized(workspace: Workspace, unknown: Mapping[str, bool], kernel: TileKernel, target: Target) -> Workspace:
    """A workspace that is allocated before the first step: for the most that any turn of a loop needs of it."""
    shape = [most_without(extent, unknown) for extent in workspace.shape]
    if any(extent is None for extent in shape):
        sizes = ", ".join(map(str, workspace.shape))
        message = f"`{kernel.title}` needs memory of [{sizes}] between two kernels in a loop, and {target.name} allocates it before"
        raise error("PT503", message, kernel.span, help="bound the extent: pypto.min(length, PAGE)", target=target.name)
    return dataclasses.replace(workspace, shape=tuple(extent for extent in shape if extent is not None))


def _fitting(variants: tuple[TileKernel, ...], chip: Machine) -> list[tuple[tuple[TileKernel, ...], Workspace | None]]:
    """The variants that fit; when none does, the refusal of the last, which has the smallest tile."""
    placed = []
    refused: KernelError | None = None
    for kernel in variants:
        try:
            placed.append(place_kernel(kernel, chip))
        except KernelError as caught:
            if caught.code != "PT410":
                raise
            refused = caught
    if not placed and refused is not None:
        raise refused
    return placed


def place_kernel(kernel: TileKernel, chip: Machine) -> tuple[tuple[TileKernel, ...], Workspace | None]:
    """The placed kernels of one structured kernel, in launch order, and the workspace between them."""
    _check_loads(kernel)
    _check_elements(kernel, chip)
    split = split_units(kernel)
    placed = []
    for part in split.kernels:
        if part.unit == "cube":
            placed.append(_finished(part, sync(place_cube(_whole(part), chip))))
        elif split.product is not None and len(split.kernels) > 1:
            placed.append(_strips_that_fit(part, split.product, chip))
        else:
            placed.append(_vector(part, chip))
    return tuple(placed), split.workspace


def _check_elements(kernel: TileKernel, chip: Machine) -> None:
    """PT502 for a tensor whose elements no copy of the target moves. BOOL is a byte of 0 or 1."""
    for param in kernel.params:
        if param.dtype is not BOOL and not chip.has("copy", param.dtype):
            raise error("PT502", f"`{param.name}` is {param.dtype}, and {chip.target.name} moves no such elements", kernel.span,
                        notes=(f"it moves {', '.join(sorted(chip.instructions['copy']))}",), help="cast it to one of them",
                        target=chip.target.name)


def _check_loads(kernel: TileKernel) -> None:
    for s in statements((*kernel.once, *kernel.body)):
        if isinstance(s, Load) and s.pads:
            raise CompilerBug("ascend.place", f"the load of {s.buffer.name} pads, and no copy fills more than a block; use valid extents")


# ---- vector kernels --------------------------------------------------------------------------------------------------------


def _whole(kernel: TileKernel) -> Body:
    """The kernel's one body: what is done once, then the loop over the items of this core."""
    grid = kernel.grid
    coordinates: list[Statement] = []
    name = grid.vars[0] if len(grid.vars) == 1 else ITEM
    if len(grid.vars) != 1:
        rest: Index = var(ITEM)
        for v, extent in reversed(list(zip(grid.vars[1:], grid.extents[1:], strict=True))):
            coordinates.insert(0, Let(v, rest % extent))
            rest = rest // extent
        if grid.vars:
            coordinates.insert(0, Let(grid.vars[0], rest))
    loop = For(name, var(CORE), items(grid), var(CORES), "serial", (*coordinates, *kernel.body), "the items of this core")
    return (*kernel.once, loop)


def _finished(kernel: TileKernel, body: Body) -> TileKernel:
    """Everything is in the body now: the grid is a loop, and its size a property for whoever launches."""
    properties = (*kernel.properties, (ITEMS, str(items(kernel.grid))))
    return dataclasses.replace(kernel, body=body, once=(), grid=Grid((), ()), properties=properties)


def _queued(kernel: TileKernel, chip: Machine) -> Body:
    return queues(_whole(select(kernel, chip)), chip)


def _vector(kernel: TileKernel, chip: Machine) -> TileKernel:
    body = _queued(kernel, chip)
    largest = "" if plan(body, chip).fits else _advice(kernel, chip)
    return _finished(kernel, sync(allocate(body, chip, kernel.title, kernel.span, largest)))


def _strips_that_fit(kernel: TileKernel, product: Accumulate, chip: Machine) -> TileKernel:
    """The epilogue in the highest strips that fit the unified buffer."""
    height = min(product.target.shape[0].constant or 1, chip.max_repeats)
    while height >= 1:
        strips = in_strips(kernel, product, height)
        if strips is None:
            break
        body = _queued(strips, chip)
        if plan(body, chip).fits:
            return _finished(strips, sync(allocate(body, chip, kernel.title, kernel.span)))
        height = height // 2
    return _vector(kernel, chip)


# ---- what would fit --------------------------------------------------------------------------------------------------------


def largest_tile(kernel: TileKernel, chip: Machine) -> tuple[int, int] | None:
    """The most rows of the kernel's tiles that fit; columns are halved only when not even one row does. None when nothing fits."""
    buffers = {b.name: b for b in buffers_of((*kernel.once, *kernel.body))}
    # a flat kernel has rows alone
    tiles = [b for b in buffers.values() if b.layout == "tile"] or list(buffers.values())
    rows = max((b.shape[0].constant or 1 for b in tiles), default=1)
    cols = max((b.shape[1].constant or 1 for b in tiles), default=1)

    def fits(height: int, width: int) -> bool:
        shapes = {b.name: (_cut(b.shape[0], rows, height), _cut(b.shape[1], cols, width)) for b in buffers.values()}
        table = {b.name: dataclasses.replace(b, shape=shapes[b.name]) for b in buffers.values()}
        smaller = dataclasses.replace(kernel, once=replace_buffers(kernel.once, table), body=replace_buffers(kernel.body, table))
        try:
            return plan(_queued(smaller, chip), chip).fits
        except KernelError:
            return False

    for width in (cols >> i for i in range(cols.bit_length())):
        low, high = 0, min(rows, chip.max_repeats)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle, width) else (low, middle - 1)
        if low:
            return low, width
    return None


def _cut(extent: Index, whole: int, part: int) -> Index:
    return as_index(part) if extent.constant == whole else extent


def _advice(kernel: TileKernel, chip: Machine) -> str:
    tile = largest_tile(kernel, chip)
    return "" if tile is None else f"the largest tile that fits is {tile[0]} x {tile[1]}: pypto.set_vec_tile_shapes({tile[0]}, {tile[1]})"
