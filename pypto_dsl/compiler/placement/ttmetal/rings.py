"""Circular buffers: how many pages each ring has, who streams through it, its number, and whether all of them fit L1."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pypto_dsl.compiler.errors import CompilerBug, error
from pypto_dsl.compiler.index import Index, as_index, ceildiv, var
from pypto_dsl.compiler.placement.ttmetal.geometry import Geometry, Scope, geometry, upper_bound, window
from pypto_dsl.compiler.placement.ttmetal.rebuild import Node, rebuild
from pypto_dsl.compiler.placement.ttmetal.select import children, reads, walk
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import Buffer, For, If, Let, Load, Statement, Store, TileKernel
from pypto_dsl.compiler.tile_ir.ttmetal import FillTile, MapTiles, MatmulTiles, ReduceTiles


@dataclass
class Use:
    """What is known of one ring while it is being sized."""

    buffer: Buffer
    by_reader: bool
    once: bool = False
    readers: list[Statement] = field(default_factory=list)
    fills: list[Index] = field(default_factory=list)  # tiles of each fill, Lets spelled out
    sequence: dict[int, int] = field(default_factory=dict)  # reading statement -> its place among all statements
    fill_nests: list[tuple[int, ...]] = field(default_factory=list)  # the loops around each fill
    reader_nests: list[tuple[int, ...]] = field(default_factory=list)

    def uniform(self, known: set[str]) -> bool:
        """Whether every fill has the same number of tiles, known before the kernel runs."""
        return len(set(self.fills)) == 1 and self.fills[0].variables() <= known

    @property
    def stored(self) -> bool:
        return any(isinstance(s, Store) for s in self.readers)


def scope_of(kernel: TileKernel) -> Scope:
    """Every Let and loop of a kernel, by name."""
    everything = list(walk((*kernel.once, *kernel.body)))
    loops = {s.var: (s.start, s.step) for s in everything if isinstance(s, For)}
    loops |= {s.var: (as_index(0), s.step) for s in everything if isinstance(s, MatmulTiles)}
    # an item that is the only one along its axis is number 0
    once = {v: (as_index(0), as_index(0)) for v, e in zip(kernel.grid.vars, kernel.grid.extents, strict=True) if upper_bound(e) == 1}
    known = {s.name for s in kernel.scalars} | {name for p in kernel.params for e in p.shape for name in e.variables()}
    return Scope({s.name: s.value for s in everything if isinstance(s, Let)}, {**loops, **once}, frozenset(known))


def allocate_rings(kernel: TileKernel, target: Target) -> TileKernel:
    """Give every buffer its ring: pages, stream or window, number, exact unpacking. Raises KernelError PT410 when L1 cannot hold them,
    PT523 for pieces of changing size that are read more than once."""
    tile, scope = geometry(target), scope_of(kernel)
    uses, groups = _collect(kernel, tile, scope)
    streaming = _streaming(uses, groups, scope)
    scalars = {s.name for s in kernel.scalars} | {v for p in kernel.params for e in p.shape for v in e.variables()}
    depth = int(target.table("rings")["depth"])
    order = [u.buffer.name for u in uses.values()]
    sized: dict[str, Buffer] = {}
    for name, use in uses.items():
        uniform, stream = use.uniform(scalars), name in streaming
        # pieces of changing size: the reader pushes full steps, whose last pages nothing reads; compute pushes what it packs
        tiles = use.fills[0] if uniform else _bound(use.buffer, tile)
        if not stream and not uniform and not use.by_reader:
            raise error(
                "PT523",
                f"`{name}` is computed in pieces of changing size and read more than once, which {target.name} has no form for",
                use.buffer.span,
                help=f"`pypto.set_vec_tile_shapes({tile.rows}, {tile.cols})` before it: pieces of one tile",
                target=target.name,
            )
        between = not use.by_reader and not use.stored  # made and used by compute: all of it is there before the first is used
        slots = 1 if use.once or between else depth
        pages = tiles if not stream or between else as_index(1)
        f32 = use.buffer.dtype.name == "f32"
        sized[name] = replace(use.buffer, tiles=pages, slots=slots, stream=stream, direct=f32 and not use.stored)
    numbered = _number(kernel, uses, sized, order, target)
    _check_budget(kernel, numbered, uses, tile, target)
    return rebuffer(kernel, numbered)


def _collect(kernel: TileKernel, tile: Geometry, scope: Scope) -> tuple[dict[str, Use], list[list[tuple[str, int]]]]:
    """Every ring's fills and readers, and the groups of neighbouring Loads as (buffer, which of its fills)."""
    uses: dict[str, Use] = {}
    groups: list[list[tuple[str, int]]] = []

    def fill(buffer: Buffer, tiles: Index, by_reader: bool, once: bool, nest: tuple[int, ...]) -> None:
        use = uses.setdefault(buffer.name, Use(buffer, by_reader, once))
        if use.by_reader != by_reader:
            raise CompilerBug("placement.ttmetal.rings", f"the ring {buffer.name} is filled by the reader and by compute")
        use.fills.append(scope.spelled(tiles))
        use.fill_nests.append(nest)

    def walk_body(body: Iterable[Statement], once: bool, nest: tuple[int, ...] = ()) -> None:
        group: list[tuple[str, int]] | None = None
        for s in body:
            if isinstance(s, Load):
                w = window(s.region, tile, scope, s.span, writing=False)
                fill(s.buffer, w.row_tiles * w.col_tiles, True, once, nest)
                if group is None:
                    groups.append(group := [])
                group.append((s.buffer.name, len(uses[s.buffer.name].fills) - 1))
                continue
            if not isinstance(s, Let):
                group = None
            if isinstance(s, FillTile):
                fill(s.buffer, as_index(1), True, once, nest)
            elif isinstance(s, MapTiles):
                for p in s.packs:
                    fill(p.buffer, s.rows.count * s.cols.count, False, once, nest)
            elif isinstance(s, ReduceTiles):
                if isinstance(s.steps, For):
                    walk_body(s.steps.body, once, nest)
                fill(s.target, s.outer.count, False, once, nest)
            elif isinstance(s, MatmulTiles):
                walk_body(s.loads, once, nest)
                fill(s.target, s.rows.count * s.cols.count, False, once, nest)
            elif isinstance(s, For):
                walk_body(s.body, once, (*nest, id(s)))
            elif isinstance(s, If):
                walk_body(s.body, once, (*nest, id(s)))
                walk_body(s.orelse, once, (*nest, id(s)))

    walk_body(kernel.once, True)
    walk_body(kernel.body, False)
    for place, (s, nest) in enumerate(_nested(kernel.body, ())):
        for b in reads(s):
            if b.name not in uses:
                raise CompilerBug("placement.ttmetal.rings", f"nothing fills {b.name} before {type(s).__name__} reads it")
            uses[b.name].readers.append(s)
            uses[b.name].reader_nests.append(nest)
            uses[b.name].sequence[id(s)] = place
    return uses, groups


