"""Emits a program's launcher: a C function for CPython's vector call protocol that checks NumPy arrays and runs the kernels.

    PyObject *launch(PyObject *self, PyObject *const *arguments, Py_ssize_t count)

It takes the program's tensors in order, then its run-time numbers, and returns True when it ran them, False when anything is not
exactly as it wants it: another type, dtype, rank or extent, strides, overlap, a pool that sleeps. The caller then takes the long
way, which explains or converts. Addresses of Python's objects are read from a table that is filled in after loading, so the text
is the same in every process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pypto_dsl.codegen.llvm.builder import F64, I32, I64, PTR, Builder, Module, Type, Value
from pypto_dsl.codegen.llvm.indexing import evaluate
from pypto_dsl.codegen.llvm.kernel import Signature, signature
from pypto_dsl.compiler import dtypes
from pypto_dsl.compiler.tile_ir import nodes as t

# Offsets in a PyObject and in NumPy's PyArrayObject_fields, whose head has been stable since NumPy 1.0.
TYPE, DATA, RANK, DIMENSIONS, DESCRIPTOR, FLAGS, FLOAT_VALUE = 8, 16, 24, 32, 56, 64, 16
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

# The table's entries; dtypes of the arguments follow.
ENTRIES = ("array_type", "float_type", "int_type", "true", "false", "pool_run", "pool_workers", "threads", "serial_elements",
           "chunk_elements", "chunks_per_thread")
# Dtypes of run-time numbers: floats, and integers that fit a signed 64-bit word.
NUMBERS = frozenset({dtypes.F32, dtypes.F64, dtypes.I8, dtypes.I16, dtypes.I32, dtypes.I64, dtypes.U8, dtypes.U16, dtypes.U32})
ALIGNMENT = 64
STACK_BYTES = 65536  # scratch up to here lies on the stack, more is allocated
LARGEST_SCRATCH = 1 << 27  # more is allocated by NumPy, which can say that there is no memory
MAX_CHUNKS = 1 << 22  # the pool's ticket word counts to 2^24, and every thread may look once too often


@dataclass(frozen=True)
class Launcher:
    """What a launcher takes: tensors, then numbers. ``extents`` are (name, tensor, axis): numbers that it reads off the tensors."""

    tensors: tuple[t.Param, ...]
    numbers: tuple[t.Scalar, ...]
    kernels: tuple[tuple[t.TileKernel, Signature, bool], ...]  # the flag: an item is work enough for a chunk of its own
    extents: tuple[tuple[str, str, int], ...] = ()


def launcher(program: t.Program, extents: Mapping[str, tuple[str, int]] | None = None) -> Launcher | None:
    """The launcher of a program; None for programs with workspaces, variants or steps of the host.

    ``extents`` names, for a run-time number, the argument and axis whose extent it is.
    """
    if program.workspaces or any(not isinstance(s, tuple) or len(s) != 1 or s[0].requires for s in program.steps):
        return None
    shown = {e.name for a in program.arguments for e in a.shape if e.name is not None}
    where = extents or {}
    told = tuple((s.name, *where[s.name]) for s in program.scalars if s.value is None and s.name in where)
    known = shown | {name for name, _, _ in told}
    numbers = tuple(s for s in program.scalars if s.value is None and s.name not in known)
    if any(s.dtype not in NUMBERS for s in numbers):
        return None
    kernels = tuple((s[0], signature(s[0]), has_product(s[0].body)) for s in program.steps if isinstance(s, tuple))
    return Launcher(program.arguments, numbers, kernels, told)


def has_product(body: Sequence[t.Statement]) -> bool:
    """Whether a kernel multiplies matrices."""
    return any(isinstance(s, t.Accumulate) or (isinstance(s, t.For) and has_product(s.body)) for s in body)


def define(module: Module, program: t.Program, plan: Launcher) -> None:
    """Add ``launch`` and its table ``launch_table`` to the module of the program's kernels."""
    size = len(ENTRIES) + len(plan.tensors)
    module.globals["launch_table"] = f"@launch_table = global [{size} x i64] zeroinitializer, align 64"
    module.define("launch", lambda m: _Writer(m, program, plan).write())


