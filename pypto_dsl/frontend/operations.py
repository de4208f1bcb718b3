"""The operations as a user calls them: one function per entry of the op table, and those whose spelling is the language's own."""
from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import F16, F32, I32, U8, DType
from pypto_dsl.compiler.errors import Label, error, value_text
from pypto_dsl.compiler.graph import Value
from pypto_dsl.compiler.index import ceildiv as ceildiv_index
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.arguments import nearest_argument, signature_text
from pypto_dsl.compiler.ops.core import reshape as reshape_op
from pypto_dsl.compiler.ops.definition import OpDefinition, Parameter
from pypto_dsl.compiler.ops.recording import apply
from pypto_dsl.compiler.ops.recording import operand as operand_of
from pypto_dsl.compiler.ops.recording import record as record_use
from pypto_dsl.compiler.ops.shapes import shape_text
from pypto_dsl.compiler.promotion import PromotionError
from pypto_dsl.frontend import eager, fixes, scalar
from pypto_dsl.frontend.arguments import is_array
from pypto_dsl.frontend.foreign import PROTOCOLS
from pypto_dsl.frontend.options import check_tile
from pypto_dsl.frontend.scalar import FLOAT_ARITHMETIC, IntLike, SymbolicBool, SymbolicScalar, index_of, is_integer, is_symbolic
from pypto_dsl.frontend.spans import here
from pypto_dsl.frontend.spellings import TEXT_ONLY, bounds_of, respelled
from pypto_dsl.frontend.tensor import Tensor, assemble_into, expanded, filled, handle_of, truth_of, wrap
from pypto_dsl.frontend.trace import Cell, Trace, as_shape, current, need, whole
from pypto_dsl.frontend.vocabulary import Element, dtype_meant

_PYTHON_NUMBERS = frozenset({int, float, bool})
# Entries of the op table that have another spelling here.
INTERNAL = frozenset({"constant", *TEXT_ONLY})


# ---- arguments ---------------------------------------------------------------------------------------------------------------


def operand(trace: Trace, parameter: Parameter, x: Any) -> Any:
    """What the op table takes for an operand: handles become Values, symbolic scalars weak scalars of the graph.

    Raises PT126 for an array that the kernel did not get as an argument.
    """
    if isinstance(x, Tensor):
        return x.value
    if type(x) in _PYTHON_NUMBERS:
        return x
    if is_symbolic(x):
        return trace.number(x)
    if isinstance(x, Element):
        return trace.number(x.value, x.dtype)
    if isinstance(x, (list, tuple)) and parameter.variadic:
        return [operand(trace, parameter, v) for v in x]
    if isinstance(x, np.ndarray) or is_array(x):
        raise error("PT126", f"`{parameter.name}` is an array that the kernel did not get as an argument", here(),
                    help="make it a parameter of the kernel and pass it")
    return x


def attribute(name: str, x: Any) -> Any:
    """What the op table takes for the attribute ``name``: plain data, symbolic integers as Indexes. Raises PT111 for a tensor."""
    if isinstance(x, SymbolicScalar):
        return x.index
    if isinstance(x, Tensor) and x.dim:
        raise error("PT111", f"`{name}` is a number that is known now, and got a tensor of shape {shape_text(x.type.shape)}", here(),
                    help="pass a Python number, or write the formula with operations on tensors")
    if isinstance(x, Tensor):
        return float(x)  # specialises the kernel on a run-time float
    if isinstance(x, Element):
        return x.value
    if isinstance(x, (list, tuple)):
        return tuple(attribute(name, v) for v in x)
    return x


