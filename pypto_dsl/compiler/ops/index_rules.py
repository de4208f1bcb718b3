"""Shape rules, live extents and dtype rules of the operations that read, write and order by position."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pypto_dsl.compiler.dtypes import F8E4M3, F8E5M2, F8E8M0, F32, I32, DType
from pypto_dsl.compiler.graph import Graph, Value
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.ops import live, typing
from pypto_dsl.compiler.ops.definition import Call, Typing
from pypto_dsl.compiler.ops.layout_rules import destination
from pypto_dsl.compiler.ops.shapes import axes_of, axis_of, broadcast_shapes, require_equal, require_something, shape_text
from pypto_dsl.compiler.promotion.atype import strong
from pypto_dsl.compiler.promotion.families import OpTyping

Shapes = tuple[tuple[Index, ...], ...]


def _shape(call: Call, position: int = 0) -> tuple[Index, ...]:
    return cast(Value, call.operands[position]).type.shape


def _mismatch(call: Call, what: str, help: str = "") -> Exception:
    return call.refuse("PT317", f"{call.name}: {what}", help=help)


def whole(call: Call) -> None:
    """Refuse tails where an operation is not defined on a live part (PT317)."""
    for value in call.operands:
        if value is not None and value.type.valid is not None:
            raise _mismatch(call, f"`{value.name}` is a tail of live extents {shape_text(value.type.live)}",
                            "take a view of its live part first")


def gather(call: Call) -> Shapes:
    """The index's shape: of x's rank, and not longer than x along the axes that are not gathered."""
    x, index = _shape(call), _shape(call, 1)
    axis = axis_of(call, call.attributes["dim"], len(x))
    if len(x) != len(index):
        raise _mismatch(call, f"the index has rank {len(index)}, and the tensor rank {len(x)}",
                        "gather takes an index of the tensor's rank")
    for i, (have, need) in enumerate(zip(x, index, strict=True)):
        room = (have - need).constant
        if i != axis and room is not None and room < 0:
            raise _mismatch(call, f"the index has extent {need} along axis {i}, and the tensor only {have}")
    return (index,)


def index_select(call: Call) -> Shapes:
    """x's shape with `dim` replaced by the index's shape."""
    x, index = _shape(call), _shape(call, 1)
    axis = axis_of(call, call.attributes["dim"], len(x))
    return ((*x[:axis], *index, *x[axis + 1:]),)


def gathermask(call: Call) -> Shapes:
    """Every element, every second or every fourth of the last axis."""
    x, pattern = _shape(call), call.attributes["pattern_mode"]
    period = {1: 2, 2: 2, 3: 4, 4: 4, 5: 4, 6: 4, 7: 1}.get(pattern)
    if period is None:
        raise call.refuse("PT111", f"gathermask has no pattern {pattern!r}", help="patterns are 1 to 7")
    if not x or (x[-1] % period).constant != 0:
        raise _mismatch(call, f"pattern {pattern} takes one of {period} elements, and the last axis of {shape_text(x)} is no multiple")
    return ((*x[:-1], x[-1] // period),)


def scatter(call: Call) -> Shapes:
    """x's shape; index and src (or a number) have one shape, of x's rank and not longer along the other axes."""
    x, index, src = _shape(call), _shape(call, 1), _shape(call, 2)
    axis = axis_of(call, call.attributes["dim"], len(x))
    if len(x) != len(index):
        raise _mismatch(call, f"the index has rank {len(index)}, and the tensor rank {len(x)}")
    for i, (have, need) in enumerate(zip(x, index, strict=True)):
        room = (have - need).constant
        if i != axis and room is not None and room < 0:
            raise _mismatch(call, f"the index has extent {need} along axis {i}, and the tensor only {have}")
    if src and (len(src) != len(index) or not all(require_equal(call, a, b) for a, b in zip(src, index, strict=True))):
        raise _mismatch(call, f"the source has shape {shape_text(src)}, and the index {shape_text(index)}")
    if call.attributes["reduce"] not in (None, "add", "multiply", "ADD", "MULTIPLY", "NONE"):
        raise call.refuse("PT111", f"scatter has no reduce {call.attributes['reduce']!r}", help='None, "add" or "multiply"')
    return (x,)


def index_add(call: Call) -> Shapes:
    """x's shape; the source is like x with the index's extent along `dim`."""
    x, index, source = _shape(call), _shape(call, 1), _shape(call, 2)
    axis = axis_of(call, call.attributes["dim"], len(x))
    if len(index) != 1:
        raise _mismatch(call, f"the index has shape {shape_text(index)}", "give it one axis")
    wanted = (*x[:axis], index[0], *x[axis + 1:])
    if len(source) != len(wanted) or not all(require_equal(call, a, b) for a, b in zip(source, wanted, strict=True)):
        raise _mismatch(call, f"the source has shape {shape_text(source)}, and the index asks for {shape_text(wanted)}")
    return (x,)


def index_put(call: Call) -> Shapes:
    """x's shape; the indices broadcast together, and the values to them and x's remaining axes."""
    x, values = _shape(call), cast(Value, call.operands[1])
    indices = [cast(Value, o) for o in call.operands[2:]]
    if not indices or len(indices) > len(x):
        raise _mismatch(call, f"{len(indices)} indices for a tensor of rank {len(x)}")
    placed = (*broadcast_shapes(call, indices), *x[len(indices):])
    given = values.type.shape
    if len(given) > len(placed) or not all(e.constant == 1 or require_equal(call, e, placed[len(placed) - len(given) + i])
                                          for i, e in enumerate(given)):
        raise _mismatch(call, f"values of shape {shape_text(given)} do not broadcast to {shape_text(placed)}")
    return (x,)


def put_types(call: Call) -> Typing:
    """The destination keeps its dtype, the values must join to it, the indices are indices."""
    return typing.written(1, *range(2, len(call.operands)))(call)


def scatter_update(call: Call) -> Shapes:
    """x's shape: rows [n, d] with src [a, b, d], or blocks of rows [n, s, 1, d] with src [a, b, 1, d]; the index is [a, b]."""
    x, index, src = _shape(call), _shape(call, 1), _shape(call, 2)
    if len(x) not in (2, 4) or len(index) != 2 or len(src) not in (len(x), 3) or not require_equal(call, x[-1], src[-1]):
        raise _mismatch(call, f"shapes {shape_text(x)}, index {shape_text(index)}, src {shape_text(src)}",
                        "x is [rows, d] or [blocks, rows, 1, d], the index [a, b], src one row of x per index")
    rows, wanted = src[0], index[0]
    if len(src) > 2:
        rows, wanted = rows * src[1], wanted * index[1]
    else:
        wanted = wanted * index[1]
    if not require_equal(call, rows, wanted):
        raise _mismatch(call, f"src has {rows} rows, and the index {wanted}")
    return (x,)


