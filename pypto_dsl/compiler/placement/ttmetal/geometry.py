"""Elements as tiles: how many, which page, and whether a region can be read or written in whole tiles at all."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.index import Atom, Compound, Index, as_index, ceildiv, content, floordiv, minimum, var
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import Param, Region


@dataclass(frozen=True)
class Geometry:
    """The target's tile and what its statements need to know of it."""

    rows: int
    cols: int
    target: str

    def tiles(self, extent: Index, axis: int) -> Index:
        """Whole tiles that ``extent`` elements take along an axis (0 rows, 1 columns); one when the extent is known to fit."""
        size = (self.rows, self.cols)[axis]
        bound = upper_bound(extent)
        if bound is not None and bound <= size:
            return as_index(1)
        sides = _least(extent)
        return reduce(minimum, (ceildiv(side, size) for side in sides))

    def valid(self, extent: Index, axis: int, spelled: Index | None = None) -> Index:
        """Live lanes of the last tile of ``extent`` elements; ``spelled`` is the extent without Lets, for counting tiles."""
        size = (self.rows, self.cols)[axis]
        return extent - (self.tiles(extent if spelled is None else spelled, axis) - 1) * size

    def ragged(self, extent: Index, axis: int) -> bool:
        """Whether the last tile may have dead lanes."""
        return (extent % (self.rows, self.cols)[axis]).constant != 0


def geometry(target: Target) -> Geometry:
    """The tile of a target."""
    table = target.table("geometry")
    return Geometry(table["rows"], table["cols"], target.name)


def _least(extent: Index) -> tuple[Index, ...]:
    """The sides of an extent that is a minimum, of minima too; the extent alone when it is none."""
    if len(extent.terms) != 1 or extent.terms[0][1] != 1 or len(extent.terms[0][0]) != 1:
        return (extent,)
    atom = extent.terms[0][0][0]
    return (*_least(atom.a), *_least(atom.b)) if isinstance(atom, Compound) and atom.op == "min" else (extent,)


def _one_of(extent: Index) -> tuple[Index, ...]:
    """Extents of which ``extent`` is one: the sides of a minimum or maximum in it, with what is added to that."""
    for monomial, coefficient in extent.terms:
        atom = monomial[0] if len(monomial) == 1 and coefficient == 1 else None
        if isinstance(atom, Compound) and atom.op in ("min", "max"):
            rest = extent - Index(((monomial, 1),))
            return (*_one_of(atom.a + rest), *_one_of(atom.b + rest))
    return (extent,)


def upper_bound(extent: Index) -> int | None:
    """A constant that ``extent`` does not exceed, from its own form: constants, minima with one, their quotients and positive sums."""
    if extent.constant is not None:
        return extent.constant
    total = 0
    for monomial, coefficient in extent.terms:
        bound = 1 if not monomial else _atom_bound(monomial[0]) if len(monomial) == 1 and coefficient > 0 else None
        if bound is None:
            return None
        total += coefficient * bound
    return total


def _atom_bound(atom: Atom) -> int | None:
    if not isinstance(atom, Compound):
        return None
    if atom.op == "min":
        bounds = [b for b in (upper_bound(atom.a), upper_bound(atom.b)) if b is not None]
        return min(bounds, default=None)
    above = upper_bound(atom.a)
    if atom.op == "//" and above is not None and atom.b.constant is not None and atom.b.constant > 0:
        return above // atom.b.constant
    return None


def matrix(param: Param) -> tuple[tuple[Index, ...], Index, Index]:
    """Leading extents, rows and columns of a parameter; a vector is one row, a scalar one element."""
    one = as_index(1)
    *lead, rows, cols = (one, one, *param.shape)
    return tuple(lead), rows, cols


@dataclass(frozen=True)
class Window:
    """A region in tiles: the page of its first tile, pages between rows of tiles, and the live extents in elements."""

    param: Param
    first: Index
    across: Index
    rows: Index
    cols: Index
    row_tiles: Index
    col_tiles: Index
    requires: tuple[Index, ...] = ()  # none of them is negative, or the region cannot be written in whole tiles

    def page(self, row: Index, col: Index) -> Index:
        """The page of tile (row, col) of the window."""
        return self.first + row * self.across + col


