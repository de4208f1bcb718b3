"""The steps of reductions in their defined order (`compiler/summation.py`): partials, the halving tree, merging of block results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pypto_dsl.codegen.llvm import elements
from pypto_dsl.codegen.llvm.builder import I1, I64, PTR, Builder, Module, Type, Value
from pypto_dsl.codegen.llvm.intrinsics import extreme, larger_number
from pypto_dsl.compiler import dtypes
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.tile_ir.nodes import ReduceKind

LEVELS = 48  # of the binary counter: more blocks than memory can hold
ORDERED = frozenset({"sum", "prod"})


def identity(kind: ReduceKind, dtype: DType) -> float | int:
    """What a reduction of nothing gives (max and min of nothing are refused before)."""
    if kind in ("sum", "any"):
        return 0
    if kind in ("prod", "all"):
        return 1
    low, high = (float("-inf"), float("inf")) if dtype.is_float else dtype.range
    return low if kind == "max" else high


def combine(b: Builder, kind: ReduceKind, dtype: DType, x: Value, y: Value) -> Value:
    """One step of a reduction; ``x`` stands before ``y``."""
    if kind == "sum":
        return x + y
    if kind == "prod":
        return x * y
    if kind in ("any", "all"):
        return x | y if kind == "any" else x & y
    return extreme(b, x, y, dtype, kind == "max")


def keeps_nan_apart(b: Builder, kind: ReduceKind, dtype: DType) -> bool:
    """Whether an extreme is found faster by `ordered` steps and one look at NaN for several values."""
    return kind in ("max", "min") and dtype is dtypes.F32 and b.level.has_ranges


def ordered(b: Builder, kind: ReduceKind, dtype: DType, x: Value, y: Value) -> Value:
    """One step of an extreme of numbers; a NaN is passed over."""
    return larger_number(b, x, y, kind == "max")


def any_nan(b: Builder, values: list[Value]) -> Value:
    """The lanes that hold a NaN in any of the vectors, whose number is even."""
    return reduce(or_, [b.compare("uno", x, y) for x, y in zip(values[::2], values[1::2], strict=True)])


def still_ordered(b: Builder, masks: Sequence[Value], values: Sequence[Value]) -> list[Value]:
    """Of each mask the lanes that hold no NaN in a pair of vectors; a comparison under a mask is one instruction."""
    return [mask & b.compare("ord", x, y) for mask, x, y in zip(masks, values[::2], values[1::2], strict=True)]


def combined(b: Builder, kind: ReduceKind, dtype: DType, before: Value, values: list[Value]) -> Value:
    """Several steps of a reduction, in order; NaN is looked for in pairs."""
    if not keeps_nan_apart(b, kind, dtype) or len(values) == 1:
        return reduce(lambda x, y: combine(b, kind, dtype, x, y), values, before)
    number = reduce(lambda x, y: ordered(b, kind, dtype, x, y), values, before)
    every = [before, *values]
    return b.select(any_nan(b, every if len(every) % 2 == 0 else [*every, before]), float("nan"), number)


def tree(b: Builder, kind: ReduceKind, dtype: DType, partials: list[Value]) -> Value:
    """64 partials in consecutive vectors, halved to one scalar."""
    if keeps_nan_apart(b, kind, dtype):
        partials = [combined(b, kind, dtype, partials[0], partials[1:])]
    while len(partials) > 1:
        half = len(partials) // 2
        partials = [combine(b, kind, dtype, x, y) for x, y in zip(partials[:half], partials[half:], strict=True)]
    value = partials[0]
    if kind in ("max", "min") and dtype.is_float:
        return _extreme_lane(b, kind == "max", value)
    lanes = value.type.lanes
    while lanes > 1:
        lanes //= 2
        order = ", ".join(f"i32 {i}" for i in range(lanes))
        upper = ", ".join(f"i32 {lanes + i}" for i in range(lanes))
        type = Type(value.type.element, lanes)
        low, high = (b.emit(type, f"shufflevector {value.typed}, {value.type} poison, <{lanes} x i32> <{o}>") for o in (order, upper))
        value = combine(b, kind, dtype, low, high)
    return b.extract(value, 0)


def _extreme_lane(b: Builder, largest: bool, value: Value) -> Value:
    """The extreme lane by integers that order as the floats do, -0 below +0 and NaN beyond everything: short chains, and no order.

    Every NaN becomes the usual one, `one_nan`."""
    bits = b.bits(value)
    width = 8 * value.type.bytes
    top = (1 << (width - 1)) - 1

    def turn(x: Value) -> Value:
        return x ^ ((x >> (width - 1)) & top)

    nan = _NAN[value.type.element]
    key = b.select(b.compare("uno", value, value), b.constant(bits.type, nan if largest else ~nan), turn(bits))
    name = f"llvm.vector.reduce.s{'max' if largest else 'min'}.{key.type.mangled}"
    found = b.from_bits(turn(b.call(Type(key.type.element), name, key)), value.type.element)
    return found if largest else one_nan(b, found)


_NAN = {"float": 0x7FC00000, "double": 0x7FF8 << 48, "half": 0x7E00, "bfloat": 0x7FC0}


def one_nan(b: Builder, value: Value) -> Value:
    """The value, or the usual NaN: what is computed with that has the same bits whatever comes first."""
    return b.select(b.compare("uno", value, value), float("nan"), value)


def reduced_dtype(kind: ReduceKind, dtype: DType) -> DType:
    """The dtype that a reduction's state has."""
    return dtypes.BOOL if kind in ("any", "all") else dtype