def atomic_add(call: Call) -> Shapes:
    """The destination's shape, which is the second operand; src must fit at `offsets`."""
    src, target = _shape(call), _shape(call, 1)
    offsets = [as_index(o) for o in call.attributes["offsets"]]
    if not len(src) == len(target) == len(offsets):
        raise call.refuse("PT312", f"a tensor of rank {len(src)} cannot be added into one of rank {len(target)} at {len(offsets)} offsets")
    for axis, (have, extent, offset) in enumerate(zip(target, src, offsets, strict=True)):
        beyond = (offset + extent - have).constant
        if (beyond is not None and beyond > 0) or (offset.constant is not None and offset.constant < 0):
            raise call.refuse("PT314", f"axis {axis} of the destination has extent {have}, and {extent} elements are added at {offset}")
    return (target,)


def atomic_add_types(call: Call) -> Typing:
    """The destination, the second operand, keeps its dtype; src must join to it."""
    src, target = call.operands
    swapped = destination(Call(call.name, (target, src), call.attributes, call.graph, call.span))
    return swapped


def one_hot(call: Call) -> Shapes:
    """The operand's shape and an axis of `num_classes`."""
    count = call.attributes["num_classes"]
    if not isinstance(count, int) or count < 1:
        raise call.refuse("PT111", f"one_hot: `num_classes` is {count!r}", help="give the number of classes, at least 1")
    return ((*_shape(call), as_index(count)),)


def topk(call: Call) -> Shapes:
    """Twice the operand's shape with `k` along `dim`."""
    x = _shape(call)
    dim, k = call.attributes["dim"], call.attributes["k"]
    axis = axis_of(call, -1 if dim is None else dim, len(x))
    if not isinstance(k, int) or k < 0 or ((x[axis] - k).constant is not None and cast(int, (x[axis] - k).constant) < 0):
        raise call.refuse("PT111", f"topk: `k` is {k!r}, and axis {axis} has extent {x[axis]}", help=f"0 to {x[axis]}")
    shape = (*x[:axis], as_index(k), *x[axis + 1:])
    return (shape, shape)


