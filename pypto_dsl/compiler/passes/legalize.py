"""Legalization: every operation becomes one the target has, by widening 16-bit floats to f32 or by the operation's expansion.

What a target has on which dtypes is data (`Target.native`). A user's 16-bit operation is computed wholly in f32 and rounded once,
so widening casts at its edges only; the casts between two user operations stay (law 3's rounding points).
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from pypto_dsl.compiler.conditions import is_condition
from pypto_dsl.compiler.dtypes import BY_NAME, F32, I32, SIXTEEN_BIT_FLOATS, DType
from pypto_dsl.compiler.errors import KernelError, error
from pypto_dsl.compiler.graph import EDGE, HOST, Builder, Graph, Op, Region, TensorType, Value, walk
from pypto_dsl.compiler.index import as_index
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.alternatives import ALTERNATIVES, Alternative
from pypto_dsl.compiler.ops.definition import OpDefinition
from pypto_dsl.compiler.ops.recording import build, call_of, expand
from pypto_dsl.compiler.passes.promote import cast_to, promote_op
from pypto_dsl.compiler.passes.rebuild import rebuild
from pypto_dsl.compiler.passes.reductions import join_axes
from pypto_dsl.compiler.targets import Target, available

# Operations that move or make data: no target computes anything for them.
STRUCTURAL = frozenset({"constant", "extent", "iota", "full", "empty", "reshape", "permute", "view", "insert", "clone", "expand_clone",
                        "load_scalar"})


def legalize(graph: Graph, target: Target) -> Graph:
    """Rewrite ``graph`` into operations native to ``target``; PT502 for one that it neither has nor can be built from.

    Comparisons of numbers that only decide a branch stay: the host makes them.
    """
    _check_tensors(graph, target)
    decided = _conditions(graph)

    def lower(op: Op, operands: tuple[Value, ...], builder: Builder) -> Sequence[Value]:
        if op in decided:
            return builder.clone(op, operands).results
        try:
            return _lower(op, operands, builder, target)
        except KernelError as refused:
            if refused.diagnostic.fields.get("op") != "cast" or (user := _written(op, graph)).opcode == "cast":
                raise
            raise _no_conversion(user, op, refused, target) from refused

    return join_axes(rebuild(graph, lower))


def _check_tensors(graph: Graph, target: Target) -> None:
    """PT502 for the user's first tensor of a dtype that the target has no format of in memory, where `[formats]` lists those."""
    formats = target.table("formats")
    if not formats:
        return
    read = {value for op in walk(graph.body) for value in op.operands}
    made = (value for op in walk(graph.body) for value in op.results)  # promotion's casts among them, so behind the parameters
    candidates = (*(p for p in graph.parameters if p in read), *made, *graph.parameters)
    found = next((v for v in candidates if v.type.rank and v.type.dtype.name not in formats), None)
    if found is None:
        return
    readers = (op for op in walk(graph.body) if found in op.operands)
    span = next((op.span for op in ((found.op,) if found.op is not None else readers) if op.span is not None), graph.span)
    dtype = found.type.dtype
    near = F32 if dtype.is_float else I32
    how = f"declare it pypto.{near.pypto} and convert the array before the call" if found.op is None else f"make it pypto.{near.pypto}"
    having = _named([t.name for t in available() if t.limit("host") or any(
        dtype.name in re.split(",|->", row) for rows in t.ops.values() for row in rows)])
    raise error("PT502", f"{_called(found)} is {dtype}, and {target.name} has no tensors of {dtype}", span,
                notes=(f"{target.name} has tensors of {', '.join(formats)}",),
                help=f"{how}, or choose a target that has {dtype}{having}", target=target.name, dtypes=[dtype.name])


def _called(value: Value) -> str:
    """A value in the user's words."""
    return f"`{value.name}`" if value.name or value.op is None else f"the result of {value.op.opcode}"


def _written(op: Op, graph: Graph) -> Op:
    """The operation that the user wrote where ``op`` stands: a cast that promotion put in front of one has that one's place."""
    if op.opcode != "cast":
        return op
    return next((o for o in walk(graph.body) if op.result in o.operands and o.span is not None and o.span == op.span), op)


