"""A compiled program on the CPU: emit, compile (or take from the cache), load, and call with NumPy arrays."""

from __future__ import annotations

import ctypes
import math
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pypto_dsl.codegen.llvm import kernel as emitter
from pypto_dsl.codegen.llvm import launcher
from pypto_dsl.codegen.llvm.builder import Module
from pypto_dsl.codegen.llvm.kernel import Signature
from pypto_dsl.compiler import targets
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.graph import Check
from pypto_dsl.compiler.layouts import ANY, Layouts, free_strides
from pypto_dsl.compiler.profile import stage
from pypto_dsl.compiler.tile_ir import nodes as t
from pypto_dsl.runtime.cpu import fastcall, jit, shared, stored
from pypto_dsl.runtime.cpu.arguments import Array, Bound, bind
from pypto_dsl.runtime.cpu.cache import ObjectCache, default_directory, entry_name
from pypto_dsl.runtime.cpu.caches import last_level_bytes
from pypto_dsl.runtime.cpu.fastcall import FastCall
from pypto_dsl.runtime.cpu.pool import Pool, shared_pool
from pypto_dsl.runtime.tile_interpreter import guard, host_call, scalar_value, window

_ALIGNMENT = 64
MOST_VARIANTS = 16  # of layouts that one program is compiled for; further ones share code that takes any strides
Number = float | int


@dataclass(frozen=True)
class Loaded:
    """One kernel in memory."""

    signature: Signature
    address: int
    whole_items: bool  # an item is work enough for a chunk of its own


