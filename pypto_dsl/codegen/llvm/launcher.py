"""Emits a program's launcher: a C function for CPython's vector call protocol that checks NumPy arrays and runs the kernels.

    PyObject *launch(PyObject *self, PyObject *const *arguments, Py_ssize_t count)

It takes the program's tensors in order, then its run-time numbers, and returns True when it ran them, False when anything is not
exactly as it wants it: another type, dtype, rank or extent, strides, overlap, a pool that sleeps. A launcher of the same program for
arrays that lie otherwise, whose address is in the table, is asked then. When none runs it, the caller takes the long way, which explains or
converts. Addresses of Python's objects are read from a table that is filled in after loading, so the text
is the same in every process. What is the same for every program, the checks of arrays and the run, is in shared functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, mul

from pypto_dsl.codegen.llvm.builder import F64, I1, I32, I64, PTR, Builder, Module, Type, Value
from pypto_dsl.codegen.llvm.indexing import evaluate
from pypto_dsl.codegen.llvm.kernel import Signature, signature
from pypto_dsl.compiler import dtypes
from pypto_dsl.compiler.index import as_index
from pypto_dsl.compiler.layouts import free_strides
from pypto_dsl.compiler.tile_ir import nodes as t

# Offsets in a PyObject and in NumPy's PyArrayObject_fields, whose head has been stable since NumPy 1.0.
TYPE, DATA, RANK, DIMENSIONS, STRIDES, DESCRIPTOR, FLAGS, FLOAT_VALUE = 8, 16, 24, 32, 40, 56, 64, 16
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

# The table's entries; dtypes of the arguments follow.
ENTRIES = ("array_type", "float_type", "int_type", "true", "false", "following", "pool_run", "pool_workers", "threads", "serial_elements",
           "chunk_elements", "chunks_per_thread")
# Words that say what a tensor must be, of what is found of it (its extents and strides follow), and of one run of a kernel. The last three
# of a run are for the shared function itself.
WANTED = ("rank", "flags", "itemsize")
FOUND = ("data", "start", "end", "elements")
RUN = ("kernel", "slots", "items", "elements", "scratch", "whole", "chunk", "stride", "total")
# Dtypes of run-time numbers: floats, and integers that fit a signed 64-bit word.
NUMBERS = frozenset({dtypes.F32, dtypes.F64, dtypes.I8, dtypes.I16, dtypes.I32, dtypes.I64, dtypes.U8, dtypes.U16, dtypes.U32})
ALIGNMENT = 64
STACK_BYTES = 65536  # scratch up to here lies on the stack, more is allocated
LARGEST_SCRATCH = 1 << 27  # more is allocated by NumPy, which can say that there is no memory
_ONCE_A_CALL = "noinline optnone"  # straight code: to optimize it takes LLVM a millisecond and saves calls a nanosecond
MAX_CHUNKS = 1 << 22  # the pool's ticket word counts to 2^24, and every thread may look once too often


@dataclass(frozen=True)
class Launcher:
    """What a launcher takes: tensors, then numbers. ``extents`` are (name, tensor, axis): numbers that it reads off the tensors."""

    tensors: tuple[t.Param, ...]
    numbers: tuple[t.Scalar, ...]
    kernels: tuple[tuple[t.TileKernel, Signature, bool], ...]  # the flag: an item is work enough for a chunk of its own
    extents: tuple[tuple[str, str, int], ...] = ()
    workspaces: tuple[t.Workspace, ...] = ()


def launcher(program: t.Program, extents: Mapping[str, tuple[str, int]] | None = None) -> Launcher | None:
    """The launcher of a program; None for programs with variants or steps of the host.

    ``extents`` names, for a run-time number, the argument and axis whose extent it is.
    """
    if any(not isinstance(s, tuple) or len(s) != 1 or s[0].requires for s in program.steps):
        return None
    shown = {e.name for a in program.arguments for e in a.shape if e.name is not None} | free_strides(program.arguments).keys()
    where = extents or {}
    told = tuple((s.name, *where[s.name]) for s in program.scalars if s.value is None and s.name in where)
    known = shown | {name for name, _, _ in told}
    numbers = tuple(s for s in program.scalars if s.value is None and not s.workers and s.name not in known)
    if any(s.dtype not in NUMBERS for s in numbers):
        return None
    kernels = tuple((s[0], signature(s[0]), has_product(s[0].body)) for s in program.steps if isinstance(s, tuple))
    return Launcher(program.arguments, numbers, kernels, told, program.workspaces)


def has_product(body: Sequence[t.Statement]) -> bool:
    """Whether a kernel multiplies matrices."""
    return any(isinstance(s, t.Accumulate) or (isinstance(s, t.For) and has_product(s.body)) for s in body)


def define(module: Module, program: t.Program, plan: Launcher) -> None:
    """Add ``launch`` and its table ``launch_table`` to the module of the program's kernels."""
    size = len(ENTRIES) + len(plan.tensors)
    module.globals["launch_table"] = f"@launch_table = global [{size} x i64] zeroinitializer, align 64"
    module.define("launch", lambda m: _Writer(m, program, plan).write())


