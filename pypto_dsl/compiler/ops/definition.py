"""What an operation is: one typed function whose signature, docstring, rules and body are everything the compiler knows of it.

    @op(types=typing.arithmetic, shape=shapes.broadcast, reference=np.add)
    def add(input: Tensor | Number, other: Tensor | Number) -> Tensor:
        ...docstring...

Parameters annotated with `Tensor` are operands (`| Number`: Python numbers are taken too; `| None`: optional); all others are
attributes. The body is the expansion into simpler operations; a primitive has `...` as its body. Calling the operation inside
`building(builder)` records it; nothing else records operations, so every check runs at the user's own line.
"""
from __future__ import annotations

import contextlib
import contextvars
import difflib
import dis
import enum
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Union

import numpy as np

from pypto_dsl.compiler.dtypes import BOOL, F32, I32, I64, DType, of_numpy
from pypto_dsl.compiler.errors import error, value_text
from pypto_dsl.compiler.graph import Attribute, Builder, Graph, Op, TensorType, Value
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.ops.live import live_extents
from pypto_dsl.compiler.promotion.atype import AType
from pypto_dsl.compiler.promotion.families import OpTyping
from pypto_dsl.compiler.promotion.scalars import misfit
from pypto_dsl.compiler.span import Span

Tensor = Value
# A number has become a constant before the body of an operation sees it, so for the type checker an operand is a Value.
if typing.TYPE_CHECKING:
    Number = Value
else:
    Number = int | float | bool


class Call:
    """One use of an operation while it is being checked: operands in signature order (None where absent), attributes complete.

    ``present`` are the operands that are there.
    """

    __slots__ = ("attributes", "graph", "name", "operands", "present", "span")

    def __init__(self, name: str, operands: Sequence[Value | None], attributes: Mapping[str, Any], graph: Graph, span: Span | None) -> None:
        self.name = name
        self.operands = operands
        self.present = [o for o in operands if o is not None]
        self.attributes = attributes
        self.graph = graph
        self.span = span

    @property
    def types(self) -> tuple[TensorType, ...]:
        """Types of the operands that are present."""
        return tuple([o.type for o in self.present])

    def refuse(self, code: str, message: str, **more: Any) -> Exception:
        """The error of this use, with the operation's span unless one is given."""
        return error(code, message, more.pop("span", self.span), op=self.name, **more)


@dataclass(frozen=True)
class Typing:
    """What the dtype rule decided: the family's typing, and the type of each result (one for most operations)."""

    typing: OpTyping
    results: tuple[AType, ...]

    @property
    def casts(self) -> tuple[DType, ...]:
        """The dtype each present operand is cast to."""
        return self.typing.operand_casts


TypeRule = Callable[[Call], Typing]
ShapeRule = Callable[[Call], tuple[tuple[Index, ...], ...]]


class Reference(Protocol):
    """The meaning in NumPy: arrays of the compute dtype in (floats as float64), arrays out.

    Behind the operands it names, in any order, the attributes that it reads; or takes all of them as ``**keywords``. Beside the
    operation's own attributes there are ``dtype`` and ``type`` (of the result), ``source`` (dtype of the first operand) and ``symbols``.
    """

    def __call__(self, *operands: Any, **attributes: Any) -> Any: ...


