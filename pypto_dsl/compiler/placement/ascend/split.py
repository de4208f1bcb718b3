"""The pass `split_units`: a product with an epilogue becomes a cube kernel and a vector kernel around an f32 workspace.

The two units of a core share no memory on this chip, so the edge between them is a launch boundary: the cube kernel leaves the tile of
each item in the workspace, and the vector kernel, over the same items, reads it back.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.index import Index, as_index, minimum, var
from pypto_dsl.compiler.placement.ascend.storage import static
from pypto_dsl.compiler.placement.ascend.walk import Body, buffers_of, replace_buffers, statements
from pypto_dsl.compiler.tile_ir.nodes import (
    Accumulate,
    Block,
    Buffer,
    Finish,
    For,
    Grid,
    Init,
    LaneIndex,
    Let,
    Load,
    Operand,
    Param,
    Region,
    Statement,
    Store,
    TileKernel,
    Workspace,
)


@dataclasses.dataclass(frozen=True)
class Split:
    """The kernels of one kernel, in launch order, and the workspace between them if there are two."""

    kernels: tuple[TileKernel, ...]
    workspace: Workspace | None = None
    product: Accumulate | None = None


def item_number(grid: Grid) -> Index:
    """The coordinates of an item as one row-major number."""
    number = as_index(0)
    for name, extent in zip(grid.vars, grid.extents, strict=True):
        number = number * extent + var(name)
    return number


def items(grid: Grid) -> Index:
    """How many items a grid has."""
    count = as_index(1)
    for extent in grid.extents:
        count = count * extent
    return count


def split_units(kernel: TileKernel) -> Split:
    """One kernel per unit. Raises KernelError PT502 for products that depend on vector work of the same item."""
    products = [s for s in statements(kernel.body) if isinstance(s, Accumulate)]
    if not products:
        return Split((kernel,))
    product = products[0]
    if len(products) > 1 or product not in kernel.body:
        raise error("PT502", "a matrix product inside a loop, or two in one fused group, are not supported on this target", product.span,
                    help="let each product be a kernel of its own: write its result to a tensor")
    used = {b.name for s in kernel.body if not isinstance(s, Accumulate) for b in buffers_of(s)}
    if not kernel.once and _is_plain(kernel.body, product) and used == {product.target.name}:
        return Split((dataclasses.replace(kernel, unit="cube"),), None, product)
    tile_rows, tile_cols = product.target.shape
    name = f"{kernel.name}Product"
    shape = (items(kernel.grid) * tile_rows, tile_cols)
    written = Param(name, product.target.dtype, shape, "workspace")
    region = Region(written, (item_number(kernel.grid) * tile_rows, as_index(0)), (product.m, product.n))
    cube = _cube_kernel(kernel, product, region)
    vector = _vector_kernel(kernel, product, region)
    return Split((cube, vector), Workspace(name, product.target.dtype, shape), product)


def _is_plain(body: Body, product: Accumulate) -> bool:
    """Lets, the product, and one Store of its accumulator."""
    rest = [s for s in body if not isinstance(s, Let) and s is not product]
    return len(rest) == 1 and isinstance(rest[0], Store) and rest[0].buffer.dtype == rest[0].region.param.dtype


def _params(kernel: TileKernel, body: Body, extra: Param) -> tuple[Param, ...]:
    used = {s.region.param.name for s in statements(body) if isinstance(s, (Load, Store))}
    used |= {load.region.param.name for s in statements(body) if isinstance(s, Accumulate) for load in s.loads}
    return (*(p for p in kernel.params if p.name in used), extra)


def _needed_lets(body: Body) -> Body:
    """Lets at the head that something behind them uses."""
    kept: list[Statement] = []
    used: set[str] = set()
    for statement in reversed(body):
        if isinstance(statement, Let) and statement.name not in used:
            continue
        used |= {name for index in _indexes(statement) for name in index.variables()}
        kept.append(statement)
    return tuple(reversed(kept))


def _indexes(node: object) -> Iterator[Index]:
    if isinstance(node, Index):
        yield node
    elif isinstance(node, tuple):
        for item in node:
            yield from _indexes(item)
    elif dataclasses.is_dataclass(node):
        for field in dataclasses.fields(node):
            yield from _indexes(getattr(node, field.name))


def _cube_kernel(kernel: TileKernel, product: Accumulate, region: Region) -> TileKernel:
    lets: list[Statement] = [s for s in kernel.body if isinstance(s, Let)]
    body = _needed_lets((*lets, product, Store(region, product.target, product.span)))
    params = _params(kernel, body, region.param)
    return dataclasses.replace(kernel, name=f"{kernel.name}_cube", params=params, body=body, once=(), unit="cube")


def _vector_kernel(kernel: TileKernel, product: Accumulate, region: Region) -> TileKernel:
    tile = dataclasses.replace(product.target, space="local", slots=2)
    source = dataclasses.replace(region, param=dataclasses.replace(region.param, role="workspace"))
    body = tuple(Load(tile, source, span=product.span) if s is product else s for s in kernel.body)
    body = replace_buffers(_needed_lets(body), {tile.name: tile})
    once = replace_buffers(kernel.once, {tile.name: tile})
    params = _params(kernel, (*once, *body), region.param)
    return dataclasses.replace(kernel, name=f"{kernel.name}_vector", params=params, body=body, once=once)


# ---- rows of the epilogue --------------------------------------------------------------------------------------------------


def in_strips(kernel: TileKernel, product: Accumulate, height: int) -> TileKernel | None:
    """The vector kernel with the product's tile worked off in strips of ``height`` rows; None when something needs all rows at once."""
    rows, bound = product.m, static(product.target.shape[0])
    if height >= bound:
        return kernel
    if any(r.axis == 0 for s in statements(kernel.body) if isinstance(s, Block) for r in s.reduces):
        return None
    head: list[Statement] = []
    strip: list[Statement] = []
    for statement in kernel.body:
        (strip if _depends_on_rows(statement, rows) else head).append(statement)
    start, short = var("strip"), var("stripRows")
    changed = {b.name: _shorter(b, bound, height) for b in buffers_of(tuple(strip))}
    inner = tuple(_in_strip(replace_buffers(s, changed), rows, start, short) for s in strip)
    loop = For("strip", as_index(0), rows, as_index(height), "serial", (Let("stripRows", minimum(height, rows - start)), *inner),
               f"{height} rows of the tile at a time")
    return dataclasses.replace(kernel, body=(*head, loop))