def ordered(call: Call) -> Shapes:
    """The operand's shape; `dim` is one of its axes (None: the last)."""
    x = _shape(call)
    axis_of(call, -1 if call.attributes["dim"] is None else call.attributes["dim"], len(x))
    return (x,)


def ordered_twice(call: Call) -> Shapes:
    """As `ordered`, for values and positions."""
    return ordered(call) * 2


def argument(call: Call) -> Shapes:
    """A reduction over one axis, or over all when `dim` is None; not of nothing."""
    x, dim, keep = _shape(call), call.attributes["dim"], bool(call.attributes["keepdim"])
    axes = axes_of(call, dim, len(x))
    require_something(call, x, axes)
    if keep:
        return (tuple(as_index(1) if i in axes else e for i, e in enumerate(x)),)
    return (tuple(e for i, e in enumerate(x) if i not in axes),)


def pad(call: Call) -> Shapes:
    """`pad` is (before, after) of the last axis, then of the one before it, and so on."""
    x, amounts = _shape(call), call.attributes["pad"]
    if len(amounts) % 2 or len(amounts) > 2 * len(x) or not all(isinstance(p, int) and p >= 0 for p in amounts):
        raise call.refuse("PT111", f"pad: {amounts!r} for a tensor of rank {len(x)}",
                          help="pairs (before, after), not negative, for the last axis first; use view to cut")
    _constant_mode(call)
    shape = list(x)
    for i in range(0, len(amounts), 2):
        axis = len(x) - 1 - i // 2
        shape[axis] = shape[axis] + amounts[i] + amounts[i + 1]
    return (tuple(shape),)


def _constant_mode(call: Call) -> None:
    if call.attributes["mode"] != "constant":
        raise call.refuse("PT111", f"{call.name}: there is no mode {call.attributes['mode']!r}", help='the mode is "constant"')


def fillpad(call: Call) -> Shapes:
    """The operand's shape."""
    _constant_mode(call)
    return (_shape(call),)


def pair(call: Call) -> Shapes:
    """Two results of the operands' one shape, whose last extent is even."""
    a, b = _shape(call), _shape(call, 1)
    whole(call)
    if not a or len(a) != len(b) or not all(require_equal(call, p, q) for p, q in zip(a, b, strict=True)):
        raise _mismatch(call, f"shapes {shape_text(a)} and {shape_text(b)} differ")
    if (a[-1] % 2).constant != 0:
        raise _mismatch(call, f"the last extent, {a[-1]}, is not even")
    return (a, a)


def flip(call: Call) -> Shapes:
    """The operand's shape; `dims` are axes of it."""
    axes_of(call, call.attributes["dims"], len(_shape(call)))
    return (_shape(call),)


def repeat(call: Call) -> Shapes:
    """`repeats` times the extent along `dim`."""
    x, count = list(_shape(call)), call.attributes["repeats"]
    axis = axis_of(call, call.attributes["dim"], len(x))
    if not isinstance(count, int) or count < 0:
        raise call.refuse("PT111", f"repeat_interleave: `repeats` is {count!r}", help="a number of repetitions, not negative")
    x[axis] = x[axis] * count
    return (tuple(x),)


def stack(call: Call) -> Shapes:
    """A new axis with one slice per tensor."""
    values = [cast(Value, o) for o in call.operands]
    if not values:
        raise call.refuse("PT110", "stack takes at least one tensor")
    first = values[0].type.shape
    for value in values[1:]:
        shape = value.type.shape
        if len(shape) != len(first) or not all(require_equal(call, a, b) for a, b in zip(shape, first, strict=True)):
            raise call.refuse("PT313", f"stack: shapes {shape_text(first)} and {shape_text(shape)} differ")
    made = list(first)
    made.insert(axis_of(call, call.attributes["dim"], len(first) + 1), as_index(len(values)))
    return (tuple(made),)


def squeeze(call: Call) -> Shapes:
    """Without the axes of extent 1 that `dim` names (None: all)."""
    x, dim = _shape(call), call.attributes["dim"]
    named = [i for i, e in enumerate(x) if e.constant == 1] if dim is None else list(axes_of(call, dim, len(x)))
    for axis in named:
        if x[axis].constant != 1:
            raise call.refuse("PT315", f"squeeze: axis {axis} has extent {x[axis]}, not 1")
    return (tuple(e for i, e in enumerate(x) if i not in named),)


