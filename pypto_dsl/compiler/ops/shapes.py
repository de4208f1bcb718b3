"""Shape rules: what shapes an operation accepts and what shape its results have."""
from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pypto_dsl.compiler.errors import Label
from pypto_dsl.compiler.graph import Check, TensorType, Value
from pypto_dsl.compiler.index import Index, as_index, maximum
from pypto_dsl.compiler.ops.bounds import known_at_launch, require_within, stretched
from pypto_dsl.compiler.ops.definition import Call
from pypto_dsl.compiler.ops.recording import is_expanding

Shape = tuple[Index, ...]


def shape_text(shape: Sequence[Index | int | str]) -> str:
    """[M, 64], as messages write shapes."""
    return f"[{', '.join(map(str, shape))}]"


def require_equal(call: Call, a: Index, b: Index) -> bool:
    """Whether two extents are equal, now or by a check before the kernel runs; False when they are known to differ."""
    if a == b:
        return True
    difference = (a - b).constant
    if difference is not None:
        return difference == 0
    call.graph.checks.append(Check(a, b, call.span, call.name, tuple(t.shape for t in call.types if t.rank), dropped_axis(call)))
    return True


WHOLE_AXIS = "a write to a whole axis"  # what needs `out[a:b, :] = value` to fill the axis
KEEPDIM = "with keepdim=True, {} keeps the axis that it reduces, with extent 1"


def dropped_axis(call: Call) -> str:
    """The name of a reduction that made an operand of lower rank than the others by dropping its axis, "" when none did.

    Axes of extent 1 do not count: [M] fits into [M, 1].
    """
    def rank(t: TensorType) -> int:
        return sum(e.constant != 1 for e in t.shape)

    reduced = [(o.op.opcode, o.type) for o in call.present if o.op is not None and o.op.attributes.get("keepdim") is False]
    most = max(map(rank, call.types)) if reduced else 0
    return next((opcode for opcode, made in reduced if rank(made) < most), "")


def broadcast_shapes(call: Call, values: Sequence[Value]) -> Shape:
    """NumPy's rule: ranks align at the right, static extent 1 stretches; symbolic extents must agree when the kernel runs."""
    shapes = [v.type.shape for v in values if v.type.shape]
    if not shapes:
        return ()
    if shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    rank = max(map(len, shapes))
    if call.graph.rules == "pypto-strict":
        ranks = {v.type.rank for v in values if not v.type.weak and v.type.rank}
        if len(ranks) > 1:
            got = ", ".join(str(v.type.rank) for v in values)
            raise call.refuse("PT305", f"{call.name} takes equal ranks under `pypto-strict`, and got {got}",
                              help="reshape the smaller operand, or use promotion=\"pypto\"")
    result: list[Index] = []
    for axis in range(rank):
        extent = as_index(1)
        for value in values:
            shape = value.type.shape
            at = axis - (rank - len(shape))
            if at < 0 or shape[at].constant == 1:
                continue
            if extent.constant == 1:
                extent = shape[at]
            elif not require_equal(call, extent, shape[at]):
                raise _mismatch(call, values, axis - rank)
            elif extent.constant is None:
                extent = shape[at]
        result.append(extent)
    require_elements(call, values, tuple(result))
    return tuple(result)


def require_elements(call: Call, values: Sequence[Value], shape: Shape) -> None:
    """An axis that is repeated holds its one element: `x[0:1]` of a tensor without rows has nothing to repeat."""
    for offset, have in stretched(values, shape):
        require_within(call.graph, offset, as_index(1), have, call.span, f"{call.name} repeats an element, and")


def _mismatch(call: Call, values: Sequence[Value], axis: int) -> Exception:
    shapes = " and ".join(shape_text(v.type.shape) for v in values if v.type.rank)
    others = tuple(Label(v.op.span, f"`{v.name or v.op.opcode}` has shape {shape_text(v.type.shape)}")
                   for v in values if v.op is not None and v.op.span is not None and v.type.rank)
    return call.refuse("PT301", f"{call.name} cannot broadcast shapes {shapes}: axis {axis} has extents that differ and none is 1",
                       others=others, help=KEEPDIM.format(dropped) if (dropped := dropped_axis(call)) else
                       "extents must be equal or 1; reshape or slice one operand")


def broadcast(call: Call) -> tuple[Shape, ...]:
    """All operands broadcast together."""
    return (broadcast_shapes(call, call.present),)


def same(call: Call) -> tuple[Shape, ...]:
    """The first operand's shape."""
    return (_first(call).type.shape,)


def scalar(call: Call) -> tuple[Shape, ...]:
    """No dimensions."""
    return ((),)


