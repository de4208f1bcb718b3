"""The lanes of a Block: operands read, operations written and results stored for one vector of columns.

Work is done as rarely as it can be: operations whose operands are the same for all lanes are written once before the loops, those
that depend on the row only once per row, the rest per vector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pypto_dsl.codegen.llvm import elements, intrinsics
from pypto_dsl.codegen.llvm.bfloat import Known, facts
from pypto_dsl.codegen.llvm.builder import Builder, Type, Value
from pypto_dsl.codegen.llvm.indexing import Scope, View, address, evaluate, zero
from pypto_dsl.codegen.llvm.intrinsics import Use
from pypto_dsl.compiler import dtypes
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.tile_ir import nodes as t

UNIFORM, ROW, LANE = 0, 1, 2  # what a value depends on
_LIGHT = 2  # vectors of short operations at the same time [measured on Zen 5]
_LONG_BLOCK = 64  # operations: enough of them hide each other's latencies, and more code would only take time to compile


@dataclass(frozen=True)
class Context:
    """What a Block is written in: Index variables, run-time scalars, views of buffers."""

    scope: Scope
    scalars: Mapping[str, Value]  # addresses of the run-time scalars
    scalar_dtypes: Mapping[str, DType]
    views: Mapping[str, View]
    turned: bool = False  # lanes run over the Block's rows
    lying: frozenset[str] = frozenset()  # buffers that lie along their columns and are reduced where they lie
    streaming: Value | None = None  # whether the data is larger than the caches, where outputs then go past them
    large: Value | None = None  # the same for memory that a reduction reads once: it fetches ahead what it reads next
    alone: bool = False  # the kernel has no other Block: what this one reads comes from afar
    ahead: tuple[View, ...] = ()  # what will be read next: worth fetching while outputs go past the caches


@dataclass(frozen=True)
class Position:
    """Where a vector of lanes is: the row, the first column, and the mask of live lanes (None: all).

    ``half`` 0 or 1 means the even or the odd ones of twice as many columns.
    """

    row: Value
    column: Value
    mask: Value | None
    half: int | None = None


Key = t.Operand | tuple[str, str]


def key(operand: t.Operand) -> Key:
    """What tells operands apart: -0.0 and 0.0 are equal numbers and different constants, NaN is not equal to itself."""
    if isinstance(operand, t.Constant) and isinstance(operand.value, float):
        return (operand.value.hex(), operand.dtype.name)
    return operand


class Lanes:
    """Writes one Block's operations at every level."""

    def __init__(self, b: Builder, block: t.Block, context: Context) -> None:
        self.b, self.block, self.context = b, block, context
        self.levels: dict[str, int] = {}
        self.dtypes: dict[str, DType] = {}
        self.facts: dict[str, Known] = {}
        for op in block.ops:
            self.levels[op.result] = max((self.level(o) for o in op.operands), default=UNIFORM)
            self.facts[op.result] = facts(op, self.facts, self.dtypes)
            self.dtypes[op.result] = op.dtype
        self.known: dict[Key, Value] = {}  # values of the levels already written
        self.fetches = False  # in code for data that is larger than the caches

    @property
    def width(self) -> int:
        """Lanes of a vector."""
        return self.b.level.float_lanes

    # -- what operands are ---------------------------------------------------------------------------------------------

    def level(self, operand: t.Operand) -> int:
        if isinstance(operand, str):
            return self.levels[operand]
        if isinstance(operand, t.LaneIndex):
            along = operand.axis == (0 if self.context.turned else 1)
            return LANE if along else ROW
        if isinstance(operand, t.ReadBuffer):
            fixed = {"scalar": UNIFORM, "col": LANE if self.context.turned else ROW, "row": ROW if self.context.turned else LANE}
            return fixed.get(operand.how, LANE)
        return UNIFORM

    def dtype(self, operand: t.Operand) -> DType:
        if isinstance(operand, str):
            return self.dtypes[operand]
        return operand.buffer.dtype if isinstance(operand, t.ReadBuffer) else operand.dtype

    def heavy(self) -> bool:
        """Whether a vector costs tens of instructions."""
        return bool(self._together())

    def moves(self) -> bool:
        """Whether the Block moves 32-bit elements, with no more operations than it has streams of memory, all for vectors of any width."""
        work = [op for op in self.block.ops if self.levels[op.result] == LANE]
        reads = [o for o in self._operands() if isinstance(o, t.ReadBuffer) and self.level(o) == LANE]
        streams = [*(o.buffer for o in reads), *(w.buffer for w in self.block.writes)]
        words = all(d.itemsize == 4 for d in (*(s.dtype for s in streams), *(op.dtype for op in work)))
        any_width = all(op.name in intrinsics.ANY_WIDTH or op.name not in intrinsics.HEAVY for op in self.block.ops)
        return words and any_width and not self.block.reduces and len(work) <= len(streams)

    def together(self) -> int:
        """How many vectors are worth working on at the same time."""
        alone = len(self.block.ops) > _LONG_BLOCK or any(d is dtypes.F64 for d in self.dtypes.values())
        return 1 if alone else min(*(self._together() or [_LIGHT]), self.b.level.vectors_together)

    def _together(self) -> list[int]:
        """The counts of the operations that cost tens of instructions a vector."""
        counts = [intrinsics.together(op) for op in self.block.ops if self.levels[op.result] == LANE]
        return [count for count in counts if count is not None]

    # -- levels above the lanes ------------------------------------------------------------------------------------------

    def before_loops(self) -> None:
        """Write what is the same for all lanes."""
        self._write_level(UNIFORM, Position(zero(self.b), zero(self.b), None))

    def before_row(self, row: Value) -> None:
        """Write what depends on the row only."""
        for operand in self._operands():
            if self.level(operand) == ROW:
                self.known.pop(key(operand), None)
        for op in self.block.ops:
            if self.levels[op.result] == ROW:
                self.known.pop(op.result, None)
        self._write_level(ROW, Position(row, zero(self.b), None))

    def _write_level(self, level: int, position: Position) -> None:
        for operand in self._operands():
            if not isinstance(operand, str) and self.level(operand) == level:
                self.known[key(operand)] = self._leaf(operand, position)
        for op in self.block.ops:
            if self.levels[op.result] == level:
                self.known[op.result] = self._operation(op, [self.known])[0]

    def _operands(self) -> list[t.Operand]:
        """Operands in order of first use, each once."""
        found: dict[Key, t.Operand] = {}
        every = [o for op in self.block.ops for o in op.operands]
        for operand in (*every, *(w.value for w in self.block.writes), *(r.value for r in self.block.reduces)):
            found.setdefault(key(operand), operand)
        return list(found.values())

    def beside(self) -> Lanes:
        """The same for another row; what is the same for all lanes is written already."""
        other = Lanes(self.b, self.block, self.context)
        other.known.update(self.known)
        return other

    # -- one vector --------------------------------------------------------------------------------------------------------

    def at(self, *positions: Position, known: Mapping[Key, Value] | None = None) -> list[Mapping[Key, Value]]:
        """Every operand and operation at independent vectors of lanes, instructions taking turns; operands that are ``known`` are not
        read."""
        places = [{**self.known, **(known or {})} for _ in positions]
        for operand in self._operands():
            if key(operand) not in places[0] and not isinstance(operand, str):
                leaves = self.b.woven([lambda p=p: self._leaf(operand, p) for p in positions])  # type: ignore[misc]  # noqa: B023
                for values, leaf in zip(places, leaves, strict=True):
                    values[key(operand)] = leaf
        for op in self.block.ops:
            if op.result not in self.known:
                for values, result in zip(places, self._operation(op, places), strict=True):
                    values[op.result] = result
        return [*places]

    def write(self, neighbours: Sequence[Mapping[Key, Value]], position: Position, past_caches: bool = False) -> None:
        """Store the Block's outputs of one vector, or of two side by side; ``past_caches`` needs addresses aligned to them.

        Two vectors of bf16 are stored as one: they come from the upper halves of words, which one permutation takes from both, and LLVM
        would merge stores of each with what narrows it and then not let them go past the caches.
        """
        b = self.b
        for output in self.block.writes:
            view = self._view(output.buffer)
            stored = [elements.to_memory(b, values[key(output.value)], output.buffer.dtype) for values in neighbours]
            if len(stored) == 2 and view.dtype is dtypes.BF16 and view.column_stride.name == "1":
                stored = [_upper_halves(b, stored[0], stored[1])]
            for k, value in enumerate(stored):
                column = position.column + k * self.width if k else position.column
                store_vector(b, value, view, Position(position.row, column, position.mask), past_caches)

    def written(self, row: Value, columns: Sequence[Value], mask: Value | None, past_caches: bool = False) -> list[Mapping[Key, Value]]:
        """Values of the vectors at ``columns``, with the outputs stored."""
        if mask is None and len(columns) % 2 == 0 and self.paired():
            positions = [Position(row, first, None, half) for first in columns[::2] for half in (0, 1)]
            every = self.at(*positions)
            for k in range(0, len(every), 2):
                self.write_pair(every[k], every[k + 1], positions[k], past_caches)
            return every
        positions = [Position(row, column, mask) for column in columns]
        every = self.at(*positions)
        together = 2 if mask is None and len(columns) % 2 == 0 else 1
        for k in range(0, len(every), together):
            self.write(every[k:k + together], positions[k], past_caches)
        return every

    def single_output(self) -> View | None:
        """The output of a Block that writes just one, when it lies densely along the lanes."""
        if len(self.block.writes) != 1:
            return None
        view = self._view(self.block.writes[0].buffer)
        return view if view.column_stride.name == "1" else None

    def paired(self) -> bool:
        """Whether all that is read and written lies in dense bf16: a 32-bit word of memory then is two elements, and shifts and masks
        take the place of packing."""
        leaves = [o for o in self._operands() if not isinstance(o, str) and self.level(o) == LANE]
        views = [self._view(w.buffer) for w in self.block.writes]
        views += [self._view(o.buffer) for o in leaves if isinstance(o, t.ReadBuffer)]
        reads_only = all(isinstance(o, t.ReadBuffer) for o in leaves)
        return reads_only and not self.block.reduces and all(v.dtype is dtypes.BF16 and v.column_stride.name == "1" for v in views)

    def write_pair(self, even: Mapping[Key, Value], odd: Mapping[Key, Value], position: Position, past_caches: bool = False) -> None:
        """Store the Block's outputs at the even and the odd columns from ``position`` on."""
        for output in self.block.writes:
            low, high = (self.b.convert("zext", values[key(output.value)], "i32") for values in (even, odd))
            word = low | (high << 16)
            pointer = address(self.b, self._view(output.buffer), position.row, position.column)
            self.b.store(word, pointer, 4 * word.type.lanes if past_caches else 2, ", !nontemporal !0" if past_caches else "")

    def fetched(self) -> list[View]:
        """What is worth fetching ahead when it comes from memory: dense matrices. Processors keep up by themselves with elements of 16
        bits, which take more instructions a byte [measured on Zen 4], and some with all."""
        if not self.b.level.tuning.fetches_ahead:
            return []
        leaves = [o for o in self._operands() if isinstance(o, t.ReadBuffer) and o.how == "full"]
        return [v for v in (self._view(o.buffer) for o in leaves) if v.column_stride.name == "1" and v.dtype.itemsize > 2]

    def _view(self, buffer: t.Buffer) -> View:
        view = self.context.views.get(buffer.name)
        if view is None:
            raise CompilerBug("codegen/llvm", f"the buffer `{buffer.name}` is used before anything fills it")
        return view.turned() if self.context.turned else view

    def _operation(self, op: t.BlockOp, places: Sequence[Mapping[Key, Value]]) -> list[Value]:
        if op.source:
            self.b.comment(f"{op.source}: {op.name}")
        literals = tuple(o.value if isinstance(o, t.Constant) else None for o in op.operands)
        sources, attributes = tuple(self.dtype(o) for o in op.operands), dict(op.attributes)
        known = self.facts.get(op.operands[0], Known.NOTHING) if op.operands and isinstance(op.operands[0], str) else Known.NOTHING

        def use(values: Mapping[Key, Value]) -> Use:
            operands = tuple(values[key(o)] for o in op.operands)
            scalars = tuple(self.b.extract(v, 0) if op.name == "pow" and self.level(o) == UNIFORM else None
                            for v, o in zip(operands, op.operands, strict=True))
            return Use(operands, sources, op.dtype, attributes, scalars, literals, op.span, known)

        return intrinsics.write_together(self.b, op.name, [use(values) for values in places])

    def _leaf(self, operand: t.Operand, position: Position) -> Value:
        b, width = self.b, self.width
        if isinstance(operand, t.Constant):
            return elements.constant(b, operand.value, operand.dtype, width)
        if isinstance(operand, t.ScalarRead):
            return b.splat(self._scalar(operand), width)
        if isinstance(operand, t.IndexValue):
            number = evaluate(b, operand.value, self.context.scope)
            return b.splat(elements.cast(b, number, dtypes.I64, operand.dtype, "CAST_NONE", False, None), width)
        if isinstance(operand, t.LaneIndex):
            return self._lane_index(operand, position)
        assert isinstance(operand, t.ReadBuffer)
        return self._read(operand, position)

    def _scalar(self, operand: t.ScalarRead) -> Value:
        source = self.context.scalar_dtypes[operand.name]
        loaded = self.b.load(Type(elements.memory_element(source)), self.context.scalars[operand.name])
        value = elements.from_memory(self.b, loaded, source)
        return elements.cast(self.b, value, source, operand.dtype, "CAST_NONE", False, None)

    def _lane_index(self, operand: t.LaneIndex, position: Position) -> Value:
        b = self.b
        base = evaluate(b, operand.base, self.context.scope)
        along = self.level(operand) == LANE
        first = elements.cast(b, base + (position.column if along else position.row), dtypes.I64, operand.dtype, "CAST_NONE", False, None)
        splat = b.splat(first, self.width)
        if not along:
            return splat
        lanes = b.lane_numbers("i32", self.width)
        return splat + elements.cast(b, lanes, dtypes.I32, operand.dtype, "CAST_NONE", False, None)

    def _read(self, operand: t.ReadBuffer, position: Position) -> Value:
        b = self.b
        view = self._view(operand.buffer)
        how = operand.how
        if self.context.turned and how in ("row", "col"):
            how = "col" if how == "row" else "row"
        row = position.row if how in ("full", "col") else zero(b)
        column = position.column if how in ("full", "row") else zero(b)
        if self.level(operand) != LANE:
            loaded = b.load(Type(view.element), address(b, view, row, column))
            return b.splat(elements.from_memory(b, loaded, view.dtype), self.width)
        if position.half is not None:
            word = b.load(Type("i32", self.width), address(b, view, row, column), 2)
            return b.convert("trunc", word.lshr(16) if position.half else word, "i16")
        loaded = load_vector(b, view, Position(row, column, position.mask), self.width)
        return elements.from_memory(b, loaded, view.dtype)