class Scratch(threading.local):
    """Scratch memory of the calling thread, grown as kernels ask for it, one part per worker."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def get(self, size: int) -> int:
        """The address of ``size`` bytes on a cache line."""
        if self._memory.size < size + _ALIGNMENT:
            self._memory = np.empty(size + _ALIGNMENT, np.uint8)
        address: int = self._memory.ctypes.data
        return -(-address // _ALIGNMENT) * _ALIGNMENT


_SCRATCH = Scratch()


@dataclass
class _Call:
    """One call of a program while it runs: memory by tensor name, extents and loop variables, run-time scalars."""

    memory: dict[str, Array]
    extents: dict[str, int]
    scalars: dict[str, Number]


class Executable:
    """The kernels of one program, ready to be called.

    ``run`` takes arrays and run-time scalars by name. They may have any strides and alignment; outputs are written in place, and
    elements that the program does not write are untouched. Arrays that are not dense are read and written where they lie by variants of
    the program, compiled when such a call comes.
    """

    def __init__(self, program: t.Program | Callable[[], t.Program], *, level: str | None = None, cache: ObjectCache | None = None,
                 pool: Pool | None = None, launch: Mapping[str, int] | None = None,
                 extents: Mapping[str, tuple[str, int]] | None = None, key: tuple[str, ...] | None = None,
                 relaid: Callable[[Layouts], t.Program] | None = None, tuning: str | None = None) -> None:
        """Compile ``program`` for the host, or for one of its smaller feature levels, or tuned as for another processor.

        Objects are kept in ``cache``, the user's cache directory unless given.
        ``launch`` replaces the target's thresholds for sharing work among threads, and the one for writing past the caches that follows
        from this machine's (``streaming_bytes``); results do not depend on it.
        ``extents`` names, for run-time numbers, the argument and axis whose extent they are: the launcher reads them there.
        ``key`` (`stored.key`) finds what an earlier process has compiled; ``program`` may then be a function, called when it is needed.
        ``relaid`` lowers the program for arrays that lie otherwise; without it such arrays are copied.
        Raises KernelError PT524 for a level that the host lacks, and what emission refuses.
        """
        self._program = program
        self._extents = extents
        self._key, self._relaid = key, relaid
        self._variants: dict[tuple[tuple[str, str], ...], Executable] = {}
        self._lock = threading.Lock()
        self.machine = jit.machine(level, tuning)
        kept = self._cache = cache or ObjectCache(default_directory())
        with stage("cache"):
            found = stored.find(kept, key) if key is not None else None
        record, code, imports = found or self._compiled(kept)
        if found is None and key is not None:
            with stage("cache"):
                stored.keep(kept, key, record)
        self.arguments = record.arguments
        with stage("link"):
            self._library = jit.Library(code, record.exports, imports)
            self._pool = pool or shared_pool()
            self._launch = {**targets.load("llvm-cpu").table("launch"), **(launch or {})}
            self._fast = None
            if emitter.STREAMING in record.exports:
                limit = (launch or {}).get(emitter.STREAMING, emitter.streaming_bytes(last_level_bytes()))
                ctypes.c_int64.from_address(self._library.address(emitter.STREAMING)).value = limit
            if record.tensors is not None:
                self._fast = FastCall(self._library, record.tensors, record.numbers, self._pool, self._launch)

    @cached_property
    def program(self) -> t.Program:
        """The program; lowered now where it came from the cache."""
        return self._program() if callable(self._program) else self._program

    @cached_property
    def _emitted(self) -> tuple[Module, launcher.Launcher | None]:
        """The module and the launcher in it, if any."""
        program = self.program
        with stage("emit"):
            module = emitter.emit_module(list(t.kernels_of(program.steps)), self.machine.level)
            plan = launcher.launcher(program, self._extents) if fastcall.supported() else None
            if plan is not None:
                launcher.define(module, program, plan)
            return module, plan

    @property
    def text(self) -> str:
        """The LLVM IR."""
        return self._emitted[0].text()

    @property
    def parts(self) -> tuple[str, str]:
        """What the object depends on: its text, without the functions that kernels share, and the machine."""
        return self._emitted[0].text(apart=True), self.machine.fingerprint

    def _compiled(self, cache: ObjectCache) -> tuple[stored.Record, bytes, Mapping[str, int]]:
        """The record, the object, compiled unless one of the same text is kept, and the addresses of what it shares."""
        module, plan = self._emitted
        parts = self.parts
        code = cache.get(parts, lambda: jit.compile_object(parts[0], self.machine))
        functions = shared.compiled(cache, module, self.machine)
        extra = ("launch", "launch_table") if plan is not None else ()
        words = (emitter.STREAMING,) if emitter.STREAMING in module.globals else ()
        exports = (*(emitter.symbol(k.name) for k in t.kernels_of(self.program.steps)), *extra, *words)
        tensors = None if plan is None else tuple((p.name, p.dtype) for p in plan.tensors)
        numbers = () if plan is None else tuple(s.name for s in plan.numbers)
        record = stored.Record(entry_name(parts), exports, tuple(self.program.arguments), tensors, numbers, functions)
        return record, code, shared.addresses(cache, functions) or {}

    @cached_property
    def _loaded(self) -> dict[str, Loaded]:
        """The kernels by name, for calls without the launcher."""
        return {k.name: self._loaded_kernel(k) for k in t.kernels_of(self.program.steps)}

    def _loaded_kernel(self, kernel: t.TileKernel) -> Loaded:
        call = emitter.signature(kernel)
        return Loaded(call, self._library.address(call.name), launcher.has_product(kernel.body))

    @property
    def launch(self) -> Callable[..., bool] | None:
        """The program's launcher: called with the tensors of ``program.arguments`` in order and then the run-time numbers, it gives
        True when it ran the program and False when `run` must be called instead. None where there is none."""
        return None if self._fast is None else self._fast.function

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the run-time numbers that the launcher takes after the tensors."""
        return () if self._fast is None else tuple(self._fast.numbers)

    def run(self, arrays: Mapping[str, Array], scalars: Mapping[str, Number] | None = None) -> None:
        """Run the program on arrays by name. See `bind` for the errors; nothing is written when one is raised.

        ``scalars`` holds the run-time numbers, and extents that no array's shape tells.
        """
        if self._fast is not None:
            numbers = scalars or {}
            if self._fast.function(*[arrays[n] for n in self._fast.tensors], *[numbers[n] for n in self._fast.numbers]):
                return
        self.check_and_run(arrays, scalars)

    def check_and_run(self, arrays: Mapping[str, Array], scalars: Mapping[str, Number] | None = None) -> None:
        """`run` without the launcher: every check in Python, arrays of any layout."""
        symbols = {n: int(v) for n, v in (scalars or {}).items() if isinstance(v, (int, np.integer))}
        bound = bind(self.program, arrays, symbols, self._relaid is not None)
        for left, right, span in self.program.checks:
            _test(Check(left, right, span), bound.symbols)
        self._variant(bound.layouts(self.program))._run(bound, scalars or {})

    def _variant(self, layouts: Layouts) -> Executable:
        """The program for inputs that lie so."""
        if not layouts:
            return self
        assert self._relaid is not None, "without variants inputs are dense"
        with self._lock:
            if len(self._variants) >= MOST_VARIANTS:
                layouts = {name: ANY * len(layout) for name, layout in layouts.items()}
            which = tuple(sorted(layouts.items()))
            found = self._variants.get(which)
            if found is None:
                key = None if self._key is None else (*self._key, repr(which))
                relaid = self._relaid
                found = Executable(lambda: relaid(layouts), level=self.machine.level.name, cache=self._cache, pool=self._pool,
                                   launch=self._launch, extents=self._extents, key=key, tuning=self.machine.level.tuning.name)
                if self._fast is not None and found._fast is not None:
                    self._fast.follow(found._fast)
                self._variants[which] = found
            return found

    def _run(self, bound: Bound, scalars: Mapping[str, Number]) -> None:
        strides = _strides(self.program, bound.arrays)
        workers = {s.name: self._pool.threads for s in self.program.scalars if s.workers}
        extents = {**bound.symbols, **strides, **workers}
        call = _Call(dict(bound.arrays), extents, {**extents, **scalars})
        for workspace in self.program.workspaces:
            shape = tuple(e.evaluate(call.extents) for e in workspace.shape)
            call.memory[workspace.name] = np.empty(shape, workspace.dtype.numpy)
        self._steps(self.program.steps, call)
        for copy, original in bound.back:
            original[...] = copy

    def _steps(self, steps: Sequence[t.Step], call: _Call) -> None:
        for step in steps:
            if isinstance(step, tuple):
                self._kernel(self._choose(step, call.extents), call)
            elif isinstance(step, t.LoopStep):
                for i in range(*(e.evaluate(call.extents) for e in (step.start, step.stop, step.step))):
                    self._steps(step.steps, _Call(call.memory, {**call.extents, step.var: i}, {**call.scalars, step.var: i}))
            elif isinstance(step, t.BranchStep):
                taken = scalar_value(step.ops, step.condition, call.extents, call.scalars)
                self._steps(step.steps if taken else step.orelse, call)
            elif isinstance(step, t.ReadElement):
                element = window(call.memory, step.param, call.extents)[tuple(o.evaluate(call.extents) for o in step.offsets)]
                call.scalars[step.name] = element.item()
                if step.symbol:
                    call.extents[step.symbol] = call.scalars[step.symbol] = int(element)
            elif isinstance(step, t.StoreNumber):
                call.memory[step.name][...] = scalar_value(step.ops, step.value, call.extents, call.scalars)
            elif isinstance(step, t.GuardStep):
                guard(step, call.extents)
            else:
                host_call(step, call.memory, call.extents, call.scalars)

    def _choose(self, variants: Sequence[t.TileKernel], extents: Mapping[str, int]) -> Loaded:
        for variant in variants:
            if all(r.evaluate(extents) >= 0 for r in variant.requires):
                return self._loaded[variant.name]
        raise error("PT707", f"no schedule of `{variants[0].title}` takes these extents: {dict(extents)}", variants[0].span)

    def _kernel(self, kernel: Loaded, call: _Call) -> None:
        signature = kernel.signature
        items = signature.items.evaluate(call.extents)
        if items <= 0:
            return
        slots = bytearray()
        elements = 1
        for name in signature.tensors:
            array = call.memory[name]
            elements = max(elements, array.size)
            slots += struct.pack("=Q", array.ctypes.data)
        for name, dtype in signature.scalars:
            slots += pack_scalar(call.scalars[name], dtype)
        arguments = (ctypes.c_char * max(8, len(slots))).from_buffer(slots or bytearray(8))
        pool = self._pool
        chunk = self._chunk(kernel, items, elements, pool.threads)
        if chunk < items:
            pool.start()
        stride = -(-signature.scratch.evaluate(call.extents) // _ALIGNMENT) * _ALIGNMENT
        workers = pool.threads if chunk < items else 1
        pool.run(kernel.address, ctypes.addressof(arguments), items, chunk, _SCRATCH.get(stride * workers), stride)

    def _chunk(self, kernel: Loaded, items: int, elements: int, threads: int) -> int:
        """Items per chunk: everything at once for little work, else chunks that are worth handing over."""
        if threads == 1 or (elements < self._launch["serial_elements"] and not kernel.whole_items):
            return items
        per_item = max(1, elements // items)
        least = 1 if kernel.whole_items else math.ceil(int(self._launch["chunk_elements"]) / per_item)
        fair = items // (threads * int(self._launch["chunks_per_thread"]))
        return min(items, max(1, least, min(fair, 16 * least), -(-items // launcher.MAX_CHUNKS)))


def _strides(program: t.Program, arrays: Mapping[str, Array]) -> dict[str, int]:
    """The free strides of the program's arguments in elements, by the names that it has for them."""
    return {name: arrays[tensor].strides[axis] // arrays[tensor].itemsize
            for name, (tensor, axis) in free_strides(program.arguments).items()}


def _test(check: Check, symbols: Mapping[str, int]) -> None:
    left, right = check.left.evaluate(symbols), check.right.evaluate(symbols)
    if left == right:
        return
    if check.is_bound:
        raise error("PT710", f"an access reaches {left} where `{check.right}` is {right}", check.span)
    raise error("PT707", f"`{check.left}` is {left} and `{check.right}` is {right}, and the operation needs them equal", check.span)


def pack_scalar(number: Number, dtype: DType) -> bytes:
    """A run-time scalar as the 8 bytes of its slot. Integers that do not fit raise OverflowError."""
    if dtype.is_integer:
        return int(number).to_bytes(8, "little", signed=dtype.signed)
    value: Any = np.asarray(number).astype(dtype.numpy)
    return bytes(value.tobytes().ljust(8, b"\0"))