def record(definition: OpDefinition, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Record one use of an operation in the current kernel; outside kernels evaluate it on arrays."""
    trace = current()
    if kwargs:
        kwargs = respelled(definition.name, [p.name for p in definition.parameters], kwargs)
    if trace is None:
        return eager.evaluate(definition.name, public(definition), args, kwargs)
    made = wrap(record_values(trace, definition, args, kwargs))
    return _written(definition, args, kwargs, made) if definition.effects else made


def record_values(trace: Trace, definition: OpDefinition, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """As `record`, giving Values."""
    try:
        made = trace.emit(_recorded, trace, definition, args, kwargs)
    except PromotionError as refused:
        raise _with_fix(refused, definition, args) from None
    if trace.tiles.vector is not None:
        check_tile(trace.tiles, definition, made if isinstance(made, Value) else made[0])
    return made


def _recorded(trace: Trace, definition: OpDefinition, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """One use with what the user gave. Numbers are recorded as part of the operation, so that they carry its span."""
    builder = trace.builder
    if definition.takes_operands_alone and not kwargs and len(args) == len(definition.parameters):  # most uses: shorter, and the same
        operands = [trace.read(x.cell) if type(x) is Tensor and x.owner is trace else
                    operand_of(definition, p, operand(trace, p, x), builder) for p, x in zip(definition.parameters, args, strict=True)]
        return apply(definition, operands, {}, builder)
    given = [_converted(trace, p, x) for p, x in zip(definition.parameters_of(len(args)), args, strict=False)]
    named = {k: _converted(trace, definition.parameter_named(k), x) for k, x in kwargs.items()} if kwargs else kwargs
    return record_use(definition, given, named, builder)


def _converted(trace: Trace, parameter: Parameter | None, x: Any) -> Any:
    return x if parameter is None else operand(trace, parameter, x) if parameter.kind == "tensor" else attribute(parameter.name, x)


def _with_fix(refused: PromotionError, definition: OpDefinition, args: Sequence[Any]) -> PromotionError:
    """The refusal with its first remedy applied to the user's text, where the operand that it casts is named there once.

    To cast a destination is no remedy: what is written would be lost.
    """
    found = refused.diagnostic
    name = fixes.cast_name(refused.fixes[0]) if refused.fixes else ""
    number = name.removeprefix("operand_")
    if number != name and number.isdigit() and found.primary is not None:
        place = fixes.operand_at(found.primary.span, int(number), len(args))
        if place is not None:
            remedy = refused.fixes[0].replace(name, fixes.segment(place), 1)
            refused.diagnostic = replace(found, primary=Label(place), help=remedy, fix=remedy)
            refused.args = (refused.diagnostic.render(),)
            return refused
    if definition.effects and args and isinstance(args[0], Tensor) and name == args[0].name and refused.code != "PT205":
        help = f"{definition.name} writes into its first operand, whose dtype stays: make it of another dtype where it is made"
        refused.diagnostic = replace(found, help=help)
        refused.args = (refused.diagnostic.render(),)
        return refused
    if name and found.primary is not None:
        refused.diagnostic = replace(found, fix=fixes.replaced(found.primary.span, name, refused.fixes[0]))
    return refused


_PUBLIC: dict[str, Callable[..., Any]] = {}


def public(definition: OpDefinition) -> Callable[..., Any]:
    """The public function of an operation."""
    found = _PUBLIC.get(definition.name)
    if found is None:
        found = _PUBLIC[definition.name] = _generated(definition)
    return found


def _generated(definition: OpDefinition) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return record(definition, args, kwargs)

    function.__name__ = function.__qualname__ = definition.name
    function.__module__ = "pypto_dsl"
    function.__doc__ = f"{signature_text(definition)}\n\n{definition.doc}"
    kinds = inspect.Parameter
    spread = next((i for i, p in enumerate(definition.parameters) if p.variadic), len(definition.parameters))
    function.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
        kinds(p.name, kinds.VAR_POSITIONAL if p.variadic else kinds.KEYWORD_ONLY if i > spread else kinds.POSITIONAL_OR_KEYWORD,
              default=kinds.empty if p.variadic else p.default) for i, p in enumerate(definition.parameters)])
    return function


def called_outside_too(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` of tensors, which outside kernels evaluates on arrays. It raises PT110 for wrong arguments."""

    def called(*args: Any, **kwargs: Any) -> Any:
        kwargs = respelled(function.__name__, signature.parameters, kwargs)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as wrong:
            meant = next((nearest_argument(k, list(signature.parameters)) for k in kwargs if k not in signature.parameters), "")
            raise error("PT110", f"{function.__name__}: {wrong}", here(), help=f"{meant}{function.__name__}{shown}") from None
        if current() is None:
            return eager.evaluate(function.__name__, function, args, kwargs)
        return function(*args, **kwargs)

    signature = inspect.signature(function)
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    shown = str(inspect.Signature(plain))

    called.__name__ = called.__qualname__ = function.__name__
    called.__module__ = "pypto_dsl"
    called.__doc__ = function.__doc__
    called.__signature__ = signature  # type: ignore[attr-defined]
    called.__wrapped__ = function  # type: ignore[attr-defined]
    return called


def own(function: Callable[..., Any]) -> Callable[..., Any]:
    """`called_outside_too` for a function of the language itself, whose spelling is not the op table's."""
    called = _PUBLIC[function.__name__] = called_outside_too(function)
    return called


def tensor_operand(x: Any, name: str) -> Tensor:
    """``x`` if it is a tensor of this kernel. Raises PT126 for an array, PT200 for anything else."""
    if isinstance(x, Tensor):
        return x
    if is_array(x):
        raise error("PT126", f"{name} is called in a kernel on an array that the kernel did not get as an argument", here(),
                    help="make it a parameter of the kernel and pass it")
    raise error("PT200", f"{name} takes a tensor, and got {value_text(x)}", here(),
                help="pass a tensor of the kernel; pypto.full([64, 64], 1.0) makes one of a number")


def need_list(x: Any, name: str, parameter: str, call: str) -> Sequence[Any]:
    """``x`` if it is a list or tuple. Raises PT111 for anything else, with the ``call`` that is meant."""
    if isinstance(x, (list, tuple)):
        return x
    raise error("PT111", f"{name} takes a list of tensors as `{parameter}`, and got {value_text(x)}", here(), help=call)


def need_dtype(x: Any, name: str) -> DType:
    """``x`` if it is a dtype. Raises PT117 for anything else."""
    if isinstance(x, DType):
        return x
    raise error("PT117", f"{name} needs a dtype, and got {value_text(x)}", here(), help=dtype_meant(x))


def recorded(name: str, *args: Any, **kwargs: Any) -> Any:
    """One use of the op table's operation ``name``."""
    return record(REGISTRY[name], args, kwargs)


# ---- operations with a spelling of their own ---------------------------------------------------------------------------------


@own
def view(input: Any, shape: Any = None, offsets: Any = None, *, valid_shape: Any = None, dtype: DType | None = None) -> Any:
    """The window of ``shape`` (one extent per axis) at ``offsets`` (default 0): a snapshot of rank and dtype of ``input``.

    What reaches beyond ``input`` is not live; ``valid_shape`` makes the live part smaller. With ``dtype`` the bits are read as another
    dtype, bytes of the last axis lowest first, so that its extent changes with the width. Raises PT307 for bytes that are no whole
    elements, PT310, PT311 for windows that do not fit.
    """
    x = tensor_operand(input, "view")
    if dtype is not None:
        x = _bits_as(x, need_dtype(dtype, "view"))
        if shape is None:
            return x
    extents = as_shape(x.shape if shape is None else shape)
    starts = whole(len(extents)) if offsets is None else as_shape(offsets)
    valid = None if valid_shape is None else as_shape(valid_shape)
    return recorded("view", x, extents, starts, valid)


def _bits_as(x: Tensor, dtype: DType) -> Tensor:
    """The bits of ``x`` as elements of ``dtype``; bytes that are not live make elements that are not live."""
    before, after = x.dtype.itemsize, dtype.itemsize
    if before == after or not x.dim:
        made: Tensor = recorded("bitcast", x, dtype)
        return made
    live = list(x.valid_shape)
    whole_ = x if x.type.valid is None else recorded("fillpad", x)
    packed = whole_ if before == 1 else recorded("pack", whole_)
    packed = packed if packed.dtype == U8 else recorded("bitcast", packed, U8)
    made = recorded("unpack", packed, dtype) if after > 1 else recorded("bitcast", packed, dtype)
    if x.type.valid is None:
        return made
    live[-1] = live[-1] * before // after
    tail: Tensor = view(made, made.shape, valid_shape=live)
    return tail


@own
def reshape(input: Any, shape: Any, *, valid_shape: Any = None, inplace: bool = False) -> Any:
    """The same elements in row-major order under ``shape``; one extent may be -1.

    The live elements of a tail fill ``valid_shape``, which must multiply out. Without it every element keeps its place: whole live rows
    stay a tail of the leading axis, and of a tail whose inner axes are not full all of ``shape`` is live, with zeros between.
    With ``inplace`` the result is another name of ``input``: writing into it writes ``input``. Raises PT308 when the element counts differ.
    """
    x = tensor_operand(input, "reshape")
    trace = x.owner
    source = x.value
    extents = as_shape(shape)
    valid = None if valid_shape is None else as_shape(valid_shape)
    made = trace.emit(lambda: trace.reshaped(source, extents) if valid is None else reshape_op(source, extents, valid))
    if inplace and valid_shape is None:
        cell = Cell(x.name, lens=(x.cell, made.type.shape))
        trace.frames[-1].lenses[cell] = (source, made)
        return handle_of(trace, cell)
    return wrap(made)


@own
def assemble(src: Any, offsets: Any = None, out: Any = None, *, parallel: bool = False) -> None:
    """Write the live part of ``src`` into ``out`` at ``offsets``; or each (tensor, offsets) of a list into ``offsets``.

    Raises PT205 for dtypes that do not join to the destination's, PT312 and PT314 for ranks and extents that do not fit.
    """
    if isinstance(src, (list, tuple)):
        target = tensor_operand(offsets if out is None else out, "assemble")
        for piece, at in src:
            assemble(piece, at, target, parallel=parallel)
        return
    target = tensor_operand(out, "assemble")
    assemble_into(target.owner, target, tensor_operand(src, "assemble").value, as_shape(offsets))


@own
def full(size: Any, fill_value: Any, dtype: DType = F32, *, valid_shape: Any = None) -> Any:
    """A tensor of shape ``size`` whose every element is ``fill_value``, a number known now or when the kernel runs."""
    trace = need("pypto.full")
    need_dtype(dtype, "full")
    extents = as_shape(size if isinstance(size, (list, tuple)) else (size,))
    made = expanded(trace, fill_value, extents, dtype) if isinstance(fill_value, Tensor) else filled(trace, extents, fill_value, dtype)
    return made if valid_shape is None else view(made, made.shape, valid_shape=valid_shape)


def _sizes(size: Sequence[Any]) -> Any:
    return list(size[0]) if len(size) == 1 and isinstance(size[0], (list, tuple)) else list(size)


@own
def zeros(*size: Any, dtype: DType = F32) -> Any:
    """A tensor of zeros."""
    return full(_sizes(size), 0, dtype)


@own
def ones(*size: Any, dtype: DType = F32) -> Any:
    """A tensor of ones."""
    return full(_sizes(size), 1, dtype)


@own
def arange(*bounds: Any, start: Any = None, end: Any = None, step: Any = None) -> Any:
    """``arange(end)``, ``arange(start, end)``, ``arange(start, end, step)``, by name too: FP32 if any is a float, else INT32.

    Raises PT110 for bounds that are no numbers known now, or none.
    """
    named = {k: v for k, v in (("start", start), ("end", end), ("step", step)) if v is not None}
    args = bounds_of(bounds, named, "arange", "end")
    if not 1 <= len(args) <= 3 or not all(isinstance(a, (int, float)) for a in args):
        raise error("PT110", f"arange takes one to three numbers known now, and got {', '.join(map(repr, args))}", here())
    return recorded("arange", *args, F32 if any(isinstance(a, float) for a in args) else I32)


@own
def concat(tensors: Any, dim: int = 0) -> Any:
    """The tensors of a list one after the other along ``dim``; their other extents are equal. Dtypes promote."""
    given = need_list(tensors, "concat", "tensors", "pypto.concat([a, b])")
    return recorded("concat", *(tensor_operand(t, "concat") for t in given), dim=dim)


@own
def expand_clone(input: Any, shape: Any, *, valid_shape: Any = None) -> Any:
    """``input`` repeated along its axes of extent 1, and along new leading ones, up to ``shape``."""
    return recorded("expand_clone", input, as_shape(shape), None if valid_shape is None else as_shape(valid_shape))


# Roundings that narrow a float by, and an integer to FP16.
_DIRECTED = frozenset({"CAST_ROUND", "CAST_FLOOR", "CAST_CEIL", "CAST_TRUNC", "CAST_ODD"})


@own
def cast(input: Any, dtype: DType, mode: Any = "CAST_NONE", satmode: Any = "OFF") -> Any:
    """``input`` converted to ``dtype``. A cast to the dtype that it has is the tensor itself; the result's dtype is never weak.

    Float to float rounds once, to nearest even or as ``mode`` (a `CastMode` or its name) says; beyond the largest float is inf, in
    FP8E4M3 NaN (its largest value with ``satmode`` ON). Float to integer rounds as ``mode`` says (default: truncates), then saturates,
    and NaN gives 0; integer to integer wraps, and saturates with ``satmode`` ON. A mode that the pair does not have is refused.
    Raises PT117 for what is no dtype.
    """
    x = tensor_operand(input, "cast")
    need_dtype(dtype, "cast")
    if x.dtype == dtype and not x.type.weak:
        return x
    rounding, saturation = (m.name if isinstance(m, enum.Enum) else m for m in (mode, satmode))
    if x.dtype.is_integer and dtype.is_float and rounding in _DIRECTED:
        if x.dtype.mantissa <= dtype.mantissa:
            rounding = "CAST_NONE"  # exact
        elif dtype == F16:
            x = recorded("cast", x, F32)  # what f32 rounds is beyond every f16
    return recorded("cast", x, dtype, rounding, saturation)


@own
def where(condition: Any, input: Any, other: Any) -> Any:
    """``input`` where ``condition`` (BOOL) holds, else ``other``; tensors or numbers."""
    return recorded("where", condition, input, other)


# ---- in place ------------------------------------------------------------------------------------------------------------------


def _written(definition: OpDefinition, args: Sequence[Any], kwargs: dict[str, Any], made: Any) -> Any:
    """Write the result of an operation that declares an effect into that operand's tensor, and give that tensor."""
    position = [p.name for p in definition.parameters].index(definition.effects)
    given = args[position] if position < len(args) else kwargs.get(definition.effects)
    target = tensor_operand(given, definition.name)
    target.owner.write(target.cell, made.value)
    return target


@own
def index_put_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Write ``values`` into the elements of ``input`` that ``indices`` (one INT tensor per leading axis) name; or add them."""
    given = need_list(indices, "index_put_", "indices", "one tensor of integers per leading axis: pypto.index_put_(x, [rows], values)")
    return record(REGISTRY["index_put_"], (input, values, *given), {"accumulate": accumulate})


# ---- scalars -----------------------------------------------------------------------------------------------------------------


def _extreme(name: str, args: Sequence[Any]) -> Any:
    items = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
    if any(isinstance(x, Tensor) for x in items):
        return operator_call("minimum" if name == "min" else "maximum")(*items)
    for x in items or [None]:
        if not isinstance(x, (bool, int, float, np.integer, np.floating, Element)) and not is_symbolic(x):
            array = is_array(x)
            got = f"an array; pypto.{name} compares numbers" if array else value_text(x) if items else "none"
            raise error("PT102", f"pypto.{name} takes integers, and got {got}", here(),
                        help=f"pypto.{name}imum compares arrays element by element" if array else f"pypto.{name}(x.shape[0], 64)")
    result = items[0]
    for x in items[1:]:
        if is_integer(result) and is_integer(x):
            result = scalar.minimum(result, x) if name == "min" else scalar.maximum(result, x)
        else:
            result = (result if result <= x else x) if name == "min" else (result if result >= x else x)
    return result


def min(*args: Any) -> Any:
    """The smallest of integers, symbolic or not; of two tensors their `minimum`."""
    return _extreme("min", args)


def max(*args: Any) -> Any:
    """The largest of integers, symbolic or not; of two tensors their `maximum`."""
    return _extreme("max", args)


def ceildiv(a: IntLike, b: IntLike) -> IntLike:
    """The least n with n * b >= a, for b > 0."""
    return scalar.scalar(ceildiv_index(index_of(a), index_of(b)))


def symbolic_scalar(x: Any, name: str = "") -> Any:
    """An integer as a symbolic scalar."""
    return x if is_symbolic(x) else SymbolicScalar(x)


def bytes_of(dtype: DType) -> int:
    """Bytes of one element. Raises PT117 for what is no dtype."""
    return need_dtype(dtype, "bytes_of").itemsize


# ---- operators and methods ---------------------------------------------------------------------------------------------------


def operator_call(name: str) -> Callable[..., Any]:
    """The function behind an operator."""
    definition, what = REGISTRY[name], f"`{name}`"

    def call(a: Any, b: Any) -> Any:
        return wrap(record_values(need(what), definition, (a, b), {}))

    return call


OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_div", "mod": "remainder", "pow": "pow",
             "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
             "rshift": "bitwise_right_shift"}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
# Methods take the tensor first; these functions do not, or are no methods of PyPTO's tensors.
NO_METHODS = frozenset({"full", "zeros", "ones", "arange", "concat", "assemble", "atomic_add", "normal", "uniform"}) | INTERNAL
_SCALAR_OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


def _takes(x: Any) -> bool:
    return isinstance(x, (Tensor, bool, int, float, np.generic, Element, SymbolicScalar, SymbolicBool)) or is_array(x)


# Python's own values that are no operands; objects of other classes may have operators of their own for tensors.
_NO_OPERANDS = (list, tuple, dict, set, str, bytes, complex, type(None))


def _method(name: str, reflected: bool = False) -> Callable[..., Any]:
    call = operator_call(name)

    def method(self: Tensor, other: Any) -> Any:
        if type(other) is not Tensor and type(other) not in _PYTHON_NUMBERS:
            if isinstance(other, _NO_OPERANDS) and not isinstance(other, np.generic) and name not in ("eq", "ne"):
                raise error("PT200", f"`{name}` takes tensors and numbers, and got {value_text(other)}", here(),
                            help="pass the values as an array: a parameter of the kernel; pypto.full(shape, value, dtype) makes a tensor")
            if not _takes(other):
                return NotImplemented
        return call(other, self) if reflected else call(self, other)

    return method


def _scalar_comparison(name: str) -> Callable[..., Any]:
    call = operator_call(name)
    return lambda a, b: truth_of(call(a, b))


def _install_operators() -> None:
    for python, name in OPERATORS.items():
        setattr(Tensor, f"__{python}__", _method(name))
        setattr(Tensor, f"__r{python}__", _method(name, reflected=True))
    for name in COMPARISONS:
        setattr(Tensor, f"__{name}__", _method(name))
    for python, name in (("neg", "neg"), ("abs", "abs"), ("invert", "bitwise_not")):
        if name in REGISTRY:
            setattr(Tensor, f"__{python}__", public(REGISTRY[name]))
    for symbol, name in _SCALAR_OPERATORS.items():
        FLOAT_ARITHMETIC[symbol] = _scalar_comparison(name) if name in COMPARISONS else operator_call(name)


def _install_methods() -> None:
    for name in (*REGISTRY, *_PUBLIC):
        if name not in NO_METHODS and not hasattr(Tensor, name):
            setattr(Tensor, name, function_named(name))
    own_methods = {"assemble": _assemble_method, "where": _where_method, "tril_": _in_place("tril"), "triu_": _in_place("triu"),
                   "concat": staticmethod(concat)}
    for name, method in own_methods.items():
        setattr(Tensor, name, method)
    for name, protocol in PROTOCOLS.items():
        setattr(Tensor, name, protocol)


def _assemble_method(self: Tensor, input: Any, offsets: Any) -> None:
    """Write the live part of ``input`` into this tensor at ``offsets``."""
    assemble(input, offsets, self)


def _where_method(self: Tensor, condition: Any, y: Any) -> Any:
    """This tensor where ``condition`` holds, else ``y``."""
    return where(condition, self, y)


def _in_place(name: str) -> Callable[..., Tensor]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        self.move(getattr(self, name)(*args, **kwargs))
        return self

    method.__name__, method.__doc__ = f"{name}_", f"`{name}` of this tensor, written into it."
    return method


def function_named(name: str) -> Callable[..., Any]:
    """The public function called ``name``; KeyError when there is none."""
    found = _PUBLIC.get(name)
    if found is not None:
        return found
    if name in INTERNAL:
        raise KeyError(name)
    return public(REGISTRY[name])


def operation_names() -> list[str]:
    """Every operation a user can call."""
    return sorted({*(n for n in REGISTRY if n not in INTERNAL), *_PUBLIC})


_install_operators()
_install_methods()
