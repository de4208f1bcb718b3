"""What a Python name can hold where regions meet: values that are the same, numbers, and names without a usable value."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pypto_dsl.compiler.dtypes import BOOL
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.graph import TensorType, Value
from pypto_dsl.frontend.scalar import SymbolicBool, SymbolicScalar
from pypto_dsl.frontend.spans import here
from pypto_dsl.frontend.tensor import Tensor, wrap
from pypto_dsl.frontend.trace import need


class Unusable:
    """Stands for a name without a usable value; every use says why (PT140)."""

    _code = "PT140"

    def __init__(self, why: str, help: str = "") -> None:
        self.__dict__["_why"] = (why, help)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__refuse__()

    def __refuse__(self, *_: Any, **__: Any) -> Any:
        why, help = self.__dict__["_why"]
        raise error(self._code, why, here(), help=help)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __refuse__
    __mod__ = __pow__ = __refuse__
    __getitem__ = __setitem__ = __iter__ = __len__ = __lt__ = __gt__ = __le__ = __ge__ = __bool__ = __neg__ = __index__ = __refuse__
    __call__ = __float__ = __refuse__
    __matmul__ = __rmatmul__ = __rpow__ = __rmod__ = __rfloordiv__ = __invert__ = __abs__ = __refuse__
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __refuse__

    def __repr__(self) -> str:
        return f"<unusable: {self.__dict__['_why'][0]}>"


UNBOUND = Unusable("a name is read before it is assigned on some path", "assign it before the `if` or the loop")


class Renewed(Unusable):
    """A name that every turn of a loop makes anew: what it held before has another type, so that no turn begins with it (PT122)."""

    _code = "PT122"


def is_unbound(x: object) -> bool:
    """Whether a name holds nothing here that another path could go on with."""
    return x is UNBOUND or isinstance(x, Renewed)


@dataclass(frozen=True)
class Undefined:
    """A tensor that only the other branch makes: poison if read, harmless if not."""

    like: TensorType


def is_number(x: object) -> bool:
    """Whether ``x`` can be carried by a loop or merged by an `if` as a scalar."""
    return isinstance(x, (bool, int, float, SymbolicScalar, SymbolicBool))


def same(a: Any, b: Any) -> bool:
    """Whether two values of a name are one, so that nothing has to be merged."""
    if a is b:
        return True
    if isinstance(a, Tensor) or isinstance(b, Tensor) or type(a) is not type(b):
        return isinstance(a, Tensor) and isinstance(b, Tensor) and a.cell is b.cell
    if isinstance(a, SymbolicScalar):
        return bool(a.index == b.index)
    if isinstance(a, SymbolicBool):
        return a.same(b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Unusable):
        return False
    try:
        return bool(a == b)
    except Exception:  # a user's __eq__ may raise anything; then the values are not known to be the same
        return False


def described(x: object) -> str:
    """A value as messages about names put it."""
    if isinstance(x, Tensor):
        return str(x.type)
    if is_unbound(x) or isinstance(x, Undefined):
        return "undefined"
    return "None" if x is None else "a number" if is_number(x) else f"of type {type(x).__name__}"


def revived(value: Value, name: str, sample: object) -> Any:
    """A result of a region as what the user's code holds: a tensor, a symbolic integer or a symbolic truth value."""
    trace = need("a region")
    if isinstance(sample, Tensor) or value.type.rank or value.type.dtype.is_float:
        return wrap(value, name)
    if value.type.dtype is BOOL:
        return SymbolicBool("value", value)
    return trace.symbol(value, name)
