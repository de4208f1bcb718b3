"""Emits TileKernels as LLVM IR: one function per kernel that runs a range of its items.

    void kernel(ptr arguments, i64 start, i64 stop, ptr scratch)

``arguments`` is an array of 8-byte slots: the addresses of the parameters, then the run-time scalars. ``scratch`` belongs to the
worker that calls, and has `Layout.bytes` bytes. Parameters are read and written where they are; nothing is copied in or out.

The word `STREAMING` of a module says on how many bytes its kernels write past the caches. It holds what fits the target's usual
cache until whoever loads the module stores what fits the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pypto_dsl.codegen.llvm import elements, sums
from pypto_dsl.codegen.llvm.block import emit_block
from pypto_dsl.codegen.llvm.builder import I64, PTR, Builder, Module, Type, Value
from pypto_dsl.codegen.llvm.columns import ColumnState
from pypto_dsl.codegen.llvm.features import FeatureLevel
from pypto_dsl.codegen.llvm.indexing import Scope, View, evaluate
from pypto_dsl.codegen.llvm.lanes import Context
from pypto_dsl.codegen.llvm.layout import Slot, check, lies_along_columns, plan, reads, statements, written
from pypto_dsl.codegen.llvm.loops import copy
from pypto_dsl.codegen.llvm.product import Step, emit_step
from pypto_dsl.codegen.llvm.turning import turn
from pypto_dsl.compiler import targets
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.index import Index, as_index, dense_strides
from pypto_dsl.compiler.summation import COLUMN_BLOCK, PRODUCT_BLOCK
from pypto_dsl.compiler.tile_ir import nodes as t

STREAMING = "streaming_bytes"


@dataclass(frozen=True)
class Signature:
    """How to call an emitted kernel: tensors and scalars in slot order, the number of items, the scratch of one worker."""

    name: str
    tensors: tuple[str, ...]
    scalars: tuple[tuple[str, DType], ...]
    items: Index
    scratch: Index
    requires: tuple[Index, ...]


def signature(kernel: t.TileKernel) -> Signature:
    """The call of a kernel, by names of the program's tensors and scalars."""
    items = as_index(1)
    for extent in kernel.grid.extents:
        items = items * extent
    tensors = tuple(dict.fromkeys(p.bound_to for p in kernel.params))
    scalars = tuple((s.name, s.dtype) for s in kernel.scalars if s.value is None)
    return Signature(symbol(kernel.name), tensors, scalars, items, plan(kernel).bytes, kernel.requires)


def streaming_bytes(cache: int | None = None) -> int:
    """On how many bytes kernels write past a last cache of ``cache`` bytes, the target's usual one unless given."""
    launch = targets.load("llvm-cpu").table("launch")
    return max(int(launch["streaming_share"] * (cache or launch["streaming_cache"])), int(launch["streaming_least"]))


def symbol(name: str) -> str:
    """A kernel's name as a linker takes it: letters beyond ASCII by their code points."""
    return "".join(c if c.isascii() else f"_u{ord(c):04x}" for c in name)


def emit(kernels: Sequence[t.TileKernel], level: FeatureLevel) -> str:
    """The module of several kernels as LLVM IR text; the same kernels give the same bytes."""
    return emit_module(kernels, level).text()


def emit_module(kernels: Sequence[t.TileKernel], level: FeatureLevel) -> Module:
    """The module of several kernels, to which more can be added."""
    module = Module(level)
    for kernel in kernels:
        module.define(symbol(kernel.name), lambda m, k=kernel: _Kernel(m, k).write())  # type: ignore[misc]
    return module