def call_naming(function: Callable[..., Any], operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """``function`` of ``operands`` by position, with those of ``attributes`` that its signature names, or all where it has ``**``."""
    named = _names(function, len(operands))
    return function(*operands, **(attributes if named is None else {k: v for k, v in attributes.items() if k in named}))


@functools.cache
def _names(function: Callable[..., Any], operands: int) -> frozenset[str] | None:
    """The parameters that a function names behind its operands; None when it takes any. NumPy's own functions take none of ours."""
    if getattr(function, "__module__", None) == "numpy" or isinstance(function, np.ufunc):
        return frozenset()
    parameters = list(inspect.signature(function).parameters.values())
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return None
    positional = [p.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    return frozenset({p.name for p in parameters} - set(positional[:operands]))


@dataclass(frozen=True)
class Parameter:
    """One parameter of an operation's signature."""

    name: str
    kind: str  # "tensor" or "attribute"
    numbers: bool = False
    optional: bool = False
    variadic: bool = False
    default: Any = inspect.Parameter.empty
    annotation: Any = None


@dataclass(frozen=True)
class OpDefinition:
    """An entry of the op table. Calling it records one use of the operation in the builder of `building`."""

    name: str
    parameters: tuple[Parameter, ...]
    types: TypeRule
    shape: ShapeRule
    reference: Reference
    expansion: Callable[..., Any] | None
    family: str
    doc: str
    bounds: Mapping[str, float] = field(default_factory=dict)
    dtypes: tuple[DType, ...] | None = None
    scalar_base: bool = True
    results: tuple[str, ...] = ("result",)
    effects: str = ""
    derivation: str = ""
    scale: Reference | None = None
    expands: tuple[DType, ...] | None = None
    widens: bool = True
    variants: Mapping[tuple[str, Any], str] = field(default_factory=dict)

    def bound(self, dtype: DType) -> float | None:
        """The largest error in ulp on ``dtype``: integers are exact, 16-bit results are the f32 result rounded once.

        None when none is stated. f64 has the f32 bound and 2 ulp for the reference's own functions, which are float64 too.
        """
        if not dtype.is_float or self.family == "compare":
            return 0
        stated = self.bounds.get(dtype.name, self.bounds.get("f32"))
        if stated is None or dtype.name in self.bounds or stated == 0:
            return stated
        return stated + 2 if dtype.bits == 64 else 1

    def meaning(self, *operands: Any, **attributes: Any) -> Any:
        """What the reference makes of ``operands`` (None where absent), given those of ``attributes`` that its signature names."""
        return call_naming(self.reference, operands, attributes)

    @property
    def is_primitive(self) -> bool:
        return self.expansion is None

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    @functools.cached_property
    def operands(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.kind == "tensor")

    @functools.cached_property
    def attributes(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.kind == "attribute")

    @functools.cached_property
    def is_variadic(self) -> bool:
        """Whether it takes any number of tensors in one place."""
        return any(p.variadic for p in self.parameters)

    def parameters_of(self, count: int) -> Sequence[Parameter | None]:
        """The parameters that ``count`` arguments by position are for: all from a variadic one on are for that, those too many for none."""
        if self.is_variadic:
            first = next(i for i, p in enumerate(self.parameters) if p.variadic)
            return [self.parameters[min(i, first)] for i in range(count)]
        return self.parameters if count <= len(self.parameters) else [*self.parameters, *[None] * (count - len(self.parameters))]

    def parameter_named(self, name: str) -> Parameter | None:
        """The parameter of this name."""
        return next((p for p in self.parameters if p.name == name), None)

    @functools.cached_property
    def takes_operands_alone(self) -> bool:
        """Whether it has no attributes, and takes one tensor in each place."""
        return not self.attributes and not self.is_variadic

    @functools.cached_property
    def accepted(self) -> frozenset[DType] | None:
        """`dtypes` as a set."""
        return None if self.dtypes is None else frozenset(self.dtypes)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        builder = _BUILDER.get()
        if builder is None:
            raise error("PT125", f"pypto.{self.name} is called outside a kernel",
                        help="call it in a function decorated with @pypto.jit, or pass NumPy arrays to evaluate it")
        return record(self, args, kwargs, builder)


REGISTRY: dict[str, OpDefinition] = {}
_BUILDER: contextvars.ContextVar[Builder | None] = contextvars.ContextVar("builder", default=None)
_EXPANDING: contextvars.ContextVar[bool] = contextvars.ContextVar("expanding", default=False)


@contextlib.contextmanager
def building(builder: Builder) -> Iterator[Builder]:
    """Operations called inside are recorded by ``builder``."""
    token = _BUILDER.set(builder)
    try:
        yield builder
    finally:
        _BUILDER.reset(token)


def is_expanding() -> bool:
    """Whether an operation's expansion is being recorded: its parts may be over nothing where the whole is (softmax's maximum)."""
    return _EXPANDING.get()


def current_builder() -> Builder | None:
    """The builder that records now, or None outside `building`."""
    return _BUILDER.get()


def op(*, types: TypeRule, shape: ShapeRule, reference: Reference, family: str, bound: Mapping[str, float] | None = None,
       dtypes: tuple[DType, ...] | None = None, results: tuple[str, ...] = ("result",), effects: str = "", derivation: str = "",
       scale: Reference | None = None, expands: tuple[DType, ...] | None = None, widens: bool = True,
       variants: Mapping[tuple[str, Any], str] | None = None) -> Callable[[Callable[..., Any]], OpDefinition]:
    """Enter a function into the op table; see the module's docstring.

    ``bound`` maps dtype names to the largest error in ulp of the *expansion* against the reference (primitives: of a
    correctly made implementation), ``derivation`` says where it comes from, and ``scale`` is the magnitude whose ulp is meant where that
    is not the result's (sums that cancel). ``dtypes`` are those the operation accepts (None: all), ``expands`` the compute dtypes that
    the expansion is written for (None: all). ``widens`` is False where a 16-bit form is not the f32 form rounded (bits, neighbours).
    ``effects`` names the operand that an in-place operation writes: its result is that operand's new value. ``variants`` maps
    (attribute, value) to the operation that is recorded instead: ``maximum(x, y, nan="ignore")`` is `fmax`.
    """

    def define(function: Callable[..., Any]) -> OpDefinition:
        if bound and not derivation:
            raise ValueError(f"operation {function.__name__}: say in `derivation` where its bound comes from")
        signature = inspect.signature(function, eval_str=False)
        hints = typing.get_type_hints(function)
        parameters = tuple(_parameter(p, hints.get(p.name)) for p in signature.parameters.values())
        expansion = None if _is_stub(function) else function
        definition = OpDefinition(function.__name__, parameters, types, shape, reference, expansion, family,
                                  inspect.getdoc(function) or "", dict(bound or {}), dtypes, True, results, effects, derivation, scale,
                                  expands, widens, dict(variants or {}))
        if definition.name in REGISTRY:
            raise ValueError(f"operation {definition.name} is defined twice")
        REGISTRY[definition.name] = definition
        return definition

    return define


def _parameter(p: inspect.Parameter, hint: Any) -> Parameter:
    members = typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)
    if p.kind is inspect.Parameter.VAR_POSITIONAL:
        return Parameter(p.name, "tensor", variadic=True)
    if Value in members:
        return Parameter(p.name, "tensor", numbers=float in members, optional=type(None) in members, default=p.default)
    return Parameter(p.name, "attribute", default=p.default, annotation=hint)


def _is_stub(function: Callable[..., Any]) -> bool:
    """Whether the body is `...` alone (after the docstring): it names nothing, neither a parameter nor another operation."""
    return function.__code__.co_names == () and not any(i.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "BUILD"))
                                                        for i in dis.get_instructions(function))


