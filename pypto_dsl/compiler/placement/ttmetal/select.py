"""Blocks, reductions and products as tile statements: which engine, through which rings, with which pads and masks."""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pypto_dsl.compiler.dtypes import BF16, BOOL, F32, I32, DType
from pypto_dsl.compiler.errors import CompilerBug, error
from pypto_dsl.compiler.index import Index, IndexLike, as_index, ceildiv, minimum, var
from pypto_dsl.compiler.placement.ttmetal.geometry import Geometry, geometry
from pypto_dsl.compiler.placement.ttmetal.lowering import NARROW, Helpers, Lowering, Unique
from pypto_dsl.compiler.placement.ttmetal.rebuild import substituted
from pypto_dsl.compiler.placement.ttmetal.slots import place_map, place_reduce
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import (
    Accumulate,
    Block,
    BlockOp,
    Buffer,
    Constant,
    Fill,
    Finish,
    For,
    If,
    Init,
    LaneIndex,
    Let,
    Load,
    Operand,
    Pad,
    ReadBuffer,
    Reduce,
    ScalarRead,
    Statement,
    Store,
    TileKernel,
    Write,
)
from pypto_dsl.compiler.tile_ir.placed import own
from pypto_dsl.compiler.tile_ir.ttmetal import Axis, FillTile, MapTiles, MatmulTiles, Pack, ReduceTiles, TileOp, TileRef

ROW, COL = own("tile_row"), own("tile_col")  # loop variables over the tiles of a statement


@dataclass
class Selection:
    """The state of one kernel's selection."""

    kernel: TileKernel
    target: Target
    tile: Geometry
    fp32_dest: bool
    unique: Unique
    helpers: Helpers
    fills: list[FillTile] = field(default_factory=list)
    lets: dict[str, Index] = field(default_factory=dict)
    loaded: set[str] = field(default_factory=set)
    pads: dict[tuple[str, int], float] = field(default_factory=dict)  # (buffer, axis) -> the value its dead lanes must hold
    initial: dict[str, Init] = field(default_factory=dict)
    maxima: dict[str, tuple[str, int]] = field(default_factory=dict)  # a maximum's target -> (buffer it is the maximum of, axis)
    dead: dict[tuple[str, int], float] = field(default_factory=dict)  # (computed buffer, axis) -> what its dead lanes are known to hold


def select(kernel: TileKernel, target: Target) -> TileKernel:
    """Replace every Block, reduction and Accumulate by tile statements.

    Raises KernelError PT502 for an operation the target lacks, PT523 for a statement it has no form for.
    """
    names = [*(s.name for s in kernel.scalars), *kernel.grid.vars, *(p.name for p in kernel.params), *(b.name for b in buffers_of(kernel)),
             *(o.result for s in walk((*kernel.once, *kernel.body)) if isinstance(s, Block) for o in s.ops)]
    unique = Unique(names)
    selection = Selection(kernel, target, geometry(target), needs_32_bits(kernel), unique, Helpers(unique))
    selection.loaded = {s.buffer.name for s in walk((*kernel.once, *kernel.body)) if isinstance(s, Load)}
    once = _body(selection, kernel.once)
    body = _twins(_body(selection, kernel.body), unique)
    padded = _add_pads(tuple(body), selection)
    limit = int(target.table("limits")["index"])
    lanes = any(f.pattern == "lane" for f in selection.fills)
    requires = tuple(limit - e for p in kernel.params for e in p.shape if e.constant is None) if lanes else ()
    properties = (*kernel.properties, ("fp32_dest", selection.fp32_dest))
    return replace(kernel, once=(*selection.fills, *_add_pads(tuple(once), selection)), body=padded, requires=(*kernel.requires, *requires),
                   properties=properties)