def packed(call: Call) -> Shapes:
    """The last axis in bytes."""
    x = _shape(call)
    whole(call)
    width = cast(Value, call.operands[0]).type.dtype.itemsize
    if not x:
        raise _mismatch(call, "a scalar has no axis of bytes")
    return ((*x[:-1], x[-1] * width),)


def unpacked(call: Call) -> Shapes:
    """The last axis in elements of `dtype`."""
    x, dtype = _shape(call), call.attributes["dtype"]
    whole(call)
    if not isinstance(dtype, DType) or not x or (x[-1] % dtype.itemsize).constant != 0:
        raise _mismatch(call, f"{shape_text(x)} bytes are no whole elements of {dtype}")
    return ((*x[:-1], x[-1] // dtype.itemsize),)


def unpack_types(call: Call) -> Typing:
    """UINT8 becomes `dtype`."""
    source = cast(Value, call.operands[0]).type.dtype
    if source.name != "u8":
        raise call.refuse("PT203", f"unpack takes UINT8, and got {source}")
    return typing.declared(call)


# ---- attention and quantization ------------------------------------------------------------------------------------------------


def attention(call: Call) -> Shapes:
    """query [.., m, d], key [.., n, d], value [.., n, e], mask to [.., m, n]; the result is [.., m, e]."""
    q, k, v = (_shape(call, i) for i in range(3))
    if min(len(q), len(k), len(v)) < 2:
        raise call.refuse("PT303", "attention takes matrices or stacks of matrices as query, key and value")
    if not require_equal(call, q[-1], k[-1]) or not require_equal(call, k[-2], v[-2]):
        raise call.refuse("PT304", f"attention: query {shape_text(q)}, key {shape_text(k)}, value {shape_text(v)}",
                          help="query and key have one last extent, key and value one extent before the last")
    lead = broadcast_shapes(call, [_lead(call, i) for i in range(3)])
    mask = call.operands[3] if len(call.operands) > 3 else None
    if mask is not None:
        wanted = (*lead, q[-2], k[-2])
        given = mask.type.shape
        if len(given) > len(wanted) or not all(e.constant == 1 or require_equal(call, e, wanted[len(wanted) - len(given) + i])
                                              for i, e in enumerate(given)):
            raise call.refuse("PT301", f"attention: a mask of shape {shape_text(given)} does not broadcast to {shape_text(wanted)}")
    whole(call)
    return ((*lead, q[-2], v[-1]),)


def _lead(call: Call, position: int) -> Value:
    value = cast(Value, call.operands[position])
    return Value(value.type.__class__(value.type.dtype, value.type.shape[:-2]), value.name, value.op)


def attention_types(call: Call) -> Typing:
    """Query, key and value join; a BOOL mask stays one, another is added as it is."""
    first = [o for o in call.operands[:3] if o is not None]
    joined = typing.float_unary(Call(call.name, tuple(first), call.attributes, call.graph, call.span))
    mask = call.operands[3] if len(call.operands) > 3 else None
    if mask is None:
        return joined
    dtype = mask.type.dtype if mask.type.dtype.kind == "bool" else joined.casts[0]
    casts = (*joined.casts, dtype)
    return Typing(replace(joined.typing, operand_casts=casts, landings=casts), joined.results)


def scaled(call: Call) -> Shapes:
    """x's shape; scales are one number, one per slice along `axis`, or of x's rank."""
    x = _shape(call)
    axis = axis_of(call, call.attributes["axis"], len(x), "axis")
    for i, value in enumerate(call.operands[1:], 1):
        if value is None:
            continue
        shape = value.type.shape
        fits = len(shape) == 0 or (len(shape) == 1 and (shape[0].constant == 1 or require_equal(call, shape[0], x[axis]))) or (
            len(shape) == len(x) and all(e.constant == 1 or require_equal(call, e, x[j]) for j, e in enumerate(shape)))
        if not fits:
            raise call.refuse("PT307", f"{call.name}: operand {i} has shape {shape_text(shape)}, and axis {axis} has extent {x[axis]}",
                              help=f"give it the shape [{x[axis]}], or one that broadcasts to {shape_text(x)}")
    return (x,)


def quantize_types(call: Call) -> Typing:
    """Floats in, computed in f32, `otype` out (INT8 or UINT8)."""
    otype = call.attributes["otype"]
    if not isinstance(otype, DType) or otype.name not in ("i8", "u8"):
        raise call.refuse("PT203", f"quantize makes i8 and u8, and `otype` is {otype}", help="pypto.DT_INT8 or pypto.DT_UINT8")
    _require_float(call, 0)
    return _in_f32(call, otype)


def dequantize_types(call: Call) -> Typing:
    """Integers in, computed in f32, `otype` out (a float)."""
    otype, source = call.attributes["otype"], cast(Value, call.operands[0]).type.dtype
    if not isinstance(otype, DType) or otype not in typing.FLOATS:
        raise call.refuse("PT203", f"dequantize makes floats, and `otype` is {otype}", help="pypto.DT_FP32")
    if not source.is_integer or source.bits > 32:
        raise call.refuse("PT203", f"dequantize takes integers of at most 32 bits, and got {source}")
    typed = _in_f32(call, otype)
    casts = (source, *typed.casts[1:])  # the integers stay: a promoted graph is typed again
    return Typing(replace(typed.typing, operand_casts=casts, landings=casts), typed.results)


def _in_f32(call: Call, result: DType) -> Typing:
    casts = tuple(F32 for o in call.operands if o is not None)
    return Typing(OpTyping(F32, casts, strong(result), casts, "computed in f32"), (strong(result),))


def _require_float(call: Call, position: int) -> None:
    source = cast(Value, call.operands[position]).type.dtype
    if source not in typing.FLOATS:
        raise call.refuse("PT203", f"{call.name} takes floats, and got {source}")


def quant_mx_types(call: Call) -> Typing:
    """(elements of `quant_dtype`, scales of FP8E8M0)."""
    dtype = call.attributes["quant_dtype"]
    if dtype not in (F8E4M3, F8E5M2):
        raise call.refuse("PT203", f"quant_mx makes f8e4m3 and f8e5m2, and `quant_dtype` is {dtype}")
    _require_float(call, 0)
    source = cast(Value, call.operands[0]).type.dtype
    first, second = strong(cast(DType, dtype)), strong(F8E8M0)
    return Typing(OpTyping(F32, (source,), first, (source,), "computed in f32"), (first, second))


def quant_mx(call: Call) -> Shapes:
    """x's shape, and a scale per 32 elements along `axis`."""
    x = _shape(call)
    whole(call)
    if call.attributes["mode"] not in ("FLOOR", "ROUND_DOWN"):
        raise call.refuse("PT111", f"quant_mx: there is no mode {call.attributes['mode']!r}",
                          help="scales are rounded down: pypto.ROUND_DOWN")
    axis = axis_of(call, call.attributes["axis"], len(x), "axis")
    if (x[axis] % 32).constant != 0:
        raise _mismatch(call, f"axis {axis} has extent {x[axis]}, which is no multiple of the block of 32", "pad it first")
    return (x, (*x[:axis], x[axis] // 32, *x[axis + 1:]))


def scaled_mm(call: Call) -> Shapes:
    """[m, k] @ [k, n] with one scale per 32 of k for each row of the first and each column of the second."""
    a, b, scale_a, scale_b = (_shape(call, i) for i in range(4))
    whole(call)
    if min(len(a), len(b)) != 2 or max(len(a), len(b)) != 2:
        raise call.refuse("PT303", f"scaled_mm takes two matrices, and got {shape_text(a)} and {shape_text(b)}")
    m, k = (a[1], a[0]) if call.attributes["a_trans"] else (a[0], a[1])
    k2, n = (b[1], b[0]) if call.attributes["b_trans"] else (b[0], b[1])
    if not require_equal(call, k, k2):
        raise call.refuse("PT304", f"scaled_mm contracts {k} columns with {k2} rows")
    blocks = (k + 31) // 32
    for name, given, wanted in (("scale_a", scale_a, (m, blocks)), ("scale_b", scale_b, (blocks, n))):
        if len(given) != 2 or not all(require_equal(call, x, y) for x, y in zip(given, wanted, strict=True)):
            raise call.refuse("PT307", f"scaled_mm: {name} has shape {shape_text(given)}, and must have {shape_text(wanted)}",
                              help="one scale per row (column) and 32 of the contracted axis")
    bias = call.operands[4] if len(call.operands) > 4 else None
    if bias is not None and (bias.type.rank != 1 or not require_equal(call, bias.type.shape[0], n)):
        raise call.refuse("PT307", f"scaled_mm: the bias has shape {shape_text(bias.type.shape)}, and must have [{n}]")
    return ((m, n),)


def scaled_mm_types(call: Call) -> Typing:
    """FP8 or float matrices with FP8E8M0 (or f32) scales, accumulated in f32; `out_dtype` out (default FP32)."""
    out = call.attributes["out_dtype"] or F32
    if not isinstance(out, DType) or out not in typing.FLOATS:
        raise call.refuse("PT203", f"scaled_mm makes floats, and `out_dtype` is {out}")
    for position in range(2):
        source = cast(Value, call.operands[position]).type.dtype
        if not source.is_float:
            raise call.refuse("PT203", f"scaled_mm takes float matrices, and got {source}", help="use matmul on integers")
    casts = tuple(o.type.dtype for o in call.operands if o is not None)
    return Typing(OpTyping(F32, casts, strong(out), casts, "accumulated in f32"), (strong(out),))


def index_result(call: Call) -> Typing:
    """INT32 positions."""
    return typing.gives(I32)(call)


def generated(call: Call) -> Typing:
    """FP32, FP16 or BF16 from words of a counter-based generator (PT111, PT203)."""
    made = typing.declared(call)
    dtype = made.results[0].dtype
    if dtype not in typing.FLOATS or dtype.bits > 32:
        raise call.refuse("PT203", f"{call.name} makes f16, bf16 and f32, and got {dtype}")
    for name, most in (("key", 2), ("counter", 4)):
        words = call.attributes[name]
        if not 1 <= len(words) <= most or not all(isinstance(w, int) for w in words):
            raise call.refuse("PT111", f"{call.name}: `{name}` is {words!r}", help=f"1 to {most} integers of 32 bits, the lowest first")
    if call.attributes["alg"] != "PHILOX":
        raise call.refuse("PT111", f"{call.name} has no algorithm {call.attributes['alg']!r}", help='the algorithm is "PHILOX"')
    return made


def dropout(call: Call) -> Shapes:
    """The operand's shape; the numbers of a tail would be those of the whole, so tails are refused."""
    whole(call)
    if not 0 <= call.attributes["probability"] < 1:
        raise call.refuse("PT111", f"dropout: `probability` is {call.attributes['probability']!r}", help="a number in [0, 1)")
    return (_shape(call),)


# ---- live extents --------------------------------------------------------------------------------------------------------------


def _of(position: int) -> live.LiveRule:
    def rule(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
        return operands[position].type.live

    return rule


def _select_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    x, index = operands[0].type, operands[1].type
    axis = attributes["dim"] % x.rank
    return (*x.live[:axis], *index.live, *x.live[axis + 1:])


def _topk_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    x = operands[0].type
    axis = (-1 if attributes["dim"] is None else attributes["dim"]) % x.rank
    return (*x.live[:axis], as_index(attributes["k"]), *x.live[axis + 1:])


def _whole_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    return shape


def _one_hot_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    return (*operands[0].type.live, shape[-1])


def _pad_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    source = operands[0].type
    return tuple(v + (e - have) for v, e, have in zip(source.live, shape, source.shape, strict=True))


def _reduced_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    return live.BY_FAMILY["reduce"](operands, attributes, shape, graph)


def _squeeze_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    source = operands[0].type
    dim = attributes.get("dim")
    named = {i for i, e in enumerate(source.shape) if e.constant == 1} if dim is None else {
        d % source.rank for d in (dim if isinstance(dim, tuple) else (dim,))}
    return tuple(v for i, v in enumerate(source.live) if i not in named)


def _stack_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    common = list(live.broadcast(operands, operands[0].type.rank))
    common.insert(attributes["dim"] % len(shape), as_index(len(operands)))
    return tuple(common)


def _repeat_live(operands: Sequence[Value], attributes: Mapping[str, Any], shape: live.Shape, graph: Graph) -> live.Shape:
    source = operands[0].type
    axis = attributes["dim"] % source.rank
    return tuple(v * attributes["repeats"] if i == axis else v for i, v in enumerate(source.live))


FIRST = ("scatter", "scatter_", "index_add", "index_add_", "index_put", "index_put_", "scatter_update", "prelu", "quantize", "dequantize")
live.BY_NAME.update({name: _of(0) for name in FIRST})
live.BY_NAME.update(
    gather=_of(1), atomic_add=_of(1), index_select=_select_live, topk=_topk_live, fillpad=_whole_live, one_hot=_one_hot_live, pad=_pad_live,
    argmax=_reduced_live, argmin=_reduced_live, squeeze=_squeeze_live, stack=_stack_live, repeat_interleave=_repeat_live)
