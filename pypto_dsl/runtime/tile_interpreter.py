"""Executes structured Tile IR on NumPy arrays: the meaning of a schedule, with undefined lanes poisoned and bounds checked.

It knows no instruction and no order of sums: a Block is evaluated lane by lane with the op table's references. What it proves is
that a schedule loads what it reads, covers every output element exactly once per kernel, and stays inside its tensors.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import CompilerBug, error
from pypto_dsl.compiler.graph import TIER, Attribute, Graph, Op, TensorType, Value
from pypto_dsl.compiler.index import Index
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.evaluate import evaluate as evaluate_op
from pypto_dsl.compiler.ops.evaluate import plan
from pypto_dsl.compiler.ops.reference import round_to
from pypto_dsl.compiler.tile_ir import nodes as t

Array = np.ndarray[Any, np.dtype[Any]]


def run(program: t.Program, arguments: Mapping[str, Array], scalars: Mapping[str, int | float]) -> None:
    """Run a program in place over dense arrays by name; outputs must be among ``arguments``.

    Raises CompilerBug for a schedule that reads undefined lanes into a result, leaves its tensors, or writes an element twice.
    """
    extents = {k: int(v) for k, v in scalars.items() if isinstance(v, (int, np.integer))}
    extents |= {s.name: 1 for s in program.scalars if s.workers}
    tensors = dict(arguments)
    for space in program.workspaces:
        tensors[space.name] = _poison(tuple(e.evaluate(extents) for e in space.shape), space.dtype)
    for left, right, _ in program.checks:
        if left.evaluate(extents) != right.evaluate(extents):
            raise CompilerBug("tile", f"{left} and {right} differ")
    _steps(program.steps, tensors, extents, dict(scalars))


def _steps(steps: Sequence[t.Step], tensors: dict[str, Array], extents: dict[str, int], scalars: dict[str, int | float]) -> None:
    for step in steps:
        if isinstance(step, tuple):
            kernel = next((k for k in step if all(r.evaluate(extents) >= 0 for r in k.requires)), None)
            if kernel is None:
                raise CompilerBug("tile", f"no variant of {step[0].name} admits these extents")
            _Kernel(kernel, tensors, dict(extents), scalars).run()
        elif isinstance(step, t.LoopStep):
            for i in range(*(e.evaluate(extents) for e in (step.start, step.stop, step.step))):
                _steps(step.steps, tensors, {**extents, step.var: i}, scalars)
        elif isinstance(step, t.BranchStep):
            _steps(step.steps if scalar_value(step.ops, step.condition, extents, scalars) else step.orelse, tensors, extents, scalars)
        elif isinstance(step, t.ReadElement):
            element = window(tensors, step.param, extents)[tuple(o.evaluate(extents) for o in step.offsets)]
            scalars[step.name] = element.item()
            if step.symbol:
                extents[step.symbol] = int(element)
        elif isinstance(step, t.StoreNumber):
            tensors[step.name][...] = scalar_value(step.ops, step.value, extents, scalars)
        elif isinstance(step, t.GuardStep):
            guard(step, extents)
        else:
            host_call(step, tensors, extents, scalars)


def guard(step: t.GuardStep, extents: Mapping[str, int]) -> None:
    """Raise PT710 when an access would leave its tensor."""
    needed, available = step.needed.evaluate(extents), step.available.evaluate(extents)
    if needed > available:
        raise error("PT710", f"{step.what or 'an access'} reaches {needed} where `{step.available}` is {available}", step.span)


def window(tensors: Mapping[str, Array], param: t.Param, extents: Mapping[str, int]) -> Array:
    """A parameter as a NumPy view of its tensor."""
    shape = tuple(e.evaluate(extents) for e in param.shape)
    tensor = tensors[param.bound_to]
    strides = [s.evaluate(extents) for s in param.strides] if param.strides is not None else list(_dense(shape))
    base = param.base.evaluate(extents)
    if not tensor.flags.c_contiguous:
        return _window_of_strided(tensor, param.name, shape, strides, base)
    flat = tensor.reshape(-1)
    end = base + sum((e - 1) * s for e, s in zip(shape, strides, strict=True)) if all(shape) else base
    if base < 0 or (end >= flat.size and all(shape)):
        raise CompilerBug("tile", f"{param.name} {shape} at {base} leaves its tensor of {flat.size} elements")
    return strided(flat[base:], shape, [s * flat.itemsize for s in strides])


def _window_of_strided(tensor: Array, name: str, shape: Sequence[int], strides: Sequence[int], base: int) -> Array:
    """A window of a tensor that is not dense, ``base`` and ``strides`` in elements of its memory."""
    size = tensor.itemsize
    reach = [(e - 1) * s * size for e, s in zip(shape, strides, strict=True)]
    own = [(e - 1) * s for e, s in zip(tensor.shape, tensor.strides, strict=True)]
    first, last = (base * size + sum(r for r in reach if (r > 0) is up) for up in (False, True))
    if all(shape) and (first < sum(r for r in own if r < 0) or last > sum(r for r in own if r > 0)):
        raise CompilerBug("tile", f"{name} {tuple(shape)} at {base} leaves its tensor of strides {tensor.strides}")
    start = tensor.ctypes.data + base * size
    where = {"data": (start, not tensor.flags.writeable), "strides": tuple(s * size for s in strides)}
    view = {**where, "typestr": f"|V{size}", "shape": tuple(shape), "version": 3}
    return np.asarray(_Interface(view, tensor)).view(tensor.dtype)


class _Interface:
    """Memory that NumPy is told of, and what keeps it alive."""

    def __init__(self, interface: dict[str, Any], owner: Array) -> None:
        self.__array_interface__, self.owner = interface, owner


def strided(flat: Array, shape: Sequence[int], strides: Sequence[int], writeable: bool = True) -> Array:
    """`as_strided` for dtypes of every kind: NumPy does not know the 8-bit floats by their type string."""
    raw = flat.view(f"V{flat.itemsize}")
    return np.lib.stride_tricks.as_strided(raw, shape, strides, writeable=writeable).view(flat.dtype)


def scalar_value(ops: Sequence[t.BlockOp], result: t.Operand, extents: Mapping[str, int], scalars: Mapping[str, int | float]) -> Any:
    """The value of a scalar computed by ``ops``."""
    made: dict[str, tuple[Array, DType]] = {}

    def operand(o: t.Operand) -> tuple[Array, DType]:
        if isinstance(o, str):
            return made[o]
        if isinstance(o, t.IndexValue):
            return np.asarray(o.value.evaluate(extents), o.dtype.numpy), o.dtype
        if isinstance(o, t.ScalarRead):
            return np.asarray(scalars[o.name], o.dtype.numpy), o.dtype
        if isinstance(o, t.Constant):
            return np.asarray(o.value, o.dtype.numpy), o.dtype
        raise CompilerBug("tile", f"{o!r} is no scalar")

    for op in ops:
        read = [operand(o) for o in op.operands]
        made[op.result] = (evaluate(op, [v for v, _ in read], [d for _, d in read]), op.dtype)
    return operand(result)[0].item()


def host_call(step: t.HostCall, tensors: Mapping[str, Array], extents: Mapping[str, int], scalars: Mapping[str, int | float]) -> None:
    """Evaluate an operation by its reference and write its results."""
    operands: list[Array] = []
    for o in step.operands:
        operands.append(
            window(tensors, o, extents) if isinstance(o, t.Param) else np.asarray(scalar_value((), o, extents, scalars), o.dtype.numpy)
        )
    values = [Value(TensorType(o.dtype, o.shape if isinstance(o, t.Param) else ())) for o in step.operands]
    attributes = cast("dict[str, Attribute]", dict(step.attributes))
    op = Op(step.opcode, values, [TensorType(r.dtype, r.shape) for r in step.results], attributes, span=step.span)
    made = evaluate_op(op, plan(op, Graph(step.opcode)), operands, extents)
    for param, value in zip(step.results, made, strict=True):
        window(tensors, param, extents)[...] = value


def _poison(shape: tuple[int, ...], dtype: DType) -> Array:
    """Fresh memory: NaN in floats, a large odd number in integers."""
    fill: float = np.nan if dtype.is_float else (1 if dtype.kind == "bool" else dtype.range[1] - 12)
    return np.full(shape, fill, dtype=dtype.numpy)


@dataclass
class _Tile:
    """A buffer's content and which of its lanes are defined."""

    values: Array
    defined: Array


