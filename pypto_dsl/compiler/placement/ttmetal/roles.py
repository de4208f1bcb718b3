"""Slicing: one nest of tile statements becomes the bodies of reader, compute and writer, with every ring action in its place."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pypto_dsl.compiler.dtypes import F32
from pypto_dsl.compiler.index import Atom, Index, as_index, floordiv, minimum, modulo, var
from pypto_dsl.compiler.placement.ttmetal.geometry import Geometry, Scope, Window, geometry, matrix, window
from pypto_dsl.compiler.placement.ttmetal.rebuild import rebuild
from pypto_dsl.compiler.placement.ttmetal.rings import scope_of
from pypto_dsl.compiler.placement.ttmetal.select import COL, ROW, reads, walk, writes
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import Buffer, Constant, For, If, Let, Load, Pad, Param, ScalarRead, Statement, Store, TileKernel
from pypto_dsl.compiler.tile_ir.placed import own
from pypto_dsl.compiler.tile_ir.ttmetal import (
    Axis,
    Comment,
    Compute,
    Dst,
    FillTile,
    Land,
    MapTiles,
    MatmulTiles,
    PackPage,
    PadTile,
    ReduceTiles,
    Ring,
    RoleBody,
    RoleName,
    Setup,
    TileOp,
    TileRef,
    Transfer,
    When,
    WriteTile,
)

ZERO, ONE = as_index(0), as_index(1)
COMBINE = {"sum": "add", "max": "maximum"}

ITEM, START, COUNT = own("item"), own("start"), own("count")  # the item in hand; which items are this core's


@dataclass(frozen=True)
class Slicer:
    """What slicing one kernel needs to know."""

    kernel: TileKernel
    tile: Geometry
    scope: Scope
    identity: Mapping[str, float]

    def window(self, s: Load | Store) -> Window:
        """A load's or store's region in tiles."""
        found = window(s.region, self.tile, self.scope, s.span, writing=isinstance(s, Store))
        return replace(found, first=self.flattened(found.first))

    def flattened(self, page: Index) -> Index:
        """A page that follows the items in order is the item's number: (item / n) * n + item % n."""
        grid = self.kernel.grid
        if not grid.vars:
            return page
        prefix = ZERO
        for name, extent in zip(grid.vars[:-1], grid.extents[:-1], strict=True):
            prefix = prefix * extent + var(name)
        plain = page.substitute({grid.vars[-1]: var(ITEM) - prefix * grid.extents[-1]})
        return page if plain.variables() & set(grid.vars) else plain


def slice_roles(kernel: TileKernel, target: Target) -> TileKernel:
    """The kernel with `RoleBody`s as its body: reader, compute, writer."""
    slicer = Slicer(kernel, geometry(target), scope_of(kernel), target.table("reduce")["identity"])
    bodies = (_role(slicer, "reader", _reader), _role(slicer, "compute", _compute), _role(slicer, "writer", _writer))
    stores = [s for s in walk((*kernel.once, *kernel.body)) if isinstance(s, Store)]
    asked = dict.fromkeys(e for s in stores for e in slicer.window(s).requires)
    return replace(kernel, once=(), body=bodies, requires=(*kernel.requires, *(e for e in asked if e not in kernel.requires)))


def _loop(axis: Axis, body: Sequence[Statement]) -> list[Statement]:
    """A loop over tiles, or its body when there is one."""
    return list(body) if axis.count.constant == 1 else [For(axis.var, ZERO, axis.count, ONE, "serial", tuple(body))]


def _at(axis: Axis) -> Index:
    return ZERO if axis.count.constant == 1 else var(axis.var)


def _pages(b: Buffer) -> Index:
    return b.tiles if b.tiles is not None else ONE


# ---- the frame of a role ---------------------------------------------------------------------------------------------------


