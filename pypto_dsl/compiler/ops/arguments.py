"""What a call gives to an operation: bound to its parameters, attributes as plain data of the kinds that its signature says."""
from __future__ import annotations

import difflib
import enum
import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import error, value_text
from pypto_dsl.compiler.graph import Attribute, Builder
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.ops.definition import OpDefinition, Parameter


def bind(definition: OpDefinition, args: Sequence[Any], kwargs: Mapping[str, Any], builder: Builder) -> Sequence[Any]:
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


def checked_attribute(definition: OpDefinition, p: Parameter, given: Any, builder: Builder) -> Attribute:
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