# ---- recording -----------------------------------------------------------------------------------------------------


def record(definition: OpDefinition, args: Sequence[Any], kwargs: Mapping[str, Any], builder: Builder) -> Any:
    """Check one use of an operation and append it; returns its result Value, or a tuple of them.

    Raises KernelError: PT110 wrong arguments, PT201.. dtypes, PT301.. shapes.
    """
    operands: list[Value | None] = []
    attributes: dict[str, Any] = {}
    for parameter, given in zip(definition.parameters, _bind(definition, args, kwargs, builder), strict=True):
        if parameter.kind == "attribute":
            attributes[parameter.name] = _checked_attribute(definition, parameter, given, builder)
        elif parameter.variadic:
            operands += [operand(definition, parameter, v, builder) for v in given]
        else:
            operands.append(operand(definition, parameter, given, builder))
    for (attribute, value), other in definition.variants.items():
        if attributes[attribute] == value:
            definition = REGISTRY[other]
            attributes = {k: v for k, v in attributes.items() if k in {p.name for p in definition.attributes}}
            break
    return apply(definition, operands, attributes, builder)


def apply(definition: OpDefinition, operands: Sequence[Value | None], attributes: Mapping[str, Any], builder: Builder,
          span: Span | None = None, names: Sequence[str] = ()) -> Any:
    """Type, shape-check and append an operation over Values and complete attributes."""
    call = Call(definition.name, operands, attributes, builder.graph, span or builder.span)
    result_types = derive(definition, call)
    stored = stored_attributes(definition, attributes) if attributes else {}
    if len(call.present) != len(operands):
        stored["absent"] = tuple(i for i, o in enumerate(operands) if o is None)
    results = builder.add(definition.name, call.present, result_types, stored, span=span, names=names).results
    return results[0] if len(results) == 1 else results


def derive(definition: OpDefinition, call: Call) -> tuple[TensorType, ...]:
    """The types of the results of one use; extents that must agree at run time become checks of ``call.graph``.

    Raises KernelError: PT201.. dtypes, PT204 a number that does not fit, PT301.. shapes.
    """
    typing_ = definition.types(call)
    _check_dtypes(definition, call, typing_)
    shapes = definition.shape(call)
    if [o for o in call.present if o.type.weak]:
        _check_numbers(call, typing_)
    return tuple([_result_type(definition, call, a, shape) for a, shape in zip(typing_.results, shapes, strict=True)])