class _Function:
    """A function being written that gives up where anything is not as it must be."""

    def __init__(self, module: Module) -> None:
        self.b = Builder(module)

    def _require(self, condition: Value) -> None:
        """Go on when the condition holds, else give up."""
        go = self.b.label("ok")
        self.b.branch(condition, go, "slow")
        self.b.place(go)

    def _entry(self, index: int | str | Value) -> Value:
        """A word of the launcher's table."""
        position = ENTRIES.index(index) if isinstance(index, str) else index
        return self.b.load(I64, self.b.offset(self._table, position, "i64"))

    @property
    def _table(self) -> Value:
        return self.b.named(PTR, "%table")

    def _words(self, base: Value, number: Value, names: Sequence[str]) -> dict[str, Value]:
        """Addresses of the named words of one of several records."""
        first = self.b.offset(base, number * len(names), "i64")
        return {name: self.b.offset(first, i, "i64") for i, name in enumerate(names)}

    def _field(self, obj: Value, offset: int, type: Type) -> Value:
        return self.b.load(type, self.b.offset(obj, offset, "i8"))

    def _pointer(self, word: Value) -> Value:
        return self.b.emit(PTR, f"inttoptr {word.typed} to ptr")

    def _verdict(self, header: str) -> str:
        """The function's text: true here, false where it gave up."""
        self.b.raw("ret i1 true")
        self.b.place("slow")
        return self.b.finish(header, self.b.constant(I1, False))


