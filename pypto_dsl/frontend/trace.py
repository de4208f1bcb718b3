"""The trace of one kernel: variables that name one value per open region, and the loops and branches made from closed ones.

A Python tensor is a handle on a `Cell`. Writing makes a new value and rebinds the cell in the innermost region; reading walks
outwards. When a region is left, the cells it wrote become results of its `loop` or `if`, for a loop also block arguments.
Outputs, accumulators and helpers that write their arguments are thereby one mechanism, and the graph is pure SSA.
"""
from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from pypto_dsl.compiler.dtypes import BOOL, I64, DType
from pypto_dsl.compiler.errors import CompilerBug, Label, error, value_text
from pypto_dsl.compiler.graph import Builder, Graph, Region, Symbol, TensorType, Value
from pypto_dsl.compiler.index import Index, as_index, var
from pypto_dsl.compiler.ops.arrangement import fillpad
from pypto_dsl.compiler.ops.core import bitwise_and, cast, extent, ge, gt, le, lt, ne
from pypto_dsl.compiler.ops.core import eq as equal
from pypto_dsl.compiler.ops.core import reshape as reshape_op
from pypto_dsl.compiler.ops.definition import OpDefinition
from pypto_dsl.compiler.ops.layout import insert, load_scalar, view
from pypto_dsl.compiler.ops.live import is_moved_by_reshape
from pypto_dsl.compiler.ops.recording import constant
from pypto_dsl.compiler.span import Span
from pypto_dsl.frontend.scalar import IntLike, SymbolicBool, SymbolicScalar, both, index_of, negate
from pypto_dsl.frontend.spans import here, here_and_names

FrameKind = Literal["body", "loop", "if"]
PROBE = "probe"  # the opcode of what only the interpreter sees: values to print or keep
_COMPARE: dict[str, OpDefinition] = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": equal, "!=": ne}


class Cell:
    """A variable. ``lens`` is (base, shape) for an in-place reshape: reads and writes go to the base."""

    __slots__ = ("lens", "name", "parameter")

    def __init__(self, name: str = "", parameter: bool = False, lens: tuple[Cell, tuple[Index, ...]] | None = None) -> None:
        self.name = name
        self.parameter = parameter
        self.lens = lens

    @property
    def root(self) -> Cell:
        """The variable whose elements this one names; itself, when it is no in-place reshape."""
        cell = self
        while cell.lens is not None:
            cell = cell.lens[0]
        return cell


@dataclass(eq=False)
class Frame:
    """One open region: where each cell stands in it, which were born in it, which outer ones it has written, and its arguments."""

    kind: FrameKind
    region: Region
    values: dict[Cell, Value] = field(default_factory=dict)
    born: set[Cell] = field(default_factory=set)
    written: dict[Cell, None] = field(default_factory=dict)
    arguments: dict[Cell, tuple[Value, Value]] = field(default_factory=dict)
    lenses: dict[Cell, tuple[Value, Value]] = field(default_factory=dict)


@dataclass(frozen=True)
class LoopBounds:
    """The whole range of a user's loop, of which `is_loop_begin` and `is_loop_end` speak."""

    start: IntLike
    stop: IntLike
    step: IntLike


@dataclass(frozen=True)
class LocalWrite:
    """A whole write to a tensor that is no parameter, for the lint of values that nobody reads."""

    name: str
    value: Value
    span: Span | None


@dataclass(frozen=True)
class Rebind:
    """`name = value` where ``name`` is a tensor parameter of the kernel: written with ``symbol`` (`+=`), in the region ``frame``."""

    name: str
    value: object
    symbol: str
    frame: Frame
    span: Span | None


@dataclass(frozen=True)
class Carry:
    """A name that a loop carries: block argument, value before the loop, value after a turn."""

    argument: Value
    initial: Value
    last: Value


