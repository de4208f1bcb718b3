"""The cube kernel: an Accumulate as copies into fractals, loads into the operand memories, products, and the drain."""
from __future__ import annotations

import dataclasses

from pypto_dsl.compiler.errors import CompilerBug, error
from pypto_dsl.compiler.index import Index, as_index, ceildiv, minimum, round_up, var
from pypto_dsl.compiler.placement.ascend.block import ZERO
from pypto_dsl.compiler.placement.ascend.machine import Machine
from pypto_dsl.compiler.placement.ascend.queues import address
from pypto_dsl.compiler.placement.ascend.storage import round_up as round_up_int
from pypto_dsl.compiler.placement.ascend.storage import static
from pypto_dsl.compiler.placement.ascend.walk import Body, map_bodies
from pypto_dsl.compiler.tile_ir.ascend import Call, CopyFractals, Drain, IsZero, Position, Queue
from pypto_dsl.compiler.tile_ir.nodes import Accumulate, Buffer, For, Let, Load, Statement, Store
from pypto_dsl.compiler.tile_ir.placed import BufferRef, QueueAction, own

LINE = own("line")


@dataclasses.dataclass(frozen=True)
class _Operand:
    """One operand of the product: its buffer in L1, its twin in the operand memory, and how fractals move between the two.

    Fractals of L1 stand column of fractals by column, ``height`` to a column; the operand memory takes ``outer`` lines of ``inner``
    fractals. ``across`` says that a line runs over the columns of L1 rather than down one; ``transpose`` swaps each fractal.
    """

    l1: Buffer
    l0: Buffer
    height: Index
    outer: Index
    inner: Index
    across: bool
    transpose: bool


def place_cube(body: Body, machine: Machine) -> Body:
    """The body of a cube kernel, placed; raises KernelError PT502, PT410 or PT413 for operands that the unit does not take."""
    declared: list[Statement] = []

    def place(inner: Body) -> Body:
        out: list[Statement] = []
        for statement in inner:
            if isinstance(statement, Accumulate):
                out += _accumulate(statement, machine, declared)
            elif isinstance(statement, Store):
                out += _drain(statement, machine)
            elif isinstance(statement, (Let, For)):
                out.append(map_bodies(statement, place))
            else:
                raise CompilerBug("ascend.cube", f"{type(statement).__name__} stands in a cube kernel")
        return tuple(out)

    placed = place(body)
    _check_capacity(declared, machine)
    return (*declared, *placed)


def _accumulate(s: Accumulate, machine: Machine, declared: list[Statement]) -> list[Statement]:
    _check(s, machine)
    fractal, lanes = machine.fractal, machine.fractal * machine.fractal
    steps, mm, nn = minimum(s.step, s.k - var(s.var)), s.m, s.n
    up = {"m": ceildiv(mm, fractal), "n": ceildiv(nn, fractal), "k": ceildiv(var(own(f"{s.var}Step")), fractal)}
    a = _operand(s.a, "A", "m", "k", s.a_transposed, up, machine)
    b = _operand(s.b, "B", "k", "n", s.b_transposed, up, machine)
    acc = _fractal_buffer(s.target, machine)
    for operand, positions in ((a, ("A1", "A2")), (b, ("B1", "B2"))):
        declared.append(_queue(operand.l1, positions[0], s.a.slots))
        declared.append(_queue(operand.l0, positions[1], s.a.slots))
    declared.append(_queue(acc, "CO1", 1))
    body: list[Statement] = [Let(own(f"{s.var}Step"), steps)]
    for load in s.loads:
        body += _load(load, {a.l1.name: a, b.l1.name: b}, (steps, var(own(f"{s.var}Step"))), machine)
    for operand in (a, b):
        body += _to_operand_memory(operand, lanes, s)
    arguments = (mm, nn, var(own(f"{s.var}Step")), IsZero(var(s.var)))
    refs = BufferRef(a.l0, ZERO), BufferRef(b.l0, ZERO)
    body += [QueueAction("deque", a.l0), QueueAction("deque", b.l0)]
    body.append(Call("mmad", (BufferRef(acc, ZERO),), refs, arguments=arguments, span=s.span, note=s.text))
    body += [QueueAction("free", a.l0), QueueAction("free", b.l0)]
    return [QueueAction("alloc", acc), For(s.var, ZERO, s.k, s.step, "reduce", tuple(body)), QueueAction("enque", acc)]