def _no_conversion(user: Op, op: Op, refused: KernelError, target: Target) -> KernelError:
    """The refusal of a conversion that the user did not write, in terms of the operation that needs it."""
    source, result = refused.diagnostic.fields["dtypes"][0], refused.diagnostic.fields["result"]
    whose = next((o for o in op.operands if o.type.dtype.name == source), None)
    what = f"{_called(whose)} of {source}" if whose is not None and op is not user else f"{source}"
    return error("PT502", f"{user.opcode} converts {what} to {result}, and {target.name} has no such conversion", user.span,
                 notes=refused.diagnostic.notes,
                 help="pass the operands in the dtype that the operation computes in, or choose another target",
                 target=target.name, op=user.opcode, dtypes=[source], part_of="")


def _conditions(graph: Graph) -> set[Op]:
    """Comparisons of rank 0, joined by and, or, not, whose results only decide branches: directly, through each other, or chosen by one."""
    readers: dict[Value, list[tuple[Op, Value | None]]] = {}  # with the result that the reader makes of it
    candidates: list[Op] = []
    for op in walk(graph.body):
        for operand in op.operands:
            readers.setdefault(operand, []).append((op, op.results[0] if _is_condition(op) else None))
        for region in op.regions:
            for value, result in zip(region.yields, op.results, strict=True):
                readers.setdefault(value, []).append((op, result if op.opcode == "if" else None))
        if _is_condition(op):
            candidates.append(op)
    known: dict[Value, bool] = dict.fromkeys(graph.results(), False)

    def decides(value: Value) -> bool:
        if value not in known:
            known[value] = bool(readers.get(value)) and value.type.rank == 0 and all(
                decides(made) if made is not None else reader.opcode == "if" and value is reader.operands[0]
                for reader, made in readers[value])
        return known[value]

    for op in reversed(candidates):  # readers stand behind what they read: no chain of them is followed twice, or deep
        decides(op.results[0])
    return {op for op in candidates if known[op.results[0]]}


def _is_condition(op: Op) -> bool:
    return op.results[0].type.rank == 0 and is_condition(op.opcode, op.results[0].type.dtype)


def _lower(op: Op, operands: tuple[Value, ...], builder: Builder, target: Target, part_of: str = "") -> Sequence[Value]:
    """``part_of`` names the user's operation whose expansion ``op`` is in."""
    builder.span, builder.tile = op.span, op.tile
    if op.opcode in STRUCTURAL or op.opcode not in REGISTRY:
        return builder.clone(op, operands).results
    if op.opcode == "concat":
        return [_joined(op, operands, builder)]
    result = op.results[0].type.dtype
    dtypes = tuple(o.type.dtype for o in operands)
    if op.opcode == "matmul" and result in SIXTEEN_BIT_FLOATS and target.native("matmul", dtypes, F32):
        wide = builder.clone(op, operands, [op.results[0].type.with_dtype(F32)], {**op.attributes, "out_dtype": F32}).result
        return _lower_all(_edges([_cast(wide, result).result], builder.graph), builder, target, part_of)
    if target.native(op.opcode, dtypes, result) and _in_form(op, operands, target):
        return builder.clone(op, operands).results
    definition = REGISTRY[op.opcode]
    if op.opcode != "cast" and definition.widens and any(d in SIXTEEN_BIT_FLOATS for d in (*dtypes, result)):
        return _widen(op, operands, builder, target, part_of)
    if op.opcode == "cast" and (step := _through(dtypes[0], result, target)) is not None:
        first = _cast(operands[0], step, op)
        second = _cast(first.result, result, op)
        return _lower_all([first, second], builder, target, part_of)
    other = _alternative(op, operands, builder, target)
    if other is not None:
        scratch = Builder(builder.graph, Region())
        made = build(other.build, op, operands, scratch)
        try:
            return _lower_all(scratch.region.ops, builder, target, part_of or op.opcode, made)
        except KernelError as inner:  # what was written is missing, not what it would have been built of
            if inner.code != "PT502":
                raise
            raise _unsupported(op, dtypes, result, target, part_of) from inner
    if not _expands(definition, dtypes, result) and target.limit("host"):
        return builder.clone(op, operands, attributes={**op.attributes, HOST: True}).results
    if not _expands(definition, dtypes, result):
        raise _unsupported(op, dtypes, result, target, part_of)
    scratch = Builder(builder.graph, Region())
    made = expand(op, operands, scratch)
    return _lower_all(scratch.region.ops, builder, target, part_of or op.opcode, made)


