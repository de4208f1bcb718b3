"""Names and functions of other array libraries on a kernel's tensors: refusals that say how the language spells what was meant."""
from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pypto_dsl.compiler.errors import Diagnostic, KernelError, Label, error
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.refused import REFUSED
from pypto_dsl.frontend.fixes import segment
from pypto_dsl.frontend.spans import here
from pypto_dsl.frontend.spellings import TEXT_ONLY

# What the methods and attributes of NumPy's and torch's tensors are here; {x} is the tensor.
_CAST = "pypto.cast({x}, pypto.DT_BF16), with the dtype that is meant, gives another dtype"
_ARRAYS = "a kernel's tensors have no contents while it is read; look at the arrays after the call"
_WRITE = "write into the tensor: {x}[:] = value"
_EXPAND = "pypto.expand_clone({x}, shape) repeats axes of extent 1"
_SLICES = "take slices: {x}[0:2, :]"
SPELLINGS = {
    **dict.fromkeys(("to", "astype", "type_as"), _CAST),
    **{
        name: f"pypto.cast({{x}}, pypto.{dtype})"
        for name, dtype in (
            ("float", "DT_FP32"),
            ("half", "DT_FP16"),
            ("bfloat16", "DT_BF16"),
            ("double", "DT_DOUBLE"),
            ("int", "DT_INT32"),
            ("long", "DT_INT64"),
        )
    },
    **dict.fromkeys(("T", "mT", "t", "swapaxes", "swapdims"), "{x}.transpose() exchanges the last two axes, {x}.permute(order) any"),
    **dict.fromkeys(("numpy", "tolist", "cpu", "cuda", "detach", "data", "device", "grad", "requires_grad", "tobytes"), _ARRAYS),
    **dict.fromkeys(("fill", "fill_", "copy_", "zero_", "set_"), _WRITE),
    **dict.fromkeys(("expand", "expand_as", "broadcast_to", "repeat", "tile"), _EXPAND),
    **dict.fromkeys(("split", "chunk", "narrow", "select", "take"), _SLICES),
    **dict.fromkeys(("flatten", "ravel"), "pypto.reshape({x}, [-1])"),
    **dict.fromkeys(("copy", "contiguous"), "pypto.clone({x})"),
    **dict.fromkeys(("dot", "mm", "bmm"), "pypto.matmul({x}, other)"),
    **dict.fromkeys(("masked_fill", "masked_fill_"), "pypto.where(mask, value, {x})"),
    **{name: f"write {spelling}" for name, spelling in TEXT_ONLY.items()},
    "item": "{x}[0, 0], with one subscript per axis, reads an element",
    "bool": "{x} != 0",
    "numel": "multiply the extents of {x}.shape",
    "max": "pypto.amax({x}, dim, keepdim)",
    "min": "pypto.amin({x}, dim, keepdim)",
}
# NumPy's functions whose name is another one here.
TWINS = {"absolute": "abs", "amax": "amax", "amin": "amin", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
         "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "around": "round", "concatenate": "concat", "divide": "div",
         "equal": "eq", "fabs": "abs", "fix": "trunc", "float_power": "pow", "floor_divide": "floor_div", "greater": "gt",
         "greater_equal": "ge", "hstack": "concat", "invert": "bitwise_not", "left_shift": "bitwise_left_shift", "less": "lt",
         "less_equal": "le", "max": "amax", "min": "amin", "multiply": "mul", "negative": "neg", "not_equal": "ne", "power": "pow",
         "right_shift": "bitwise_right_shift", "subtract": "sub", "swapaxes": "transpose", "true_divide": "div", "vstack": "concat",
         "broadcast_to": "expand_clone", "expand_dims": "unsqueeze", "copy": "clone", "dot": "matmul", "take": "index_select",
         "rint": "rint", "mod": "remainder", "std": "std", "conjugate": "positive"}
# NumPy's name of an operator -> the tensor's method for it when a NumPy number or array stands on its left.
_REFLECTED = {"add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__", "true_divide": "__rtruediv__",
              "floor_divide": "__rfloordiv__", "remainder": "__rmod__", "power": "__rpow__", "bitwise_and": "__rand__",
              "bitwise_or": "__ror__", "bitwise_xor": "__rxor__", "left_shift": "__rlshift__", "right_shift": "__rrshift__",
              "less": "__gt__", "less_equal": "__ge__", "greater": "__lt__", "greater_equal": "__le__", "equal": "__eq__",
              "not_equal": "__ne__"}


class UnknownName(KernelError, AttributeError):
    """A name that the language does not have; an AttributeError, so that `hasattr` works."""

    @property
    def is_refused(self) -> bool:
        """Whether PyPTO has the name, and this language does not, for a reason."""
        return self.diagnostic.code == "PT127"