def _check(s: Accumulate, machine: Machine) -> None:
    cube, target = machine.target.table("cube"), machine.target.name
    if s.a.dtype.name not in cube["inputs"] or s.a.dtype != s.b.dtype or s.target.dtype.name != cube["accumulator"]:
        product = f"{s.a.dtype} and {s.b.dtype} into {s.target.dtype}"
        raise error("PT502", f"a matrix product of {product} is not supported on target {target}", s.span,
                    help=f"cast both operands to {' or '.join(cube['inputs'])}", target=target, op="matmul")
    for name, buffer in (("left", s.a), ("right", s.b), ("result", s.target)):
        rows, cols = static(buffer.shape[0]), static(buffer.shape[1])
        fractals = -(-max(rows, cols) // machine.fractal)
        if fractals > machine.max_fractals or max(rows, cols) > machine.max_cube_extent:
            limit = min(machine.max_cube_extent, machine.max_fractals * machine.fractal)
            raise error("PT413", f"the {name} tile of the matrix product is {rows} x {cols}; the target takes {limit} at most", s.span,
                        help=f"set smaller tiles, of at most {limit}: pypto.set_cube_tile_shapes([128, 128], [128, 128], [128, 128])")


def _fractal_buffer(buffer: Buffer, machine: Machine) -> Buffer:
    rows = round_up_int(static(buffer.shape[0]), machine.fractal)
    cols = round_up_int(static(buffer.shape[1]), machine.fractal)
    return dataclasses.replace(buffer, pitch=cols, elements=rows * cols)


def _operand(buffer: Buffer, side: str, rows: str, cols: str, transposed: bool, up: dict[str, Index], machine: Machine) -> _Operand:
    """Left operands go to the operand memory row of fractals by row with fractals as they are; right operands likewise, each fractal by
    columns. In L1 a fractal always holds 16 rows of the stored matrix, so exactly one of storage and side asks for the swap."""
    l1 = _fractal_buffer(buffer, machine)
    l0 = dataclasses.replace(l1, name=f"{buffer.name}L0", space=f"l0{side.lower()}")
    return _Operand(l1, l0, height=up[cols if transposed else rows], outer=up[rows], inner=up[cols], across=not transposed,
                    transpose=transposed == (side == "A"))


def _queue(buffer: Buffer, position: str, slots: int) -> Queue:
    positions: dict[str, Position] = {"A1": "A1", "B1": "B1", "A2": "A2", "B2": "B2", "CO1": "CO1"}
    return Queue(dataclasses.replace(buffer, slots=slots), positions[position], buffer.elements * buffer.dtype.itemsize)


def _load(load: Load, operands: dict[str, _Operand], step: tuple[Index, Index], machine: Machine) -> list[Statement]:
    """The copy into L1; the extent of a step (first of ``step``) goes by its name (second)."""
    operand = operands[load.buffer.name]
    offset, pitch = address(load.region.param, load.region, load.span)
    if pitch.constant is not None and pitch.constant > machine.max_cube_pitch:
        raise error("PT413", f"rows of `{load.region.param.name}` are {pitch} elements apart; the target's matrix copy takes at most "
                    f"{machine.max_cube_pitch}", load.span,
                    help=f"pass the matrix in pieces of at most {machine.max_cube_pitch} columns, each an array of its own")
    rows, cols = (step[1] if extent == step[0] else extent for extent in load.region.extent[-2:])
    copy = CopyFractals(operand.l1, load.region.param, offset, rows, cols, pitch, round_up(rows, machine.fractal), load.span)
    return [QueueAction("alloc", operand.l1), copy, QueueAction("enque", operand.l1)]


def _to_operand_memory(o: _Operand, lanes: int, s: Accumulate) -> list[Statement]:
    """One load per line of fractals: down a column of L1 or across its columns."""
    line = var(LINE)
    source = line * lanes if o.across else line * o.inner * lanes
    arguments = (o.inner, o.height if o.across else as_index(1), o.transpose)
    target = BufferRef(o.l0, line * o.inner * lanes)
    call = Call("load_fractals", (target,), (BufferRef(o.l1, source),), arguments=arguments, span=s.span)
    loop = For(LINE, ZERO, o.outer, as_index(1), "parallel", (call,), f"{o.l1.name}: one line of fractals at a time")
    return [QueueAction("deque", o.l1), QueueAction("alloc", o.l0), loop, QueueAction("enque", o.l0), QueueAction("free", o.l1)]


def _drain(s: Store, machine: Machine) -> list[Statement]:
    acc = _fractal_buffer(s.buffer, machine)
    offset, pitch = address(s.region.param, s.region, s.span)
    rows, cols = s.region.extent[-2:]
    drain = Drain(acc, s.region.param, offset, rows, cols, pitch, round_up(rows, machine.fractal), s.span)
    return [QueueAction("deque", acc), drain, QueueAction("free", acc)]


def _check_capacity(declared: list[Statement], machine: Machine) -> None:
    spaces = {"A1": "l1", "B1": "l1", "A2": "l0a", "B2": "l0b", "CO1": "l0c"}
    used: dict[str, int] = {}
    for queue in declared:
        if isinstance(queue, Queue):
            space = spaces[queue.position]
            used[space] = used.get(space, 0) + queue.buffer.slots * queue.bytes
    for space, total in used.items():
        if total > machine.capacity[space]:
            queues = [q for q in declared if isinstance(q, Queue) and spaces[q.position] == space]
            names = [f"{q.buffer.holds}: {q.buffer.slots} x {q.bytes} B" for q in queues]
            raise error("PT410", f"the tiles of the matrix product need {total} B of {space.upper()}, and {machine.target.name} has "
                        f"{machine.capacity[space]} B", None, notes=tuple(names), help="set_cube_tile_shapes with smaller tiles",
                        needed=total, capacity=machine.capacity[space])
