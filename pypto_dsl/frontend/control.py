"""The hooks that rewritten functions call: they look at run-time values, and only symbolic ones open a region."""
from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

from pypto_dsl.compiler.dtypes import I64
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.graph import Value
from pypto_dsl.compiler.span import Span
from pypto_dsl.frontend import fixes, scalar
from pypto_dsl.frontend.loops import LoopRange, SingleTurn, StaticLoop, TracedLoop
from pypto_dsl.frontend.names import UNBOUND, Undefined, Unusable, described, is_number, is_unbound, revived, same
from pypto_dsl.frontend.operations import recorded
from pypto_dsl.frontend.rewrite import HOOKS as HOOKS_NAME
from pypto_dsl.frontend.rewrite import rewrite
from pypto_dsl.frontend.scalar import SymbolicBool, SymbolicScalar, is_symbolic
from pypto_dsl.frontend.spans import INSTALLED, STANDARD, here, is_own, uses_language
from pypto_dsl.frontend.tensor import Tensor, truth_of
from pypto_dsl.frontend.trace import Frame, current, differing_axes, need

_CO_GENERATORS = 0x20 | 0x80 | 0x200
_convertible: dict[int, tuple[CodeType, bool]] = {}  # by the identity of code objects, which are kept: to hash one takes long