def _nested(body: Iterable[Statement], nest: tuple[int, ...]) -> Iterator[tuple[Statement, tuple[int, ...]]]:
    """Every statement with the loops and branches around it; what a reduction or product loads stands beside it."""
    for s in body:
        yield s, nest
        inner = (*nest, id(s)) if isinstance(s, (For, If)) else nest
        for child in children(s):
            yield from _nested(child, inner)


def _streaming(uses: Mapping[str, Use], groups: Sequence[Sequence[tuple[str, int]]], scope: Scope) -> frozenset[str]:
    """Rings whose pages go through one by one: each fill has one reader in the same loop, which takes them in order.

    The reader kernel loads a group of neighbouring Loads whole buffers first and then, in one loop, those that stream: they must go
    to one statement, the group's first, in equal numbers, or it would wait for room in one ring while compute waits for another.
    """
    may = {n for n, u in uses.items() if not u.once and u.reader_nests == u.fill_nests
           and all(_in_order(s, u, tiles, scope) for s, tiles in zip(u.readers, u.fills, strict=True))}
    for group in groups:
        inside = [(n, i) for n, i in group if n in may and not uses[n].stored]
        if not inside:
            continue
        first = min(inside, key=lambda x: uses[x[0]].sequence[id(uses[x[0]].readers[x[1]])])
        for n, i in inside:
            together = uses[n].readers[i] is uses[first[0]].readers[first[1]]
            if not together or uses[n].fills[i] != uses[first[0]].fills[first[1]]:
                may.discard(n)
    return frozenset(may)


def _in_order(s: Statement, use: Use, tiles: Index, scope: Scope) -> bool:
    """Whether a statement takes all ``tiles`` of one fill, one after the other."""
    if isinstance(s, Store):
        return True
    if isinstance(s, MatmulTiles):
        return False
    if isinstance(s, MapTiles):
        refs = [t for o in s.ops for t in o.tiles if t.buffer.name == use.buffer.name]
        count, order = s.rows.count * s.cols.count, _linear(s.rows.var, s.rows.count, s.cols.var, s.cols.count)
    elif isinstance(s, ReduceTiles):
        if isinstance(s.steps, For) and not any(isinstance(x, Load) and x.buffer.name == use.buffer.name for x in s.steps.body):
            return False  # made before the steps, and read in each of them
        refs = [t for o in s.ops for t in o.tiles if t.buffer.name == use.buffer.name]
        refs += [s.source] if s.source is not None and s.source.buffer.name == use.buffer.name else []
        if any(o.last for o in s.ops for t in o.tiles if t.buffer.name == use.buffer.name):
            return False
        rows, cols = (s.outer, s.inner) if s.axis == 1 else (s.inner, s.outer)
        if s.axis == 0 and cols.count.constant != 1:
            return False
        count, order = rows.count * cols.count, _linear(rows.var, rows.count, cols.var, cols.count)
    else:
        return False
    return scope.spelled(count) == tiles and all(t.tile == order for t in refs)


