"""The thread pool, written in LLVM IR: chunks of items claimed by atomic tickets; the caller works too; idle workers spin, then sleep.

A job is (kernel, arguments, items, items per chunk, scratch). A worker claims the next chunk by adding one to a ticket word that
holds the number of chunks above bit 24 and the next chunk below, so a claim and the job it belongs to are one atomic read. A job
that finds the pool busy, or too small to share, runs on the calling thread. Needs Linux's futex; elsewhere every job runs serially.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from functools import cache

from pypto_dsl.runtime.cpu import jit
from pypto_dsl.runtime.cpu.cache import ObjectCache, default_directory

_SPINS = 20000  # empty looks before a worker sleeps: about 50 us
_FUTEX = {"x86_64": 202, "aarch64": 98}  # the system call's number
_DEFAULT_MXCSR = 0x1F80  # nearest even, subnormals kept, exceptions masked

_SET_FLOATS = {
    "x86_64": (
        "  %state = alloca i32, align 4\n  call void @llvm.x86.sse.stmxcsr(ptr %state)\n  %wanted = alloca i32, align 4\n"
        f"  store i32 {_DEFAULT_MXCSR}, ptr %wanted\n  call void @llvm.x86.sse.ldmxcsr(ptr %wanted)\n",
        "  call void @llvm.x86.sse.ldmxcsr(ptr %state)\n",
        "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n",
    ),
}
_PAUSE = {"x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()\n")}

_SERIAL = """
@pool_workers = global i32 0, align 64
define void @pool_run(ptr %kernel, ptr %arguments, i64 %items, i64 %chunk, ptr %scratch, i64 %stride) {{
entry:
{set}  call void %kernel(ptr %arguments, i64 0, i64 %items, ptr %scratch)
{restore}  ret void
}}
{declare}"""

# Fields of %pool: 0 ticket, 2 done, 4 kernel, 5 arguments, 6 items, 7 chunk, 8 scratch, 9 stride, 11 generation, 12 sleepers,
# 13 busy, 14 stop; the rest keeps what is written often on cache lines of its own.
_THREADED = """
%pool = type {{ i64, [56 x i8], i64, [56 x i8], ptr, ptr, i64, i64, ptr, i64, [16 x i8], i32, i32, i32, i32, [48 x i8] }}
@pool = global %pool zeroinitializer, align 64
@pool_workers = global i32 0, align 64
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @sched_yield()
declare i64 @syscall(i64, ...)
{declare}{declare_pause}
define internal i1 @claim(i64 %worker) noinline {{
entry:
  %ticket = load atomic i64, ptr @pool acquire, align 64
  %count = lshr i64 %ticket, 24
  %next = and i64 %ticket, 16777215
  %open = icmp ult i64 %next, %count
  br i1 %open, label %take, label %none
take:
  %mine = atomicrmw add ptr @pool, i64 1 seq_cst, align 64
  %count2 = lshr i64 %mine, 24
  %number = and i64 %mine, 16777215
  %valid = icmp ult i64 %number, %count2
  br i1 %valid, label %work, label %none
work:
  %kernel.p = getelementptr %pool, ptr @pool, i32 0, i32 4
  %arguments.p = getelementptr %pool, ptr @pool, i32 0, i32 5
  %items.p = getelementptr %pool, ptr @pool, i32 0, i32 6
  %chunk.p = getelementptr %pool, ptr @pool, i32 0, i32 7
  %scratch.p = getelementptr %pool, ptr @pool, i32 0, i32 8
  %stride.p = getelementptr %pool, ptr @pool, i32 0, i32 9
  %kernel = load ptr, ptr %kernel.p
  %arguments = load ptr, ptr %arguments.p
  %items = load i64, ptr %items.p
  %chunk = load i64, ptr %chunk.p
  %scratch = load ptr, ptr %scratch.p
  %stride = load i64, ptr %stride.p
  %start = mul i64 %number, %chunk
  %end = add i64 %start, %chunk
  %inside = icmp ult i64 %end, %items
  %stop = select i1 %inside, i64 %end, i64 %items
  %distance = mul i64 %worker, %stride
  %own = getelementptr i8, ptr %scratch, i64 %distance
  call void %kernel(ptr %arguments, i64 %start, i64 %stop, ptr %own)
  %done.p = getelementptr %pool, ptr @pool, i32 0, i32 2
  %before = atomicrmw add ptr %done.p, i64 1 seq_cst, align 64
  ret i1 true
none:
  ret i1 false
}}
define internal ptr @worker(ptr %argument) {{
entry:
{set}  %number = ptrtoint ptr %argument to i64
  %generation.p = getelementptr %pool, ptr @pool, i32 0, i32 11
  %sleepers.p = getelementptr %pool, ptr @pool, i32 0, i32 12
  %stop.p = getelementptr %pool, ptr @pool, i32 0, i32 14
  br label %top
top:
  br label %look
look:
  %spin = phi i64 [ 0, %top ], [ %spin2, %idle ]
  %worked = call i1 @claim(i64 %number)
  br i1 %worked, label %top, label %idle
idle:
  {pause}
  %spin2 = add i64 %spin, 1
  %tired = icmp uge i64 %spin2, {spins}
  br i1 %tired, label %sleep, label %look
sleep:
  %s = atomicrmw add ptr %sleepers.p, i32 1 seq_cst, align 4
  %generation = load atomic i32, ptr %generation.p seq_cst, align 4
  %stopped = load atomic i32, ptr %stop.p seq_cst, align 4
  %leave = icmp ne i32 %stopped, 0
  br i1 %leave, label %exit, label %check
check:
  %ticket = load atomic i64, ptr @pool seq_cst, align 64
  %count = lshr i64 %ticket, 24
  %next = and i64 %ticket, 16777215
  %open = icmp ult i64 %next, %count
  br i1 %open, label %wake, label %wait
wait:
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %generation.p, i64 128, i32 %generation, ptr null, ptr null, i64 0)
  br label %wake
wake:
  %s2 = atomicrmw sub ptr %sleepers.p, i32 1 seq_cst, align 4
  br label %top
exit:
  ret ptr null
}}
define i32 @pool_start(ptr %handles, i64 %count) {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i2, %made ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %make, label %ready
make:
  %handle = getelementptr i64, ptr %handles, i64 %i
  %i2 = add i64 %i, 1
  %number = inttoptr i64 %i2 to ptr
  %r = call i32 @pthread_create(ptr %handle, ptr null, ptr @worker, ptr %number)
  %failed = icmp ne i32 %r, 0
  br i1 %failed, label %ready, label %made
made:
  %n = trunc i64 %i2 to i32
  store i32 %n, ptr @pool_workers
  br label %next
ready:
  %total = load i32, ptr @pool_workers
  ret i32 %total
}}
define void @pool_stop(ptr %handles) {{
entry:
  %generation.p = getelementptr %pool, ptr @pool, i32 0, i32 11
  %stop.p = getelementptr %pool, ptr @pool, i32 0, i32 14
  %workers = load i32, ptr @pool_workers
  %count = zext i32 %workers to i64
  store i32 0, ptr @pool_workers
  store atomic i32 1, ptr %stop.p seq_cst, align 4
  %g = atomicrmw add ptr %generation.p, i32 1 seq_cst, align 4
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %generation.p, i64 129, i64 1073741824, ptr null, ptr null, i64 0)
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i2, %join ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %join, label %gone
join:
  %handle.p = getelementptr i64, ptr %handles, i64 %i
  %handle = load i64, ptr %handle.p
  %j = call i32 @pthread_join(i64 %handle, ptr null)
  %i2 = add i64 %i, 1
  br label %next
gone:
  store %pool zeroinitializer, ptr @pool, align 64
  ret void
}}
define void @pool_forget() {{
  store i32 0, ptr @pool_workers
  store %pool zeroinitializer, ptr @pool, align 64
  ret void
}}
define void @pool_run(ptr %kernel, ptr %arguments, i64 %items, i64 %chunk, ptr %scratch, i64 %stride) {{
entry:
{set}  %busy.p = getelementptr %pool, ptr @pool, i32 0, i32 13
  %workers = load i32, ptr @pool_workers
  %alone = icmp eq i32 %workers, 0
  %one = icmp uge i64 %chunk, %items
  %serial = or i1 %alone, %one
  br i1 %serial, label %here, label %lock
here:
  call void %kernel(ptr %arguments, i64 0, i64 %items, ptr %scratch)
  br label %restore
lock:
  %pair = cmpxchg ptr %busy.p, i32 0, i32 1 seq_cst seq_cst, align 4
  %got = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %got, label %publish, label %here
publish:
  %kernel.p = getelementptr %pool, ptr @pool, i32 0, i32 4
  %arguments.p = getelementptr %pool, ptr @pool, i32 0, i32 5
  %items.p = getelementptr %pool, ptr @pool, i32 0, i32 6
  %chunk.p = getelementptr %pool, ptr @pool, i32 0, i32 7
  %scratch.p = getelementptr %pool, ptr @pool, i32 0, i32 8
  %stride.p = getelementptr %pool, ptr @pool, i32 0, i32 9
  %done.p = getelementptr %pool, ptr @pool, i32 0, i32 2
  %generation.p = getelementptr %pool, ptr @pool, i32 0, i32 11
  %sleepers.p = getelementptr %pool, ptr @pool, i32 0, i32 12
  store ptr %kernel, ptr %kernel.p
  store ptr %arguments, ptr %arguments.p
  store i64 %items, ptr %items.p
  store i64 %chunk, ptr %chunk.p
  store ptr %scratch, ptr %scratch.p
  store i64 %stride, ptr %stride.p
  store atomic i64 0, ptr %done.p seq_cst, align 64
  %rounded = add i64 %items, %chunk
  %rounded2 = sub i64 %rounded, 1
  %chunks = udiv i64 %rounded2, %chunk
  %ticket = shl i64 %chunks, 24
  store atomic i64 %ticket, ptr @pool seq_cst, align 64
  %sleeping = load atomic i32, ptr %sleepers.p seq_cst, align 4
  %asleep = icmp ne i32 %sleeping, 0
  br i1 %asleep, label %rouse, label %work
rouse:
  %g = atomicrmw add ptr %generation.p, i32 1 seq_cst, align 4
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %generation.p, i64 129, i64 1073741824, ptr null, ptr null, i64 0)
  br label %work
work:
  %more = call i1 @claim(i64 0)
  br i1 %more, label %work, label %wait
wait:
  %turn = phi i64 [ 0, %work ], [ %turn2, %again ]
  %done = load atomic i64, ptr %done.p acquire, align 64
  %finished = icmp eq i64 %done, %chunks
  br i1 %finished, label %unlock, label %patience
patience:
  {pause}
  %turn2 = add i64 %turn, 1
  %long = icmp ugt i64 %turn2, 4000
  br i1 %long, label %yield, label %again
yield:
  %y = call i32 @sched_yield()
  br label %again
again:
  br label %wait
unlock:
  store atomic i32 0, ptr %busy.p seq_cst, align 4
  br label %restore
restore:
{restore}  ret void
}}
"""


def pool_text(architecture: str, threaded: bool) -> str:
    """The pool's module for an architecture."""
    set_floats, restore, declare = _SET_FLOATS.get(architecture, ("", "", ""))
    pause, declare_pause = _PAUSE.get(architecture, ("fence seq_cst", ""))
    if not threaded:
        return _SERIAL.format(set=set_floats, restore=restore, declare=declare)
    return _THREADED.format(set=set_floats, restore=restore, declare=declare, pause=pause, declare_pause=declare_pause, spins=_SPINS,
                            futex=_FUTEX[architecture])


