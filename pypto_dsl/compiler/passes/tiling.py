"""What every schedule shares: the group's tensors, folded space, loop variables, buffers, loads and stores."""
from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import cast

from pypto_dsl.compiler.dtypes import I32, I64, DType
from pypto_dsl.compiler.graph import Graph, Op, Value
from pypto_dsl.compiler.index import Index, as_index, ceildiv, minimum, var
from pypto_dsl.compiler.passes.blocks import Names
from pypto_dsl.compiler.passes.fuse import VIEWS, Axes, Group, Partition, covered
from pypto_dsl.compiler.passes.places import Place
from pypto_dsl.compiler.passes.reductions import REDUCTIONS
from pypto_dsl.compiler.passes.spaces import Access, Folded, fold, layout_of
from pypto_dsl.compiler.passes.storage import Storage
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir import nodes as t

Key = tuple[Value, Axes]


@dataclass
class Axis:
    """One tiled dimension: the offset of this tile, how many lanes are live, the static bound, and what an item needs to know them."""

    offset: Index
    live: Index
    bound: Index
    blocks: Index
    block: str
    lets: tuple[t.Let, ...]


WORKERS = "workers"  # the scalar of that meaning, in graphs that have no other of this name


@dataclass
class Tiling:
    """One group on its way to a TileKernel."""

    graph: Graph
    group: Group
    storage: Storage
    partition: Partition
    target: Target
    names: Names = field(init=False)
    inputs: dict[Key, Access] = field(init=False)
    outputs: dict[Value, Access] = field(init=False)
    folded: Folded = field(init=False)
    named: set[str] = field(default_factory=set)
    views: dict[tuple[Place, Axes], Access] = field(default_factory=dict)
    read_tensors: frozenset[str] = field(init=False)
    written_tensors: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = Names(self.storage.reserved)
        self.read_tensors = frozenset(self.storage.places[o].tensor for op in self.group.ops for o in op.operands if self.is_leaf(o))
        self.written_tensors = frozenset(self.storage.places[v].tensor for v in self.group.axes if v in self.storage.writes)
        self.inputs = self._inputs()
        self.outputs = {v: self._access(v, axes) for v, axes in self.group.axes.items() if v in self.storage.writes}
        lanes = self._lanes() | self._matmul_lanes()
        merge_last = self.target.tile.flatten or self.group.kind == "row"
        everything = [*self.inputs.values(), *self.outputs.values()]
        last = self._last()
        self.folded = fold(self.group.space, everything, lanes, self.group.reduced, self.group.kind, merge_last, self._along(last), last)

    def _last(self) -> int | None:
        """The dimension to make columns of, where there is a choice: that along which what is written has neighbours, else the last one."""
        live = [i for i, e in enumerate(self.group.space) if e.constant != 1]
        if self.target.tile.turned is not None and self.group.kind == "elementwise":
            for access in self.outputs.values():
                found = next((d for d, s in self._strides(access).items() if s.constant == 1), None)
                if found is not None:
                    return found
        return live[-1] if live else None

    def _along(self, last: int | None) -> int | None:
        """The dimension whose elements are neighbours in a tensor that has others along the last one: better the rows of tiles."""
        if self.target.tile.turned is None or last is None or self.group.kind == "matmul":
            return None
        for access in (*self.inputs.values(), *self.outputs.values()):
            strides = self._strides(access)
            if last in strides and strides[last].constant not in (0, 1):
                return next((d for d, s in strides.items() if s.constant == 1), None)
        return None

    def _strides(self, access: Access) -> dict[int, Index]:
        """The strides along the dimensions of the space that a tensor covers."""
        return {d: s for d, e in enumerate(self.group.space) if e.constant != 1 and (s := access.stride(d)) is not None}

    def turned(self) -> list[Access]:
        """The tensors whose rows, not their columns, are neighbours in memory."""
        found = []
        for access in (*self.inputs.values(), *self.outputs.values()):
            rows, cols = (self.folded.stride(access, d) for d in self.folded.dims[-2:])
            if all(self.folded.covers(access)[-2:]) and rows.constant == 1 and cols.constant not in (0, 1):
                found.append(access)
        return found

    # ---- tensors

    def _access(self, value: Value, axes: Axes) -> Access:
        """The tensor of a value; a second view of a tensor gets a name of its own."""
        place = self.storage.places[value]
        known = self.views.get((place, axes))
        if known is not None:
            return known
        name = self.names.fresh(place.tensor) if place.tensor in self.named else place.tensor
        self.named.add(place.tensor)
        written = place.tensor in self.written_tensors
        read = place.tensor in self.read_tensors
        role: t.Role = "inout" if written and read else "out" if written else "in"
        access = Access(name, value.type.dtype, place, axes, role)
        self.views[place, axes] = access
        return access

    def _inputs(self) -> dict[Key, Access]:
        found: dict[Key, Access] = {}
        for op in self.group.ops:
            for position, operand in enumerate(op.operands):
                if self.is_leaf(operand):
                    axes = self.axes_at(operand, op, position)
                    found.setdefault((operand, axes), self._access(operand, axes))
        return found

    def is_leaf(self, value: Value) -> bool:
        """Whether the value is read from a tensor of the program."""
        if self.partition.owner.get(value) is self.group:
            return False
        if value in self.partition.numbers or (value.op is not None and value.op.opcode == "load_scalar"):
            return False
        made = self.partition.cloned.get(value)
        if made is not None and made.opcode not in VIEWS:
            return False
        return value in self.storage.places

    def axes_at(self, operand: Value, reader: Op, position: int = 0) -> Axes:
        """How an operand lies in the space where ``reader`` reads it; where its strides are zero it has one element for all."""
        axes = self._axes_at(operand, reader, position)
        place = self.storage.places.get(operand)
        if place is None or place.strides is None or reader.opcode == "matmul" or not self.is_leaf(operand):
            return axes
        return tuple(None if stride.constant == 0 else a for a, stride in zip(axes, place.strides, strict=True))

    def _axes_at(self, operand: Value, reader: Op, position: int) -> Axes:
        rank = operand.type.rank
        if reader.opcode == "matmul":
            return self._matmul_axes(reader, operand, position)
        if operand in self.group.axes:
            return self.group.axes[operand]
        result = self.group.axes[reader.results[0]]
        if reader.operands[0].type.rank and reader.opcode in REDUCTIONS:
            return tuple(None if e.constant == 1 else i for i, e in enumerate(operand.type.live))
        return covered(operand, result[len(result) - rank:], self.group.space)

    def _matmul_axes(self, op: Op, operand: Value, position: int) -> Axes:
        lead = len(self.group.space) - 2
        own = operand.type.rank - 2
        axes = list(covered(operand, range(lead - own, lead), self.group.space))
        transposed = bool(op.attributes.get("a_trans" if position == 0 else "b_trans"))
        kept = lead if position == 0 else lead + 1
        inner: tuple[int | None, int | None] = (kept, None) if position == 0 else (None, kept)
        return (*axes, *(reversed(inner) if transposed else inner))

    def _lanes(self) -> frozenset[int]:
        """Dimensions of the space that a lane index runs along."""
        found: set[int] = set()
        for op in self.group.ops:
            for operand in op.operands:
                made = self.partition.cloned.get(operand)
                if made is not None and made.opcode == "iota":
                    axis = self.axes_at(operand, op)[cast(int, made.attributes["axis"])]
                    if axis is not None:
                        found.add(axis)
        return frozenset(found)

    def _matmul_lanes(self) -> frozenset[int]:
        if self.group.kind != "matmul":
            return frozenset()
        n = len(self.group.space) - 1
        return frozenset({n, n - 1}) if self.group.ops[0].attributes.get("a_trans") else frozenset({n})

    # ---- loop variables

    def axis(self, extent: Index, step: Index, bound: Index | None, block: str, offset: str, live: str) -> Axis:
        """Cut ``extent`` every ``step``: one block when it is known to fit."""
        blocks = ceildiv(extent, step)
        known = blocks.constant == 1
        if known:
            return Axis(as_index(0), extent, bound or extent, as_index(1), "", ())
        block, offset, live = self.names.fresh(block), self.names.fresh(offset), self.names.fresh(live)
        start = var(block) * step
        lets: tuple[t.Let, ...] = (t.Let(offset, start),)
        whole = (extent % step).constant == 0
        if not whole:
            lets = (*lets, t.Let(live, minimum(step, extent - var(offset)), 32))
        return Axis(var(offset), as_index(step) if whole else var(live), bound or step, blocks, block, lets)

    def outer(self) -> tuple[tuple[str, Index], ...]:
        """A coordinate for every outer dimension."""
        return tuple((self.names.fresh(f"outer{i}"), e) for i, e in enumerate(self.folded.extents[:-2]))

    def grid(self, outer: tuple[tuple[str, Index], ...], *axes: Axis) -> tuple[t.Grid, tuple[t.Statement, ...]]:
        """The grid over the outer coordinates and the blocked axes, and the Lets at the head of each item."""
        named = [*outer, *((a.block, a.blocks) for a in axes if a.block)]
        lets = tuple(let for a in axes for let in a.lets)
        return t.Grid(tuple(n for n, _ in named), tuple(e for _, e in named)), lets

    # ---- buffers, loads, stores

    def region(
        self, access: Access, outer: tuple[tuple[str, Index], ...], rows: tuple[Index, Index], cols: tuple[Index, Index]
    ) -> t.Region:
        """The part of a tensor at this item: (offset, extent) of rows and of columns."""
        covers = self.folded.covers(access)
        offset = [var(name) if c else as_index(0) for (name, _), c in zip(outer, covers, strict=False)]
        extent = [as_index(1)] * len(outer)
        for (start, count), is_covered in ((rows, covers[-2]), (cols, covers[-1])):
            offset.append(start if is_covered else as_index(0))
            extent.append(count if is_covered else as_index(1))
        return t.Region(self.folded.param(access), tuple(offset), tuple(extent))

    def buffer(self, access: Access, bound: tuple[Index, Index], span: Span | None, slots: int = 2) -> t.Buffer:
        """A buffer for a tile of a tensor; broadcast dimensions have extent 1."""
        covers = self.folded.covers(access)
        shape = (bound[0] if covers[-2] else as_index(1), bound[1] if covers[-1] else as_index(1))
        return t.Buffer(self.names.fresh(f"{access.name}_tile"), access.dtype, shape, slots, "local", layout_of(covers), span)

    def reads(self, key: Key, inside: str = "plane") -> t.Read:
        """How a Block reads a leaf: by its layout, or `full` when the Block itself runs over that layout."""
        covers = self.folded.covers(self.inputs[key])
        rows, cols = covers[-2], covers[-1]
        if inside == "column":
            return "full" if rows else "scalar"
        if inside == "row":
            return "full" if cols else "scalar"
        rows = rows or self.folded.rows.constant == 1
        cols = cols or self.folded.cols.constant == 1
        return "full" if rows and cols else "col" if rows else "row" if cols else "scalar"

    def lane(self, rows: Index, cols: Index, outer: tuple[tuple[str, Index], ...]) -> Mapping[int, t.Operand]:
        """The lane index along every dimension of the space, as i32."""
        found: dict[int, t.Operand] = {}
        for dim in range(len(self.group.space)):
            k = self.folded.kernel_dim(dim)
            if k is None:
                found[dim] = t.Constant(0, I32)
            elif k == len(self.folded.dims) - 1:
                found[dim] = t.LaneIndex(1, cols, I32)
            elif k == len(self.folded.dims) - 2:
                found[dim] = t.LaneIndex(0, rows, I32)
            else:
                found[dim] = t.IndexValue(var(outer[k][0]), I32)
        return found

    # ---- the kernel

    def kernel(self, suffix: str, grid: t.Grid, lets: tuple[t.Statement, ...], body: list[t.Statement], once: list[t.Statement],
               requires: tuple[Index, ...] = (), unit: t.Unit = "vector", **properties: str | int | bool) -> t.TileKernel:
        """Assemble the TileKernel with its parameters and scalars in order."""
        uses = Uses.below((grid, requires, once, lets, body))
        names = dict.fromkeys(access.name for access in [*self.inputs.values(), *self.outputs.values()])
        ordered = tuple(p for name in names for p in uses.params.get(name, ()))
        name = f"{self.graph.name}_{self.group.number}{suffix}"
        span = next((o.span for o in self.group.ops if o.span), self.graph.span)
        return t.TileKernel(name, self.graph.name, ordered, uses.scalars(self.storage.order, self.graph.symbols), grid, (*lets, *body),
                            tuple(once), requires, unit, span, tuple(sorted(properties.items())))