def _in_form(op: Op, operands: Sequence[Value], target: Target) -> bool:
    """Whether an operation that the target has is in the form that it has it in, where `[only]` names one."""
    form = target.table("only").get(op.opcode, {})
    return all(_is_number(operands[-1]) if name == "last_operand" else op.attributes[name] == value for name, value in form.items())


def _is_number(value: Value) -> bool:
    while value.op is not None and value.op.opcode == "cast":
        value = value.op.operands[0]
    return value.op is not None and value.op.opcode == "constant"


def _expands(definition: OpDefinition, dtypes: Sequence[DType], result: DType) -> bool:
    """Whether the operation has an expansion that is written for the dtype it computes on."""
    computes = next((d for d in (*dtypes, result) if d.kind != "bool"), result)
    return definition.expansion is not None and (definition.expands is None or computes in definition.expands)


def _alternative(op: Op, operands: tuple[Value, ...], builder: Builder, target: Target) -> Alternative | None:
    """Another way to build an operation that the target lacks; None where there is none, or its own expansion does as well."""
    result = op.results[0].type.dtype
    use = call_of(Op(op.opcode, operands, [r.type for r in op.results], op.attributes), builder.graph)
    for way in ALTERNATIVES.get(op.opcode, ()):
        if way.fits(use, result) and all(target.native(name, (a,), b) for name, a, b in way.requires):
            return way
    return None


def _joined(op: Op, operands: tuple[Value, ...], builder: Builder) -> Value:
    """A concatenation as writes into a fresh tensor, one behind the other."""
    result = op.results[0].type
    axis = cast(int, op.attributes["dim"]) % result.rank
    dense = TensorType(result.dtype, result.shape)
    whole = builder.add("empty", (), (dense,), {"shape": result.shape, "dtype": result.dtype}).result
    at = as_index(0)
    for operand in operands:
        offsets = tuple(at if i == axis else as_index(0) for i in range(result.rank))
        whole = builder.add("insert", (whole, operand), (dense,), {"offsets": offsets}).result
        at = at + operand.type.live[axis]
    if result.valid is None:
        return whole
    return builder.add("expand_clone", (whole,), (result,), {"shape": result.shape, "valid": result.valid}).result


def _lower_all(ops: Sequence[Op], builder: Builder, target: Target, part_of: str,
               results: Sequence[Value] | None = None) -> Sequence[Value]:
    """Promote and lower newly made operations in order; returns what stands for ``results`` (default: the last op's)."""
    mapping: dict[Value, Value] = {}
    span, tile = builder.span, builder.tile
    for op in ops:
        promoted = Builder(builder.graph, Region())
        promoted.span, promoted.tile = op.span or span, op.tile or tile
        standing = promote_op(op, tuple(mapping.get(o, o) for o in op.operands), promoted)
        inner: dict[Value, Value] = {}
        for part in promoted.region.ops:
            lowered = _lower(part, tuple(inner.get(o, o) for o in part.operands), builder, target, part_of)
            inner.update(zip(part.results, lowered, strict=True))
        mapping.update(zip(op.results, (inner.get(s, s) for s in standing), strict=True))
    builder.span, builder.tile = span, tile
    wanted = results if results is not None else ops[-1].results
    return [mapping.get(v, v) for v in wanted]


def _widen(op: Op, operands: tuple[Value, ...], builder: Builder, target: Target, part_of: str) -> Sequence[Value]:
    """The operation in f32: 16-bit operands cast up, the results cast down."""
    scratch = Builder(builder.graph, Region())
    scratch.span, scratch.tile = op.span, op.tile
    wide = [cast_to(o, F32, scratch) if o.type.dtype in SIXTEEN_BIT_FLOATS else o for o in operands]
    types = [_wide_type(r.type) for r in op.results]
    attributes = {k: F32 if v in SIXTEEN_BIT_FLOATS else v for k, v in op.attributes.items()}
    made = scratch.add(op.opcode, wide, types, attributes, names=[r.name for r in op.results])
    results = [cast_to(m, r.type.dtype, scratch) for m, r in zip(made.results, op.results, strict=True)]
    _edges(results, builder.graph)
    return _lower_all(scratch.region.ops, builder, target, part_of, results)