def usable_processors() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _object(architecture: str, threaded: bool) -> bytes:
    text, machine = pool_text(architecture, threaded), jit.machine()
    return ObjectCache(default_directory()).get((text, machine.fingerprint), lambda: jit.compile_object(text, machine))


class Pool:
    """``threads`` threads, the caller's included; workers start with the first job that can use them."""

    def __init__(self, threads: int | None = None) -> None:
        """Prepare a pool; None: one thread per processor that the process may use."""
        self.threads = max(1, usable_processors() if threads is None else threads)
        architecture = jit.machine().level.architecture
        self.threaded = sys.platform == "linux" and architecture in _FUTEX and self.threads > 1
        exports = ["pool_start", "pool_stop", "pool_forget"] if self.threaded else []
        self._library = jit.Library(_object(architecture, self.threaded), [*exports, "pool_run", "pool_workers"])
        self.run_address = self._library.address("pool_run")
        self.workers_address = self._library.address("pool_workers")
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p,
                                    ctypes.c_int64)(self.run_address)
        self._handles = (ctypes.c_uint64 * self.threads)()
        self._started = not self.threaded
        self._lock = threading.Lock()
        if self.threaded:
            os.register_at_fork(after_in_child=self._forget)
            atexit.register(self.stop)

    def start(self) -> None:
        """Start the workers unless they run."""
        if self._started:
            return
        with self._lock:
            if not self._started:
                function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)(self._library.address("pool_start"))
                function(ctypes.addressof(self._handles), self.threads - 1)
                self._started = True

    def stop(self) -> None:
        """End the workers; the next `start` makes new ones."""
        with self._lock:
            if self.threaded and self._started:
                ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._library.address("pool_stop"))(ctypes.addressof(self._handles))
                self._started = False

    def _forget(self) -> None:
        """In a forked child the workers do not exist."""
        self._lock = threading.Lock()
        ctypes.CFUNCTYPE(None)(self._library.address("pool_forget"))()
        self._started = False


@cache
def shared_pool() -> Pool:
    """The process's pool."""
    return Pool()