# ---- pairwise merging: a binary counter of finished blocks ----------------------------------------------------------------


def add_block(b: Builder, kind: ReduceKind, dtype: DType, levels: Value, number: Value, result: Value) -> None:
    """Merge the result of block ``number`` of a row with the blocks before. ``levels`` holds one number per level, and behind them the one
    that is merged; `push_function` is the same for many columns."""
    carries = _zeros_below(b, ~number)
    merged = b.offset(levels, LEVELS, result.type.element)
    b.store(result, merged)
    b.loop(0, carries, 1, lambda level, _: _merge(b, kind, dtype, levels, level, merged, result.type), hint="carry")
    b.store(b.load(result.type, merged), b.offset(levels, carries, result.type.element))


def all_blocks(b: Builder, kind: ReduceKind, dtype: DType, levels: Value, blocks: Value) -> Value:
    """Everything that `add_block` has merged; of no block, what level 0 held before."""
    type = Type(elements.memory_element(dtype))
    merged = b.offset(levels, LEVELS, type.element)
    lowest = b.select(b.compare("eq", blocks, 0), b.constant(I64, 0), _zeros_below(b, blocks))
    b.store(b.load(type, b.offset(levels, lowest, type.element)), merged)

    def level(_: Value, left: list[Value]) -> list[Value]:
        _merge(b, kind, dtype, levels, _zeros_below(b, left[0]), merged, type)
        return [left[0] & (left[0] - 1)]

    b.loop(1, b.call(I64, "llvm.ctpop.i64", blocks), 1, level, [blocks & (blocks - 1)], "level")
    return b.load(type, merged)


def _merge(b: Builder, kind: ReduceKind, dtype: DType, levels: Value, level: Value, merged: Value, type: Type) -> None:
    """One step of the counter. Both numbers are in memory, as `push_function` has them: of two NaN the same one stays."""
    earlier = b.load(type, b.offset(levels, level, type.element))
    b.store(combine(b, kind, dtype, earlier, b.load(type, merged)), merged)


def _zeros_below(b: Builder, number: Value) -> Value:
    """How many zeros stand below the lowest one of a number."""
    return b.call(I64, "llvm.cttz.i64", number, b.constant(I1, False))