def from_attribute(call: Call) -> tuple[Shape, ...]:
    """The `shape` attribute."""
    shape = tuple(as_index(e) for e in call.attributes["shape"])
    wrong = next((e for e in shape if e.constant is not None and not 0 <= e.constant < 1 << 62), None)
    if wrong is not None:
        raise call.refuse("PT111", f"{call.name}: {wrong} is no extent", help="give extents of at least 0: [64, 64]")
    return (shape,)


def _first(call: Call) -> Value:
    return cast(Value, call.operands[0])


def axis_of(call: Call, axis: object, rank: int, name: str = "dim") -> int:
    """An axis attribute as a number in [0, rank); PT302 when it is outside."""
    if not isinstance(axis, int) or isinstance(axis, bool) or not -rank <= axis < rank:
        allowed = f"-{rank} to {rank - 1}" if rank else "none: the tensor has no dimensions"
        raise call.refuse("PT302", f"{call.name}: `{name}` is {axis!r}, and the tensor's axes are {allowed}",
                          help=f"{name}=-1 is the last axis" if rank else "reshape the scalar to a tensor with axes first")
    return axis % rank


def axes_of(call: Call, dim: object, rank: int) -> tuple[int, ...]:
    """`dim` of a reduction: None is every axis, an int one, a tuple several; sorted and without repeats."""
    if dim is None:
        return tuple(range(rank))
    given = dim if isinstance(dim, tuple) else (dim,)
    axes = tuple(sorted(axis_of(call, d, rank) for d in given))
    if len(set(axes)) != len(axes):
        raise call.refuse("PT302", f"{call.name}: `dim` names an axis twice: {dim!r}")
    return axes


def reduced_shape(shape: Shape, axes: Sequence[int], keepdim: bool) -> Shape:
    """``shape`` without ``axes``, or with 1 there."""
    if keepdim:
        return tuple(as_index(1) if i in axes else e for i, e in enumerate(shape))
    return tuple(e for i, e in enumerate(shape) if i not in axes)


def reduce(call: Call) -> tuple[Shape, ...]:
    """Attributes `dim` and `keepdim`."""
    shape = _first(call).type.shape
    return (reduced_shape(shape, axes_of(call, call.attributes["dim"], len(shape)), bool(call.attributes["keepdim"])),)


def reduce_nonempty(call: Call) -> tuple[Shape, ...]:
    """As `reduce`, for reductions without identity: a reduced extent of 0 is refused."""
    shape = _first(call).type.shape
    require_something(call, shape, axes_of(call, call.attributes["dim"], len(shape)))
    return reduce(call)


def require_something(call: Call, shape: Shape, axes: Sequence[int]) -> None:
    """PT306 where an axis is known to be of extent 0; a check before the kernel runs where the caller's arrays decide it."""
    for axis in axes:
        if shape[axis].constant == 0:
            raise call.refuse("PT306", f"{call.name} over axis {axis} of extent 0 has no value",
                              help=f"{call.name} needs at least one element; sum and prod of nothing are 0 and 1")
        if shape[axis].constant is None and not is_expanding() and known_at_launch(call.graph, shape[axis]):
            call.graph.checks.append(Check(maximum(1, shape[axis]), shape[axis], call.span, call.name))


def along_axis(call: Call) -> tuple[Shape, ...]:
    """The operand's shape; `dim` must be one of its axes."""
    shape = _first(call).type.shape
    axis_of(call, call.attributes["dim"], len(shape))
    return (shape,)


def last_axis_parameters(call: Call) -> tuple[Shape, ...]:
    """The first operand's shape; further operands (gamma, beta) have the last axis's extent."""
    x = _first(call).type.shape
    if not x:
        raise call.refuse("PT302", f"{call.name} normalises the last axis, and the tensor has no dimensions")
    for i, value in enumerate(call.operands[1:], 1):
        if value is None:
            continue
        shape = value.type.shape
        if len(shape) != 1 or not require_equal(call, shape[0], x[-1]):
            raise call.refuse("PT307", f"{call.name}: operand {i} has shape {shape_text(shape)}, and the last axis has extent {x[-1]}",
                              help=f"give it the shape [{x[-1]}]")
    return (x,)


def matmul(call: Call) -> tuple[Shape, ...]:
    """[.., M, K] @ [.., K, N] with `a_trans` and `b_trans`; leading axes broadcast."""
    a, b = _first(call), cast(Value, call.operands[1])
    for value, name in ((a, "first"), (b, "second")):
        if value.type.rank < 2:
            raise call.refuse("PT303", f"matmul takes matrices, and its {name} operand has shape {shape_text(value.type.shape)}",
                              help="pypto.reshape(v, [1, n]) makes a row of it, pypto.reshape(v, [n, 1]) a column")
    m, k = _matrix(a.type, bool(call.attributes["a_trans"]))
    k2, n = _matrix(b.type, bool(call.attributes["b_trans"]))
    if not require_equal(call, k, k2):
        raise call.refuse("PT304", f"matmul contracts {k} columns of the first operand with {k2} rows of the second: "
                          f"{shape_text(a.type.shape)} @ {shape_text(b.type.shape)}",
                          help=f"b_trans=True contracts {k} with {n}" if k == n else f"a_trans=True contracts {m} with {k2}" if m == k2 else
                          "the contracted extents must be equal; a_trans and b_trans swap the last two axes")
    lead = [_Lead(v, v.type.shape[:-2]) for v in (a, b)]
    return ((*broadcast_shapes(call, [x.value for x in lead]), m, n),)


