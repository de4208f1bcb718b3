"""Symbolic integers and truth values: what `x.shape[0]`, loop indices and integer elements are while a kernel is read."""
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

import numpy as np

from pypto_dsl.compiler import index as indexes
from pypto_dsl.compiler.errors import error, value_text
from pypto_dsl.compiler.graph import Value
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.frontend.foreign import unknown
from pypto_dsl.frontend.spans import here

IntLike: TypeAlias = Union[int, "SymbolicScalar"]
BoolLike: TypeAlias = Union[bool, "SymbolicBool"]

# Arithmetic with floats makes a scalar tensor; `operations` enters the recorders here.
FLOAT_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {}
# What decides a condition that Python asks for in code that is not rewritten, or gives None; `blocks` enters one here.
DECIDERS: list[Callable[[SymbolicBool], bool | None]] = []


def is_integer(x: object) -> bool:
    """Whether ``x`` can take part in symbolic integer arithmetic."""
    return isinstance(x, (int, SymbolicScalar, np.integer)) and not isinstance(x, bool)


def index_of(x: Any) -> Index:
    """The Index of an int or symbolic integer. Raises PT102 for anything else."""
    if isinstance(x, SymbolicScalar):
        return x.index
    if isinstance(x, Index):
        return x
    if isinstance(x, (int, np.integer)):
        if not -(1 << 62) < x < 1 << 62:
            raise error("PT102", f"{value_text(x)} is beyond what extents, offsets and loop bounds hold", here(), help="stay below 2**62")
        return as_index(int(x))
    raise error("PT102", f"an integer is needed here, and got {value_text(x)}", here(),
                help="offsets, extents and loop bounds are ints, dimensions, loop indices and integer elements")


def scalar(x: Index) -> IntLike:
    """An int where the value is known, so that ordinary Python goes on working; else a SymbolicScalar."""
    return SymbolicScalar(x) if x.constant is None else x.constant


def _binary(name: str, combine: Callable[[Index, Index], Index]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: SymbolicScalar, other: Any) -> Any:
        if isinstance(other, float):
            return FLOAT_ARITHMETIC[name](self, other)
        return scalar(combine(self.index, index_of(other))) if is_integer(other) else NotImplemented

    def reflected(self: SymbolicScalar, other: Any) -> Any:
        if isinstance(other, float):
            return FLOAT_ARITHMETIC[name](other, self)
        return scalar(combine(index_of(other), self.index)) if is_integer(other) else NotImplemented

    return forward, reflected


def _divide(combine: Callable[[Index, Index], Index]) -> Callable[[Index, Index], Index]:
    def checked(a: Index, b: Index) -> Index:
        if b.constant == 0:
            raise error("PT112", f"`{a}` is divided by zero", here(), help="divide by a number that is not 0")
        return combine(a, b)

    return checked


def _compare(op: str) -> Callable[..., Any]:
    def compare(self: SymbolicScalar, other: Any) -> Any:
        if isinstance(other, float):
            return FLOAT_ARITHMETIC[op](self, other)
        if not is_integer(other) and not isinstance(other, bool):
            return op == "!=" if op in ("==", "!=") and (other is None or isinstance(other, (str, tuple, list))) else NotImplemented
        return comparison(op, self.index, index_of(other))

    return compare