def _depends_on_rows(statement: Statement, rows: Index) -> bool:
    if isinstance(statement, Let):
        return False
    if isinstance(statement, (Load, Store)):
        return len(statement.region.extent) > 1 and statement.region.extent[-2] == rows
    return True


def _shorter(buffer: Buffer, bound: int, height: int) -> Buffer:
    tall = buffer.layout in ("tile", "column") and buffer.shape[0].constant == bound
    return dataclasses.replace(buffer, shape=(as_index(height), buffer.shape[1])) if tall else buffer


def _in_strip(statement: Statement, rows: Index, start: Index, short: Index) -> Statement:
    if isinstance(statement, (Load, Store)):
        region = statement.region
        offset = (*region.offset[:-2], region.offset[-2] + start, region.offset[-1])
        extent = (*region.extent[:-2], short, region.extent[-1])
        return dataclasses.replace(statement, region=dataclasses.replace(region, offset=offset, extent=extent))
    if isinstance(statement, Block):
        ops = tuple(dataclasses.replace(op, operands=tuple(_moved_lane(o, start) for o in op.operands)) for op in statement.ops)
        return dataclasses.replace(statement, rows=short if statement.rows == rows else statement.rows, ops=ops)
    if isinstance(statement, (Init, Finish)) and statement.rows == rows:
        return dataclasses.replace(statement, rows=short)
    return statement


def _moved_lane(operand: Operand, start: Index) -> Operand:
    if isinstance(operand, LaneIndex) and operand.axis == 0:
        return dataclasses.replace(operand, base=operand.base + start)
    return operand
