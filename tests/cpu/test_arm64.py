"""Law 3 across architectures: what NEON code computes under qemu has the bits of this machine's code."""
from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import arm64
import numpy as np
import pytest
from cpu_programs import KERNELS, Executable, Kernel, arguments, executable, graph, lower, output, run
from vector_functions import Array, bits

from pypto_dsl.codegen.llvm import kernel as emitter
from pypto_dsl.compiler import targets
from pypto_dsl.compiler.dtypes import BF16, F16, F32
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.tile_ir.nodes import Program, TileKernel

pytestmark = pytest.mark.skipif(arm64.QEMU is None, reason="qemu-aarch64 (Debian's qemu-user) is not installed")

EXTENTS = ({"M": 3, "N": 100, "K": 33}, {"M": 37, "N": 70, "K": 130}, {"M": 2, "N": 4099, "K": 5})
DTYPES = (F32, F16, BF16)
SPECIAL = [0.0, -0.0, 1, -1, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1.4e-45, 3.4e38, -3.4e38, 2.0**-126, 6e-8, 65504, 1e5]


def elementwise() -> Iterator[str]:
    """Operations of one or two tensors that the CPU target computes itself in f32 and has a bound for."""
    for name in targets.load("llvm-cpu").data["bounds"]["f32"]:
        op = REGISTRY[name]
        if op.family in ("elementwise", "compare") and len(op.operands) in (1, 2):
            yield name


def kernels(program: Program) -> list[TileKernel]:
    """The kernels of a program that has no other steps."""
    return [k for step in program.steps if isinstance(step, tuple) for k in step]


@cache
def functions() -> dict[str, Program]:
    """One program for each operation and dtype that has a kernel."""
    made = {}
    for name in elementwise():
        op = REGISTRY[name]
        for dtype in DTYPES:
            parameters = tuple((p, dtype, ("N",)) for p in ("x", "y")[:len(op.operands)])
            title = f"one_{name}_{dtype.name}"
            program = lower(graph(title, Kernel(op, parameters, np.abs, 0)))
            if all(isinstance(step, tuple) for step in program.steps):
                made[title] = program
    return made


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> arm64.Binary:
    programs = {**{name: executable(name).program for name in KERNELS}, **functions()}
    texts = {name: emitter.emit(kernels(program), arm64.NEON) for name, program in programs.items()}
    names = [emitter.symbol(k.name) for program in programs.values() for k in kernels(program)]
    return arm64.link(texts, names, tmp_path_factory.mktemp("arm64"))


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_has_the_bits_of_this_machine(name: str, binary: arm64.Binary) -> None:
    host = executable(name)
    for extents in EXTENTS:
        arrays, scalars = arguments(name, extents, 5)
        want = run(name, arrays, scalars, host)
        shape, dtype = output(name, arrays, host)
        got = np.full(shape, 77, dtype=dtype.numpy)
        arm64.run(binary, host.program, {**arrays, "out": got}, scalars)
        assert got.tobytes() == want.tobytes(), extents


def inputs() -> tuple[Array, Array]:
    """Every pair of special values, then draws over all magnitudes and where functions change."""
    rng = np.random.default_rng(3)
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    wide = rng.integers(0, 2**32, (2, 4000), np.uint64).astype(np.uint32).view(np.float32).astype(np.float64)
    near = rng.normal(size=(2, 4000)) * rng.choice([0.1, 1, 20, 300], size=(2, 4000))
    return np.concatenate([x, wide[0], near[0]]), np.concatenate([y, wide[1], near[1]])


@pytest.mark.parametrize("title", functions())
def test_operation_has_the_bits_of_this_machine(title: str, binary: arm64.Binary) -> None:
    program = functions()[title]
    dtype = program.arguments[0].dtype.numpy
    with np.errstate(all="ignore"):
        arrays = {a.name: v.astype(np.float32).astype(dtype) for a, v in zip(program.arguments[:-1], inputs(), strict=False)}
    size = arrays["x"].size
    want, got = (np.zeros(size, program.arguments[-1].dtype.numpy) for _ in range(2))
    Executable(program).run({**arrays, "out": want})
    arm64.run(binary, program, {**arrays, "out": got}, {})
    if want.dtype.kind in "biu":
        assert (got == want).all()
        return
    differ = np.flatnonzero(bits(got) != bits(want))
    assert not differ.size, [(*(a[i] for a in arrays.values()), got[i], want[i]) for i in differ[:4]]