class _Writer:
    def __init__(self, module: Module, program: t.Program, plan: Launcher) -> None:
        self.b = Builder(module)
        self.program, self.plan = program, plan
        self.scope: dict[str, Value] = {}
        self.pointers: dict[str, Value] = {}
        self.sizes: dict[str, Value] = {}
        self.bytes: dict[str, Value] = {}
        self.numbers: dict[str, Value] = {}
        self.stack = self.b.alloca(f"[{STACK_BYTES} x i8]")  # the kernels run one after the other

    def write(self) -> str:
        b = self.b
        count = len(self.plan.tensors) + len(self.plan.numbers)
        self._require(b.compare("eq", b.named(I64, "%count"), count))
        objects = [b.load(PTR, b.offset(b.named(PTR, "%arguments"), i, "ptr")) for i in range(count)]
        dims = [self._array(i, obj, param) for i, (obj, param) in enumerate(zip(objects, self.plan.tensors, strict=False))]
        axes = {param.name: extents for param, extents in zip(self.plan.tensors, dims, strict=True)}
        self.scope.update({name: axes[tensor][axis] for name, tensor, axis in self.plan.extents})
        for param, extents in zip(self.plan.tensors, dims, strict=True):
            for wanted, found in zip(param.shape, extents, strict=True):
                if wanted.name is None or self.scope[wanted.name] is not found:
                    self._require(b.compare("eq", evaluate(b, wanted, self.scope), found))
        for obj, scalar in zip(objects[len(self.plan.tensors):], self.plan.numbers, strict=True):
            self._number(obj, scalar)
        for left, right, _ in self.program.checks:
            self._require(b.compare("eq", evaluate(b, left, self.scope), evaluate(b, right, self.scope)))
        self._apart()
        self._run()
        result = self._answer("true")
        b.raw(f"ret ptr {result}")
        b.place("slow")
        return b.finish("ptr @launch(ptr %self, ptr %arguments, i64 %count)", self._answer("false"))

    # -- checks ------------------------------------------------------------------------------------------------------------

    def _require(self, condition: Value) -> None:
        """Go on when the condition holds, else give up."""
        go = self.b.label("ok")
        self.b.branch(condition, go, "slow")
        self.b.place(go)

    def _entry(self, index: int | str) -> Value:
        position = ENTRIES.index(index) if isinstance(index, str) else len(ENTRIES) + index
        return self.b.load(I64, self.b.offset(self.b.named(PTR, "@launch_table"), position, "i64"))

    def _field(self, obj: Value, offset: int, type: Type) -> Value:
        return self.b.load(type, self.b.offset(obj, offset, "i8"))

    def _array(self, position: int, obj: Value, param: t.Param) -> list[Value]:
        """Check an array's type, dtype, rank and layout; returns its extents."""
        b = self.b
        self._require(b.compare("eq", self._field(obj, TYPE, I64), self._entry("array_type")))
        self._require(b.compare("eq", self._field(obj, DESCRIPTOR, I64), self._entry(position)))
        self._require(b.compare("eq", self._field(obj, RANK, I32), len(param.shape)))
        flags = CONTIGUOUS | ALIGNED | (0 if param.role == "in" else WRITEABLE)
        self._require(b.compare("eq", self._field(obj, FLAGS, I32) & flags, flags))
        dimensions = self._field(obj, DIMENSIONS, PTR)
        extents = [b.load(I64, b.offset(dimensions, i, "i64")) for i in range(len(param.shape))]
        size = b.constant(I64, 1)
        for wanted, found in zip(param.shape, extents, strict=True):
            if wanted.name is not None:
                self.scope.setdefault(wanted.name, found)
            size = size * found
        self.pointers[param.name] = self._field(obj, DATA, PTR)
        self.sizes[param.name] = size
        self.bytes[param.name] = size * param.dtype.itemsize
        return extents

    def _number(self, obj: Value, scalar: t.Scalar) -> None:
        """A Python float or int of the exact type. A float that only becomes infinite in f32 is left to NumPy, which warns."""
        b = self.b
        if scalar.dtype.is_float:
            self._require(b.compare("eq", self._field(obj, TYPE, I64), self._entry("float_type")))
            value = self._field(obj, FLOAT_VALUE, F64)
            narrow = value if scalar.dtype is dtypes.F64 else b.convert("fptrunc", value, "float")
            bits = b.bits(narrow)
            if scalar.dtype is dtypes.F32:
                finite = b.compare("ne", bits & 0x7FFFFFFF, 0x7F800000)
                self._require(finite | b.compare("eq", b.bits(value) & 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000))
            self.numbers[scalar.name] = bits if scalar.dtype is dtypes.F64 else b.convert("zext", bits, "i64")
            return
        self._require(b.compare("eq", self._field(obj, TYPE, I64), self._entry("int_type")))
        overflow = b.alloca("i32", 4)
        value = b.call(I64, "PyLong_AsLongLongAndOverflow", obj, overflow)
        low, high = scalar.dtype.range
        self._require(b.compare("eq", b.load(I32, overflow), 0))
        self._require(b.compare("sge", value, low))
        self._require(b.compare("sle", value, high))
        self.numbers[scalar.name] = value
        self.scope[scalar.name] = value

    def _apart(self) -> None:
        """No output shares memory with another argument."""
        b = self.b
        starts = {n: b.convert("ptrtoint", p, "i64") for n, p in self.pointers.items()}
        outputs = [p.name for p in self.plan.tensors if p.role != "in"]
        seen: set[frozenset[str]] = set()
        for out in outputs:
            for other in starts:
                pair = frozenset((out, other))
                if other == out or pair in seen:
                    continue
                seen.add(pair)
                before = b.compare("ule", starts[out] + self.bytes[out], starts[other])
                after = b.compare("ule", starts[other] + self.bytes[other], starts[out])
                self._require(before | after)

    # -- the run -------------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Decide everything that can still fail, then run the kernels."""
        b = self.b
        calls = []
        for kernel, call, whole in self.plan.kernels:
            items = evaluate(b, call.items, self.scope)
            elements_ = b.constant(I64, 1)
            for name in call.tensors:
                elements_ = b.intrinsic("llvm.smax", elements_, self.sizes[name])
            chunk = self._chunk(items, elements_, whole)
            shared = b.compare("slt", chunk, items)
            running = b.load(I32, b.emit(PTR, f"inttoptr i64 {self._entry('pool_workers')} to ptr"))
            self._require(b.compare("ne", running, 0) | ~shared)
            bytes_ = evaluate(b, call.scratch, self.scope)
            stride = ((bytes_ + (ALIGNMENT - 1)).lshr(6)) << 6
            total = b.select(shared, stride * self._entry("threads"), stride)
            self._require(b.compare("ule", total, LARGEST_SCRATCH))
            calls.append((kernel, call, items, chunk, stride, total))
            del elements_
        state = self._release(calls)
        for _, call, items, chunk, stride, total in calls:
            self._call(call, items, chunk, stride, total)
        b.when(b.compare("ne", state, 0), lambda: b.call_void("PyEval_RestoreThread", b.emit(PTR, f"inttoptr i64 {state} to ptr")))

    def _chunk(self, items: Value, elements_: Value, whole: bool) -> Value:
        """Items per chunk, as `Executable` decides it."""
        b = self.b
        threads = self._entry("threads")
        alone = b.compare("eq", threads, 1)
        if not whole:
            alone = alone | b.compare("slt", elements_, self._entry("serial_elements"))
        one = b.constant(I64, 1)
        some = b.intrinsic("llvm.smax", items, 1)
        per_item = b.intrinsic("llvm.smax", b.binary("udiv", elements_, some), 1)
        least = one if whole else b.binary("udiv", self._entry("chunk_elements") + per_item - 1, per_item)
        fair = b.binary("udiv", items, threads * self._entry("chunks_per_thread"))
        wide = b.intrinsic("llvm.smin", fair, least * 16)
        most = (items + (MAX_CHUNKS - 1)).lshr(MAX_CHUNKS.bit_length() - 1)
        chunk = one
        for candidate in (least, wide, most):
            chunk = b.intrinsic("llvm.smax", chunk, candidate)
        return b.select(alone, items, b.intrinsic("llvm.smin", items, chunk))

    def _release(self, calls: Sequence[tuple[t.TileKernel, Signature, Value, Value, Value, Value]]) -> Value:
        """Let other Python threads run while there is much to do; the saved thread state as a number, 0 when it was kept."""
        b = self.b
        much = b.constant(Type("i1"), 0)
        for _, call, *_rest in calls:
            for name in call.tensors:
                much = much | b.compare("sge", self.sizes[name], self._entry("serial_elements"))
        before, let, after = b.block, b.label("release"), b.label("released")
        b.branch(much, let, after)
        b.place(let)
        state = b.convert("ptrtoint", b.call(PTR, "PyEval_SaveThread"), "i64")
        b.jump(after)
        b.place(after)
        return b.phi(I64, [(b.constant(I64, 0), before), (state, let)])

    def _call(self, call: Signature, items: Value, chunk: Value, stride: Value, total: Value) -> None:
        b = self.b
        slots = b.alloca(f"[{max(1, len(call.tensors) + len(call.scalars))} x i64]", 8)
        for slot, name in enumerate(call.tensors):
            b.store(self.pointers[name], b.offset(slots, slot, "i64"))
        for slot, (name, _) in enumerate(call.scalars, len(call.tensors)):
            b.store(self.numbers[name] if name in self.numbers else self.scope[name], b.offset(slots, slot, "i64"))
        before, large, ready = b.block, b.label("large"), b.label("ready")
        fits = b.compare("sle", total, STACK_BYTES)
        b.branch(fits, ready, large)
        b.place(large)
        block = b.call(PTR, "aligned_alloc", b.constant(I64, ALIGNMENT), total)
        b.jump(ready)
        b.place(ready)
        scratch = b.phi(PTR, [(self.stack, before), (block, large)])
        run = b.emit(PTR, f"inttoptr i64 {self._entry('pool_run')} to ptr")
        kernel = b.named(PTR, f"@{call.name}")
        arguments = ", ".join(v.typed for v in (kernel, slots, items, chunk, scratch, stride))
        b.when(b.compare("sgt", items, 0), lambda: b.raw(f"call void {run}({arguments})"))
        b.when(~fits, lambda: b.call_void("free", scratch))

    def _answer(self, name: str) -> Value:
        """Py_True or Py_False, a new reference."""
        b = self.b
        result = b.emit(PTR, f"inttoptr i64 {self._entry(name)} to ptr")
        b.call_void("Py_IncRef", result)
        return result