def _linear(row: str, rows: Index, col: str, cols: Index) -> Index:
    """The number of tile (row, col), row by row; variables of single tiles are 0."""
    r = as_index(0) if rows.constant == 1 else var(row)
    c = as_index(0) if cols.constant == 1 else var(col)
    return r * cols + c


def _bound(buffer: Buffer, tile: Geometry) -> Index:
    """Tiles of the buffer's static shape."""
    return ceildiv(buffer.shape[0], tile.rows) * ceildiv(buffer.shape[1], tile.cols)


def _number(kernel: TileKernel, uses: Mapping[str, Use], sized: Mapping[str, Buffer], order: Sequence[str],
            target: Target) -> dict[str, Buffer]:
    """Ring numbers: what is loaded or made from 0 on, what is stored from the first output on, by convention."""
    rings = target.table("rings")
    count, first = int(rings["count"]), int(rings["first_output"])
    if len(order) > count:
        raise error("PT411", f"`{kernel.title}` needs {len(order)} circular buffers on {target.name}, and a core has {count}", kernel.span,
                    help="split the kernel into two", target=target.name)
    inner, outer = list(range(count)), [*range(first, count), *range(first)]
    numbered: dict[str, Buffer] = {}
    stored = [n for n in order if uses[n].stored]
    for name in [*stored, *(n for n in order if n not in stored)]:
        pool = outer if name in stored else inner
        number = pool[0]
        inner.remove(number)
        outer.remove(number)
        numbered[name] = replace(sized[name], ring=number)
    return numbered


def page_bytes(buffer: Buffer, target: Target) -> int:
    """Bytes of a page of the buffer's format; PT502 for a dtype that has none."""
    row = target.table("formats").get(buffer.dtype.name)
    if row is None:
        raise error("PT502", f"`{buffer.holds}` is {buffer.dtype}, which has no tile format on target {target.name}", buffer.span,
                    notes=(f"formats are {', '.join(target.table('formats'))}",), help="cast it to one of them", target=target.name)
    return int(row["bytes"])


def _check_budget(kernel: TileKernel, rings: Mapping[str, Buffer], uses: Mapping[str, Use], tile: Geometry, target: Target) -> None:
    budget = int(target.table("memory")["l1"]["budget"])
    rows: list[tuple[int, str, int, int, Span | None]] = []
    fixed, per_tile = 0, 0
    for name, ring in rings.items():
        tiles = ring.tiles if ring.tiles is not None else as_index(1)
        most = tiles.constant
        if most is None:
            most = _bound(uses[name].buffer, tile).constant
        if most is None:
            raise CompilerBug("placement.ttmetal.rings", f"the ring {name} has {tiles} pages and no static bound")
        nbytes = most * ring.slots * page_bytes(ring, target)
        if most > 1:
            per_tile += ring.slots * page_bytes(ring, target)
        else:
            fixed += nbytes
        rows.append((nbytes, ring.holds, most * ring.slots, page_bytes(ring, target), ring.span))
    total = sum(r[0] for r in rows)
    if total <= budget:
        return
    listed = tuple(f"{name}: {pages} pages of {size} = {nbytes:,} bytes" + (f" ({span.basename}:{span.line})" if span else "")
                   for nbytes, name, pages, size, span in sorted(rows, key=lambda r: (-r[0], r[1])))
    fits = (budget - fixed) // per_tile if per_tile and budget > fixed else 0
    help_ = f"the largest tile that fits is {tile.rows} x {fits * tile.cols}" if fits else "split the kernel into two"
    raise error("PT410", f"`{kernel.title}` needs {total:,} bytes of L1 on {target.name}, and its circular buffers may take {budget:,}",
                kernel.span, notes=listed, help=help_, target=target.name, bytes=total, budget=budget)


def rebuffer(node: Node, buffers: Mapping[str, Buffer]) -> Node:
    """Any node with its buffers replaced by those of the same names."""
    return rebuild(node, buffer=lambda b: buffers.get(b.name, b))