def _edges(results: Sequence[Value], graph: Graph) -> list[Op]:
    """The casts that make ``results``; where `relax` may leave them out, with the mark that the user did not ask for them."""
    casts = [value.op for value in results if value.op is not None and value.op.opcode == "cast"]
    for made in casts if graph.is_fast else ():
        made.attributes[EDGE] = True
    return casts


def _wide_type(t: TensorType) -> TensorType:
    return t.with_dtype(F32) if t.dtype in SIXTEEN_BIT_FLOATS else t


def _cast(value: Value, dtype: DType, like: Op | None = None) -> Op:
    attributes = dict(like.attributes) if like is not None else {"mode": "CAST_NONE", "satmode": "OFF"}
    return Op("cast", (value,), (TensorType(dtype, value.type.shape, False, value.type.valid),), {**attributes, "dtype": dtype},
              span=like.span if like else None)


def _through(source: DType, result: DType, target: Target) -> DType | None:
    """The dtype that a missing conversion may go through without a second rounding: listed by the target in `[cast_through]`."""
    step = target.table("cast_through").get(f"{source.name}->{result.name}")
    return None if step is None else BY_NAME[step]


def _having(op: Op, dtypes: Sequence[DType], result: DType) -> str:
    """The targets that have an operation, or whose host evaluates what they lack: `: llvm-cpu`; "" where there is none."""
    return _named([t.name for t in available() if t.native(op.opcode, tuple(dtypes), result) or t.limit("host")])


def _named(targets: Sequence[str]) -> str:
    return f": {', '.join(targets)}" if targets else ""


def _own_dtype(operand: Value, op: Op) -> DType:
    """The dtype that an operand of ``op`` has in the kernel, before promotion's cast."""
    made = operand.op
    return (made.operands[0] if made is not None and made.opcode == "cast" and made.span == op.span else operand).type.dtype


def _conversions(pairs: Sequence[str], source: str, result: str) -> str:
    """Which conversions there are from one dtype and to the other: `f32 to bf16, i32; nothing to i8`."""
    split = [pair.split("->") for pair in pairs]
    to = [b for a, b in split if a == source != b]
    of = [a for a, b in split if b == result != a]
    return f"{source} to {', '.join(to) or 'nothing'}; {', '.join(of) or 'nothing'} to {result}"


def _unsupported(op: Op, dtypes: Sequence[DType], result: DType, target: Target, part_of: str) -> Exception:
    has = sorted(target.ops.get(op.opcode, ()))
    operands = ", ".join(d.name for d in dtypes)
    what = f"{op.opcode} on {operands or result}" + (f" to {result}" if op.opcode == "cast" else "")
    own = ", ".join(_own_dtype(o, op).name for o in op.operands)
    if op.opcode != "cast" and own != operands and len(op.operands) == len(dtypes):
        what = f"{op.opcode} on {own}, which is computed in {operands},"
    part = f", a part of {part_of}," if part_of else ""
    why = target.table("lacks").get(op.opcode)
    if why is not None:
        notes: tuple[str, ...] = (why,)
        help = f"write {part_of or 'it'} with other operations, or choose a target that has {op.opcode}{_having(op, dtypes, result)}"
    elif op.opcode == "cast":
        notes = (f"{target.name} converts {_conversions(has, dtypes[0].name, result.name)}",)
        help = "go through a dtype that the target converts, or choose another target"
    elif has:
        notes = (f"{target.name} has {op.opcode} on {', '.join(has)}",)
        first = BY_NAME.get(has[0].split(",")[0].split("->")[0])
        as_ = f": pypto.cast(x, pypto.{first.pypto})" if first is not None else ""
        help = f"cast the operands to a dtype that the target has{as_}, or choose another target"
    else:
        notes = (f"{target.name} has no {op.opcode} on any dtype, and it is not built from other operations",)
        help = f"write {part_of or 'it'} with other operations, or choose a target that has {op.opcode}{_having(op, dtypes, result)}"
    return error("PT502", f"{what}{part} is not supported on target {target.name}", op.span, notes=notes, help=help,
                 target=target.name, op=op.opcode, dtypes=[d.name for d in dtypes], result=result.name, part_of=part_of)
