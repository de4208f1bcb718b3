"""`pypto.loop` and `pypto.loop_unroll`: bodies recorded once, turns that are inlined, and what a loop carries."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pypto_dsl.compiler.dtypes import BOOL, I64
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.graph import Symbol, TensorType, Value
from pypto_dsl.compiler.index import Index, var
from pypto_dsl.compiler.ops.core import cast
from pypto_dsl.compiler.ops.live import is_never_negative
from pypto_dsl.compiler.ops.shapes import shape_text
from pypto_dsl.frontend import scalar
from pypto_dsl.frontend.names import Renewed, Unusable, described, is_number, is_unbound, revived, same
from pypto_dsl.frontend.scalar import BoolLike, IntLike, SymbolicBool, SymbolicScalar, index_of, is_symbolic
from pypto_dsl.frontend.spans import here
from pypto_dsl.frontend.spellings import bounds_of
from pypto_dsl.frontend.tensor import Tensor, handle_of
from pypto_dsl.frontend.trace import Carry, Cell, LoopBounds, Trace, differing_axes, merge, need

NO_SOURCE = "define the kernel in a file or a notebook cell: names that a loop carries cannot be seen otherwise"


class TurnIndex(int):
    """The index of a turn that is inlined, with the range of the loop that the user wrote."""

    bounds: LoopBounds


def _turn(index: int, bounds: LoopBounds) -> TurnIndex:
    made = TurnIndex(index)
    made.bounds = bounds
    return made


@dataclass(frozen=True)
class LoopRange:
    """What `pypto.loop` and `pypto.loop_unroll` return. ``factors`` are unroll factors, largest first; ``pair`` yields (index, factor)."""

    bounds: LoopBounds
    factors: tuple[int, ...] = (1,)
    pair: bool = False
    attributes: dict[str, Any] = field(default_factory=dict)
    label: str = ""

    @property
    def is_single(self) -> bool:
        """Whether there is exactly one turn: `pypto.loop(1)` is a scope."""
        b = self.bounds
        return isinstance(b.start, int) and isinstance(b.step, int) and isinstance(b.stop, int) and b.start < b.stop <= b.start + b.step

    def __iter__(self) -> Iterator[Any]:
        trace = need("pypto.loop")
        if trace.block is not None:
            turns: Iterator[Any] = trace.block.turns(self)
            return turns
        raise error("PT142", "pypto.loop in a function whose source cannot be read", here(), help=NO_SOURCE)


def _bound(x: Any) -> IntLike:
    if isinstance(x, SymbolicBool):  # `pypto.loop(condition)` is an if: 0 turns or 1
        return _turns_of(need("pypto.loop"), x)
    if isinstance(x, bool):
        return int(x)
    return scalar.scalar(index_of(x))


def _turns_of(trace: Trace, condition: SymbolicBool) -> IntLike:
    """1 where the condition holds, else 0."""
    test: Value = trace.emit(lambda: trace.condition(condition))
    frames = []
    numbers = []
    for turns in (1, 0):
        frames.append(trace.open("if"))
        numbers.append(trace.number(SymbolicScalar(turns), I64))
        trace.close(frames[-1])
    made = trace.finish_if(test, frames[0], frames[1], [("turns", numbers[0], numbers[1])], here())
    return trace.symbol(made[0], "turns", minimum=0)


def _range(args: Sequence[Any], named: Mapping[str, Any], what: str) -> LoopBounds:
    start, stop, step = bounds_of(args, {k: v for k, v in named.items() if k in ("start", "stop", "step")}, what, "stop")
    bounds = LoopBounds(_bound(start), _bound(stop), _bound(step))
    if isinstance(bounds.step, int) and bounds.step <= 0:
        raise error("PT146", f"{what} has the step {bounds.step}", here(),
                    help="steps are positive; compute a descending index from an ascending one: n - 1 - i")
    return bounds


def loop(*args: Any, name: str = "", idx_name: str = "", unroll_list: Any = None, submit_before_loop: Any = None, parallel: Any = None,
         **hints: Any) -> LoopRange:
    """`for i in pypto.loop(stop)`, `(start, stop)` or `(start, stop, step)`: one recorded body, run as often as the bounds say.

    ``parallel=True`` promises that turns write disjoint parts. A condition as stop makes an `if`. Raises PT102, PT110, PT146 for bounds.
    """
    need("pypto.loop")
    attributes = {"name": name} if name else {}
    if parallel:
        attributes["parallel"] = parallel
    return LoopRange(_range(args, hints, "pypto.loop"), attributes=attributes, label=idx_name)


def loop_unroll(*args: Any, name: str = "", idx_name: str = "", unroll_list: Iterable[int] = (1,), submit_before_loop: Any = None,
                parallel: Any = None, **hints: Any) -> LoopRange:
    """`for i, k in pypto.loop_unroll(..., unroll_list=[4, 2, 1])`: a body per factor k, each taking the turns the larger ones left.

    1 is always among the factors. `is_loop_begin` and `is_loop_end` speak of the whole range.
    Raises PT146 for factors that are no positive ints.
    """
    need("pypto.loop_unroll")
    factors = {*unroll_list, 1}
    if any(isinstance(f, bool) or not isinstance(f, int) or f < 1 for f in factors):
        raise error("PT146", f"unroll factors are positive ints, and got {list(unroll_list)!r}", here(), help="unroll_list=[4, 2, 1]")
    attributes = {"name": name} if name else {}
    return LoopRange(_range(args, hints, "pypto.loop_unroll"), tuple(sorted(factors, reverse=True)), True, attributes, idx_name)


def _made_before(name: str, x: object) -> str:
    """What binds ``name`` before a loop to something of the type that ``x`` has after a turn."""
    if not isinstance(x, Tensor):
        return f"{name} = 0" if is_number(x) else f"{name} = pypto.full(shape, 0.0, dtype)"
    zero = "False" if x.dtype is BOOL else "0.0" if x.dtype.is_float else "0"
    return f"{name} = pypto.full({shape_text(x.type.shape)}, {zero}, pypto.{x.dtype.pypto})"


def _bounds_of(index: Any, what: str) -> LoopBounds:
    if isinstance(index, TurnIndex):
        return index.bounds
    trace = need(what)
    name = index.index.name if isinstance(index, SymbolicScalar) else None
    bounds = trace.loops.get(name or "")
    if bounds is None:
        raise error("PT147", f"{what} takes the index of a pypto.loop, and got `{index}`", here(),
                    help=f"for i in pypto.loop(n): ... {what}(i)")
    return bounds


def is_loop_begin(index: Any) -> BoolLike:
    """Whether this is the first turn of the loop whose index is given."""
    return scalar.comparison("==", index_of(index), index_of(_bounds_of(index, "pypto.is_loop_begin").start))


def is_loop_end(index: Any) -> BoolLike:
    """Whether this is the last turn of the loop whose index is given."""
    bounds = _bounds_of(index, "pypto.is_loop_end")
    return scalar.comparison(">=", index_of(index) + index_of(bounds.step), index_of(bounds.stop))


def cond(x: Any) -> Any:
    """A condition, as PyPTO spells it outside functions that it rewrites; here the condition itself."""
    return x


class StaticLoop:
    """Any other iterable: Python's own loop."""

    def __init__(self, iterable: Iterable[Any]) -> None:
        self.iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)

    def enter(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The names at the top of a turn."""
        return values

    def leave(self, values: tuple[Any, ...]) -> None:
        """The names at the bottom of a turn."""

    def results(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The names after the loop."""
        return values

    def forbid(self, word: str) -> None:
        """Every jump is allowed."""


class SingleTurn(StaticLoop):
    """`for _ in pypto.loop(1)`: a scope, in which names may change type."""

    def __init__(self, loop_: LoopRange) -> None:
        assert isinstance(loop_.bounds.start, int)
        index = _turn(loop_.bounds.start, loop_.bounds)
        super().__init__([(index, 1) if loop_.pair else index])


class TracedLoop:
    """`for i in pypto.loop(...)`.

    The body is recorded once; once more when a Python number turned out to be carried (it becomes a scalar of the loop), or when a
    carried name has another type after the first turn (that turn is inlined before the loop, if there surely is one).
    """

    def __init__(self, loop_: LoopRange, names: tuple[str, ...], carried: tuple[str, ...], label: str) -> None:
        self.loop = loop_
        self.names = names
        self.carried = frozenset(carried)
        self.label = loop_.label or (label if label != "_" else "i")
        self.span = here()
        self.trace: Trace = need("pypto.loop")
        self.before: tuple[Any, ...] | None = None
        self.after: tuple[Any, ...] | None = None
        self.promoted: set[str] = set()
        self.tails: dict[str, list[int]] = {}
        self.renewed: set[str] = set()
        self.change_of: dict[str, Renewed] = {}
        self.inlined = False
        self.wants_peeling = False
        self.again = False
        self.slots: dict[str, tuple[Value, Value, Cell | None]] = {}
        self.extents: dict[str, list[tuple[Value, Value]]] = {}
        self.entered: tuple[Any, ...] = ()
        self.left: tuple[Any, ...] = ()

    def __iter__(self) -> Iterator[Any]:
        trace, bounds = self.trace, self.loop.bounds
        start, stop, step = bounds.start, bounds.stop, bounds.step
        lower: IntLike = start
        for factor in self.loop.factors:
            stride = step * factor
            upper: IntLike = stop - (stop - start) % stride if len(self.loop.factors) > 1 else stop
            if isinstance(lower, int) and isinstance(upper, int) and lower >= upper:
                continue
            self.promoted, self.tails, self.renewed = set(), {}, set()
            peeled = False
            while True:
                mark = trace.mark()
                self.again = self.wants_peeling = False
                self.frame = trace.open("loop")
                symbol = self._index(lower, upper)
                tiles = replace(trace.tiles)
                index = SymbolicScalar(var(symbol))
                yield (index, factor) if self.loop.pair else index
                if not self.again and not self.wants_peeling:
                    self._finish(symbol, (lower, upper, stride), factor)
                    break
                trace.close(self.frame)
                trace.abandon(mark)
                trace.tiles = tiles
                if self.wants_peeling:
                    if peeled or not self._surely_turns(lower, upper):
                        self._renew()
                        continue
                    peeled = self.inlined = True
                    first = _turn(lower, bounds) if isinstance(lower, int) else lower
                    yield (first, factor) if self.loop.pair else first
                    self.inlined = False
                    lower = lower + stride
                    if isinstance(lower, int) and isinstance(upper, int) and lower >= upper:
                        self.after = self.before
                        break
            lower = upper
            self.before = self.after if self.after is not None else self.before

    def _index(self, lower: IntLike, upper: IntLike) -> str:
        symbol = self.trace.unique(self.label)
        minimum = lower if isinstance(lower, int) else None
        self.trace.graph.symbols[symbol] = Symbol(symbol, "loop", minimum=minimum, maximum=index_of(upper) - 1)
        self.trace.loops[symbol] = self.loop.bounds
        return symbol

    def _surely_turns(self, lower: IntLike, upper: IntLike) -> bool:
        return is_never_negative(index_of(upper) - index_of(lower) - 1, self.trace.graph)

    def forbid(self, word: str) -> None:
        """Refuse (PT141) a jump out of a recorded body."""
        raise error("PT141", f"`{word}` inside a pypto.loop", here(), help="put the rest of the body under an `if`")

    # -- one turn

    def enter(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The names at the top of the recorded turn: block arguments for what may be carried."""
        if self.before is None:
            self.before = values
        if self.inlined:
            return self.before
        out: list[Any] = []
        self.slots, self.extents = {}, {}
        for name, x in zip(self.names, self.before, strict=True):
            if name in self.renewed:
                out.append(self.change_of[name])
            elif name in self.carried and isinstance(x, Tensor):
                out.append(self._tensor_argument(name, x))
            elif name in self.promoted:
                out.append(self._number_argument(name, x))
            else:
                out.append(x)
        self.entered = tuple(out)
        return self.entered

    def _tensor_argument(self, name: str, x: Tensor) -> Tensor:
        trace = self.trace
        initial = trace.read(x.cell, len(trace.frames) - 2)
        if initial.type.weak:
            with trace.inside(trace.frames[-2]):
                initial = cast(initial, initial.type.dtype)
        axes = self.tails.get(name, [])
        if axes:
            with trace.inside(trace.frames[-2]):
                scalars = trace.live_scalars(initial, axes)
                initial = trace.widened(initial)
        argument = Value(TensorType(initial.type.dtype, initial.type.shape, valid=initial.type.valid), name)
        cell = Cell(name)
        if axes:
            arguments = [Value(TensorType(I64, ()), f"{name}_live{axis}") for axis in axes]
            self.extents[name] = list(zip(arguments, scalars, strict=True))
            trace.declare(cell, trace.narrowed(argument, axes, arguments, name))
        else:
            trace.declare(cell, argument)
        self.slots[name] = (argument, initial, cell)
        return handle_of(trace, cell)

    def _number_argument(self, name: str, x: Any) -> Any:
        trace = self.trace
        with trace.inside(trace.frames[-2]):
            if isinstance(x, (bool, SymbolicBool)):
                initial = trace.condition(x)
            elif isinstance(x, float):
                weak = trace.number(x)
                initial = cast(weak, weak.type.dtype)
            else:
                initial = trace.number(SymbolicScalar(x) if not is_symbolic(x) else x, I64)
        argument = Value(TensorType(initial.type.dtype, ()), name)
        self.slots[name] = (argument, initial, None)
        return revived(argument, name, x)

    def leave(self, values: tuple[Any, ...]) -> None:
        """The names at the bottom of the turn."""
        if self.inlined:
            self.before = values
            return
        for name, x, y in zip(self.names, self.entered, values, strict=True):
            if name not in self.carried:
                continue
            slot = self.slots.get(name)
            if slot is not None and slot[2] is not None:
                if isinstance(y, Tensor) and y.cell.lens is not None and y.cell.root is slot[2]:
                    continue  # another shape of the same elements
                axes = differing_axes(slot[0].type, y.type) if isinstance(y, Tensor) else None
                if axes is None:
                    self._peel(name, x, y)
                elif axes and name not in self.tails:
                    self.tails[name], self.again = axes, True
            elif slot is None and not same(x, y):
                if is_number(x) and is_number(y) and isinstance(x, (bool, SymbolicBool)) == isinstance(y, (bool, SymbolicBool)):
                    self.promoted.add(name)
                    self.again = True
                elif not is_unbound(x):
                    self._peel(name, x, y)
        self.left = values

    def _peel(self, name: str, x: Any, y: Any) -> None:
        self.wants_peeling = True
        self.change = (name, described(x), described(y), isinstance(x, Tensor) and isinstance(y, Tensor), _made_before(name, y))

    def _renew(self) -> None:
        """Let each turn make a tensor of its own, none beginning with one of another type. PT122, PT143 where that is no help."""
        name, before, after, *_ = self.change
        held = dict(zip(self.names, self.before or (), strict=True)).get(name)
        if name in self.renewed or not isinstance(held, Tensor):
            raise self._changed()
        self.renewed.add(name)
        self.change_of[name] = Renewed(f"`{name}` is {before} before the loop and {after} after a turn",
                                       "give it one shape and dtype before the loop, with pypto.tensor(shape, dtype)")

    def _changed(self) -> Exception:
        name, before, after, both, made = self.change
        if both:
            return error("PT122", f"`{name}` is {before} before the loop and {after} after a turn", self.span,
                         help="give it one shape and dtype before the loop, with pypto.tensor(shape, dtype)")
        return error("PT143", f"`{name}` is {before} before the loop and {after} after one turn", self.span,
                     help=f"give it its final shape and dtype before the loop: {made}")

    # -- the end

    def _finish(self, symbol: str, bounds: tuple[IntLike, IntLike, IntLike], factor: int) -> None:
        trace, frame = self.trace, self.frame
        assert self.before is not None
        out: list[Any] = []
        slots: list[tuple[int, str, object, list[int], tuple[Index, ...] | None]] = []
        waiting: list[tuple[Value, Any, Value]] = []
        for name, x, y in zip(self.names, self.before, self.left, strict=True):
            slot, axes, reshaped = self.slots.get(name), [], None
            if name in self.renewed:
                out.append(self.change_of[name])
                continue
            if slot is not None and slot[2] is not None:
                reshaped = y.cell.lens[1] if y.cell.lens is not None and y.cell.root is slot[2] else None
                last = trace.read(slot[2] if reshaped is not None else y.cell)
                if last is slot[0]:
                    trace.forwards[slot[0]] = slot[1]
                    out.append(x if reshaped is None else handle_of(trace, Cell(name, lens=(x.cell, reshaped))))
                    continue
                axes = self.tails.get(name, [])
                waiting.append((slot[0], slot[1], trace.widened(last) if axes else last))
                waiting += [(a, i, e) for (a, i), e in zip(self.extents.get(name, ()), trace.live_scalars(last, axes), strict=True)]
            elif slot is not None:
                waiting.append((slot[0], slot[1], self._last_number(y, slot[0])))
            elif isinstance(y, Tensor) and not (isinstance(x, Tensor) and y.cell is x.cell):
                last = trace.read(y.cell)
                axes = [i for i, (m, n) in enumerate(zip(last.type.live, last.type.shape, strict=True)) if m != n]
                full = trace.widened(last)
                waiting.append((Value(TensorType(full.type.dtype, full.type.shape), name), x, full))
                waiting += [(Value(e.type, name), x, e) for e in trace.live_scalars(last, axes)]
            elif same(x, y):
                out.append(x)
                continue
            else:
                out.append(self._without_value(name, y))
                continue
            slots.append((len(out), name, y, axes, reshaped))
            out.append(None)
        trace.close(frame)
        carries = [Carry(a, i if isinstance(i, Value) else self._initial(i, last), last) for a, i, last in waiting]
        attributes = dict(self.loop.attributes)
        if factor != 1:
            attributes["unroll"] = factor
        start, stop, step = (index_of(b) for b in bounds)
        results = iter(trace.finish_loop(frame, symbol, (start, stop, step), carries, attributes, self.span))
        for slot_, name, sample, axes, reshaped in slots:
            value, extents = next(results), [next(results) for _ in axes]
            made = revived(trace.narrowed(value, axes, extents, name) if axes else value, name, sample)
            out[slot_] = made if reshaped is None else handle_of(trace, Cell(name, lens=(made.cell, reshaped)))
        self.after = tuple(out)

    def _last_number(self, y: Any, argument: Value) -> Value:
        dtype = argument.type.dtype
        if isinstance(y, Tensor):
            return y.value
        if isinstance(y, (bool, SymbolicBool)):
            return self.trace.condition(y)
        if isinstance(y, int):
            y = float(y) if dtype.is_float else SymbolicScalar(y)
        return self.trace.number(y, dtype)

    def _initial(self, x: Any, last: Value) -> Value:
        """The value from before the loop where it fits, else poison: read only when the loop has no turn."""
        if isinstance(x, Tensor) and merge(x.type, last.type) is not None:
            return x.value
        if not last.type.rank and last.type.dtype == I64:
            return self.trace.number(SymbolicScalar(0), I64)
        return self.trace.undefined(TensorType(last.type.dtype, last.type.shape))

    @staticmethod
    def _without_value(name: str, y: Any) -> Any:
        if isinstance(y, (SymbolicScalar, SymbolicBool)):
            return Unusable(f"`{name}` is computed in every turn of a pypto.loop and used after it", "assign it before the loop too")
        return y

    def results(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The names after the loop; its indices have no value any more."""
        why = "a loop index is used after its pypto.loop", "write the index that is meant: n - 1 for the last turn"
        ended = tuple(Unusable(*why) for _ in values[len(self.names):])
        return (values[:len(self.names)] if self.after is None else self.after) + ended



__all__ = ["LoopRange", "SingleTurn", "StaticLoop", "TracedLoop", "TurnIndex", "cond", "is_loop_begin", "is_loop_end", "loop",
           "loop_unroll"]