def push_function(module: Module, kind: ReduceKind, dtype: DType) -> str:
    """``void push(ptr levels, i64 pitch, i64 count, ptr values, i64 columns)``: merge one more block's results.

    ``levels`` holds one row of ``pitch`` elements per level; ``columns`` is a multiple of the vector width.
    """
    name = f"{kind}_{dtype.name}_push"

    def write(module: Module) -> str:
        b = Builder(module)
        lanes = Type(elements.memory_element(dtype), b.level.float_lanes)
        levels, pitch, count, values, columns = _arguments(b)

        def merge(level: Value) -> None:
            row = b.offset(levels, level * pitch, lanes.element)

            def turn(j: Value, _: list[Value]) -> None:
                earlier, later = (b.load(lanes, b.offset(p, j, lanes.element)) for p in (row, values))
                b.store(combine(b, kind, dtype, earlier, later), b.offset(values, j, lanes.element))

            b.loop(0, columns, lanes.lanes, turn)

        before, head, body, done = b.block, b.label("carry"), b.label("merge"), b.label("settle")
        b.jump(head)
        b.place(head)
        level, following = b.named(I64, b.fresh()), b.named(I64, b.fresh())
        at = len(b.lines)
        b.branch(b.compare("ne", count.lshr(level) & 1, 0), body, done)
        b.place(body)
        merge(level)
        b.raw(f"{following} = add i64 {level}, 1")
        b.lines[at:at] = [f"  {level} = phi i64 [ 0, %{before} ], [ {following}, %{b.block} ]"]
        b.jump(head)
        b.place(done)
        row = b.offset(levels, level * pitch, lanes.element)
        b.loop(0, columns, lanes.lanes,
               lambda j, _: b.store(b.load(lanes, b.offset(values, j, lanes.element)), b.offset(row, j, lanes.element)))
        return b.finish(f"void @{name}({_PARAMETERS}) noinline")

    return module.share(name, write)


_PARAMETERS = "ptr %levels, i64 %pitch, i64 %count, ptr %values, i64 %columns"


def _arguments(b: Builder) -> tuple[Value, Value, Value, Value, Value]:
    return (b.named(PTR, "%levels"), b.named(I64, "%pitch"), b.named(I64, "%count"), b.named(PTR, "%values"), b.named(I64, "%columns"))


def finish_function(module: Module, kind: ReduceKind, dtype: DType) -> str:
    """``void finish(ptr levels, i64 pitch, i64 count, ptr values, i64 columns)``: values = everything merged."""
    name = f"{kind}_{dtype.name}_finish"

    def write(module: Module) -> str:
        b = Builder(module)
        lanes = Type(elements.memory_element(dtype), b.level.float_lanes)
        levels, pitch, count, values, columns = _arguments(b)
        start = elements.constant(b, identity(kind, dtype), dtype, lanes.lanes)
        first = b.alloca("i64", 8)
        b.store(b.constant(I64, 1), first)
        b.loop(0, columns, lanes.lanes, lambda j, _: b.store(start, b.offset(values, j, lanes.element)))

        def level(number: Value, _: list[Value]) -> None:
            def merge() -> None:
                row = b.offset(levels, number * pitch, lanes.element)
                fresh = b.compare("ne", b.load(I64, first), 0)

                def turn(j: Value, _: list[Value]) -> None:
                    earlier, later = (b.load(lanes, b.offset(p, j, lanes.element)) for p in (row, values))
                    merged = combine(b, kind, dtype, earlier, later)
                    b.store(b.select(b.splat(fresh, lanes.lanes), earlier, merged), b.offset(values, j, lanes.element))

                b.loop(0, columns, lanes.lanes, turn)
                b.store(b.constant(I64, 0), first)

            b.when(b.compare("ne", count.lshr(number) & 1, 0), merge)

        b.loop(0, LEVELS, 1, level, at_least_once=True)
        return b.finish(f"void @{name}({_PARAMETERS}) noinline")

    return module.share(name, write)
