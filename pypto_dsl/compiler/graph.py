"""Graph IR: SSA values over whole tensors, with regions for loops and branches, and the Builder that makes them.

Values and operations compare by identity; two graphs are the same when their printed forms are. A write is a value
(`insert`), so data dependence is the only order. Extents are Index expressions whose variables are listed in `Graph.symbols`.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.index import Index, IndexLike, as_index, is_maximum_with
from pypto_dsl.compiler.index import text as index_text
from pypto_dsl.compiler.span import Span

# Plain data only, so that printing is reading: numbers, strings, tuples of these, Index, DType.
Attribute: TypeAlias = bool | int | float | str | Index | DType | tuple["Attribute", ...] | None

# Attributes that any operation may have beside those of its signature, with their types.
HOST = "host"  # no kernel has it on these dtypes, so that the host evaluates it between kernels
TIER = "tier"  # "fast": by the target's form of `[fast.bounds]`
EDGE = "edge"  # a rounding that is not the user's own: legalization computed a 16-bit operation in f32
COMMON_ATTRIBUTES: Mapping[str, type] = {HOST: bool, TIER: str, EDGE: bool}

PRECISIONS = ("exact", "fast")  # values of the option `precision`


class TensorType(NamedTuple):
    """dtype, shape (one Index per dimension; () is a scalar) and whether the dtype is weak (came from a Python number).

    ``valid`` are the live extents where they differ from ``shape`` (a view's tail), else None.
    """

    dtype: DType
    shape: tuple[Index, ...]
    weak: bool = False
    valid: tuple[Index, ...] | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def live(self) -> tuple[Index, ...]:
        """The live extents."""
        return self.shape if self.valid is None else self.valid

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape as ints when every extent is known."""
        extents = [e.constant for e in self.shape]
        return None if any(e is None for e in extents) else tuple(e for e in extents if e is not None)

    def with_dtype(self, dtype: DType, weak: bool = False) -> TensorType:
        return TensorType(dtype, self.shape, weak, self.valid)

    def __str__(self) -> str:
        """`f32[M, 64]`, weak `f32*`, live extents `f32[16, 64] valid [n, 64]`."""
        shape = f"[{', '.join(map(index_text, self.shape))}]" if self.shape else ""
        valid = "" if self.valid is None else f" valid [{', '.join(map(index_text, self.valid))}]"
        return f"{self.dtype}{'*' if self.weak else ''}{shape}{valid}"


def tensor_type(dtype: DType, shape: Iterable[IndexLike] = (), weak: bool = False) -> TensorType:
    """A TensorType from ints and Indexes."""
    return TensorType(dtype, tuple(as_index(e) for e in shape), weak)


class Value:
    """One SSA value: its type, the name the user bound it to, and the operation that makes it (None for arguments)."""

    __slots__ = ("name", "op", "type")

    def __init__(self, type: TensorType, name: str = "", op: Op | None = None) -> None:
        self.type = type
        self.name = name
        self.op = op

    def __repr__(self) -> str:
        return f"%{self.name or '_'}: {self.type}"


class Op:
    """One operation: ``opcode`` is a name of the op table (or `loop`, `if`), ``operands`` a tuple, ``attributes`` plain data.

    ``tile`` is the vector tile shape in force where the user wrote it; ``origin`` names the user's operation that an
    expansion came from, with its span, so that emitted code and errors speak of what the user wrote.
    """

    __slots__ = ("attributes", "opcode", "operands", "regions", "results", "span", "tile")

    def __init__(self, opcode: str, operands: Sequence[Value], types: Sequence[TensorType],
                 attributes: Mapping[str, Attribute] | None = None, regions: Sequence[Region] = (), span: Span | None = None,
                 tile: tuple[int, ...] | None = None, names: Sequence[str] = ()) -> None:
        self.opcode = opcode
        self.operands = tuple(operands)
        self.attributes: dict[str, Attribute] = {} if not attributes else dict(sorted(attributes.items()))
        self.regions = tuple(regions)
        self.span = span
        self.tile = tile
        if len(types) == 1:
            self.results: tuple[Value, ...] = (Value(types[0], names[0] if names else "", self),)
        else:
            self.results = tuple([Value(t, names[i] if i < len(names) else "", self) for i, t in enumerate(types)])

    def attributes_with(self, **changed: Attribute) -> dict[str, Attribute]:
        """The attributes with some of them changed or added, for `Builder.clone`."""
        return {**self.attributes, **changed}

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    def __repr__(self) -> str:
        return f"<{self.opcode} -> {', '.join(map(repr, self.results))}>"


class Region:
    """A body of a loop or branch: block arguments, operations in order, and the values it yields."""

    __slots__ = ("arguments", "ops", "yields")

    def __init__(self, arguments: Sequence[Value] = (), ops: Sequence[Op] = (), yields: Sequence[Value] = ()) -> None:
        self.arguments = list(arguments)
        self.ops = list(ops)
        self.yields = list(yields)


@dataclass(frozen=True)
class Symbol:
    """What an Index variable stands for: a dimension of a parameter, a user's integer, a loop index, an element read, or a parameter's
    stride.

    ``minimum`` and ``maximum`` are bounds that always hold (of a loop index: from its range), None when there is none.
    """

    name: str
    kind: str  # "dim" | "scalar" | "loop" | "element" | "stride"
    parameter: str = ""
    axis: int = 0
    minimum: int | None = 0
    maximum: Index | None = None


@dataclass(frozen=True)
class Check:
    """Two extents that must be equal, tested before anything is written; ``what`` names the operation that needs it.

    For messages: ``shapes`` are its operands' shapes, ``dropped`` names a reduction among what made them that has dropped its axis.
    """

    left: Index
    right: Index
    span: Span | None = None
    what: str = ""
    shapes: tuple[tuple[Index, ...], ...] = field(default=(), compare=False)
    dropped: str = field(default="", compare=False)

    @property
    def is_bound(self) -> bool:
        """Whether the equality says "at most": ``left`` is the larger of something and ``right``."""
        return is_maximum_with(self.left, self.right)


@dataclass(eq=False, repr=False)
class Graph:
    """A kernel: parameters, symbols, a body, and where results go.

    ``parameters`` are tensors and run-time scalars (rank 0, dtype f32/i32/...) in signature order; ``outputs`` maps a
    parameter's name to the value written into it, in order of first write; ``returns`` are returned values.
    ``options`` are plain data that change meaning: promotion rule set, precision. ``strides`` (in elements) are of parameters that do not
    lie dense: what a call's arrays are like, not what the kernel means, so that the text form does not have them.
    """

    name: str
    parameters: list[Value] = field(default_factory=list)
    symbols: dict[str, Symbol] = field(default_factory=dict)
    body: Region = field(default_factory=Region)
    outputs: dict[str, Value] = field(default_factory=dict)
    returns: list[Value] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    span: Span | None = None
    strides: dict[str, tuple[Index, ...]] = field(default_factory=dict)

    @property
    def rules(self) -> str:
        """The promotion rule set's name."""
        return self.options.get("promotion", "pypto")

    @property
    def is_fast(self) -> bool:
        """Whether the kernel asks for `precision="fast"`."""
        return self.options.get("precision") == "fast"

    def __repr__(self) -> str:
        return f"<graph {self.name}: {len(self.parameters)} parameters, {sum(1 for _ in walk(self.body))} operations>"

    def results(self) -> list[Value]:
        """Every value that must be computed: outputs in order, then returns."""
        return [*self.outputs.values(), *self.returns]


def walk(region: Region) -> Iterator[Op]:
    """Every operation of a region and the regions below, in order, without recursion."""
    stack: list[Iterator[Op]] = [iter(region.ops)]
    while stack:
        for op in stack[-1]:
            yield op
            if op.regions:
                stack.extend(iter(r.ops) for r in reversed(op.regions))
                break
        else:
            stack.pop()


def leaves(data: object) -> Iterator[object]:
    """What attributes and shapes hold inside their tuples, the last first."""
    stack = [data]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            stack += item
        else:
            yield item


class Builder:
    """Appends operations to a region; passes rebuild a graph through one, with a map from old to new values."""

    def __init__(self, graph: Graph, region: Region | None = None) -> None:
        self.graph = graph
        self.region = graph.body if region is None else region
        self.span: Span | None = None
        self.tile: tuple[int, ...] | None = None

    def add(self, opcode: str, operands: Sequence[Value], types: Sequence[TensorType],
            attributes: Mapping[str, Attribute] | None = None, regions: Sequence[Region] = (), span: Span | None = None,
            tile: tuple[int, ...] | None = None, names: Sequence[str] = ()) -> Op:
        """Append one operation; span and tile default to the builder's current ones."""
        op = Op(opcode, operands, types, attributes, regions, span or self.span, tile or self.tile, names)
        self.region.ops.append(op)
        return op

    def clone(self, op: Op, operands: Sequence[Value], types: Sequence[TensorType] | None = None,
              attributes: Mapping[str, Attribute] | None = None, regions: Sequence[Region] | None = None) -> Op:
        """Append a copy of ``op`` over other operands, keeping its span, tile and names."""
        return self.add(op.opcode, operands, types or [r.type for r in op.results], op.attributes if attributes is None else attributes,
                        op.regions if regions is None else regions, op.span, op.tile, [r.name for r in op.results])


def uses(graph: Graph) -> dict[Value, list[Op]]:
    """Which operations read each value (regions included), in order."""
    found: dict[Value, list[Op]] = {}
    for op in walk(graph.body):
        for value in itertools.chain(op.operands, *(r.yields for r in op.regions)):
            found.setdefault(value, []).append(op)
    return found


def describe(attributes: Mapping[str, Any]) -> str:
    """Attributes as `key = value` text, for comments and messages."""
    return ", ".join(f"{k} = {v}" for k, v in attributes.items())
