"""What an operation is: one typed function whose signature, docstring, rules and body are everything the compiler knows of it.

    @op(types=typing.arithmetic, shape=shapes.broadcast, reference=np.add)
    def add(input: Tensor | Number, other: Tensor | Number) -> Tensor:
        ...docstring...

Parameters annotated with `Tensor` are operands (`| Number`: Python numbers are taken too; `| None`: optional); all others are
attributes. The body is the expansion into simpler operations; a primitive has `...` as its body. What a call of the operation does is
said in `pypto_dsl/compiler/ops/recording.py`.
"""
from __future__ import annotations

import contextvars
import dis
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Union

import numpy as np

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.graph import Builder, Graph, TensorType, Value
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.promotion.atype import AType
from pypto_dsl.compiler.promotion.families import OpTyping
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
    """An entry of the op table. Calling it hands one use of the operation to the `RECORDER`."""

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
        recorder = RECORDER.get()
        if recorder is None:
            raise error("PT125", f"pypto.{self.name} is called outside a kernel",
                        help="call it in a function decorated with @pypto.jit, or pass NumPy arrays to evaluate it")
        return recorder(self, args, kwargs)


class Recorder(Protocol):
    """What takes one use of an operation and returns its result, or a tuple of them; ``expands`` inside an operation's expansion."""

    @property
    def builder(self) -> Builder: ...

    @property
    def expands(self) -> bool: ...

    def __call__(self, definition: OpDefinition, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any: ...


REGISTRY: dict[str, OpDefinition] = {}
RECORDER: contextvars.ContextVar[Recorder | None] = contextvars.ContextVar("recorder", default=None)  # set by recording.py alone


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