class _Writer(_Function):
    """The launcher of one program."""

    def __init__(self, module: Module, program: t.Program, plan: Launcher) -> None:
        super().__init__(module)
        self.program, self.plan = program, plan
        self.scope: dict[str, Value] = {}
        self.pointers: dict[str, Value] = {}
        self.steps: dict[str, list[Value]] = {}  # strides in bytes of tensors that are not dense
        self.sizes: dict[str, Value] = {}
        self.numbers: dict[str, Value] = {}
        self.free = {place: name for name, place in free_strides(plan.tensors).items()}

    @property
    def _table(self) -> Value:
        return self.b.named(PTR, "@launch_table")

    def write(self) -> str:
        b = self.b
        count = len(self.plan.tensors) + len(self.plan.numbers)
        self._require(b.compare("eq", b.named(I64, "%count"), count))
        axes = self._arrays()
        self.scope.update({s.name: self._entry("threads") for s in self.program.scalars if s.workers})
        self.scope.update({name: axes[tensor][axis] for name, tensor, axis in self.plan.extents})
        for position, scalar in enumerate(self.plan.numbers, len(self.plan.tensors)):
            self._number(b.load(PTR, b.offset(b.named(PTR, "%arguments"), position, "ptr")), scalar)
        self._lie(axes)
        equal = [(evaluate(b, wanted, self.scope), found) for param in self.plan.tensors
                 for wanted, found in zip(param.shape, axes[param.name], strict=True)
                 if wanted.name is None or self.scope[wanted.name] is not found]
        equal += [(evaluate(b, left, self.scope), evaluate(b, right, self.scope)) for left, right, _ in self.program.checks]
        different = {frozenset((left.name, right.name)): (left, right) for left, right in equal}
        if different:
            self._require(reduce(and_, [b.compare("eq", left, right) for left, right in different.values()]))
        ran = self._run()
        b.raw(f"ret ptr {self._answer(ran)}")
        b.place("slow")
        header = "ptr @launch(ptr %self, ptr %arguments, i64 %count)"
        return b.finish(header, self._answer(b.constant(I1, False)), attributes=f"{_ONCE_A_CALL} #0")

    def _answer(self, ran: Value) -> Value:
        """What the launcher returns."""
        b = self.b
        name = b.module.share("launch_answer", lambda m: _Answer(m).write())
        given = (b.named(PTR, "%self"), b.named(PTR, "%arguments"), b.named(I64, "%count"))
        return b.call(PTR, name, *given, self._table, ran)

    # -- checks ------------------------------------------------------------------------------------------------------------

    def _arrays(self) -> dict[str, list[Value]]:
        """Check all arrays; returns their extents."""
        b, tensors = self.b, self.plan.tensors
        flags = [ALIGNED | (CONTIGUOUS if p.strides is None else 0) | (0 if p.role == "in" else WRITEABLE) for p in tensors]
        wanted = [word for p, said in zip(tensors, flags, strict=True) for word in (len(p.shape), said, p.dtype.itemsize)]
        pitch = len(FOUND) + 2 * max((len(p.shape) for p in tensors), default=0)
        found = b.alloca(f"[{max(1, len(tensors)) * pitch} x i64]", 8)
        table = b.named(PTR, b.module.table("wanted", "i64", wanted or [0]))
        name = b.module.share("launch_arrays", lambda m: _Arrays(m).write())
        numbers = (b.constant(I64, n) for n in (len(tensors), pitch))
        self._require(b.call(I1, name, b.named(PTR, "%arguments"), self._table, table, found, *numbers))
        axes = {}
        for number, param in enumerate(tensors):
            first, rank = number * pitch, len(param.shape)
            self.pointers[param.name], self.sizes[param.name] = (
                b.load(I64, b.offset(found, first + FOUND.index(word), "i64")) for word in ("data", "elements"))
            axes[param.name] = [b.load(I64, b.offset(found, first + len(FOUND) + i, "i64")) for i in range(rank)]
            for extent, value in zip(param.shape, axes[param.name], strict=True):
                if extent.name is not None:
                    self.scope.setdefault(extent.name, value)
            if param.strides is not None:
                self.steps[param.name] = [b.load(I64, b.offset(found, first + len(FOUND) + rank + i, "i64")) for i in range(rank)]
        return axes

    def _lie(self, axes: Mapping[str, Sequence[Value]]) -> None:
        """Learn the free strides of tensors that are not dense, and check the others."""
        b = self.b
        for (tensor, axis), name in self.free.items():  # aligned, so multiples of the element
            size = next(p.dtype.itemsize for p in self.plan.tensors if p.name == tensor)
            step = self.steps[tensor][axis]
            self.scope[name] = step >> (size.bit_length() - 1)
            self._require(b.compare("ne", step, 0) & b.compare("ne", step, size))  # there is better code for these
        for param in self.plan.tensors:
            if param.strides is not None and param.role != "in":
                self._require(self._apart(axes[param.name], self.steps[param.name], param.dtype.itemsize))
            for axis, wanted in enumerate(param.strides or ()):
                if (param.name, axis) not in self.free:
                    wanted_bytes = evaluate(b, wanted * param.dtype.itemsize, self.scope)
                    self._require(b.compare("eq", axes[param.name][axis], 1) | b.compare("eq", self.steps[param.name][axis], wanted_bytes))

    def _apart(self, sizes: Sequence[Value], steps: Sequence[Value], itemsize: int) -> Value:
        """Whether every element has memory of its own, see `layouts.apart`; of equal steps the first one counts as shorter."""
        b = self.b
        lengths = [b.call(I64, "llvm.abs.i64", step, b.constant(I1, False)) for step in steps]
        reaches = [length * b.intrinsic("llvm.smax", size - 1, 0) for length, size in zip(lengths, sizes, strict=True)]
        holds = b.constant(I1, True)
        for i, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
            reach = b.constant(I64, itemsize)
            for j, (other, far) in enumerate(zip(lengths, reaches, strict=True)):
                if i != j:
                    reach = reach + b.select(b.compare("sle" if j < i else "slt", other, length), far, 0)
            holds = holds & (b.compare("sle", size, 1) | b.compare("sle", reach, length))
        return holds

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

    # -- the run -------------------------------------------------------------------------------------------------------------

    def _run(self) -> Value:
        """Say what is to be run, and run it; whether it was."""
        b = self.b
        memory = self._workspaces()
        records = b.alloca(f"[{max(1, len(self.plan.kernels)) * len(RUN)} x i64]", 8)
        for number, (_, call, whole) in enumerate(self.plan.kernels):
            elements_ = b.constant(I64, 1)
            for name in call.tensors:
                elements_ = b.intrinsic("llvm.smax", elements_, self.sizes[name])
            slots = b.alloca(f"[{max(1, len(call.tensors) + len(call.scalars))} x i64]", 8)
            words = [self.pointers[name] for name in call.tensors]
            words += [self.numbers[name] if name in self.numbers else self.scope[name] for name, _ in call.scalars]
            for slot, word in enumerate(words):
                b.store(word, b.offset(slots, slot, "i64"))
            items, scratch = evaluate(b, call.items, self.scope), evaluate(b, call.scratch, self.scope)
            record = (b.named(PTR, f"@{call.name}"), slots, items, elements_, scratch, b.constant(I64, whole))
            for i, word in enumerate(record):
                b.store(word, b.offset(records, number * len(RUN) + i, "i64"))
        name = b.module.share("launch_kernels", lambda m: _Kernels(m).write())
        done = b.call(I1, name, self._table, records, b.constant(I64, len(self.plan.kernels)))
        if memory is not None:
            b.call_void("free", memory)
        return done

    def _workspaces(self) -> Value | None:
        """Memory for the tensors between the kernels, one behind the other."""
        b = self.b
        if not self.plan.workspaces:
            return None
        total, starts = b.constant(I64, ALIGNMENT), {}  # never nothing
        for space in self.plan.workspaces:
            size = reduce(mul, space.shape, as_index(1))
            self.sizes[space.name], starts[space.name] = evaluate(b, size, self.scope), total
            total = total + (((evaluate(b, size * space.dtype.itemsize, self.scope) + (ALIGNMENT - 1)).lshr(6)) << 6)
        self._require(b.compare("ule", total, LARGEST_SCRATCH))
        memory = b.call(PTR, "aligned_alloc", b.constant(I64, ALIGNMENT), total)
        self._require(b.compare("ne", b.convert("ptrtoint", memory, "i64"), 0))
        for name, start in starts.items():
            self.pointers[name] = b.convert("ptrtoint", b.offset(memory, start, "i8"), "i64")
        return memory