def _result_type(definition: OpDefinition, call: Call, a: AType, shape: tuple[Index, ...]) -> TensorType:
    valid = live_extents(definition.name, definition.family, call.present, call.attributes, shape, call.graph)
    if call.present:
        like = call.present[0].type  # shared where it can be: types are many, and compared and renamed by what they are
        if like.shape is shape and like.dtype is a.dtype and like.weak is a.weak and like.valid is valid:
            return like
    return TensorType(a.dtype, shape, a.weak, valid)


def stored_attributes(definition: OpDefinition, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What an Op keeps of complete attributes: None is left out where it is the default, and said elsewhere (`argmax(x, dim=None)`)."""
    silent = {p.name for p in definition.attributes if p.default is None or p.default is inspect.Parameter.empty}
    return {k: v for k, v in attributes.items() if v is not None or k not in silent}


def _check_dtypes(definition: OpDefinition, call: Call, typing_: Typing) -> None:
    """PT203 for a dtype that the operation has no meaning on: what it computes in, and the 8-bit floats, which are storage."""
    known = definition.accepted
    if known is None or (typing_.typing.compute in known and known.issuperset(typing_.typing.operand_casts)):
        return
    accepted = definition.dtypes or ()
    operands = [d for d in typing_.casts if d.kind == "float" and d.bits == 8]
    for dtype in (*operands, typing_.typing.compute):
        if dtype in accepted or dtype.kind == "block":
            continue
        takes = ", ".join(d.name for d in accepted)
        storage = dtype.kind == "float" and dtype.bits == 8
        raise call.refuse("PT203", f"{call.name} takes {takes}, and got {dtype.name}",
                          help=f"cast it first: pypto.cast(x, pypto.{'DT_FP32' if storage or F32 in accepted else accepted[0].pypto})",
                          dtype=dtype.name, accepted=[d.name for d in accepted])


def _check_numbers(call: Call, typing_: Typing) -> None:
    """Refuse (PT204) a Python number that does not fit the dtype it lands on, at the user's line."""
    for value, landing in zip(call.present, typing_.typing.landings, strict=False):
        if not value.type.weak or value.op is None or value.op.opcode != "constant":
            continue
        if why := misfit(typing.cast(float, value.op.attributes["value"]), landing):
            raise call.refuse("PT204", f"{call.name}: {why}",
                              help="cast the tensor to a wider dtype first, pypto.cast(x, pypto.DT_INT32), or write a number that "
                          f"{landing} holds")


def call_of(op_: Op, graph: Graph) -> Call:
    """The Call that an existing operation stands for, absent operands as None; for verification and passes."""
    absent = typing.cast("tuple[int, ...]", op_.attributes.get("absent", ()))
    operands: list[Value | None] = list(op_.operands)
    for i in absent:
        operands.insert(i, None)
    definition = REGISTRY[op_.opcode]
    attributes = {p.name: op_.attributes.get(p.name, None if p.default is inspect.Parameter.empty else p.default)
                  for p in definition.attributes}
    return Call(op_.opcode, tuple(operands), attributes, graph, op_.span)


def expand(op_: Op, operands: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    """Record the expansion of an operation over new operands; returns its results. The span and tile stay the user's."""
    definition = REGISTRY[op_.opcode]
    if definition.expansion is None:
        raise ValueError(f"{op_.opcode} is a primitive and has no expansion")
    given: list[Value | None] = list(operands)
    for i in typing.cast("tuple[int, ...]", op_.attributes.get("absent", ())):
        given.insert(i, None)
    keywords: dict[str, Any] = {}
    positional: list[Any] = []
    queue = list(given)
    spread = any(p.variadic for p in definition.parameters)  # operands stand before their variadic ones, attributes behind
    for p in definition.parameters:
        if p.variadic:
            positional += queue
            queue = []
        elif p.kind == "tensor" and spread:
            positional.append(queue.pop(0))
        elif p.kind == "tensor":
            keywords[p.name] = queue.pop(0)
        else:
            keywords[p.name] = op_.attributes.get(p.name, None if p.default is inspect.Parameter.empty else p.default)
    expansion = definition.expansion
    return _recorded(lambda: expansion(*positional, **keywords), op_, builder)


def build(function: Callable[..., Any], op_: Op, operands: Sequence[Value], builder: Builder) -> tuple[Value, ...]:
    """As `expand`, by another function of the operands and of those attributes that it names."""
    attributes = call_of(op_, builder.graph).attributes
    return _recorded(lambda: call_naming(function, operands, attributes), op_, builder)


def _recorded(function: Callable[[], Any], op_: Op, builder: Builder) -> tuple[Value, ...]:
    saved = builder.span, builder.tile
    builder.span, builder.tile = op_.span, op_.tile
    token = _EXPANDING.set(True)
    try:
        with building(builder):
            made = function()
            results = made if isinstance(made, tuple) else (made,)
            return tuple(_declared(value, old.type.dtype) for value, old in zip(results, op_.results, strict=True))
    finally:
        _EXPANDING.reset(token)
        builder.span, builder.tile = saved


def _declared(value: Value, dtype: DType) -> Value:
    """An expansion's result in the operation's dtype: masks have the operands' under rule sets without BOOL results."""
    if value.type.dtype == dtype:
        return value
    return typing.cast(Value, REGISTRY["cast"](value, dtype, "CAST_RINT"))


def _bind(definition: OpDefinition, args: Sequence[Any], kwargs: Mapping[str, Any], builder: Builder) -> Sequence[Any]:
    """What is given to each parameter, in order; to a variadic one a list. Raises PT110 for arguments that do not fit."""
    parameters = definition.parameters
    if len(args) == len(parameters) and not kwargs and not definition.is_variadic:
        return args
    bound: dict[str, Any] = {}
    rest = list(args)
    for p in parameters:
        if p.variadic:
            if not rest:
                raise error("PT110", f"{definition.name} needs at least one tensor", builder.span, help=signature_text(definition))
            bound[p.name] = rest
            rest = []
        elif rest:
            bound[p.name] = rest.pop(0)

    def wrong(message: str, meant: str = "") -> Exception:
        return error("PT110", f"{definition.name} {message}", builder.span, help=meant + signature_text(definition))

    if rest:
        raise wrong(f"takes at most {len(parameters)} arguments and got {len(args)}")
    for key, value in kwargs.items():
        if key not in definition.names:
            raise wrong(f"has no argument `{key}`", nearest_argument(key, definition.names))
        if key in bound:
            raise wrong(f"got `{key}` twice")
        bound[key] = value
    for p in parameters:
        if p.name not in bound:
            if p.default is inspect.Parameter.empty:
                raise wrong(f"needs the argument `{p.name}`")
            bound[p.name] = p.default
    return [bound[p.name] for p in parameters]


# Arguments of other array libraries and what they are called here.
_ARGUMENTS = {"axis": "dim", "axes": "dim", "dims": "dim", "keepdims": "keepdim", "keep_dims": "keepdim", "x": "input", "a": "input",
              "y": "other", "b": "other", "shape": "size", "out_type": "dtype", "repeats": "shape", "stop": "end"}


def nearest_argument(key: str, known: Sequence[str]) -> str:
    """The question whether another argument was meant, for one that is none of ``known``, "" where none is near."""
    close = [_ARGUMENTS[key]] if _ARGUMENTS.get(key) in known else difflib.get_close_matches(key, known, 1)
    return f"did you mean `{close[0]}`? " if close else ""


def signature_text(definition: OpDefinition) -> str:
    """`pow(input, other, precision_type=HIGH_PRECISION)`, for messages and documentation."""
    parts = []
    for p in definition.parameters:
        default = "" if p.default is inspect.Parameter.empty else f"={default_text(p.default)}"
        parts.append(("*" if p.variadic else "") + p.name + default)
    return f"{definition.name}({', '.join(parts)})"


def default_text(value: Any) -> str:
    """A default as a user writes it."""
    return f"pypto.{value.pypto}" if isinstance(value, DType) else value.name if isinstance(value, enum.Enum) else repr(value)


def operand(definition: OpDefinition, p: Parameter, given: Any, builder: Builder) -> Value | None:
    """The Value of one operand: a number is recorded as a constant. Raises PT200 for what is no operand."""
    if isinstance(given, Value):
        return given
    if given is None and p.optional:
        return None
    if p.numbers and isinstance(given, (bool, int, float, np.generic)):
        return constant(given, builder)
    takes = "a tensor or a number" if p.numbers else "a tensor"
    raise error("PT200", f"{definition.name} takes {takes} as `{p.name}`, and got {value_text(given)}", builder.span,
                help="pass a tensor of the kernel; pypto.full([64, 64], 1.0) makes one of a number")


_FLOAT = TensorType(F32, (), weak=True)  # of a Python float


def constant(value: int | float | bool | np.generic, builder: Builder, dtype: DType | None = None) -> Value:
    """Record a scalar constant. Python numbers are weak (bool strong), NumPy scalars and an explicit dtype strong.

    Raises PT201 for a NumPy scalar whose dtype does not exist here.
    """
    if dtype is None and type(value) is float:
        return builder.add("constant", (), (_FLOAT,), {"value": value}).results[0]
    weak = False
    if dtype is None:
        if isinstance(value, np.generic):
            dtype = of_numpy(value.dtype)
            if dtype is None:
                raise error("PT201", f"a NumPy scalar has dtype {value.dtype}, which does not exist here", builder.span,
                            help="use bool, int, float, or a NumPy scalar of float32, float16, float64 or an integer dtype")
            value = value.item()
        elif isinstance(value, bool):
            dtype = BOOL
        elif isinstance(value, int):
            if not I64.range[0] <= value <= I64.range[1]:
                raise error("PT201", f"{value_text(value)} is beyond 64 bits", builder.span,
                            help="write a float, 1e30, or an int from -2**63 to 2**63 - 1")
            dtype, weak = (I32 if I32.range[0] <= value <= I32.range[1] else I64), True
        else:
            dtype, weak = F32, True
    plain = bool(value) if dtype is BOOL else int(value) if dtype.is_integer else float(value)
    return builder.add("constant", (), (TensorType(dtype, (), weak),), {"value": plain}).result


_KINDS: dict[Any, tuple[type, ...]] = {bool: (bool, int), int: (int,), float: (int, float), str: (str,), Index: (Index, int)}


def _takes(annotation: Any, value: Any) -> bool:
    """Whether an attribute's annotation admits a value; annotations without a kind of their own admit everything."""
    if typing.get_origin(annotation) in (Union, types.UnionType):
        return any(_takes(member, value) for member in typing.get_args(annotation))
    if annotation is None or annotation is type(None):
        return value is None
    if typing.get_origin(annotation) is tuple:
        return isinstance(value, tuple)
    wanted = _KINDS.get(annotation, (annotation,) if isinstance(annotation, type) else ())
    return not wanted or (isinstance(value, wanted) and (annotation is bool or not isinstance(value, bool)))


def _kind(annotation: Any) -> str:
    """An annotation in words: `a dtype`, `an int or None`."""
    if typing.get_origin(annotation) in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_kind(m) for m in typing.get_args(annotation)))
    words = {DType: "a dtype", bool: "a bool", int: "an int", float: "a number", str: "a string", Index: "an extent", type(None): "None"}
    return words.get(annotation, "a list of numbers" if typing.get_origin(annotation) is tuple else "another value")