@dataclass(frozen=True)
class Scope:
    """What names inside a kernel stand for: Lets by value, loop variables by start and step."""

    lets: Mapping[str, Index]
    loops: Mapping[str, tuple[Index, Index]]
    scalars: frozenset[str] = frozenset()  # what the host knows when it launches the kernel

    def spelled(self, x: Index) -> Index:
        """``x`` with every Let spelled out."""
        for _ in range(len(self.lets) + 1):
            new = x.substitute(self.lets)
            if new == x:
                break
            x = new
        return x

    def stepped(self, x: Index) -> Index:
        """``x`` spelled out, with a loop variable replaced by start + step * (the number of its turn): for questions of divisibility."""
        return self.spelled(x).substitute({name: start + step * var(name) for name, (start, step) in self.loops.items()})


def window(region: Region, tile: Geometry, scope: Scope, span: Span | None, writing: bool) -> Window:
    """The region as tiles.

    A store that ends inside a tile ends with its tensor, or does so if the host finds two extents equal: `Window.requires` asks for it.
    Raises KernelError PT521 for a region that does not start at a tile, and for a store that ends inside a tile which the tensor
    goes on after: the neighbours in that tile would be overwritten. PT522 for a strided view, which interleaved pages cannot give.
    """
    param = region.param
    if param.strides is not None or param.base.terms:
        how = "strided" if param.strides is not None else "part of its tensor"
        raise error("PT522", f"`{param.name}` is read or written through a view that is {how}, and {tile.target} moves whole "
                    "tiles of dense tensors", span,
                    help="make the view before the call, and pass it as an array of its own; a matmul transposes with b_trans=True",
                    target=tile.target, tensor=param.name)
    lead, rows, cols = matrix(param)
    offset, extent = (as_index(0), as_index(0), *region.offset), (as_index(1), as_index(1), *region.extent)
    size = (tile.rows, tile.cols)
    requires: list[Index] = []
    for axis, whole in ((0, rows), (1, cols)):
        start, count = (scope.stepped(x[axis - 2]) for x in (offset, extent))
        if (start % size[axis]).constant != 0:
            place = f"starts at {_where(start, scope)}, and may start at multiples of {size[axis]} alone"
            raise _misaligned(tile, param, axis, place, span)
        if not writing or (count % size[axis]).constant == 0:
            continue
        gap = _gap(start, count, whole, size[axis])
        if gap is None or not gap.variables() <= scope.scalars or (gap.terms and (whole - gap).constant is not None):
            end = _where(start + count, scope)
            raise _misaligned(tile, param, axis, f"ends at {end}, inside a tile that the tensor of {whole} goes on after", span)
        requires += [gap, -gap] if gap.terms else []
    batch, first_rows = as_index(0), tile.tiles(rows, 0)
    for extent_, start in zip(lead, offset[:-2][-len(lead):] if lead else (), strict=True):
        batch = batch * extent_ + start
    across = tile.tiles(cols, 1)
    row, col = (floordiv(scope.spelled(x), size) for x, size in zip(offset[-2:], (tile.rows, tile.cols), strict=True))
    first = (batch * first_rows + row) * across + col
    row_tiles, col_tiles = (tile.tiles(scope.spelled(e), axis) for axis, e in enumerate(extent[-2:]))
    return Window(param, first, across, extent[-2], extent[-1], row_tiles, col_tiles, tuple(requires))


def _where(place: Index, scope: Scope) -> str:
    """A place for messages: without the loops that cut a tensor into tiles, whose turns have no names in the kernel."""
    cut = place.variables() - scope.scalars
    if not cut:
        return str(place)
    first = place.substitute(dict.fromkeys(cut, as_index(0)))
    step = content(place - first)
    return f"multiples of {step}" if first.constant == 0 else f"{first} and multiples of {step} more"


def _gap(start: Index, count: Index, whole: Index, size: int) -> Index | None:
    """What the dimension goes on by behind start + count, which is one of whole tiles and one other extent; None for any other."""
    ends = {start + side for side in _one_of(count) if (side % size).constant != 0}
    return whole - ends.pop() if len(ends) == 1 else None


def _misaligned(tile: Geometry, param: Param, axis: int, what: str, span: Span | None) -> Exception:
    axes = ("rows", "columns")
    return error("PT521", f"the part of `{param.name}` taken along its {axes[axis]} {what}; {tile.target} moves whole tiles of "
                 f"{tile.rows} x {tile.cols}", span,
                 help=f"use offsets and tile sizes that are multiples of {(tile.rows, tile.cols)[axis]}",
                 target=tile.target, tensor=param.name, axis=axis)
