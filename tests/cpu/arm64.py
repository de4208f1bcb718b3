"""Functions of arm64 modules, run under qemu: linked by ziglang into one static program that takes its calls on standard input."""
from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from pypto_dsl.codegen.llvm import kernel as emitter
from pypto_dsl.codegen.llvm.features import feature_levels
from pypto_dsl.compiler.tile_ir.nodes import Program
from pypto_dsl.runtime.cpu.arguments import bind
from pypto_dsl.runtime.cpu.executable import pack_scalar

Array = np.ndarray[Any, np.dtype[Any]]
QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
NEON = feature_levels()["neon"]
GUARD = 0xA5  # bytes around every array: a store outside shows

DRIVER = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef void (*Kernel)(uint64_t *, int64_t, int64_t, char *);
#define KERNEL(name) void name(uint64_t *, int64_t, int64_t, char *);
#include "names.h"
#undef KERNEL
#define KERNEL(name) {#name, name},
static const struct { const char *name; Kernel run; } kernels[] = {
#include "names.h"
};
enum { GUARD_BYTES = 64 };
static void take(void *to, size_t bytes) { if (bytes && fread(to, 1, bytes, stdin) != bytes) exit(2); }
int main(void) {
    char name[256] = {0};
    int64_t head[5];  /* letters of the name, slots, items, scratch bytes, arrays */
    take(head, sizeof head);
    take(name, (size_t)head[0]);
    uint64_t *slots = calloc((size_t)head[1] + 1, 8);
    char **memory = calloc((size_t)head[1] + 1, sizeof *memory);
    int64_t *bytes = calloc((size_t)head[1] + 1, 8);
    for (int64_t i = 0; i < head[1]; ++i) {
        take(&bytes[i], 8);  /* -1: a number */
        if (bytes[i] < 0) { take(&slots[i], 8); continue; }
        memory[i] = aligned_alloc(64, (size_t)(bytes[i] + 2 * GUARD_BYTES + 63) / 64 * 64);
        memset(memory[i], 0xA5, (size_t)bytes[i] + 2 * GUARD_BYTES);
        take(memory[i] + GUARD_BYTES, (size_t)bytes[i]);
        slots[i] = (uint64_t)(uintptr_t)(memory[i] + GUARD_BYTES);
    }
    char *scratch = aligned_alloc(64, (size_t)(head[3] + 127) / 64 * 64);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; ++k)
        if (!strcmp(kernels[k].name, name)) {
            kernels[k].run(slots, 0, head[2], scratch);
            for (int64_t i = 0; i < head[1]; ++i)
                if (bytes[i] >= 0) fwrite(memory[i], 1, (size_t)bytes[i] + 2 * GUARD_BYTES, stdout);
            return 0;
        }
    return 3;
}
"""


@dataclass(frozen=True)
class Binary:
    """A static arm64 program that holds the kernels named."""

    path: Path

    def call(self, name: str, slots: Sequence[Array | bytes], items: int, scratch: int) -> list[Array]:
        """Run items 0 to ``items`` of a kernel; ``slots`` are arrays or 8-byte numbers. Gives all arrays back, written or not."""
        arrays = [s for s in slots if not isinstance(s, bytes)]
        message = struct.pack("<5q", len(name), len(slots), items, scratch, len(arrays)) + name.encode()
        for slot in slots:
            message += struct.pack("<q", -1) + slot if isinstance(slot, bytes) else struct.pack("<q", slot.nbytes) + slot.tobytes()
        done = subprocess.run([str(QEMU), str(self.path)], input=message, capture_output=True, timeout=300)
        assert done.returncode == 0, (name, done.returncode, done.stderr.decode())
        found, at = [], 0
        for array in arrays:
            whole = np.frombuffer(done.stdout, np.uint8, array.nbytes + 128, at)
            assert (whole[:64] == GUARD).all() and (whole[-64:] == GUARD).all(), f"{name} writes outside its arrays"
            found.append(whole[64:-64].view(array.dtype).reshape(array.shape))
            at += array.nbytes + 128
        return found


@cache
def _machine() -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(cpu=NEON.cpu, opt=2, reloc="pic", codemodel="default")


def link(texts: Mapping[str, str], names: Sequence[str], folder: Path) -> Binary:
    """Compile IR texts (by a title of each) for arm64 and link them with the driver; ``names`` are the kernels in them."""
    objects = []
    for title, text in texts.items():
        module = llvm.parse_assembly(text)
        module.verify()
        objects.append(folder / f"{title}.o")
        objects[-1].write_bytes(_machine().emit_object(module))
    (folder / "driver.c").write_text(DRIVER)
    (folder / "names.h").write_text("".join(f"KERNEL({name})\n" for name in names))
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-musl", "-static", "-O1", "-fno-sanitize=undefined"]
    command += [str(folder / "driver.c"), *map(str, objects), "-o", str(folder / "kernels")]
    linked = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert linked.returncode == 0, linked.stderr
    return Binary(folder / "kernels")


def run(binary: Binary, program: Program, arrays: Mapping[str, Array], scalars: Mapping[str, float | int]) -> None:
    """A program of kernels alone on arrays by name, outputs written in place."""
    bound = bind(program, arrays, {n: v for n, v in scalars.items() if isinstance(v, int)})
    symbols = {**bound.symbols, **{s.name: 3 for s in program.scalars if s.workers}}
    memory = {name: np.ascontiguousarray(array) for name, array in bound.arrays.items()}
    for workspace in program.workspaces:
        memory[workspace.name] = np.zeros(tuple(e.evaluate(symbols) for e in workspace.shape), workspace.dtype.numpy)
    for step in program.steps:
        assert isinstance(step, tuple)
        kernel = next(k for k in step if all(r.evaluate(symbols) >= 0 for r in k.requires))
        call = emitter.signature(kernel)
        numbers = {**symbols, **scalars}
        slots = [memory[n] for n in call.tensors] + [pack_scalar(numbers[n], d) for n, d in call.scalars]
        found = binary.call(call.name, slots, call.items.evaluate(symbols), call.scratch.evaluate(symbols))
        memory.update(zip(call.tensors, found, strict=True))
    for argument in program.arguments:
        if argument.role != "in":
            arrays[argument.name][...] = memory[argument.name]