class _Arrays(_Function):
    """``i1 launch_arrays(ptr arguments, ptr table, ptr wanted, ptr found, i64 count, i64 pitch)``: whether arrays are what is wanted,
    and no output shares memory with another of them. Fills ``found``, ``pitch`` words for each."""

    def write(self) -> str:
        b = self.b
        b.loop(0, self._count, 1, lambda k, _: self._array(k), hint="array")
        b.loop(0, self._count, 1, lambda k, _: self._apart(k), hint="output")
        return self._verdict("i1 @launch_arrays(ptr %arguments, ptr %table, ptr %wanted, ptr %found, i64 %count, i64 %pitch) noinline")

    @property
    def _count(self) -> Value:
        return self.b.named(I64, "%count")

    def _wanted(self, number: Value) -> dict[str, Value]:
        return {n: self.b.load(I64, a) for n, a in self._words(self.b.named(PTR, "%wanted"), number, WANTED).items()}

    def _found(self, number: Value) -> Value:
        return self.b.offset(self.b.named(PTR, "%found"), number * self.b.named(I64, "%pitch"), "i64")

    def _array(self, number: Value) -> None:
        """Check an array's type, dtype, rank and layout, and note its extents."""
        b, wanted, found = self.b, self._wanted(number), self._found(number)
        obj = b.load(PTR, b.offset(b.named(PTR, "%arguments"), number, "ptr"))
        self._require(b.compare("eq", self._field(obj, TYPE, I64), self._entry("array_type")))
        same_dtype = b.compare("eq", self._field(obj, DESCRIPTOR, I64), self._entry(number + len(ENTRIES)))
        same_rank = b.compare("eq", b.convert("zext", self._field(obj, RANK, I32), "i64"), wanted["rank"])
        flags = b.convert("zext", self._field(obj, FLAGS, I32), "i64") & wanted["flags"]
        self._require(same_dtype & same_rank & b.compare("eq", flags, wanted["flags"]))
        dimensions, strides, data = self._field(obj, DIMENSIONS, PTR), self._field(obj, STRIDES, PTR), self._field(obj, DATA, I64)

        def axis(i: Value, carried: list[Value]) -> list[Value]:
            size, first, last = carried
            extent, stride = (b.load(I64, b.offset(words, i, "i64")) for words in (dimensions, strides))
            place = b.offset(found, i + len(FOUND), "i64")
            b.store(extent, place)
            b.store(stride, b.offset(place, wanted["rank"], "i64"))
            reach = stride * (extent - 1)
            return [size * extent, first + b.intrinsic("llvm.smin", reach, 0), last + b.intrinsic("llvm.smax", reach, 0)]

        elements_, first, last = b.loop(0, wanted["rank"], 1, axis, [b.constant(I64, 1), data, data], hint="axis")
        empty = b.compare("eq", elements_, 0)
        words = (data, b.select(empty, data, first), b.select(empty, data, last + wanted["itemsize"]), elements_)
        for i, word in enumerate(words):
            b.store(word, b.offset(found, i, "i64"))

    def _apart(self, number: Value) -> None:
        """An output shares memory with no other argument."""
        b = self.b
        out = self._found(number)
        is_output = b.compare("ne", self._wanted(number)["flags"] & WRITEABLE, 0)

        def other(k: Value, _: list[Value]) -> None:
            found = self._found(k)
            (end, begin), (stop, start) = ([self._field(x, 8 * FOUND.index(w), I64) for w in ("end", "start")] for x in (out, found))
            before, after = b.compare("ule", end, start), b.compare("ule", stop, begin)
            self._require(before | after | b.compare("eq", k, number))

        def others() -> None:
            b.loop(0, self._count, 1, other, hint="other")

        b.when(is_output, others, hint="outputs")