@dataclass
class _Kernel:
    """One kernel while it runs."""

    kernel: t.TileKernel
    tensors: dict[str, Array]
    extents: dict[str, int]
    scalars: dict[str, int | float]
    tiles: dict[str, _Tile] = field(default_factory=dict)
    partials: dict[str, list[tuple[Array, Array]]] = field(default_factory=dict)
    written: dict[str, Array] = field(default_factory=dict)

    def run(self) -> None:
        self.body(self.kernel.once)
        grid = [range(e.evaluate(self.extents)) for e in self.kernel.grid.extents]
        for item in itertools.product(*grid):
            self.extents.update(zip(self.kernel.grid.vars, item, strict=True))
            self.body(self.kernel.body)

    def body(self, statements: Sequence[t.Statement]) -> None:
        for statement in statements:
            getattr(self, "do_" + type(statement).__name__.lower())(statement)

    def at(self, e: Index) -> int:
        return e.evaluate(self.extents)

    # ---- statements

    def do_let(self, s: t.Let) -> None:
        self.extents[s.name] = self.at(s.value)

    def do_for(self, s: t.For) -> None:
        for i in range(self.at(s.start), self.at(s.stop), self.at(s.step)):
            self.extents[s.var] = i
            self.body(s.body)

    def do_if(self, s: t.If) -> None:
        self.body(s.body if self.at(s.condition) else s.orelse)

    def window(self, region: t.Region, write: bool) -> Array:
        param = region.param
        shape = tuple(self.at(e) for e in param.shape)
        flat = self.tensors[param.bound_to].reshape(-1)
        strides = [self.at(s) for s in param.strides] if param.strides is not None else list(_dense(shape))
        base = self.at(param.base)
        offset, extent = [self.at(o) for o in region.offset], [self.at(e) for e in region.extent]
        for o, e, n in zip(offset, extent, shape, strict=True):
            if o < 0 or e < 0 or o + e > n:
                raise CompilerBug("tile", f"{self.kernel.name}: {param.name} {offset}+{extent} leaves its shape {shape}")
        start = base + sum(o * s for o, s in zip(offset, strides, strict=True))
        size = flat.itemsize
        view = strided(flat[start:] if start < flat.size else flat[:0], extent, [s * size for s in strides], write)
        return view.reshape(extent[-2:]) if len(extent) > 2 else view

    def do_load(self, s: t.Load) -> None:
        shape = self.shape(s.buffer)
        tile = _Tile(_poison(shape, s.buffer.dtype), np.zeros(shape, dtype=bool))
        source = self.window(s.region, write=False)
        rows, cols = source.shape
        if rows > shape[0] or cols > shape[1]:
            raise CompilerBug("tile", f"{self.kernel.name}: {s.buffer.name} of {shape} is loaded with {source.shape}")
        tile.values[:rows, :cols] = source
        tile.defined[:rows, :cols] = True
        self.tiles[s.buffer.name] = tile

    def shape(self, buffer: t.Buffer) -> tuple[int, int]:
        return self.at(buffer.shape[0]), self.at(buffer.shape[1])

    def do_store(self, s: t.Store) -> None:
        target = self.window(s.region, write=True)
        rows, cols = target.shape
        tile = self.tiles[s.buffer.name]
        if not tile.defined[:rows, :cols].all():
            raise CompilerBug("tile", f"{self.kernel.name}: undefined lanes of {s.buffer.name} are stored")
        target[...] = tile.values[:rows, :cols]
        name = s.region.param.bound_to
        seen = self.written.setdefault(name, np.zeros(self.tensors[name].shape, dtype=np.int8))
        saved, self.tensors[name] = self.tensors[name], seen
        self.window(s.region, write=True)[...] += 1
        self.tensors[name] = saved
        if (seen > 1).any():
            raise CompilerBug("tile", f"{self.kernel.name} writes an element of {name} twice")

    def do_fill(self, s: t.Fill) -> None:
        shape = self.shape(s.buffer)
        self.tiles[s.buffer.name] = _Tile(np.full(shape, s.value, dtype=s.buffer.dtype.numpy), np.ones(shape, dtype=bool))

    def do_block(self, s: t.Block) -> None:
        rows, cols = self.at(s.rows), self.at(s.cols)
        values: dict[str, tuple[Array, Array, DType]] = {}

        def operand(o: t.Operand) -> tuple[Array, Array, DType]:
            if isinstance(o, str):
                return values[o]
            if isinstance(o, t.ReadBuffer):
                tile = self.tiles[o.buffer.name]
                at = {"full": (slice(0, rows), slice(0, cols)), "row": (slice(0, 1), slice(0, cols)),
                      "col": (slice(0, rows), slice(0, 1)), "scalar": (slice(0, 1), slice(0, 1))}[o.how]
                if (o.how in ("full", "row") and tile.values.shape[1] < cols) or (o.how in ("full", "col") and tile.values.shape[0] < rows):
                    raise CompilerBug("tile", f"{self.kernel.name}: {o.buffer.name} is read {o.how} over {rows} x {cols} lanes")
                return (np.broadcast_to(tile.values[at], (rows, cols)), np.broadcast_to(tile.defined[at], (rows, cols)), o.buffer.dtype)
            everywhere = np.ones((rows, cols), dtype=bool)
            if isinstance(o, t.LaneIndex):
                lanes = np.arange(rows)[:, None] if o.axis == 0 else np.arange(cols)[None, :]
                return np.broadcast_to(lanes + self.at(o.base), (rows, cols)).astype(o.dtype.numpy), everywhere, o.dtype
            number = self.at(o.value) if isinstance(o, t.IndexValue) else self.scalars[o.name] if isinstance(o, t.ScalarRead) else o.value
            return np.full((rows, cols), number, dtype=o.dtype.numpy), everywhere, o.dtype

        for op in s.ops:
            read = [operand(o) for o in op.operands]
            values[op.result] = (
                evaluate(op, [r[0] for r in read], [r[2] for r in read]),
                np.logical_and.reduce([r[1] for r in read]),
                op.dtype,
            )
        for write in s.writes:
            value, defined, _ = operand(write.value)
            shape = self.shape(write.buffer)
            tile = self.tiles.get(write.buffer.name)
            if tile is None or tile.values.shape != shape:
                tile = self.tiles[write.buffer.name] = _Tile(_poison(shape, write.buffer.dtype), np.zeros(shape, dtype=bool))
            tile.values[:rows, :cols] = value
            tile.defined[:rows, :cols] = defined
        for reduce in s.reduces:
            value, defined, _ = operand(reduce.value)
            if not defined.all():
                raise CompilerBug("tile", f"{self.kernel.name}: undefined lanes reach the reduction {reduce.target.name}")
            if reduce.accumulate:
                self.partials[reduce.target.name].append((value, defined))
            else:
                self.finish(reduce.kind, reduce.axis, reduce.target, [value])

    def do_init(self, s: t.Init) -> None:
        self.partials[s.target.name] = []

    def do_finish(self, s: t.Finish) -> None:
        parts = [p for p, _ in self.partials.pop(s.target.name)]
        if not parts:
            parts = [np.zeros((self.at(s.rows), self.at(s.cols)) if s.axis == 1 else (0, self.at(s.cols)), dtype=s.target.dtype.numpy)]
        self.finish(s.kind, s.axis, s.target, parts)

    def finish(self, kind: str, axis: int, target: t.Buffer, parts: list[Array]) -> None:
        whole = np.concatenate(parts, axis=axis)
        name = {"max": "amax", "min": "amin"}.get(kind, kind)
        value = whole.astype(np.float64) if target.dtype.is_float else whole
        result = REGISTRY[name].meaning(value, dim=axis, keepdim=True)
        shape = self.shape(target)
        tile = self.tiles[target.name] = _Tile(_poison(shape, target.dtype), np.zeros(shape, dtype=bool))
        rows, cols = result.shape
        tile.values[:rows, :cols] = rounded(result, target.dtype)
        tile.defined[:rows, :cols] = True

    def do_accumulate(self, s: t.Accumulate) -> None:
        rows, cols = self.at(s.m), self.at(s.n)
        shape = self.shape(s.target)
        total: Array = np.zeros((rows, cols), dtype=np.float64 if s.target.dtype.is_float else np.int64)
        for k in range(0, self.at(s.k), self.at(s.step)):
            self.extents[s.var] = k
            self.body(s.loads)
            depth = min(self.at(s.step), self.at(s.k) - k)
            a, b = self.tiles[s.a.name], self.tiles[s.b.name]
            left = a.values.T if s.a_transposed else a.values
            right = b.values.T if s.b_transposed else b.values
            total += left[:rows, :depth].astype(total.dtype) @ right[:depth, :cols].astype(total.dtype)
        tile = self.tiles[s.target.name] = _Tile(_poison(shape, s.target.dtype), np.zeros(shape, dtype=bool))
        tile.values[:rows, :cols] = rounded(total, s.target.dtype)
        tile.defined[:rows, :cols] = True


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))


def rounded(value: Array, dtype: DType) -> Array:
    """A reference's result in its dtype."""
    with np.errstate(all="ignore"):
        return round_to(value, dtype) if dtype.is_float else np.asarray(value).astype(dtype.numpy)


def evaluate(op: t.BlockOp, operands: Sequence[Array], dtypes: Sequence[DType]) -> Array:
    """One Block operation over arrays by its reference."""
    if op.name in ("cast", "bitcast"):
        attributes = cast("dict[str, Any]", dict(op.attributes))
        value = operands[0].astype(np.float64) if dtypes[0].is_float and op.name == "cast" else operands[0]
        return np.asarray(REGISTRY[op.name].meaning(value, dtype=op.dtype, source=dtypes[0], **attributes))
    wide = [v.astype(np.float64) if d.is_float else v for v, d in zip(operands, dtypes, strict=True)]
    with np.errstate(all="ignore"):
        return rounded(np.asarray(REGISTRY[op.name].meaning(*wide, **_keywords(op))), op.dtype)


def _keywords(op: t.BlockOp) -> dict[str, Any]:
    """Attributes that a reference takes (how precise a device computes is not among them)."""
    return {k: v for k, v in op.attributes if k not in ("precision_type", TIER)}