def unknown(what: str, owner: str, name: str, every: Iterable[str]) -> UnknownName:
    """The error of ``owner`` (a phrase) for ``name``: PT127 for what PyPTO has and this language does not, else PT109.

    ``what`` is how the name is reached in messages ("pypto.", "x."), ``every`` are the names that exist.
    """
    span = here()
    at = Label(span) if span is not None else None
    if name in REFUSED:
        reason, instead = REFUSED[name]
        return UnknownName(Diagnostic("PT127", f"{owner} has no `{name}` here: {reason}", at, help=instead))
    message, known = f"{owner} has no `{name}`", list(every)
    close = difflib.get_close_matches(name, known, 1)
    text = segment(span)
    owned = text.removesuffix(f".{name}") if text.endswith(f".{name}") else ""
    tensor = "x" if what == "pypto." or not owned else owned
    if name in SPELLINGS:
        return UnknownName(Diagnostic("PT109", message, at, help=SPELLINGS[name].format(x=tensor)))
    if name in TWINS and TWINS[name] in known:
        close = [TWINS[name]]
    if name.endswith("_") and name[:-1] in known and what != "pypto.":
        return UnknownName(Diagnostic("PT109", message, at, help=f"{tensor}[:] = {tensor}.{name[:-1]}(...) writes into the tensor"))
    if not close:
        return UnknownName(Diagnostic("PT109", message, at, help="`dir(pypto)` lists every name, `ptc ops` the operations"))
    return UnknownName(
        Diagnostic("PT109", message, at, help=f"did you mean `{what}{close[0]}`?", fix=f"{owned}.{close[0]}" if owned else None)
    )


# ---- NumPy ---------------------------------------------------------------------------------------------------------------------


def _refused(name: str, exact: bool) -> KernelError:
    """PT128 of a NumPy function; ``exact`` says that the twin takes the same arguments."""
    twin = TWINS.get(name, name)
    if twin not in REGISTRY:
        return error("PT128", f"NumPy's `{name}` is called on a tensor of a kernel", here(),
                     help="use operations of pypto; `ptc ops` lists them")
    span, fix = here(), None
    text = segment(span)
    if exact and text:
        try:
            node = ast.parse(f"({text})", mode="eval").body
        except SyntaxError:
            node = None
        if isinstance(node, ast.Call) and not node.keywords and "\n" not in text:
            fix = f"pypto.{twin}{text[(node.func.end_col_offset or 1) - 1:]}" if text.isascii() else None
    return error("PT128", f"NumPy's `{name}` is called on a tensor of a kernel", span, help=f"use pypto.{twin}", fix=fix)


def array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Operators with a NumPy number or array on the left are the tensor's own; NumPy's functions are refused (PT128)."""
    left = inputs[0]
    if method == "__call__" and len(inputs) == 2 and isinstance(left, (np.generic, np.ndarray)) and ufunc.__name__ in _REFLECTED:
        number = left[()] if isinstance(left, np.ndarray) and left.ndim == 0 else left  # NumPy compares a number as an array of no axes
        return getattr(self, _REFLECTED[ufunc.__name__])(number)
    raise _refused(ufunc.__name__, exact=method == "__call__" and not kwargs)


def array_function(self: Any, function: Any, types: Sequence[type], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """NumPy's functions that are no ufuncs are refused (PT128)."""
    raise _refused(function.__name__, exact=function.__name__ == "where" and len(args) == 3)


def array(self: Any, dtype: Any = None, copy: Any = None) -> Any:
    """`np.asarray(x)` is refused (PT128)."""
    raise error("PT128", "NumPy wants the contents of a kernel's tensor", here(), help=_ARRAYS)


# ---- Python --------------------------------------------------------------------------------------------------------------------


def _rounded(word: str, operation: str) -> Callable[..., Any]:
    def refuse(self: Any, *_: Any) -> Any:
        span = here()
        text = segment(span)
        fix = f"pypto.{operation}{text[text.index('('):]}" if text.startswith((f"{word}(", f"math.{word}(")) else None
        raise error("PT145", f"Python's {word} gives one int, and this is a tensor", span,
                    help=f"use pypto.{operation}(x), element by element", fix=fix)

    return refuse


def _divmod(self: Any, _: Any) -> Any:
    raise error("PT145", "Python's divmod takes two numbers, and this is a tensor", here(),
                help="use pypto.floor_div(a, b) and pypto.remainder(a, b), element by element")


def _format(self: Any, specification: str) -> str:
    if specification:
        raise error("PT145", f"a tensor has no value to write as {specification!r} while the kernel is read", here(),
                    help="leave out the format; look at the arrays after the call")
    return repr(self)


PROTOCOLS: dict[str, Callable[..., Any]] = {
    "__array_ufunc__": array_ufunc, "__array_function__": array_function, "__array__": array,
    "__round__": _rounded("round", "round"), "__floor__": _rounded("floor", "floor"), "__ceil__": _rounded("ceil", "ceil"),
    "__trunc__": _rounded("trunc", "trunc"), "__divmod__": _divmod, "__rdivmod__": _divmod, "__format__": _format}