def _upper_halves(b: Builder, first: Value, second: Value) -> Value:
    """Two vectors of bf16 as one, written so that LLVM sees where they come from."""
    width = first.type.lanes
    halves = Type("i16", 2 * width)
    words = [b.emit(halves, f"bitcast {(b.convert('zext', value, 'i32') << 16).typed} to {halves}") for value in (first, second)]
    return b.shuffle(words[0], words[1], range(1, 4 * width, 2))


def load_vector(b: Builder, view: View, position: Position, width: int) -> Value:
    """``width`` elements of a row from ``position`` on; dead lanes hold 1, which no function finds special."""
    type = Type(view.element, width)
    pointer = address(b, view, position.row, position.column)
    if view.column_stride.name == "0":
        return b.splat(b.load(Type(view.element), pointer), width)
    one = b.constant(type, 1)
    if view.column_stride.name == "1":
        return b.load(type, pointer) if position.mask is None else b.masked_load(type, pointer, position.mask, one)
    if position.mask is None:
        return _collected(b, view, pointer, width)
    pointers = _strided(b, view, pointer, width)
    name = f"llvm.masked.gather.{type.mangled}.{pointers.type.mangled}"
    return b.call(type, name, pointers, b.constant(Type("i32"), type.bytes), position.mask, one)