class _Kernels(_Function):
    """``i1 launch_kernels(ptr table, ptr records, i64 count)``: decide everything that can still fail, then run kernels in order."""

    def write(self) -> str:
        b = self.b
        self.stack = b.alloca(f"[{STACK_BYTES} x i8]")  # the kernels run one after the other
        count = b.named(I64, "%count")
        (most,) = b.loop(0, count, 1, lambda k, most: [self._decide(k, most[0])], [b.constant(I64, 0)], hint="decide")
        state = self._release(most)
        b.loop(0, count, 1, lambda k, _: self._run(k), hint="run")
        b.when(b.compare("ne", state, 0), lambda: b.call_void("PyEval_RestoreThread", self._pointer(state)))
        return self._verdict("i1 @launch_kernels(ptr %table, ptr %records, i64 %count) noinline")

    def _record(self, number: Value) -> dict[str, Value]:
        return self._words(self.b.named(PTR, "%records"), number, RUN)

    def _decide(self, number: Value, most: Value) -> Value:
        """The chunks and the scratch of one run; returns the elements of the largest so far."""
        b, record = self.b, self._record(number)
        items, elements_, scratch, whole = (b.load(I64, record[name]) for name in ("items", "elements", "scratch", "whole"))
        chunk = self._chunk(items, elements_, b.compare("ne", whole, 0))
        shared = b.compare("slt", chunk, items)
        running = b.load(I32, self._pointer(self._entry("pool_workers")))
        self._require(b.compare("ne", running, 0) | ~shared)
        stride = ((scratch + (ALIGNMENT - 1)).lshr(6)) << 6
        total = b.select(shared, stride * self._entry("threads"), stride)
        self._require(b.compare("ule", total, LARGEST_SCRATCH))
        for name, word in (("chunk", chunk), ("stride", stride), ("total", total)):
            b.store(word, record[name])
        return b.intrinsic("llvm.smax", most, elements_)

    def _chunk(self, items: Value, elements_: Value, whole: Value) -> Value:
        """Items per chunk, as `Executable` decides it."""
        b = self.b
        threads = self._entry("threads")
        alone = b.compare("eq", threads, 1) | (b.compare("slt", elements_, self._entry("serial_elements")) & ~whole)
        one = b.constant(I64, 1)

        def shared() -> list[Value]:
            some = b.intrinsic("llvm.smax", items, 1)
            per_item = b.intrinsic("llvm.smax", b.binary("udiv", elements_, some), 1)
            least = b.select(whole, one, b.binary("udiv", self._entry("chunk_elements") + per_item - 1, per_item))
            fair = b.binary("udiv", items, threads * self._entry("chunks_per_thread"))
            wide = b.intrinsic("llvm.smin", fair, least * 16)
            most = (items + (MAX_CHUNKS - 1)).lshr(MAX_CHUNKS.bit_length() - 1)
            chunk = one
            for candidate in (least, wide, most):
                chunk = b.intrinsic("llvm.smax", chunk, candidate)
            return [b.intrinsic("llvm.smin", items, chunk)]

        return b.chosen(~alone, shared, [items], "several")[0]

    def _release(self, most: Value) -> Value:
        """Let other Python threads run while there is much to do; the saved thread state as a number, 0 when it was kept."""
        b = self.b
        return b.chosen(b.compare("sge", most, self._entry("serial_elements")),
                        lambda: [b.convert("ptrtoint", b.call(PTR, "PyEval_SaveThread"), "i64")], [b.constant(I64, 0)], "release")[0]

    def _run(self, number: Value) -> None:
        b, record = self.b, self._record(number)
        kernel, slots = (b.load(PTR, record[name]) for name in ("kernel", "slots"))
        items, chunk, stride, total = (b.load(I64, record[name]) for name in ("items", "chunk", "stride", "total"))
        fits = b.compare("sle", total, STACK_BYTES)
        (scratch,) = b.chosen(~fits, lambda: [b.call(PTR, "aligned_alloc", b.constant(I64, ALIGNMENT), total)], [self.stack], "large")
        run = self._pointer(self._entry("pool_run"))
        arguments = ", ".join(v.typed for v in (kernel, slots, items, chunk, scratch, stride))
        b.when(b.compare("sgt", items, 0), lambda: b.raw(f"call void {run}({arguments})"))
        b.when(~fits, lambda: b.call_void("free", scratch))


class _Answer(_Function):
    """``ptr launch_answer(ptr self, ptr arguments, i64 count, ptr table, i1 ran)``: Py_True, what the following launcher says, or Py_False;
    a new reference."""

    def write(self) -> str:
        b = self.b
        yes, ask, other = b.label("yes"), b.label("ask"), b.label("other")
        b.branch(b.named(I1, "%ran"), yes, ask)
        b.place(yes)
        b.raw(f"ret ptr {self._new('true')}")
        b.place(ask)
        following, no = self._entry("following"), b.label("no")
        b.branch(b.compare("ne", following, 0), other, no)
        b.place(other)
        answer = b.emit(PTR, f"tail call ptr {self._pointer(following)}(ptr %self, ptr %arguments, i64 %count)")
        b.raw(f"ret ptr {answer}")
        b.place(no)
        return b.finish("ptr @launch_answer(ptr %self, ptr %arguments, i64 %count, ptr %table, i1 %ran) noinline", self._new("false"))

    def _new(self, name: str) -> Value:
        result = self._pointer(self._entry(name))
        self.b.call_void("Py_IncRef", result)
        return result
