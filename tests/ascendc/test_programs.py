"""Emitted programs in emulation against NumPy in float64: ragged shapes, one core, two and seven."""
from __future__ import annotations

import pytest

from pypto_dsl.runtime.emulator.ascendc.kernel_library import KernelLibrary
from pypto_dsl.runtime.emulator.ascendc.runner import build, execute
from tests.ascendc.kernels import KERNELS, Kernel, arguments, emitted, error

RUNS = [(kernel, extents, cores) for kernel in KERNELS.values() for extents in kernel.shapes for cores in (1, 2, 7)]


def library(kernel: Kernel) -> KernelLibrary:
    return build(emitted(kernel.name).manifest, emitted(kernel.name).files, optimize=0)


def label(value: object) -> str:
    if isinstance(value, Kernel):
        return value.name
    return "x".join(str(v) for v in value.values()) if isinstance(value, dict) else str(value)


@pytest.mark.parametrize(("kernel", "extents", "cores"), RUNS, ids=label)
def test_agrees_with_numpy(kernel: Kernel, extents: dict[str, int], cores: int) -> None:
    arrays = arguments(kernel, extents)
    outputs, _ = execute(library(kernel), emitted(kernel.name).manifest, arrays, kernel.scalars or {}, cores)
    assert error(kernel, outputs["out"], arrays) <= kernel.allowed


@pytest.mark.parametrize("kernel", list(KERNELS.values())[::3], ids=label)
def test_agrees_with_numpy_as_ascend_950(kernel: Kernel) -> None:
    """Every third of the programs on the other architecture, by table: its memories, its set of element types."""
    files = emitted(kernel.name, "ascend-950")
    built = build(files.manifest, files.files, optimize=0)
    extents = kernel.shapes[-1]
    arrays = arguments(kernel, extents)
    outputs, _ = execute(built, files.manifest, arrays, kernel.scalars or {}, 3)
    assert error(kernel, outputs["out"], arrays) <= kernel.allowed