def _role(k: Slicer, role: RoleName, cut: Callable[[Slicer, Sequence[Statement], bool], list[Statement]]) -> RoleBody:
    """Run-time arguments, `once`, the loop over this core's items with the coordinates and Lets that the slice looks at."""
    kernel = k.kernel
    once = cut(k, kernel.once, True)
    body = cut(k, kernel.body, False)
    after = [s for s in once if isinstance(s, Ring) and s.action == "pop"]
    once = [s for s in once if s not in after]
    coordinates = _coordinates(kernel)
    body = [s for s in body if not isinstance(s, Let)]
    counts, body = _counts(kernel, body)
    head = _needed([*coordinates, *_top_lets(kernel.body), *counts], body)
    counted = ITEM not in variables([*head, *body])
    start, stop = (ZERO, var(COUNT)) if counted else (var(START), var(START) + var(COUNT))
    return RoleBody(role, (), (), (*once, For(ITEM, start, stop, ONE, "parallel", (*head, *body)), *after))


def _counts(kernel: TileKernel, body: Sequence[Statement]) -> tuple[list[Let], list[Statement]]:
    """Trip counts that depend on the item's coordinates, as Lets at the head of the item."""
    known = {*kernel.grid.vars, *(s.name for s in kernel.scalars)}
    taken = known | {p.name for p in kernel.params} | variables(body)
    lets: list[Let] = []
    for s in flat(body):
        if not isinstance(s, For) or len(s.stop.terms) != 1 or s.stop.name is not None or not s.stop.variables() & set(kernel.grid.vars):
            continue
        if s.stop.variables() <= known and all(let.value != s.stop for let in lets):
            wish = f"{s.var}s"
            name = next(n for n in (wish, *(f"{wish}_{i}" for i in range(2, len(taken) + 3))) if n not in taken)
            taken.add(name)
            lets.append(Let(name, s.stop, 32))
    names = {let.value.terms[0][0][0]: let.name for let in lets}
    return lets, list(rebuild(tuple(body), index=lambda x: _renamed(x, names), buffer=lambda b: b))


def _renamed(x: Index, names: Mapping[Atom, str]) -> Index:
    total = ZERO
    for monomial, coefficient in x.terms:
        product = as_index(coefficient)
        for atom in monomial:
            product = product * (var(names[atom]) if atom in names else Index((((atom,), 1),)))
        total = total + product
    return total


def bind_arguments(kernel: TileKernel, target: Target) -> TileKernel:
    """The run-time words that each role reads, in order: addresses, scalars, then this core's share of the items."""
    def bind(role: RoleBody) -> RoleBody:
        params = _params(role.body)
        words = [w for s in flat(role.body) if isinstance(s, Compute) for w in s.words]
        used = variables(role.body) | {w.name for w in words if isinstance(w, ScalarRead)}
        arguments = [f"{p.name}.address" for p in params] + [s.name for s in kernel.scalars if s.name in used]
        share = [n for n in (START, COUNT) if n in used]
        return replace(role, arguments=(*arguments, *share), accessors=tuple(params))

    return replace(kernel, body=tuple(bind(s) if isinstance(s, RoleBody) else s for s in kernel.body))


def _coordinates(kernel: TileKernel) -> list[Let]:
    """The grid's coordinates from the item number, last one fastest."""
    rest = var(ITEM)
    lets: list[Let] = []
    for i, (name, extent) in reversed(list(enumerate(zip(kernel.grid.vars, kernel.grid.extents, strict=True)))):
        lets.insert(0, Let(name, rest if i == 0 else modulo(rest, extent), 32))
        rest = floordiv(rest, extent)
    return lets


def _top_lets(body: Iterable[Statement]) -> list[Let]:
    return [s for s in body if isinstance(s, Let)]


def _needed(lets: Sequence[Let], body: Sequence[Statement]) -> list[Let]:
    """Those Lets that the body, or a later needed Let, reads."""
    names = variables(body)
    kept: list[Let] = []
    for let in reversed(lets):
        if let.name in names:
            kept.insert(0, let)
            names |= let.value.variables()
    return kept