@dataclass
class TileState:
    """Tile shapes in force; what a kernel set last can be read after it (`get_vec_tile_shapes` outside)."""

    vector: tuple[int, ...] | None = None
    vector_set_at: Span | None = None
    cube: tuple[Any, ...] | None = None
    convolution: tuple[Any, ...] | None = None
    matrix: tuple[Any, ...] | None = None
    label: str = ""

    def copied(self) -> TileState:
        """The same, to be changed apart."""
        return TileState(**vars(self))


class NeedsValue(BaseException):
    """Python needs the number behind a run-time float: the kernel is captured again, specialised on it."""

    def __init__(self, parameter: str, span: Span | None) -> None:
        super().__init__(parameter)
        self.parameter, self.span = parameter, span


CURRENT: contextvars.ContextVar[Trace | None] = contextvars.ContextVar("trace", default=None)

# The trace that records now, or None outside kernels. Every call of a kernel asks, so it is no function in Python.
current: Callable[[], Trace | None] = CURRENT.get


def need(what: str) -> Trace:
    """The current trace. Raises PT125 outside a kernel."""
    trace = CURRENT.get()
    if trace is None:
        raise error("PT125", f"{what} outside a kernel", here(), help="call it in a function decorated with @pypto.jit")
    return trace


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """``trace`` records inside."""
    token = CURRENT.set(trace)
    try:
        yield trace
    finally:
        CURRENT.reset(token)