class Branch:
    """`if`: transparent for a Python condition, two recorded regions for a symbolic one."""

    def __init__(self, condition: Any, values: tuple[Any, ...]) -> None:
        if isinstance(condition, Tensor):
            condition = truth_of(condition)
        self.condition = scalar.truth(condition) if is_symbolic(condition) else bool(condition)
        self.symbolic = isinstance(self.condition, SymbolicBool)
        if not self.symbolic:
            return
        self.trace = need("`if` on a symbolic value")
        self.test: Value = self.trace.emit(lambda: self.trace.condition(self.condition))
        self.before, self.span = values, here()
        self.after: list[tuple[Any, ...]] = []
        self.frames: list[Frame] = []

    def take(self, side: bool) -> bool:
        """Whether this arm runs; a symbolic condition runs both."""
        if not self.symbolic:
            return self.condition is side
        self.tiles = replace(self.trace.tiles)
        self.frames.append(self.trace.open("if"))
        return True

    def leave(self, values: tuple[Any, ...]) -> None:
        """The end of an arm."""
        if self.symbolic:
            self.after.append(values)
            self.trace.close(self.frames[-1])
            self.trace.tiles = self.tiles  # a tile set in an arm holds in it

    def restart(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The names as they stood before the first arm."""
        return self.before if self.symbolic else values

    def forbid(self, word: str) -> None:
        """Refuse (PT141) a jump out of an arm whose condition is symbolic."""
        if self.symbolic:
            raise error("PT141", f"`{word}` under a condition that is only known when the kernel runs", here(),
                        help="assign to a name in both branches and use it after the if")

    def results(self, values: tuple[Any, ...], names: Sequence[str]) -> tuple[Any, ...]:
        """The names after the if: what both arms agree on, results of the recorded `if`, or unusable."""
        if not self.symbolic:
            return values
        then, otherwise = self.frames
        out: list[Any] = []
        merges: list[tuple[str, Value, Value]] = []
        slots: list[tuple[int, str, object, list[int]]] = []
        for name, x, y in zip(names, *self.after, strict=True):
            x, y = self._filled(x, y, then), self._filled(y, x, otherwise)
            if same(x, y):
                out.append(x)
                continue
            pair = self._pair(x, y)
            if pair is None:
                sides = [self._described(v, frame) for v, frame in zip((x, y), self.frames, strict=True)]
                what = f"`{name}`" if name else "the value of the ternary"
                out.append(Unusable(f"{what} is {sides[0]} when the condition holds and {sides[1]} otherwise",
                                    "give it one type in both branches"))
                continue
            axes = differing_axes(pair[0].type, pair[1].type) or []
            slots.append((len(out), name, x if not isinstance(x, Undefined) else y, axes))
            out.append(None)
            merges += self._merged(name, pair, axes)
        results = iter(self.trace.finish_if(self.test, then, otherwise, merges, self.span))
        for slot, name, sample, axes in slots:
            value, extents = next(results), [next(results) for _ in axes]
            out[slot] = revived(self.trace.narrowed(value, axes, extents, name) if axes else value, name, sample)
        return tuple(out)

    def _described(self, x: object, frame: Frame) -> str:
        """What an arm has bound, as messages put it; a tensor's type as it is at the arm's end."""
        return str(self.trace.in_frame(x.cell, frame).type) if isinstance(x, Tensor) else described(x)

    def _merged(self, name: str, pair: tuple[Value, Value], axes: list[int]) -> list[tuple[str, Value, Value]]:
        """What the `if` yields for a name: the value; where live extents differ, the widened value and the extents."""
        if not axes:
            return [(name, *pair)]
        sides = []
        for value, frame in zip(pair, self.frames, strict=True):
            with self.trace.inside(frame):
                sides.append([self.trace.widened(value), *self.trace.live_scalars(value, axes)])
        return [(name if i == 0 else f"{name}_live{axes[i - 1]}", p, q) for i, (p, q) in enumerate(zip(*sides, strict=True))]

    def _filled(self, x: Any, other: Any, frame: Frame) -> Any:
        """A name that only the other arm binds to a tensor is undefined here: poison if read, harmless if not."""
        if is_unbound(x) and isinstance(other, Tensor):
            there = self.frames[1] if frame is self.frames[0] else self.frames[0]
            return Undefined(self.trace.in_frame(other.cell, there).type)
        return x

    def _pair(self, x: Any, y: Any) -> tuple[Value, Value] | None:
        """Both arms' values as graph values of one type, or None."""
        if not any(isinstance(v, Tensor) or is_symbolic(v) or is_number(v) for v in (x, y)):
            return None
        then, otherwise = self.frames
        p, q = self._value(x, y, then), self._value(y, x, otherwise)
        if p is None or q is None or differing_axes(p.type, q.type) is None:
            return None
        return p, q

    def _value(self, x: Any, other: Any, frame: Frame) -> Value | None:
        if isinstance(x, Tensor):
            return self.trace.in_frame(x.cell, frame)
        with self.trace.inside(frame):
            if isinstance(x, Undefined):
                made = self.trace.undefined(x.like)
                self.trace.poison.add(made)
                return made
            if not is_number(x):
                return None
            if isinstance(x, (bool, SymbolicBool)) and isinstance(other, (bool, SymbolicBool)):
                return self.trace.condition(x)
            if isinstance(other, Tensor) or isinstance(x, float) or isinstance(other, float):
                dtype = self.trace.in_frame(other.cell, self.frames[1] if frame is self.frames[0] else self.frames[0]).type.dtype \
                    if isinstance(other, Tensor) else None
                if dtype is not None and not dtype.is_float:
                    return None
                return self.trace.number(float(x) if isinstance(x, int) else x, dtype)
            return self.trace.number(scalar_number(x), I64)


def scalar_number(x: Any) -> Any:
    """A number or truth value as an integer scalar."""
    return SymbolicScalar(int(x)) if isinstance(x, (bool, int)) else x


# ---- calls -------------------------------------------------------------------------------------------------------------------


def is_convertible(function: FunctionType) -> bool:
    """Whether a helper is the user's: not ours, not the standard library's, no generator, of no library that does not know this."""
    code = function.__code__
    found = _convertible.get(id(code))
    if found is None:
        file = code.co_filename
        known = not (is_own(code) or code.co_flags & _CO_GENERATORS)
        if known and file.startswith(INSTALLED):
            known = uses_language(function.__globals__)
        elif known and file.startswith(STANDARD):
            known = False
        found = _convertible[id(code)] = (code, known)
    return found[1]


def converted(function: FunctionType) -> FunctionType:
    """The rewritten twin of a user's helper, and the function itself for others and for those without source."""
    if not is_convertible(function) or HOOKS_NAME in function.__code__.co_freevars:
        return function  # the latter are nested functions and lambdas of rewritten ones
    trace = current()
    if trace is not None:
        trace.functions.setdefault(id(function.__code__), function)
    return rewrite(function, HOOKS) or function


class Hooks:
    """The object that rewritten code knows as `__pt`."""

    unbound = UNBOUND
    branch = Branch

    @staticmethod
    def loop(iterable: Any, names: tuple[str, ...], carried: tuple[str, ...], label: str) -> Any:
        """A loop over ``iterable``: recorded for `pypto.loop`, Python's own otherwise."""
        if not isinstance(iterable, LoopRange):
            return StaticLoop(iterable)
        return SingleTurn(iterable) if iterable.is_single else TracedLoop(iterable, names, carried, label)

    @staticmethod
    def static_condition(x: Any, word: str) -> Any:
        """Refuse (PT144) a symbolic condition of a `while`."""
        if is_symbolic(x) or isinstance(x, Tensor):
            raise error("PT144", f"`{word}` on a value that is only known when the kernel runs", here(),
                        help="use pypto.loop with a bound, and an if inside")
        return x

    @staticmethod
    def and_(first: Any, *rest: Callable[[], Any]) -> Any:
        """`and`, evaluated from the left, symbolic once a symbolic value is met."""
        out = _condition(first, fixes.elementwise)
        for thunk in rest:
            if not is_symbolic(out) and not out:
                return out
            following = _condition(thunk(), fixes.elementwise)
            out = following if not is_symbolic(out) else scalar.both(out, following)
        return out

    @staticmethod
    def or_(first: Any, *rest: Callable[[], Any]) -> Any:
        """`or`."""
        out = _condition(first, fixes.elementwise)
        for thunk in rest:
            if not is_symbolic(out) and out:
                return out
            following = _condition(thunk(), fixes.elementwise)
            out = following if not is_symbolic(out) else scalar.either(out, following)
        return out

    @staticmethod
    def not_(x: Any) -> Any:
        """`not`."""
        x = _condition(x)
        return scalar.negate(x) if is_symbolic(x) else not x

    @staticmethod
    def choose(condition: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
        """The ternary."""
        branch = Branch(_condition(condition, fixes.where), (UNBOUND,))
        if not branch.symbolic:
            return a() if branch.condition else b()
        for side, arm in ((True, a), (False, b)):
            branch.take(side)
            branch.leave((arm(),))
        return branch.results((UNBOUND,), ("",))[0]

    @staticmethod
    def chain(ops: tuple[str, ...], left: Any, *rest: Callable[[], Any]) -> Any:
        """A chained comparison."""
        out: Any = True
        for op, thunk in zip(ops, rest, strict=True):
            right = thunk()
            this = _condition(_COMPARISONS[op](left, right))
            out = scalar.both(out, this) if is_symbolic(out) or is_symbolic(this) else (out and this)
            if not is_symbolic(out) and not out:
                return out
            left = right
        return out

    @staticmethod
    def rebind(name: str, value: Any, symbol: str) -> Any:
        """`name = value`, or with another ``symbol``, where ``name`` is a tensor parameter; `capture` decides whether it is lost."""
        need("a kernel").note_rebind(name, value, symbol, here())
        return value

    def call(self, f: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A call: helpers are rewritten when first called; some builtins see symbols."""
        if isinstance(f, FunctionType):
            return converted(f)(*args, **kwargs)
        if isinstance(f, MethodType) and isinstance(f.__func__, FunctionType):
            return converted(f.__func__)(f.__self__, *args, **kwargs)
        if isinstance(f, (BuiltinFunctionType, type)):
            special = BUILTINS.get(f)
            return (special or f)(*args, **kwargs)
        if isinstance(f, functools.partial):
            return self.call(f.func, *f.args, *args, **{**f.keywords, **kwargs})
        method = vars(type(f)).get("__call__")
        if isinstance(method, FunctionType):
            return converted(method)(f, *args, **kwargs)
        return f(*args, **kwargs)


def _condition(x: Any, fix: Callable[[Span | None], str | None] = lambda _: None) -> Any:
    """A scalar tensor as a truth value; a tensor of elements is refused (PT101), with ``fix`` for the place."""
    if not isinstance(x, Tensor):
        return x
    return truth_of(x, fix)


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq, "NotEq": operator.ne,
    "Is": operator.is_, "IsNot": operator.is_not, "In": lambda a, b: a in b, "NotIn": lambda a, b: a not in b}


def _is_scalar(x: object) -> bool:
    return x.dim == 0 if isinstance(x, Tensor) else is_number(x) and not isinstance(x, (bool, SymbolicBool))


def _chosen(smallest: bool, a: Any, b: Any) -> Any:
    """The first of two run-time numbers unless the second is smaller (larger), as Python has it, NaN too."""
    return recorded("where", recorded("lt", b, a) if smallest else recorded("gt", b, a), b, a)


def _extreme(symbolic: Callable[[Any, Any], Any], python: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        items = list(args[0]) if len(args) == 1 and not isinstance(args[0], Tensor) else list(args)
        if any(isinstance(x, Tensor) for x in items) and not kwargs and all(_is_scalar(x) for x in items):
            return functools.reduce(lambda a, b: _chosen(python is min, a, b), items)
        if any(isinstance(x, Tensor) for x in items):
            word = f"{python.__name__}imum"
            span = here()
            raise error("PT145", f"Python's {python.__name__} compares tensors as wholes", span,
                        help=f"use pypto.{word}(a, b), element by element", fix=fixes.extreme(span, python.__name__))
        if kwargs or not any(is_symbolic(x) for x in items):
            return python(*args, **kwargs) if len(args) != 1 or kwargs else python(items)
        return functools.reduce(symbolic, items)

    return run


def _int(*args: Any, **kwargs: Any) -> Any:
    return args[0] if args and isinstance(args[0], SymbolicScalar) else int(*args, **kwargs)


def _bool(x: Any = False) -> Any:
    return scalar.truth(x) if is_symbolic(x) else bool(x)


def _fold(combine: Callable[[Any, Any], Any], start: bool) -> Callable[[Iterable[Any]], Any]:
    def run(items: Iterable[Any]) -> Any:
        out: Any = start
        for x in map(_condition, items):
            if is_symbolic(out) or is_symbolic(x):
                out = combine(out, x)
            elif bool(x) is not start:
                return not start
        return out

    return run



BUILTINS: dict[Any, Callable[..., Any]] = {
    builtins.min: _extreme(scalar.minimum, min), builtins.max: _extreme(scalar.maximum, max), builtins.int: _int, builtins.bool: _bool,
    builtins.any: _fold(scalar.either, False), builtins.all: _fold(scalar.both, True)}
HOOKS = Hooks()
# Code that evaluates an expression of the user's as it stands: what Python raises right there is the user's failure, not ours.
FOR_THE_USER: frozenset[CodeType] = frozenset(f.__code__ for f in (
    Hooks.call, Hooks.and_, Hooks.or_, Hooks.not_, Hooks.chain, Hooks.choose, _condition, Branch.__init__, StaticLoop.__init__,
    StaticLoop.__iter__, scalar.truth, _int, _bool, *(BUILTINS[b] for b in (min, any))) if isinstance(f, FunctionType))
__all__ = ["FOR_THE_USER", "HOOKS", "Branch", "Hooks", "converted"]