def variables(root: object) -> set[str]:
    """Names of every Index variable below, except those that loops below define."""
    found: set[str] = set()
    stack: list[object] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Index):
            found |= node.variables()
        elif isinstance(node, (tuple, list)):
            stack.extend(node)
        elif isinstance(node, (Buffer, Param)):
            continue
        elif hasattr(node, "__dataclass_fields__"):
            stack.extend(getattr(node, f) for f in node.__dataclass_fields__)
    return found


def _params(body: Sequence[Statement]) -> list[Param]:
    """Parameters that the slice transfers, in order of first use."""
    found: list[Param] = []
    for s in flat(body):
        if isinstance(s, Transfer) and s.param not in found:
            found.append(s.param)
    return found


def flat(body: Iterable[Statement]) -> list[Statement]:
    """Every statement of a sliced body, inner ones included."""
    found: list[Statement] = []
    for s in body:
        found.append(s)
        found += flat(getattr(s, "body", ()))
        found += flat(getattr(s, "orelse", ()))
    return found


# ---- reader ------------------------------------------------------------------------------------------------------------------


def _reader(k: Slicer, body: Sequence[Statement], once: bool) -> list[Statement]:
    result: list[Statement] = []
    group: list[Load] = []

    def close() -> None:
        if group:
            result.extend(_loads(k, group))
            group.clear()

    for s in body:
        if isinstance(s, Load):
            group.append(s)
            continue
        if isinstance(s, Let):
            result.append(s)
            continue
        close()
        if isinstance(s, FillTile):
            result += [Ring("reserve", s.buffer, ONE, s.span), WriteTile(s), Ring("push", s.buffer, ONE)]
        elif isinstance(s, ReduceTiles) and isinstance(s.steps, For):
            inner = _reader(k, s.steps.body, once)
            result += _loop(s.outer, [replace(s.steps, body=_trimmed(inner))]) if _has(inner, Transfer) else []
        elif isinstance(s, MatmulTiles):
            result.append(For(s.var, ZERO, s.stop, s.step, "reduce", tuple(_reader(k, s.loads, once))))
        elif isinstance(s, For):
            inner = _reader(k, s.body, once)
            result += [replace(s, body=_trimmed(inner))] if _has(inner, Transfer) else []
        elif isinstance(s, If):
            result += _branches(s, _reader(k, s.body, once), _reader(k, s.orelse, once), Transfer)
    close()
    return result


def _has(body: Iterable[Statement], kind: type[Statement] | tuple[type[Statement], ...]) -> bool:
    return any(isinstance(s, kind) for s in flat(body))