class Trace:
    """Records operations into the innermost open region of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.builder = Builder(graph)
        self.frames = [Frame("body", graph.body)]
        self.tiles = TileState()
        self.loops: dict[str, LoopBounds] = {}
        self.forwards: dict[Value, Value] = {}
        self.rebinds: list[Rebind] = []
        self.poison: set[Value] = set()  # values that stand for a name which an arm of an `if` does not bind
        self.local_writes: list[LocalWrite] = []
        self.hints: list[tuple[str, str, Span | None]] = []
        self.policies: dict[tuple[Cell, Any], bool] = {}
        self.observing = False  # whether probes are recorded
        self.probed = False  # whether there are any
        self.block: Any = None  # the `Recording` of a `pypto.function` block, whose code is not rewritten
        self.functions: dict[int, Any] = {}
        self.taken: set[str] = set()

    # ---- names ---------------------------------------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """``name``, or with a number when it is taken; for symbols."""
        name = name if name.isidentifier() else "s"
        candidate, number = name, 1
        while candidate in self.taken or candidate in self.graph.symbols:
            number += 1
            candidate = f"{name}_{number}"
        self.taken.add(candidate)
        return candidate

    # ---- cells ---------------------------------------------------------------------------------------------------------------

    def declare(self, cell: Cell, value: Value) -> None:
        """A new variable of the innermost region."""
        frame = self.frames[-1]
        frame.values[cell] = value
        frame.born.add(cell)

    def read(self, cell: Cell, depth: int | None = None) -> Value:
        """The value a variable names. Raises PT120 when the region that made it has ended."""
        if depth is None and (known := self.frames[-1].values.get(cell)) is not None:
            return known
        depth = len(self.frames) - 1 if depth is None else depth
        if cell.lens is not None:
            return self._through(cell, depth)
        frame = self.frames[depth]
        value = frame.values.get(cell)
        if value is not None:
            return value
        if depth == 0:
            name = f"`{cell.name}`" if cell.name else "a tensor"
            raise error("PT120", f"{name} was made inside a loop or branch that has ended", here(),
                        help="create it before the loop with pypto.tensor(shape, dtype) and write it inside")
        outer = self.read(cell, depth - 1)
        if frame.kind == "loop":
            argument = Value(outer.type, cell.name or outer.name)
            frame.arguments[cell] = (argument, outer)
            outer = argument
        frame.values[cell] = outer
        return outer

    def _through(self, cell: Cell, depth: int) -> Value:
        assert cell.lens is not None
        base, shape = cell.lens
        source, frame = self.read(base, depth), self.frames[depth]
        cached = frame.lenses.get(cell)
        if cached is None or cached[0] is not source:
            with self.inside(frame):
                cached = frame.lenses[cell] = (source, self.reshaped(source, shape))
        return cached[1]

    def write(self, cell: Cell, value: Value) -> None:
        """Rebind a variable; through an in-place reshape, its base."""
        if cell.lens is not None:
            base, _ = cell.lens
            self.write(base, self.reshaped(value, self.read(base).type.shape))
            return
        frame = self.frames[-1]
        if cell not in frame.born:
            self.read(cell)  # makes the loop's argument, and refuses cells of regions that have ended
            frame.written[cell] = None
        frame.values[cell] = value

    # ---- operations ----------------------------------------------------------------------------------------------------------

    def emit(self, record: Callable[..., Any], *given: Any) -> Any:
        """Record operations by ``record`` of ``given``, with the user's span and tile; results take the names they are bound to."""
        builder = self.builder
        saved = builder.span
        builder.span, names = here_and_names()
        builder.tile = self.tiles.vector
        try:
            made = record(*given)
        finally:
            builder.span = saved
        if names:
            for value, name in zip(made if isinstance(made, tuple) else (made,), names, strict=False):
                if name and not value.name:
                    value.name = name
        return made

    def number(self, x: Any, dtype: DType | None = None) -> Value:
        """An int, float, bool or symbolic scalar as a scalar of the graph, weak unless ``dtype`` is given."""
        if isinstance(x, SymbolicScalar):
            return self._value(extent(x.index, dtype or I64, True if dtype is None else None))
        if isinstance(x, SymbolicBool):
            return self.condition(x)
        return constant(x, self.builder, dtype)

    def condition(self, x: Any) -> Value:
        """A symbolic truth value as a BOOL scalar of the graph."""
        if not isinstance(x, SymbolicBool):
            return constant(bool(x), self.builder, BOOL)
        if x.op == "value":
            assert isinstance(x.left, Value)
            return x.left
        if x.op == "not":
            return self._value(equal(self.condition(x.left), constant(False, self.builder, BOOL)))
        if x.op == "and":
            return self._value(bitwise_and(self.condition(x.left), self.condition(x.right)))
        if x.op == "or":
            assert isinstance(x.left, SymbolicBool) and isinstance(x.right, SymbolicBool)
            return self.condition(negate(both(negate(x.left), negate(x.right))))
        assert isinstance(x.left, Index) and isinstance(x.right, Index)
        return self._value(_COMPARE[x.op](self.number(SymbolicScalar(x.left), I64), self.number(SymbolicScalar(x.right), I64)))

    @staticmethod
    def _value(x: Any) -> Value:
        assert isinstance(x, Value)
        return x

    def symbol(self, value: Value, name: str, offsets: Sequence[Index] = (), minimum: int | None = None,
               maximum: Index | None = None) -> SymbolicScalar:
        """Read an integer element of ``value`` as a new Index variable."""
        symbol = self.unique(name or value.name or "element")
        self.graph.symbols[symbol] = Symbol(symbol, "element", minimum=minimum, maximum=maximum)
        load_scalar(value, tuple(offsets), symbol)
        return SymbolicScalar(var(symbol))

    def emit_symbol(self, value: Value, offsets: tuple[Index, ...], minimum: int | None, name: str) -> SymbolicScalar:
        """`symbol` with the user's span; named after the variable it is bound to, or else ``name``."""
        _, names = here_and_names()
        found: list[SymbolicScalar] = []
        label = names[0] if names and names[0] else name

        def record() -> tuple[()]:
            found.append(self.symbol(value, label, offsets, minimum))
            return ()

        self.emit(record)
        return found[0]

    def note_rebind(self, name: str, value: object, symbol: str, span: Span | None) -> None:
        """Remember `name = value` of a tensor parameter."""
        self.rebinds.append(Rebind(name, value, symbol, self.frames[-1], span))

    # ---- tails where regions meet: the whole tensor and its live extents as scalars --------------------------------------------------

    def widened(self, value: Value) -> Value:
        """A tail as a fully live tensor whose other elements are poison."""
        kind = value.type
        if kind.valid is None:
            return value
        return self._value(insert(self.undefined(TensorType(kind.dtype, kind.shape)), value, whole(kind.rank)))

    def reshaped(self, value: Value, shape: Sequence[Index]) -> Value:
        """The elements in row-major order. Those of a tail keep their places: where that is no tail of the new shape, zeros fill it up."""
        made = self._value(reshape_op(value, tuple(shape)))
        if is_moved_by_reshape(value.type, made.type.shape):
            return self._value(reshape_op(fillpad(value), made.type.shape))
        return made

    def live_scalars(self, value: Value, axes: Sequence[int]) -> list[Value]:
        """The live extents of some axes as scalars of the graph."""
        return [self.number(SymbolicScalar(value.type.live[axis]), I64) for axis in axes]

    def narrowed(self, value: Value, axes: Sequence[int], scalars: Sequence[Value], name: str) -> Value:
        """A widened tensor with the live extents that scalars hold."""
        shape = value.type.shape
        live = list(shape)
        for axis, extent_ in zip(axes, scalars, strict=True):
            live[axis] = self.symbol(extent_, f"{name}_live{axis}", minimum=0, maximum=shape[axis]).index
        return self._value(view(value, shape, whole(len(shape)), tuple(live)))

    def undefined(self, like: TensorType) -> Value:
        """A value that nobody may read; all of it is live, as of every `empty`."""
        like = TensorType(like.dtype, like.shape)
        return self.builder.add("empty", (), (like,), {"shape": like.shape, "dtype": like.dtype}).result

    # ---- abandoned recordings --------------------------------------------------------------------------------------------------

    def mark(self) -> tuple[int, int, int, int, frozenset[str]]:
        """How far the trace has come, for `abandon`."""
        return len(self.rebinds), len(self.local_writes), len(self.hints), len(self.graph.checks), frozenset(self.graph.symbols)

    def abandon(self, mark: tuple[int, int, int, int, frozenset[str]]) -> None:
        """Forget what was noted since ``mark``: a loop's body is recorded again."""
        rebinds, writes, hints, checks, symbols = mark
        del self.rebinds[rebinds:], self.local_writes[writes:], self.hints[hints:], self.graph.checks[checks:]
        for name in [n for n in self.graph.symbols if n not in symbols]:
            del self.graph.symbols[name]
            self.taken.discard(name)

    # ---- regions -------------------------------------------------------------------------------------------------------------

    def open(self, kind: FrameKind) -> Frame:
        """Open a region; operations are recorded into it until `close`."""
        frame = Frame(kind, Region())
        self.frames.append(frame)
        self.builder.region = frame.region
        return frame

    def close(self, frame: Frame) -> None:
        """Close the innermost region."""
        if self.frames[-1] is not frame:
            raise CompilerBug("trace", "a region is closed that is not the innermost one")
        self.frames.pop()
        self.builder.region = self.frames[-1].region

    @contextmanager
    def inside(self, frame: Frame) -> Iterator[None]:
        """Record into a region that is open further out, or has just been closed."""
        saved = self.builder.region
        self.builder.region = frame.region
        try:
            yield
        finally:
            self.builder.region = saved

    def in_frame(self, cell: Cell, frame: Frame) -> Value:
        """The value of a variable at the end of a closed branch."""
        return frame.values.get(cell) or self.read(cell)

    def finish_if(self, condition: Value, then: Frame, otherwise: Frame, merges: Sequence[tuple[str, Value, Value]],
                  span: Span | None) -> list[Value]:
        """Record the `if` of two closed regions. ``merges`` are further (name, value, value) pairs; returns their results."""
        cells = list(dict.fromkeys([*then.written, *otherwise.written]))
        pairs = [(c.name, self.in_frame(c, then), self.in_frame(c, otherwise)) for c in cells]
        pairs += merges
        types = []
        for i, (name, a, b) in enumerate(pairs):
            merged = merge(a.type, b.type)
            if merged is None:
                raise CompilerBug("frontend", f"`{name}` is {a.type} in one branch and {b.type} in the other")
            pairs[i] = (name, self._strong(a, merged, then), self._strong(b, merged, otherwise))
            types.append(merged)
        then.region.yields = [a for _, a, _ in pairs]
        otherwise.region.yields = [b for _, _, b in pairs]
        made = self.builder.add("if", (condition,), types, {}, (then.region, otherwise.region), span,
                                names=[name or a.name or b.name for name, a, b in pairs])
        for cell, result in zip(cells, made.results, strict=False):
            self.write(cell, result)
        return list(made.results[len(cells):])

    def _strong(self, value: Value, wanted: TensorType, frame: Frame) -> Value:
        if value.type.weak == wanted.weak:
            return value
        with self.inside(frame):
            return self._value(cast(value, wanted.dtype))

    def finish_loop(self, frame: Frame, index: str, bounds: tuple[Index, Index, Index], carries: Sequence[Carry],
                    attributes: dict[str, Any], span: Span | None) -> list[Value]:
        """Record the `loop` of a closed region. Returns the results of ``carries``. Raises PT122 when a carried type changes."""
        cells = list(frame.written)
        for cell, (argument, initial) in frame.arguments.items():
            if cell not in frame.written:
                self.forwards[argument] = initial  # only read: the same in every turn
        every = [Carry(*frame.arguments[c], frame.values[c]) for c in cells] + list(carries)
        types, initials = [], []
        for carry in every:
            merged = merge(carry.initial.type, carry.last.type)
            if merged is None or (merged.weak != carry.argument.type.weak):
                raise error("PT122", f"`{carry.argument.name}` is {carry.initial.type} before the loop and {carry.last.type} after a turn",
                            span, others=_made(carry.last), help="give it one shape and dtype before the loop, "
                            "with pypto.tensor(shape, dtype) or pypto.full(shape, value, dtype)")
            types.append(merged)
            initials.append(carry.initial)
            frame.region.yields.append(self._strong(carry.last, merged, frame))
        frame.region.arguments = [c.argument for c in every]
        start, stop, step = bounds
        made = self.builder.add("loop", initials, types, {"index": index, "start": start, "stop": stop, "step": step, **attributes},
                                (frame.region,), span, names=[c.argument.name for c in every])
        for cell, result in zip(cells, made.results, strict=False):
            self.write(cell, result)
        return list(made.results[len(cells):])