class _Kernel:
    """One kernel being written."""

    def __init__(self, module: Module, kernel: t.TileKernel) -> None:
        check(kernel)
        self.b = Builder(module)
        self.kernel, self.call, self.layout = kernel, signature(kernel), plan(kernel)
        self.scope: dict[str, Value] = {}
        self.scalars: dict[str, Value] = {}
        self.scalar_dtypes: dict[str, DType] = {}
        self.tensors: dict[str, Value] = {}
        self.views: dict[str, View] = {}
        self.columns: dict[str, ColumnState] = {}
        self.scratch = self.b.named(PTR, "%scratch")
        self.alone = sum(isinstance(s, t.Block) for s in _all(kernel)) == 1
        self.large: Value | None = None  # whether there is more memory than the caches keep, where that can be and matters
        self.streams = False  # and outputs are better written past them then

    def write(self) -> str:
        """The function's text."""
        b = self.b
        b.comment(self.kernel.title + (f" ({self.kernel.span})" if self.kernel.span else ""))
        self._arguments()
        self._buffers()
        streams = any(self._written_once(s) for s in _all(self.kernel))
        self.large = self._larger_than_caches() if streams or self._reduces_once() else None
        self.streams = streams and self.large is not None
        self._body(self.kernel.once)
        b.loop(b.named(I64, "%start"), b.named(I64, "%stop"), 1, self._item, hint="item")
        if self.large is not None and self.streams:
            b.when(self.large, lambda: b.raw("fence seq_cst"), "fence")
        return b.finish(f"void @{self.call.name}(ptr noalias %arguments, i64 %start, i64 %stop, ptr noalias %scratch)")

    def _larger_than_caches(self) -> Value | None:
        """Whether the kernel touches more memory than the caches keep; None when any cache keeps it."""
        total = as_index(0)
        for param in self.kernel.params:
            size = as_index(param.dtype.itemsize)
            for extent in param.shape:
                size = size * extent
            total = total + size
        if total.constant is not None and total.constant <= targets.load("llvm-cpu").table("launch")["streaming_least"]:
            return None
        self.b.module.globals[STREAMING] = f"@{STREAMING} = weak global i64 {streaming_bytes()}, align 8"
        limit = self.b.load(I64, self.b.named(PTR, f"@{STREAMING}"))
        return self.b.compare("slt", limit, evaluate(self.b, total, self.scope))

    def _reduces_once(self) -> bool:
        """Whether all that the kernel does with its operands is to reduce them, whatever it does with the results."""
        operands = {s.buffer.name for s in _all(self.kernel) if isinstance(s, t.Load)}
        readers = [s for s in _all(self.kernel) if any(r.buffer.name in operands for r in reads(s))]
        return len(readers) == 1 and isinstance(readers[0], t.Block) and bool(readers[0].reduces)

    def _written_once(self, statement: t.Statement) -> bool:
        """Whether a statement writes straight to memory that the kernel does not look at again."""
        if not isinstance(statement, t.Block) or statement.reduces or any(isinstance(s, t.Accumulate) for s in _all(self.kernel)):
            return False
        again = {r.buffer.name for s in _all(self.kernel) for r in reads(s)}
        return all(w.buffer.name in self.layout.direct and w.buffer.name not in again for w in statement.writes)

    def _next_item(self) -> tuple[View, ...]:
        """What the next item will read, for kernels that read a row several times: memory is idle while they do."""
        body = self.kernel.body
        if sum(isinstance(s, t.Block) for s in body) < 2 or not self.kernel.grid.vars:
            return ()
        variable = self.kernel.grid.vars[-1]
        moving, scope = {variable}, {**self.scope, variable: self.scope[variable] + 1}
        found = []
        for statement in body:
            if isinstance(statement, t.Let):
                moving |= {statement.name} if statement.value.variables() & moving else set()
                scope[statement.name] = evaluate(self.b, statement.value, scope)
            if isinstance(statement, t.Load) and any(i.variables() & moving for i in statement.region.offset):
                found.append(self._region(statement.region, statement.buffer, scope))
        return tuple(view for view in found if view.column_stride.name == "1")

    def _arguments(self) -> None:
        b, base = self.b, self.b.named(PTR, "%arguments")
        for slot, name in enumerate(self.call.tensors):
            self.tensors[name] = b.load(PTR, b.offset(base, slot, "i64"))
        for slot, (name, dtype) in enumerate(self.call.scalars, len(self.call.tensors)):
            self.scalars[name] = b.offset(base, slot, "i64")
            self.scalar_dtypes[name] = dtype
            if dtype.is_integer:
                loaded = b.load(Type(elements.memory_element(dtype)), self.scalars[name])
                self.scope[name] = loaded if dtype.bits == 64 else b.convert("sext" if dtype.signed else "zext", loaded, "i64")
        for scalar in self.kernel.scalars:
            if scalar.value is not None:
                self.scope[scalar.name] = evaluate(b, scalar.value, self.scope)

    def _buffers(self) -> None:
        for name, slot in self.layout.slots.items():
            buffer = self._buffer(name)
            self.views[name] = self._packed(slot, buffer.dtype)
        for name, column in self.layout.columns.items():
            values, levels, count = (self._scratch(i) for i in (column.values, column.levels, column.count))
            dtype = sums.reduced_dtype(column.kind, self._buffer(name).dtype)
            self.columns[name] = ColumnState(column.kind, dtype, values, levels, count, evaluate(self.b, column.pitch, self.scope))

    def _buffer(self, name: str) -> t.Buffer:
        for statement in _all(self.kernel):
            for buffer in [statement.buffer] if isinstance(statement, t.Load) else _named(statement):
                if buffer.name == name:
                    return buffer
        raise CompilerBug("codegen/llvm", f"the buffer `{name}` is nowhere")

    def _packed(self, slot: Slot, dtype: DType) -> View:
        return View(self._scratch(slot.offset), dtype, evaluate(self.b, slot.pitch, self.scope), self.b.constant(I64, 1))

    def _scratch(self, offset: Index) -> Value:
        return self.b.offset(self.scratch, evaluate(self.b, offset, self.scope), "i8")

    def _item(self, item: Value, _: list[Value]) -> None:
        rest = item
        for name, extent in reversed(list(zip(self.kernel.grid.vars, self.kernel.grid.extents, strict=True))):
            if name == self.kernel.grid.vars[0]:
                self.scope[name] = rest
                continue
            size = evaluate(self.b, extent, self.scope)
            quotient = self.b.binary("udiv", rest, size)
            self.scope[name] = rest - quotient * size
            rest = quotient
        self._body(self.kernel.body)

    # -- statements ------------------------------------------------------------------------------------------------------

    def _body(self, body: Sequence[t.Statement]) -> None:
        outside = dict(self.scope)
        for statement in body:
            self._direct(statement)
            _WRITERS[type(statement)](self, statement)
        self.scope = outside if body is not self.kernel.once else self.scope

    def _direct(self, statement: t.Statement) -> None:
        """Bind buffers that this statement writes straight into their output."""
        for buffer in _named(statement):
            store = self.layout.direct.get(buffer.name)
            if store is not None and buffer in written(statement):
                self.views[buffer.name] = self._region(store.region, buffer)

    def _context(self, statement: t.Block | None = None) -> Context:
        streams = statement is not None and self.streams and self._written_once(statement)
        ahead = self._next_item() if streams else ()
        return Context(dict(self.scope), self.scalars, self.scalar_dtypes, self.views, streaming=self.large if streams else None,
                       large=self.large if self._reduces_once() else None, alone=self.alone, ahead=ahead, lying=self.layout.lying)

    def _let(self, statement: t.Let) -> None:
        self.scope[statement.name] = evaluate(self.b, statement.value, self.scope)

    def _for(self, statement: t.For) -> None:
        b = self.b
        step = statement.step.constant
        start, stop = (evaluate(b, i, self.scope) for i in (statement.start, statement.stop))
        if step is None:
            raise CompilerBug("codegen/llvm", "a loop of the CPU has a constant step")
        self._check_row_steps(statement, step)

        def turn(index: Value, _: list[Value]) -> None:
            self.scope[statement.var] = index
            self._body(statement.body)

        b.loop(start, stop, step, turn, hint="for")

    def _check_row_steps(self, statement: t.For, step: int) -> None:
        reduces = [r for s in statement.body if isinstance(s, t.Block) for r in s.reduces]
        accumulates = any(r.accumulate and r.kind in sums.ORDERED for r in reduces)
        extent = (statement.stop - statement.start).constant
        if accumulates and step % COLUMN_BLOCK and not (extent is not None and extent <= step):
            raise CompilerBug("codegen/llvm", f"sums down the rows advance by multiples of {COLUMN_BLOCK} rows, not {step}")

    def _if(self, statement: t.If) -> None:
        condition = self.b.compare("ne", evaluate(self.b, statement.condition, self.scope), 0)
        if not statement.orelse:
            self.b.when(condition, lambda: self._body(statement.body))
            return
        self.b.either(condition, lambda: self._body(statement.body), lambda: self._body(statement.orelse))

    def _load(self, statement: t.Load) -> None:
        view = self._region(statement.region, statement.buffer)
        if statement.buffer.name not in self.layout.turned:
            self.views[statement.buffer.name] = view
            return
        rows, cols = (evaluate(self.b, e, self.scope) for e in statement.region.extent[-2:])
        turn(self.b, view, self.views[statement.buffer.name], rows, cols)

    def _region(self, region: t.Region, buffer: t.Buffer, scope: Scope | None = None) -> View:
        """A buffer that is a rectangle of a parameter: the last two dimensions are rows and columns."""
        scope = self.scope if scope is None else scope
        b, param = self.b, region.param
        strides = param.strides if param.strides is not None else dense_strides(param.shape)
        start = param.base
        for offset, stride in zip(region.offset, strides, strict=True):
            start = start + offset * stride
        pointer = b.offset(self.tensors[param.bound_to], evaluate(b, start, scope), elements.memory_element(param.dtype))
        own = [as_index(0), as_index(0), *strides] if len(strides) < 2 else list(strides)
        if len(strides) == 1 and buffer.layout == "column":
            own = [strides[0], as_index(0)]
        row, column = (evaluate(b, s, scope) for s in own[-2:])
        return View(pointer, param.dtype, row, column)

    def _store(self, statement: t.Store) -> None:
        if self.layout.direct.get(statement.buffer.name) is statement:
            return
        b, region = self.b, statement.region
        target = self._region(region, statement.buffer)
        extent = [as_index(1), as_index(1), *region.extent] if len(region.extent) < 2 else list(region.extent)
        if len(region.extent) == 1 and statement.buffer.layout == "column":
            extent = [region.extent[0], as_index(1)]
        rows, cols = (evaluate(b, e, self.scope) for e in extent[-2:])
        if lies_along_columns(statement):
            turn(b, self.views[statement.buffer.name].turned(), target.turned(), cols, rows, exact=True)
            return
        copy(b, self.views[statement.buffer.name], target, rows, cols, extent[-2], extent[-1])

    def _fill(self, statement: t.Fill) -> None:
        value = t.Constant(statement.value, statement.buffer.dtype)
        rows, cols = statement.buffer.shape
        emit_block(self.b, t.Block(rows, cols, (), (t.Write(value, statement.buffer),)), self._context(), {})

    def _block(self, statement: t.Block) -> None:
        loose = [r for r in statement.reduces if r.axis == 0 and not r.accumulate]
        if loose:
            raise CompilerBug("codegen/llvm", "a reduction down the rows stands between Init and Finish on the CPU")
        emit_block(self.b, statement, self._context(statement), self.columns)

    def _init(self, statement: t.Init) -> None:
        b, name = self.b, statement.target.name
        state = self.columns[name] = self.columns[name].begun(b, evaluate(b, statement.cols, self.scope))
        if state.kind not in sums.ORDERED:  # those begin anew with every block
            state.fill(b)

    def _finish(self, statement: t.Finish) -> None:
        b, state = self.b, self.columns[statement.target.name]
        state.finish(b)
        cols = evaluate(b, statement.cols, self.scope)
        copy(b, state.view(b), self.views[statement.target.name], b.constant(I64, 1), cols, as_index(1), statement.cols)

    def _accumulate(self, statement: t.Accumulate) -> None:
        b = self.b
        target, slots = self.views[statement.target.name], self.layout.products[statement.target.name]
        m, n, depth = (evaluate(b, i, self.scope) for i in (statement.m, statement.n, statement.k))
        step, known = statement.step.constant, statement.k.constant
        if step is None or (step % PRODUCT_BLOCK and not (known is not None and known <= step)):
            raise CompilerBug("codegen/llvm", f"a matrix product of the CPU advances by multiples of {PRODUCT_BLOCK} along k")
        packed = [self._packed(slot, statement.target.dtype) for slot in (slots.a, slots.panel)]

        def turn(k: Value, _: list[Value]) -> None:
            outside = dict(self.scope)
            self.scope[statement.var] = k
            for load in statement.loads:
                self._load(load)
            left, right = self.views[statement.a.name], self.views[statement.b.name]
            left = left.turned() if statement.a_transposed else left
            right = right.turned() if statement.b_transposed else right
            live = b.intrinsic("llvm.smin", b.constant(I64, step), depth - k)
            single = known is not None and known <= PRODUCT_BLOCK
            emit_step(b, Step(left, right, packed[0], packed[1], target, m, n, live, single, b.compare("eq", k, 0)))
            self.scope = outside

        def nothing() -> None:
            zeroes = t.Block(statement.m, statement.n, (), (t.Write(t.Constant(0, statement.target.dtype), statement.target),))
            emit_block(b, zeroes, self._context(), {})

        if not known:
            b.when(b.compare("eq", depth, 0), nothing, "nothing")
        b.loop(0, depth, step, turn, hint="product")


def _all(kernel: t.TileKernel) -> list[t.Statement]:
    return list(statements((*kernel.once, *kernel.body)))


def _named(statement: t.Statement) -> list[t.Buffer]:
    """Buffers that a statement writes, Init's included."""
    return [*written(statement), *([statement.target] if isinstance(statement, t.Init) else [])]


_WRITERS: dict[type, Callable[[_Kernel, Any], None]] = {
    t.Let: _Kernel._let, t.For: _Kernel._for, t.If: _Kernel._if, t.Load: _Kernel._load, t.Store: _Kernel._store, t.Fill: _Kernel._fill,
    t.Block: _Kernel._block, t.Init: _Kernel._init, t.Finish: _Kernel._finish, t.Accumulate: _Kernel._accumulate,
}
