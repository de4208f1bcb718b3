"""Recording operations: a use is bound, typed, shape-checked and appended to the graph that `building` names, and nothing else appends one.

So every check runs at the user's own line, for what passes and expansions write as well.
"""
from __future__ import annotations

import contextlib
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import BOOL, F32, I32, I64, DType, of_numpy
from pypto_dsl.compiler.errors import error, value_text
from pypto_dsl.compiler.graph import Builder, Graph, Op, TensorType, Value
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.ops.arguments import bind, checked_attribute
from pypto_dsl.compiler.ops.definition import RECORDER, REGISTRY, Call, OpDefinition, Parameter, Typing, call_naming
from pypto_dsl.compiler.ops.live import live_extents
from pypto_dsl.compiler.promotion.atype import AType
from pypto_dsl.compiler.promotion.scalars import misfit
from pypto_dsl.compiler.span import Span


@dataclass(frozen=True)
class _Recording:
    """The recorder of a builder; ``expands`` while an operation's expansion is being recorded."""

    builder: Builder
    expands: bool = False

    def __call__(self, definition: OpDefinition, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return record(definition, args, kwargs, self.builder)


@contextlib.contextmanager
def building(builder: Builder, *, expands: bool = False) -> Iterator[Builder]:
    """Operations called inside are recorded by ``builder``; ``expands`` says that they are an operation's expansion."""
    token = RECORDER.set(_Recording(builder, expands))
    try:
        yield builder
    finally:
        RECORDER.reset(token)


def is_expanding() -> bool:
    """Whether an operation's expansion is being recorded: its parts may be over nothing where the whole is (softmax's maximum)."""
    recorder = RECORDER.get()
    return recorder is not None and recorder.expands


def current_builder() -> Builder | None:
    """The builder that records now, or None outside `building`."""
    recorder = RECORDER.get()
    return None if recorder is None else recorder.builder


def record(definition: OpDefinition, args: Sequence[Any], kwargs: Mapping[str, Any], builder: Builder) -> Any:
    """Check one use of an operation and append it; returns its result Value, or a tuple of them.

    Raises KernelError: PT110 wrong arguments, PT201.. dtypes, PT301.. shapes.
    """
    operands: list[Value | None] = []
    attributes: dict[str, Any] = {}
    for parameter, given in zip(definition.parameters, bind(definition, args, kwargs, builder), strict=True):
        if parameter.kind == "attribute":
            attributes[parameter.name] = checked_attribute(definition, parameter, given, builder)
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
    try:
        with building(builder, expands=True):
            made = function()
            results = made if isinstance(made, tuple) else (made,)
            return tuple(_declared(value, old.type.dtype) for value, old in zip(results, op_.results, strict=True))
    finally:
        builder.span, builder.tile = saved


def _declared(value: Value, dtype: DType) -> Value:
    """An expansion's result in the operation's dtype: masks have the operands' under rule sets without BOOL results."""
    if value.type.dtype == dtype:
        return value
    return typing.cast(Value, REGISTRY["cast"](value, dtype, "CAST_RINT"))


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