class SymbolicScalar:
    """An integer known when the kernel runs: a dimension, a loop index, an integer element, or an expression over them."""

    __slots__ = ("index",)

    def __init__(self, value: Any, name: str = "") -> None:
        self.index = index_of(value)

    __add__, __radd__ = _binary("+", lambda a, b: a + b)
    __sub__, __rsub__ = _binary("-", lambda a, b: a - b)
    __mul__, __rmul__ = _binary("*", lambda a, b: a * b)
    __floordiv__, __rfloordiv__ = _binary("//", _divide(indexes.floordiv))
    __mod__, __rmod__ = _binary("%", _divide(indexes.modulo))
    __lt__, __le__, __gt__, __ge__ = (_compare(op) for op in ("<", "<=", ">", ">="))
    __eq__, __ne__ = _compare("=="), _compare("!=")

    def __iter__(self) -> Any:
        raise error("PT124", f"`{self!r}` is one integer, and is unpacked or iterated", here(),
                    help="one name per loop: for i in pypto.loop(n); pypto.loop_unroll(n) gives (index, factor) pairs")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "index":
            raise AttributeError(name)
        raise unknown("n.", "a symbolic integer", name, (n for n in dir(SymbolicScalar) if not n.startswith("_")))

    def __truediv__(self, other: Any) -> Any:
        return FLOAT_ARITHMETIC["/"](self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return FLOAT_ARITHMETIC["/"](other, self)

    def __neg__(self) -> IntLike:
        return scalar(-self.index)

    def __pos__(self) -> SymbolicScalar:
        return self

    def __abs__(self) -> IntLike:
        return maximum(self, -self)

    def __pow__(self, power: Any) -> IntLike:
        if not isinstance(power, int) or power < 0:
            raise error("PT113", f"a symbolic integer cannot be raised to {power!r}", here(),
                        help="the exponent must be an int that is not negative")
        return scalar(functools.reduce(lambda a, _: a * self.index, range(power), as_index(1)))

    def __hash__(self) -> int:
        return hash(self.index)

    def __bool__(self) -> bool:
        condition = truth(self)
        return _decided(condition, self) if isinstance(condition, SymbolicBool) else condition

    def __index__(self) -> int:
        if self.index.constant is not None:
            return self.index.constant
        raise error("PT102", f"a Python int is needed here, and `{self}` is only known when the kernel runs", here(),
                    help="loop with pypto.loop(...), or annotate the dimension pypto.STATIC")

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __repr__(self) -> str:
        return str(self.index)

    def min(self, other: IntLike) -> IntLike:
        """The smaller of the two."""
        return minimum(self, other)

    def max(self, other: IntLike) -> IntLike:
        """The larger of the two."""
        return maximum(self, other)

    def as_variable(self) -> SymbolicScalar:
        """The scalar itself: expressions are kept in normal form and computed once by the compiler."""
        return self

    simplify = as_variable

    def concrete(self) -> int:
        """The value as an int; PT102 when it is only known at run time."""
        return self.__index__()

    def is_concrete(self) -> bool:
        """Whether the value is known."""
        return self.index.constant is not None

    is_immediate = is_concrete

    def is_symbol(self) -> bool:
        """Whether this is one dimension, index or element, and no expression."""
        return self.index.name is not None

    def is_expression(self) -> bool:
        """Whether this is an expression over symbols."""
        return not self.is_concrete() and not self.is_symbol()


@dataclass(frozen=True, eq=False)
class SymbolicBool:
    """A truth value known when the kernel runs. ``op`` compares Indexes, or is `value` (a BOOL scalar of the graph), `not`, `and`, `or`."""

    op: str
    left: Index | SymbolicBool | Value
    right: Index | SymbolicBool | None = None

    def __bool__(self) -> bool:
        return _decided(self, self)

    def __and__(self, other: Any) -> BoolLike:
        return both(self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> BoolLike:
        return either(self, other)

    __ror__ = __or__

    def __invert__(self) -> BoolLike:
        return negate(self)

    def same(self, other: object) -> bool:
        """Whether both are the same expression."""
        if not isinstance(other, SymbolicBool) or self.op != other.op:
            return False
        return all(a.same(b) if isinstance(a, SymbolicBool) else a is b if isinstance(a, Value) else a == b
                   for a, b in ((self.left, other.left), (self.right, other.right)))

    def __repr__(self) -> str:
        if self.op == "not":
            return f"not {self.left!r}"
        if self.op == "value":
            return getattr(self.left, "name", "") or "a BOOL element"
        return f"{self.left!r} {self.op} {self.right!r}"


def _decided(condition: SymbolicBool, written: object) -> bool:
    """The arm that is recorded now, in code whose conditions are recorded path by path. Raises PT101 elsewhere."""
    for decide in DECIDERS:
        decided = decide(condition)
        if decided is not None:
            return decided
    raise _no_truth(written)


def _no_truth(x: object) -> Exception:
    return error("PT101", f"`{x}` is only known when the kernel runs, so Python cannot branch on it here", here(),
                 help="use `if`, `and`, `or`, `not` or a ternary in a function whose source is in a file or a notebook cell")


def is_symbolic(x: object) -> bool:
    """Whether ``x`` is known only when the kernel runs."""
    return isinstance(x, (SymbolicScalar, SymbolicBool))


_DECIDE: dict[str, Callable[[int], bool]] = {
    "<": lambda d: d < 0, "<=": lambda d: d <= 0, "==": lambda d: d == 0,
    "!=": lambda d: d != 0, ">": lambda d: d > 0, ">=": lambda d: d >= 0}


def comparison(op: str, left: Index, right: Index) -> BoolLike:
    """``left op right``: a bool where the difference is known."""
    difference = (left - right).constant
    return SymbolicBool(op, left, right) if difference is None else _DECIDE[op](difference)


def truth(x: Any) -> BoolLike:
    """What Python's `bool(x)` would say, symbolic where need be."""
    if isinstance(x, SymbolicBool):
        return x
    return comparison("!=", x.index, as_index(0)) if isinstance(x, SymbolicScalar) else bool(x)


def both(a: Any, b: Any) -> BoolLike:
    """``a and b`` as a truth value."""
    a, b = truth(a), truth(b)
    if not isinstance(a, SymbolicBool):
        return b if a else False
    return (a if b else False) if not isinstance(b, SymbolicBool) else SymbolicBool("and", a, b)


def either(a: Any, b: Any) -> BoolLike:
    """``a or b`` as a truth value."""
    a, b = truth(a), truth(b)
    if not isinstance(a, SymbolicBool):
        return True if a else b
    return (True if b else a) if not isinstance(b, SymbolicBool) else SymbolicBool("or", a, b)


def negate(a: Any) -> BoolLike:
    """``not a``."""
    a = truth(a)
    return SymbolicBool("not", a) if isinstance(a, SymbolicBool) else not a


def minimum(a: IntLike, b: IntLike) -> IntLike:
    """The smaller of two integers."""
    return scalar(indexes.minimum(index_of(a), index_of(b)))


def maximum(a: IntLike, b: IntLike) -> IntLike:
    """The larger of two integers."""
    return scalar(indexes.maximum(index_of(a), index_of(b)))