def _checked_attribute(definition: OpDefinition, p: Parameter, given: Any, builder: Builder) -> Attribute:
    """An attribute as plain data, of the kind that its annotation says (PT111); a default is taken as it is."""
    value = _attribute(definition, p, given, builder)
    choices = {p.default, *(v for name, v in definition.variants if name == p.name)}
    if len(choices) > 1 and value not in choices:
        raise error("PT111", f"{definition.name}: there is no {p.name}={value!r}", builder.span,
                    help=f"it is one of {', '.join(sorted(map(repr, choices)))}")
    if given is p.default or p.annotation is None or _takes(p.annotation, value):
        return value
    raise error("PT111", f"{definition.name} takes {_kind(p.annotation)} as `{p.name}`, and got {value_text(given)}", builder.span,
                help=signature_text(definition))


def _attribute(definition: OpDefinition, p: Parameter, given: Any, builder: Builder) -> Attribute:
    """Attributes are plain data: enums by name, lists as tuples."""
    if isinstance(given, DType) or given is None or isinstance(given, (bool, int, float, str, Index)):
        return given
    if isinstance(given, np.generic):
        return typing.cast(Attribute, given.item())
    if isinstance(given, enum.Enum):
        return given.value if isinstance(given.value, DType) else given.name
    if isinstance(given, (list, tuple)):
        return tuple(_attribute(definition, p, g, builder) for g in given)
    raise error("PT111", f"{definition.name} cannot take {value_text(given)} as `{p.name}`", builder.span, help=signature_text(definition))