class _Lead:
    """The leading axes of a matmul operand, as something to broadcast."""

    def __init__(self, value: Value, shape: Shape) -> None:
        self.value = Value(TensorType(value.type.dtype, shape, valid=value.type.live[:len(shape)]), value.name, value.op)


def _matrix(t: TensorType, transposed: bool) -> tuple[Index, Index]:
    return (t.shape[-1], t.shape[-2]) if transposed else (t.shape[-2], t.shape[-1])


def element_count(shape: Sequence[Index]) -> Index:
    """The product of the extents."""
    total = as_index(1)
    for extent in shape:
        total = total * extent
    return total


def reshape(call: Call) -> tuple[Shape, ...]:
    """The `shape` attribute; one -1 is worked out; the element count must not change."""
    source = _first(call).type.shape
    target = [as_index(e) for e in call.attributes["shape"]]
    free = [i for i, e in enumerate(target) if e.constant == -1]
    total = element_count(source)
    if len(free) > 1:
        raise call.refuse("PT308", f"reshape: only one extent can be -1, and got {shape_text(target)}", help="write the other extents out")
    if free:
        known = element_count([e for e in target if e.constant != -1])
        quotient = total // known
        if (quotient * known - total).constant != 0:
            raise call.refuse("PT308", f"reshape: {shape_text(source)} does not divide into {shape_text(target)}")
        target[free[0]] = quotient
    if not require_equal(call, element_count(target), total):
        counts = f"{shape_text(source)} has {total} elements and {shape_text(target)} has {element_count(target)}"
        raise call.refuse("PT308", f"reshape: {counts}", help=f"give extents that multiply to {total}; one may be -1")
    if call.attributes.get("valid") is not None:
        valid = [as_index(e) for e in call.attributes["valid"]]
        surplus = (element_count(valid) - element_count(_first(call).type.live)).constant
        if len(valid) != len(target) or surplus not in (0, None):
            raise call.refuse("PT308", f"reshape: valid_shape {shape_text(valid)} does not hold the live elements "
                              f"{shape_text(_first(call).type.live)} of the tensor",
                              help="valid_shape has one extent per axis, and multiplies out")
    return (tuple(target),)


def permute(call: Call) -> tuple[Shape, ...]:
    """The `perm` attribute: a permutation of the axes."""
    shape = _first(call).type.shape
    perm = tuple(axis_of(call, p, len(shape), "perm") for p in call.attributes["perm"])
    if sorted(perm) != list(range(len(shape))):
        raise call.refuse("PT302", f"permute: {call.attributes['perm']} is not a permutation of {len(shape)} axes")
    return (tuple(shape[p] for p in perm),)


def at_least_matrix(call: Call) -> tuple[Shape, ...]:
    """The operand's shape, of rank 2 or more."""
    shape = _first(call).type.shape
    if len(shape) < 2:
        raise call.refuse("PT303", f"{call.name} takes a matrix or a stack of matrices, and got shape {shape_text(shape)}")
    return (shape,)


def in_place(call: Call) -> tuple[Shape, ...]:
    """The first operand's shape; the others may be broadcast to it but not enlarge it."""
    target = _first(call)
    result = broadcast_shapes(call, [o for o in call.operands if o is not None])
    if len(result) != target.type.rank or not all(require_equal(call, r, t) for r, t in zip(result, target.type.shape, strict=True)):
        raise call.refuse("PT309", f"{call.name} writes into a tensor of shape {shape_text(target.type.shape)}, and the broadcast shape is "
                          f"{shape_text(result)}", help="only the other operand may be broadcast; enlarge the destination first")
    return (target.type.shape,)


def same_twice(call: Call) -> tuple[Shape, ...]:
    """Two results of the first operand's shape."""
    return same(call) * 2


def prelu(call: Call) -> tuple[Shape, ...]:
    """The operand's shape; the weight is one number, or one per element of axis 1."""
    x, weight = _first(call).type.shape, cast(Value, call.operands[1]).type.shape
    channels = x[1] if len(x) > 1 else as_index(1)
    if len(weight) > 1 or (weight and weight[0].constant != 1 and not require_equal(call, weight[0], channels)):
        raise call.refuse("PT307", f"{call.name}: the weight has shape {shape_text(weight)}, and axis 1 has extent {channels}",
                          help=f"give it the shape [1] or [{channels}]")
    return (x,)