def needs_32_bits(kernel: TileKernel) -> bool:
    """Whether DST must be 32 bits wide: something is not exact in bf16, or accumulates."""
    for statement in walk((*kernel.once, *kernel.body)):
        if isinstance(statement, (Accumulate, Init)):
            return True
        if isinstance(statement, Block):
            if statement.reduces or any(o.dtype.name not in NARROW for o in statement.ops):
                return True
            leaves = [*(x for o in statement.ops for x in o.operands), *(w.value for w in statement.writes)]
            if any(isinstance(x, LaneIndex) or (isinstance(x, ScalarRead) and x.dtype in (I32, BOOL)) for x in leaves):
                return True
    return any(b.dtype.name not in NARROW for b in buffers_of(kernel))


# ---- walking -----------------------------------------------------------------------------------------------------------------


def walk(body: Iterable[Statement]) -> Iterator[Statement]:
    """Every statement below, loops' bodies and an Accumulate's loads included."""
    for s in body:
        yield s
        for inner in children(s):
            yield from walk(inner)


def children(s: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The bodies of a statement."""
    if isinstance(s, For):
        return (s.body,)
    if isinstance(s, If):
        return s.body, s.orelse
    if isinstance(s, (Accumulate, MatmulTiles)):
        return (s.loads,)
    if isinstance(s, ReduceTiles) and s.steps is not None:
        return ((s.steps,),)
    return ()


def buffers_of(kernel: TileKernel) -> tuple[Buffer, ...]:
    """The buffers of a structured or selected kernel, in order of first mention."""
    found: dict[str, Buffer] = {}
    for s in walk((*kernel.once, *kernel.body)):
        for b in (*writes(s), *reads(s)):
            found.setdefault(b.name, b)
    return tuple(found.values())


def reads(s: Statement) -> tuple[Buffer, ...]:
    """Buffers that a statement reads, each once (not those its inner loads fill)."""
    found: list[Buffer] = []
    if isinstance(s, Block):
        operands: list[Operand] = [x for o in s.ops for x in o.operands]
        operands += [w.value for w in s.writes] + [r.value for r in s.reduces]
        found = [x.buffer for x in operands if isinstance(x, ReadBuffer)]
    elif isinstance(s, Store):
        found = [s.buffer]
    elif isinstance(s, (Accumulate, MatmulTiles)):
        found = [s.a, s.b]
    elif isinstance(s, (MapTiles, ReduceTiles)):
        found = [t.buffer for o in s.ops for t in o.tiles]
        if isinstance(s, ReduceTiles):
            found += [s.source.buffer] if s.source else []
            found += [s.scaler] if s.scaler else []
    return tuple(dict.fromkeys(found))


def writes(s: Statement) -> tuple[Buffer, ...]:
    """Buffers that a statement fills."""
    if isinstance(s, (Load, Fill, FillTile)):
        return (s.buffer,)
    if isinstance(s, Block):
        return (*(w.buffer for w in s.writes), *(r.target for r in s.reduces))
    if isinstance(s, (Accumulate, MatmulTiles, ReduceTiles, Init, Finish)):
        return (s.target,)
    if isinstance(s, MapTiles):
        return tuple(p.buffer for p in s.packs)
    return ()


# ---- statements --------------------------------------------------------------------------------------------------------------


def _body(k: Selection, body: Sequence[Statement]) -> list[Statement]:
    result: list[Statement] = []
    for s in body:
        if isinstance(s, Let):
            k.lets[s.name] = s.value
            result.append(s)
        elif isinstance(s, Block):
            result += _block(k, s)
        elif isinstance(s, Accumulate):
            result.append(_matmul(k, s))
        elif isinstance(s, Init):
            k.initial[s.target.name] = s
        elif isinstance(s, Finish):
            continue
        elif isinstance(s, For) and s.kind == "reduce":
            result += _reduce_loop(k, s)
        elif isinstance(s, For):
            loop = _in_tiles(k, s)
            result.append(replace(loop, body=tuple(_body(k, loop.body))))
        elif isinstance(s, If):
            result.append(replace(s, body=tuple(_body(k, s.body)), orelse=tuple(_body(k, s.orelse))))
        elif isinstance(s, (Load, Store)):
            result.append(s)
        else:
            raise CompilerBug("placement.ttmetal.select", f"{type(s).__name__} has no form")
    return result


def _in_tiles(k: Selection, loop: For) -> For:
    """A loop over elements in steps of whole tiles as one that counts its turns."""
    if loop.start != as_index(0) or loop.step.constant in (None, 1) or (loop.step % k.tile.rows).constant != 0:
        return loop
    name = k.unique.fresh(f"{loop.var}_step")
    body = substituted(loop.body, {loop.var: var(name) * loop.step})
    return replace(loop, var=name, stop=ceildiv(loop.stop, loop.step), step=as_index(1), body=body)


def _axes(k: Selection, rows: Index, cols: Index) -> tuple[Axis, Axis, Index, Index]:
    """Loops over the tiles of rows x cols elements, and their variables (0 where there is one tile)."""
    counts = [k.tile.tiles(spelled(k, e), axis) for axis, e in enumerate((rows, cols))]
    row, col = (as_index(0) if n.constant == 1 else var(name) for n, name in zip(counts, (ROW, COL), strict=True))
    return Axis(ROW, counts[0]), Axis(COL, counts[1]), row, col


def spelled(k: Selection, x: Index) -> Index:
    """``x`` with the Lets of the kernel spelled out."""
    for _ in range(len(k.lets) + 1):
        new = x.substitute(k.lets)
        if new == x:
            break
        x = new
    return x


def _lowering(k: Selection, row: Index, col: Index, across: Index, packed_only: frozenset[str], held: bool = False) -> Lowering:
    def lane_tile(axis: int) -> Buffer:
        return helper(k, "lane", axis, F32)

    return Lowering(k.target, k.tile, k.unique, lane_tile, k.fp32_dest, row, col, across, packed_only=packed_only, held=held)


def helper(k: Selection, pattern: str, axis: int, dtype: DType, valid: Index | None = None) -> Buffer:
    """A tile that the reader makes once for the whole kernel."""
    def make(name: str) -> Buffer:
        one = as_index(1)
        note = {"constant": "scaler of the reductions", "valid": "1 in live lanes", "lane": "lane numbers"}[pattern]
        buffer = Buffer(name, dtype, (one * k.tile.rows, one * k.tile.cols), 1, "local", "tile", k.kernel.span, note)
        k.fills.append(FillTile(buffer, pattern, 1.0, axis, valid, k.kernel.span))  # type: ignore[arg-type]
        return buffer

    return k.helpers.tile(pattern, axis, dtype, str(valid), make)


def _cone(ops: Sequence[BlockOp], wanted: Iterable[Operand]) -> tuple[BlockOp, ...]:
    """The ops that the wanted values need, in order."""
    needed = {w for w in wanted if isinstance(w, str)}
    for op in reversed(ops):
        if op.result in needed:
            needed |= {x for x in op.operands if isinstance(x, str)}
    return tuple(o for o in ops if o.result in needed)


def _packed_only(ops: Sequence[BlockOp], block: Block) -> frozenset[str]:
    """Values that nothing but a Write uses, straight or through casts."""
    used = {x for o in ops for x in o.operands if isinstance(x, str)} | {r.value for r in block.reduces if isinstance(r.value, str)}
    return frozenset(w.value for w in block.writes if isinstance(w.value, str)) - used


def _block(k: Selection, block: Block) -> list[Statement]:
    """A Block: first what it writes, then its reductions, which read a written value back where that is exact."""
    result: list[Statement] = []
    written: dict[str, Buffer] = {}
    if block.writes:
        statements, written = _map(k, block)
        result += statements
    for r in block.reduces:
        value = r.value
        if isinstance(value, str) and value in written:
            value = ReadBuffer(written[value])
        result += _reduction(k, block, r, value, None)
    return result


def _map(k: Selection, block: Block) -> tuple[list[Statement], dict[str, Buffer]]:
    rows, cols, row, col = _axes(k, block.rows, block.cols)
    ops = _cone(block.ops, [w.value for w in block.writes])
    low = _lowering(k, row, col, cols.count, _packed_only(block.ops, block))
    for op in ops:
        low.lower(op)
    packs, exact = [], {}
    for w in block.writes:
        value = low.stored(low.resolve(w.value), w.buffer.dtype)
        packs.append(Pack(value, w.buffer))
        for axis in (0, 1):
            known = dead_lanes(k, block.ops, w.value, axis)
            if known is not None:
                k.dead[w.buffer.name, axis] = known
        if isinstance(w.value, str) and w.buffer.dtype is _dtype_of(block.ops, w.value):
            exact[w.value] = w.buffer
    statement = MapTiles(rows, cols, tuple(low.ops), tuple(packs), block.span, block.text)

    def spill(value: str) -> Buffer:
        dtype = low.dtypes[value]
        dtype = F32 if k.fp32_dest and dtype not in (BF16, I32) else BF16 if dtype is BOOL else dtype
        return _kept(k, value, dtype, rows, cols, block.span, f"{value} between two passes")

    return list(place_map(statement, k.target, k.fp32_dest, spill)), exact


def _kept(k: Selection, value: str, dtype: DType, rows: Axis, cols: Axis, span: Span | None, note: str) -> Buffer:
    """A buffer for every tile of a value; PT523 where their number is only known when the kernel runs."""
    count = rows.count * cols.count
    if count.constant is None:
        raise error("PT523", f"{note} takes more DST slots than {k.target.name} has, and its {count} tiles have no static bound", span,
                    help="give the axis a static extent, or compute the value in a kernel of its own", target=k.target.name)
    shape = (as_index(k.tile.rows) * rows.count, as_index(k.tile.cols) * cols.count)
    return Buffer(k.unique.fresh(f"{value}_kept"), dtype, shape, 1, "local", "tile", span, note)


def _dtype_of(ops: Sequence[BlockOp], value: str) -> DType:
    return next(o.dtype for o in ops if o.result == value)


# ---- reductions --------------------------------------------------------------------------------------------------------------


def _reduce_loop(k: Selection, loop: For) -> list[Statement]:
    """Init, a loop over steps, Finish: DST is held across the loop, so the loop's loads belong to the reduction."""
    whole, step = loop.stop, loop.step
    loop = _in_tiles(k, loop)
    lets = [s for s in loop.body if isinstance(s, Let)]
    loads = [s for s in loop.body if isinstance(s, Load)]
    blocks = [s for s in loop.body if isinstance(s, Block)]
    simple = len(lets) + len(loads) + len(blocks) == len(loop.body) and len(blocks) == 1
    if not simple or blocks[0].writes or len(blocks[0].reduces) != 1 or not blocks[0].reduces[0].accumulate:
        span = next((s.span for s in blocks), k.kernel.span)
        raise error("PT523", f"a loop that reduces and also keeps other results is not supported on target {k.target.name}", span,
                    help="write the other results in a loop of their own, or reduce whole rows", target=k.target.name)
    for let in lets:
        k.lets[let.name] = let.value
    reduce = blocks[0].reduces[0]
    k.initial.pop(reduce.target.name, None)
    return _reduction(k, blocks[0], reduce, reduce.value, replace(loop, body=(*lets, *loads)), whole, step)


def _reduction(k: Selection, block: Block, r: Reduce, value: Operand, steps: For | None, whole: Index | None = None,
               step: IndexLike = 1) -> list[Statement]:
    """One reduction: on the FPU where the ring's format is exact there, else on the SFPU in f32.

    ``steps`` walks over ``whole`` elements, ``step`` at a time (fewer in the last one).
    """
    if r.kind not in k.target.table("reduce")["sfpu"]:
        raise error("PT502", f"the {r.kind} of a tile is not supported on target {k.target.name}", r.span or block.span,
                    help="compute it before the kernel, or choose another target", target=k.target.name, op=r.kind)
    rows, cols, row, col = _axes(k, block.rows, block.cols)
    outer, inner = (rows, cols) if r.axis == 1 else (cols, rows)
    if steps is not None and outer.count.constant != 1:
        what, tile = (f"{k.tile.rows} rows", f"{k.tile.rows}, ...") if r.axis == 1 else (f"{k.tile.cols} columns", f"..., {k.tile.cols}")
        raise error("PT523", f"a reduction in steps takes {what} at a time on target {k.target.name}, and its tile has more",
                    r.span or block.span, help=f"`pypto.set_vec_tile_shapes({tile})` before it", target=k.target.name)
    identity = float(k.target.table("reduce")["identity"][r.kind])
    low = _lowering(k, row, col, cols.count, frozenset(), held=True)
    for op in _cone(block.ops, [value]):
        low.lower(op)
    resolved = low.resolve(value)
    extent = (block.rows, block.cols)[r.axis]
    total = spelled(k, extent) if whole is None else whole
    ragged = k.tile.ragged(total, r.axis)
    if r.kind == "max" and isinstance(resolved, ReadBuffer) and resolved.how == "full":
        k.maxima[r.target.name] = (resolved.buffer.name, r.axis)
    padded = not ragged or dead_lanes(k, block.ops, value, r.axis) == identity
    padded = padded or (isinstance(resolved, ReadBuffer) and _demand(k, resolved.buffer, r.axis, identity))
    span = r.span or block.span
    text = f"{r.source or r.target.name} = {r.kind} along {('columns', 'rows')[r.axis]}"
    kind: Literal["sum", "max"] = "sum" if r.kind == "sum" else "max"
    if isinstance(resolved, ReadBuffer) and _fpu_reduces(k, r, resolved, padded):
        scaler = helper(k, "constant", 0, BF16)
        return [ReduceTiles(kind, r.axis, "fpu", outer, inner, r.target, source=low.reference(resolved), scaler=scaler, accumulator=0,
                            steps=steps, span=span, text=text)]
    result = low.slot(resolved)
    if not padded:
        result = _mask(k, low, r.axis, total, row if r.axis == 0 else col, steps, k.tile.tiles(as_index(step), r.axis), result, identity)
    statement = ReduceTiles(kind, r.axis, "sfpu", outer, inner, r.target, tuple(low.ops), result, steps=steps, span=span, text=text)
    placed = place_reduce(statement, k.target, k.fp32_dest)
    if placed is not None:
        return [placed]
    if steps is not None:
        raise error("PT523", f"what is reduced in steps takes more DST slots than {k.target.name} has", r.span or block.span,
                    help="compute it in an operation of its own before the reduction", target=k.target.name)
    # the value on its own, exactly, then its reduction
    kept = _kept(k, result, F32, rows, cols, block.span, "what is reduced")
    operand = ReadBuffer(kept)
    before = replace(block, writes=(), reduces=())
    mapped, _ = _map(k, replace(before, writes=(Write(value, kept),)))
    return [*mapped, *_reduction(k, replace(block, ops=()), replace(r, value=operand), operand, None)]


def dead_lanes(k: Selection, ops: Sequence[BlockOp], value: Operand, axis: int) -> float | None:
    """What the lanes of ``value`` beyond the last element along ``axis`` hold, when that is known; None otherwise.

    Pads pass through casts; x - max(x) of a padding -inf stays -inf, whose exp is 0 (in a row whose maximum is infinite or NaN the
    dead lanes are NaN, and so is that row's result).
    """
    if isinstance(value, ReadBuffer):
        if value.how != "full":
            return None
        return k.pads.get((value.buffer.name, axis), k.dead.get((value.buffer.name, axis)))
    made = next((o for o in ops if o.result == value), None)
    if made is None:
        return None
    known = dead_lanes(k, ops, made.operands[0], axis)
    if made.name == "cast":
        return known
    if made.name == "exp" and known == -math.inf:
        return 0.0
    if made.name == "sub" and known == -math.inf and isinstance(made.operands[1], ReadBuffer):
        source = _source(ops, made.operands[0])
        return known if source is not None and k.maxima.get(made.operands[1].buffer.name) == (source, axis) else None
    return None


def _source(ops: Sequence[BlockOp], value: Operand) -> str | None:
    """The buffer that a value is, casts aside."""
    if isinstance(value, ReadBuffer):
        return value.buffer.name
    made = next((o for o in ops if o.result == value), None)
    return _source(ops, made.operands[0]) if made is not None and made.name == "cast" else None


def _fpu_reduces(k: Selection, r: Reduce, value: ReadBuffer, padded: bool) -> bool:
    if value.how != "full" or not padded or r.kind not in k.target.table("reduce")["fpu"]:
        return False
    return bool(k.target.table("formats")[value.buffer.dtype.name]["fpu"])


def _demand(k: Selection, buffer: Buffer, axis: int, value: float) -> bool:
    """Ask the buffer's Load for a pad; False when nothing loads it, its format has no lanes, or another value is in force."""
    if buffer.name not in k.loaded or buffer.dtype.kind == "block":
        return False
    return k.pads.setdefault((buffer.name, axis), value) == value


def _mask(k: Selection, low: Lowering, axis: int, total: Index, here: Index, steps: For | None, per_step: Index, value: str,
          identity: float) -> str:
    """``value`` with the identity in the dead lanes of the last tile, by a mask tile that the reader makes once.

    ``per_step``: tiles of a full step, by which the tiles before this step are counted.
    """
    first = next((o.tiles[0].buffer.dtype for o in low.ops if o.engine == "copy"), F32)
    mask = helper(k, "valid", axis, first if first in (F32, BF16) else F32, k.tile.valid(total, axis))
    last = k.tile.tiles(total, axis) - 1
    if steps is not None:
        here = here + var(steps.var) * per_step
    only = () if last.constant == 0 else (here, last)
    at = len(low.ops)
    live = low.add("copy", "copy", mask.dtype, tiles=(TileRef(mask, as_index(0)),), wish="live")
    number = low.add("fill", "sfpu", F32, words=(Constant(identity, F32),), wish="identity", source="identity in dead lanes")
    result = low.add("where", "sfpu", F32, values=(live, value, number), wish="masked")
    low.ops[at:] = [replace(o, last=only) for o in low.ops[at:]]
    return result


# ---- products ----------------------------------------------------------------------------------------------------------------


def _matmul(k: Selection, s: Accumulate) -> MatmulTiles:
    """A product whose results stay in DST from the first step to the last."""
    formats = k.target.table("formats")
    bad = next((b for b in (s.a, s.b) if not formats[b.dtype.name]["fpu"]), None)
    if bad is not None:
        raise error("PT502", f"matmul on {bad.dtype} is not supported on target {k.target.name}", s.span,
                    notes=("the FPU sees f32 as tf32",), help="cast the operands to bf16", target=k.target.name, op="matmul")
    if s.a_transposed:
        raise error("PT523", f"a transposed first operand of matmul is not supported on target {k.target.name}", s.span,
                    help="transpose it before the kernel", target=k.target.name)
    rows, cols = (Axis(n, k.tile.tiles(spelled(k, e), axis)) for axis, (n, e) in enumerate(((ROW, s.m), (COL, s.n))))
    steps = _in_tiles(k, For(s.var, as_index(0), s.k, s.step, "reduce", s.loads))
    inner = Axis("tile_k", k.tile.tiles(minimum(s.step, s.k - var(steps.var) * s.step), 1))
    loads = tuple(x for x in steps.body if isinstance(x, Load))
    if k.tile.ragged(s.k, 1):
        for buffer, axis in ((s.a, 1), (s.b, 1 if s.b_transposed else 0)):
            if not _demand(k, buffer, axis, 0.0):
                raise CompilerBug("placement.ttmetal.select", f"the operand {buffer.name} of a product cannot be padded")
    return MatmulTiles(steps.var, steps.stop, steps.step, loads, s.a, s.b, s.target, rows, cols, inner, s.b_transposed, s.span, s.text)


# ---- buffers -----------------------------------------------------------------------------------------------------------------


def _twins(body: list[Statement], unique: Unique) -> list[Statement]:
    """A ring has one consumer: a buffer that is stored and read by compute gets a twin for the store."""
    stored = {s.buffer.name for s in walk(body) if isinstance(s, Store)}
    read = {b.name for s in walk(body) if not isinstance(s, Store) for b in reads(s)}
    twins: dict[str, Buffer] = {}

    def rebuild(statements: Iterable[Statement]) -> list[Statement]:
        result: list[Statement] = []
        for s in statements:
            if isinstance(s, For):
                s = replace(s, body=tuple(rebuild(s.body)))
            elif isinstance(s, If):
                s = replace(s, body=tuple(rebuild(s.body)), orelse=tuple(rebuild(s.orelse)))
            if isinstance(s, Store) and s.buffer.name in twins:
                s = replace(s, buffer=twins[s.buffer.name])
            both = [b for b in writes(s) if b.name in stored and b.name in read]
            for b in both:
                twins[b.name] = replace(b, name=unique.fresh(f"{b.name}_out"))
            if isinstance(s, MapTiles):
                s = replace(s, packs=(*s.packs, *(replace(p, buffer=twins[p.buffer.name]) for p in s.packs if p.buffer in both)))
                both = []
            result.append(s)
            result += [_copy(b, twins[b.name], s) for b in both]
        return result

    return rebuild(body)


def _copy(source: Buffer, target: Buffer, made_by: Statement) -> MapTiles:
    rows, cols = (Axis(ROW, as_index(1)), Axis(COL, as_index(1)))
    if isinstance(made_by, ReduceTiles):
        rows, cols = (made_by.outer, cols) if made_by.axis == 1 else (rows, made_by.outer)
    elif isinstance(made_by, MatmulTiles):
        rows, cols = made_by.rows, made_by.cols
    row, col = (as_index(0) if a.count.constant == 1 else var(a.var) for a in (rows, cols))
    name = f"{source.name}_copy"
    op = TileOp(name, "copy", "copy", tiles=(TileRef(source, row * cols.count + col),), slot=0)
    return MapTiles(rows, cols, (op,), (Pack(name, target, 0),), source.span, f"{source.name}, also stored")


def _add_pads(body: tuple[Statement, ...], k: Selection) -> tuple[Statement, ...]:
    """The pads that consumers asked for, on the Loads."""
    def load(s: Load) -> Load:
        extents = (as_index(1), as_index(1), *s.region.extent)[-2:]
        asked = [(axis, value) for (name, axis), value in sorted(k.pads.items()) if name == s.buffer.name]
        live = [k.tile.valid(e, axis, spelled(k, e)) for axis, e in enumerate(extents)]
        return replace(s, pads=tuple(Pad(axis, value, live[axis]) for axis, value in asked))

    def rebuild(s: Statement) -> Statement:
        if isinstance(s, Load):
            return load(s)
        if isinstance(s, For):
            return replace(s, body=_add_pads(s.body, k))
        if isinstance(s, If):
            return replace(s, body=_add_pads(s.body, k), orelse=_add_pads(s.orelse, k))
        if isinstance(s, MatmulTiles):
            return replace(s, loads=tuple(map(load, s.loads)))
        if isinstance(s, ReduceTiles) and s.steps is not None:
            return replace(s, steps=rebuild(s.steps))
        return s

    return tuple(rebuild(s) for s in body)