@dataclass
class Uses:
    """What statements refer to: views of tensors by name, Index variables, and run-time scalars, each once and in order."""

    params: dict[str, list[t.Param]] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)
    numbers: dict[str, DType] = field(default_factory=dict)

    @staticmethod
    def below(root: object) -> Uses:
        """Everything used below a node, tuples and lists included. One walk, without recursion."""
        uses = Uses()
        stack = [root]
        seen: set[int] = set()
        while stack:
            node = stack.pop()
            if isinstance(node, (tuple, list)):
                stack.extend(reversed(node))
            elif isinstance(node, Index):
                uses.variables |= node.variables()
            elif isinstance(node, t.ScalarRead):
                uses.numbers.setdefault(node.name, node.dtype)
            elif not hasattr(node, "__dataclass_fields__") or isinstance(node, (DType, Span)):
                continue
            elif not (isinstance(node, (t.Param, t.Buffer)) and id(node) in seen):
                seen.add(id(node))
                if isinstance(node, t.Region) and node.param not in uses.params.setdefault(node.param.name, []):
                    uses.params[node.param.name].append(node.param)
                stack.extend(reversed([getattr(node, f) for f in node.__dataclass_fields__]))
        return uses

    def scalars(self, order: Mapping[str, int], symbols: Container[str]) -> tuple[t.Scalar, ...]:
        """Extents, loop indices and elements in the graph's ``order``, then the numbers read: parameters first."""
        extents = sorted((n for n in self.variables | self.numbers.keys() if n in symbols), key=order.__getitem__)
        parameters = sorted((n for n in self.numbers if n in order and n not in symbols), key=order.__getitem__)
        others = [n for n in self.numbers if n not in order]
        workers = [t.Scalar(WORKERS, I64, workers=True)] if WORKERS in self.variables and WORKERS not in order else []
        return (*(t.Scalar(n, I64) for n in extents), *workers, *(t.Scalar(n, self.numbers[n]) for n in [*parameters, *others]))