def _collected(b: Builder, view: View, pointer: Value, width: int) -> Value:
    """Elements one by one: no gather of a processor is faster, and most are slower. Quarters grow side by side."""
    part = max(1, width // 4)
    parts = []
    for first in range(0, width, part):
        vector = b.constant(Type(view.element, part), 0)
        for lane in range(part):
            at = first + lane
            place = b.offset(pointer, view.column_stride * at, view.element) if at else pointer
            vector = b.insert(vector, b.load(Type(view.element), place), lane)
        parts.append(vector)
    while len(parts) > 1:
        parts = [b.shuffle(x, y, range(2 * x.type.lanes)) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def store_vector(b: Builder, value: Value, view: View, position: Position, past_caches: bool = False) -> None:
    """Store the live lanes of ``value`` along a row."""
    pointer = address(b, view, position.row, position.column)
    if view.column_stride.name == "1":
        if position.mask is None and past_caches:
            b.store(value, pointer, value.type.lanes * value.type.bytes, ", !nontemporal !0")
        elif position.mask is None:
            b.store(value, pointer)
        else:
            b.masked_store(value, pointer, position.mask)
        return
    if position.mask is None:  # one by one, as they are loaded
        for lane in range(value.type.lanes):
            b.store(b.extract(value, lane), b.offset(pointer, view.column_stride * lane, view.element) if lane else pointer)
        return
    pointers = _strided(b, view, pointer, value.type.lanes)
    name = f"llvm.masked.scatter.{value.type.mangled}.{pointers.type.mangled}"
    b.call_void(name, value, pointers, b.constant(Type("i32"), value.type.bytes), position.mask)


def _strided(b: Builder, view: View, pointer: Value, width: int) -> Value:
    distances = b.lane_numbers("i64", width) * b.splat(view.column_stride, width)
    type = Type("ptr", width)
    return b.emit(type, f"getelementptr {view.element}, ptr {pointer}, {distances.typed}")