def _made(value: Value) -> tuple[Label, ...]:
    if value.op is None or value.op.span is None:
        return ()
    return (Label(value.op.span, f"{value.type} is made here"),)


def merge(a: TensorType, b: TensorType) -> TensorType | None:
    """The type under which two values of a name meet, or None: dtype, shape and live extents must be equal; strong beats weak."""
    if a.dtype != b.dtype or a.shape != b.shape or a.live != b.live:
        return None
    return TensorType(a.dtype, a.shape, a.weak and b.weak, a.valid)


def differing_axes(a: TensorType, b: TensorType) -> list[int] | None:
    """The axes whose live extents differ between two types that are alike otherwise; None when they are not."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return None
    return [i for i, (m, n) in enumerate(zip(a.live, b.live, strict=True)) if m != n]


def as_shape(shape: Any) -> tuple[Index, ...]:
    """Extents as Indexes. Raises PT111 for what is no list, PT102 for entries that are no integers."""
    if not isinstance(shape, (list, tuple)):
        raise error("PT111", f"a list of extents or offsets is needed, and got {value_text(shape)}", here(),
                    help="[64, x.shape[1]]")
    return tuple(index_of(e) for e in shape)


def whole(rank: int) -> tuple[Index, ...]:
    """Offsets of 0."""
    return (as_index(0),) * rank