def _trimmed(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Without Lets that nothing in the body reads."""
    others = [s for s in body if not isinstance(s, Let)]
    kept = _needed([s for s in body if isinstance(s, Let)], others)
    return tuple(s for s in body if not isinstance(s, Let) or s in kept)


def _branches(s: If, body: list[Statement], orelse: list[Statement], kind: type[Statement]) -> list[Statement]:
    return [replace(s, body=tuple(body), orelse=tuple(orelse))] if _has([*body, *orelse], kind) else []


def _loads(k: Slicer, group: Sequence[Load]) -> list[Statement]:
    """Windows first, then what streams tile by tile in one loop; neighbours share a barrier."""
    whole = [s for s in group if not s.buffer.stream]
    streamed = [s for s in group if s.buffer.stream]
    result: list[Statement] = []
    if whole:
        result += [Ring("reserve", s.buffer, _pages(s.buffer), s.span) for s in whole]
        for s in whole:
            w = k.window(s)
            row, col = Axis(ROW, w.row_tiles), Axis(COL, w.col_tiles)
            index = _at(row) * w.col_tiles + _at(col)
            result += _loop(row, _loop(col, [Transfer("read", s.region.param, w.page(_at(row), _at(col)), s.buffer, index)]))
        result.append(Land("read"))
        for s in whole:
            result += _pads(k, s, None)
        result += [Ring("push", s.buffer, _pages(s.buffer)) for s in whole]
    if streamed:
        w = k.window(streamed[0])
        row, col = Axis(ROW, w.row_tiles), Axis(COL, w.col_tiles)
        inner: list[Statement] = [Ring("reserve", s.buffer, ONE, s.span) for s in streamed]
        inner += [Transfer("read", s.region.param, k.window(s).page(_at(row), _at(col)), s.buffer, ZERO) for s in streamed]
        inner.append(Land("read"))
        for s in streamed:
            inner += _pads(k, s, (_at(row), _at(col)))
        inner += [Ring("push", s.buffer, ONE) for s in streamed]
        result += _loop(row, _loop(col, inner))
    return result


def _pads(k: Slicer, s: Load, at: tuple[Index, Index] | None) -> list[Statement]:
    """The last tiles along each padded axis; ``at`` is the tile at hand of a stream, None for a whole window."""
    w = k.window(s)
    counts = (w.row_tiles, w.col_tiles)
    result: list[Statement] = []
    for pad in s.pads:
        last = counts[pad.axis] - 1
        where, valid = _last_step(k, s, pad)
        if at is not None:
            call: Statement = PadTile(s.buffer, ZERO, pad.axis, valid, pad.value)
            inside = [call] if last.constant == 0 else [When(at[pad.axis], last, (call,))]
        else:
            other = Axis((COL, ROW)[pad.axis], counts[1 - pad.axis])
            index = _at(other) * w.col_tiles + last if pad.axis == 1 else last * w.col_tiles + _at(other)
            inside = _loop(other, [PadTile(s.buffer, index, pad.axis, valid, pad.value)])
        result += inside if where is None else [When(where[0], where[1], tuple(inside))]
    return result


def _last_step(k: Slicer, s: Load, pad: Pad) -> tuple[tuple[Index, Index] | None, Index]:
    """For live lanes min(tile, extent - offset): (where the last tile is, its live lanes); otherwise everywhere, the lanes as they are.

    Only the last tile along an axis is ragged, and which one that is, is known from the offset.
    """
    size = (k.tile.rows, k.tile.cols)[pad.axis]
    offset = k.scope.spelled((ZERO, ZERO, *s.region.offset)[pad.axis - 2])
    _, rows, cols = matrix(s.region.param)
    whole = (rows, cols)[pad.axis]
    if k.scope.spelled(pad.valid) != minimum(size, whole - offset):
        return None, pad.valid
    return (floordiv(offset, size), k.tile.tiles(whole, pad.axis) - 1), k.tile.valid(whole, pad.axis)


# ---- writer ------------------------------------------------------------------------------------------------------------------


def _writer(k: Slicer, body: Sequence[Statement], once: bool) -> list[Statement]:
    result: list[Statement] = []
    group: list[Store] = []

    def close() -> None:
        for together in _as_made(k, group):
            result.extend(_stores(k, together))
        group.clear()

    for s in body:
        if isinstance(s, Store):
            group.append(s)
        elif isinstance(s, (Let, For, If)):
            close()
        if isinstance(s, Let):
            result.append(s)
        elif isinstance(s, For):
            inner = _writer(k, s.body, once)
            result += [replace(s, body=_trimmed(inner))] if _has(inner, Transfer) else []
        elif isinstance(s, If):
            result += _branches(s, _writer(k, s.body, once), _writer(k, s.orelse, once), Transfer)
    close()
    return result


def _as_made(k: Slicer, stores: Sequence[Store]) -> list[list[Store]]:
    """Neighbouring stores in the order in which compute fills their rings; those that one statement fills, tile by tile, together.

    In any other order compute would wait for room in one ring while the writer waits for pages of another.
    """
    made: dict[str, int] = {}
    for place, s in enumerate(walk(k.kernel.body)):
        for b in writes(s):
            made.setdefault(b.name, place)
    groups: dict[int, list[Store]] = {}
    for store in sorted(stores, key=lambda s: made[s.buffer.name]):
        groups.setdefault(made[store.buffer.name], []).append(store)
    return list(groups.values())


def _stores(k: Slicer, together: Sequence[Store]) -> list[Statement]:
    """Stores of one shape in one loop over its tiles; they share a barrier."""
    w = k.window(together[0])
    row, col = Axis(ROW, w.row_tiles), Axis(COL, w.col_tiles)
    inner: list[Statement] = []
    for s in together:
        page = k.window(s).page(_at(row), _at(col))
        inner += [Ring("wait", s.buffer, ONE, s.span), Transfer("write", s.region.param, page, s.buffer, ZERO)]
    inner += [Land("write"), *(Ring("pop", s.buffer, ONE) for s in together)]
    return _loop(row, _loop(col, inner))


# ---- compute -----------------------------------------------------------------------------------------------------------------


def _compute(k: Slicer, body: Sequence[Statement], once: bool) -> list[Statement]:
    """Tile statements with the waits before a window's first reader and the pops behind its last."""
    filled = _windows(body)
    if once:
        return [*(Ring("wait", b, _pages(b)) for b in filled), *(Ring("pop", b, _pages(b)) for b in filled)]
    readers = {b.name: [i for i, s in enumerate(body) if _computes_with(s, b)] for b in filled}
    result: list[Statement] = []
    for i, s in enumerate(body):
        waits = [Ring("wait", b, _pages(b)) for b in filled if readers[b.name][:1] == [i]]
        pops = [Ring("pop", b, _pages(b)) for b in filled if readers[b.name][-1:] == [i]]
        inner = _statement(k, s)
        comment = [x for x in inner[:1] if isinstance(x, Comment)]
        result += [*comment, *waits, *inner[len(comment):], *pops]
    return result


def _windows(body: Sequence[Statement]) -> list[Buffer]:
    """Buffers filled in this body that compute takes as whole windows."""
    found: list[Buffer] = []
    for s in body:
        here = [s.buffer] if isinstance(s, (Load, FillTile)) else [p.buffer for p in s.packs] if isinstance(s, MapTiles) else \
            [s.target] if isinstance(s, (ReduceTiles, MatmulTiles)) else []
        found += [b for b in here if not b.stream and b not in found]
    return found


def _computes_with(s: Statement, b: Buffer) -> bool:
    return not isinstance(s, Store) and any(b in reads(x) for x in walk([s]) if not isinstance(x, Store))


def _statement(k: Slicer, s: Statement) -> list[Statement]:
    if isinstance(s, MapTiles):
        return _map(s)
    if isinstance(s, ReduceTiles):
        return _reduce(k, s)
    if isinstance(s, MatmulTiles):
        return _matmul(s)
    if isinstance(s, Let):
        return [s]
    if isinstance(s, For):
        inner = _compute(k, s.body, False)
        return [replace(s, body=_trimmed(inner))] if _has(inner, Dst) else []
    if isinstance(s, If):
        return _branches(s, _compute(k, s.body, False), _compute(k, s.orelse, False), Dst)
    return []


def _map(s: MapTiles) -> list[Statement]:
    streams = [b for b in reads(s) if b.stream]
    outputs = [p.buffer for p in s.packs]
    inner: list[Statement] = [Ring("wait", b, ONE) for b in streams]
    inner += [Ring("reserve", b, ONE) for b in outputs]
    inner += [Dst("acquire"), *_ops(s.ops), Dst("commit"), Dst("wait")]
    inner += [*(PackPage(as_index(p.slot), p.buffer) for p in s.packs), Dst("release")]
    inner += [Ring("push", b, ONE) for b in outputs]
    inner += [Ring("pop", b, ONE) for b in streams]
    return [Comment(s.text, s.span), *_loop(s.rows, _loop(s.cols, inner))]


def _ops(ops: Sequence[TileOp]) -> list[Statement]:
    """Calls with their slots; neighbours that run under one condition share it."""
    result: list[Statement] = []
    for o in ops:
        call = Compute(o.call, tuple(_front(t) for t in o.tiles), tuple(map(as_index, (*o.inputs, o.slot))), o.words, o.source)
        before = result[-1] if result else None
        if not o.last:
            result.append(call)
        elif isinstance(before, When) and (before.left, before.right) == o.last:
            result[-1] = replace(before, body=(*before.body, call))
        else:
            result.append(When(o.last[0], o.last[1], (call,)))
    return result


def _front(t: TileRef) -> TileRef:
    """A stream's tile is always the front one."""
    return replace(t, tile=ZERO) if t.buffer.stream else t


def _reduce(k: Slicer, s: ReduceTiles) -> list[Statement]:
    streams = [b for b in reads(s) if b.stream]
    accumulator = as_index(s.accumulator)
    along = "cols" if s.axis == 1 else "rows"
    if s.engine == "fpu" and s.source is not None and s.scaler is not None:
        call = f"reduce_{s.kind}_{along}"
        step: list[Statement] = [Compute(call, (_front(s.source), TileRef(s.scaler, ZERO)), (accumulator,), (), s.target.name)]
        before: list[Statement] = [Setup(f"{call}_init", (s.source.buffer, s.scaler, s.target))]
        start: list[Statement] = []
        end: list[Statement] = []
        behind: list[Statement] = [Setup("reduce_uninit")]
    else:
        value = next((o.slot for o in reversed(s.ops) if o.result == s.value), -1)
        step = [*_ops(s.ops), Compute(COMBINE[s.kind], (), (accumulator, as_index(value), accumulator), (), s.target.name)]
        before, behind = [], []
        start = [Compute("fill", (), (accumulator,), (Constant(float(k.identity[s.kind]), F32),), f"identity of {s.kind}")]
        end = [Compute(f"sfpu_reduce_{s.kind}_{along}", (), (accumulator,), (), s.target.name)]
    inner = [*(Ring("wait", b, ONE) for b in streams), *step, *(Ring("pop", b, ONE) for b in streams)]
    loop = _loop(s.inner, inner)
    if isinstance(s.steps, For):
        windows = [x.buffer for x in s.steps.body if isinstance(x, Load) and not x.buffer.stream]
        lets = [x for x in s.steps.body if isinstance(x, Let)]
        held = [*lets, *(Ring("wait", b, _pages(b)) for b in windows), *loop, *(Ring("pop", b, _pages(b)) for b in windows)]
        loop = [replace(s.steps, body=_trimmed(held))]
    one = [Ring("reserve", s.target, ONE), Dst("acquire"), *start, *loop, *end, Dst("commit"), Dst("wait"), PackPage(accumulator, s.target),
           Dst("release"), Ring("push", s.target, ONE)]
    return [Comment(s.text, s.span), *before, *_loop(s.outer, one), *behind]


def _matmul(s: MatmulTiles) -> list[Statement]:
    inner, row, col = _at(s.inner), _at(s.rows), _at(s.cols)
    slot = row * s.cols.count + col
    b_tile = col * s.inner.count + inner if s.b_transposed else inner * s.cols.count + col
    call = "matmul_transposed" if s.b_transposed else "matmul"
    product = Compute(call, (TileRef(s.a, row * s.inner.count + inner), TileRef(s.b, b_tile)), (slot,), (), s.target.name)
    loop = _loop(s.inner, _loop(s.rows, _loop(s.cols, [product])))
    held = [*(Ring("wait", b, _pages(b)) for b in (s.a, s.b)), *loop, *(Ring("pop", b, _pages(b)) for b in (s.a, s.b))]
    packs = _loop(s.rows, _loop(s.cols, [Ring("reserve", s.target, ONE), PackPage(slot, s.target), Ring("push", s.target, ONE)]))
    steps = For(s.var, ZERO, s.stop, s.step, "reduce", tuple(held))
    return [Comment(s.text, s.span), Dst("acquire"), steps, Dst("commit"), Dst("wait"), *packs, Dst("release")]
