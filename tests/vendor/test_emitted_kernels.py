"""Every emitted kernel type-checks against the headers of ttnn 0.81.1, for Wormhole and Blackhole."""
from __future__ import annotations

from pathlib import Path

import kernels
import pytest
from test_intrinsics import every_call
from ttcheck.real_headers import ARCHITECTURES, Kernel, check

import pypto_dsl as pypto
from pypto_dsl.codegen.host_steps import kernel_rows
from pypto_dsl.codegen.ttmetal import Emitted, emit
from pypto_dsl.compiler import pipeline, targets
from pypto_dsl.runtime.emulator.ttmetal.runner import compile_arguments
from tests.frontend.device_kernels import CASES, NAMES, Case

pytestmark = pytest.mark.vendor
TARGETS = {"wormhole": "tt-wormhole", "blackhole": "tt-blackhole"}


def roles(made: Emitted) -> list[Kernel]:
    """The files of a program as its host registers them."""
    found = []
    for kernel in kernel_rows(made.manifest["steps"]):
        formats = {r["index"]: r["dtype"] for r in kernel["rings"]}
        for role, entry in kernel["roles"].items():
            text = made.files[f"{kernel['name']}/{entry['file']}"]
            direct = frozenset(kernel["unpack_to_dest"])
            found.append(Kernel(role, text, compile_arguments(kernel, role), formats, direct, kernel["fp32_dest"]))
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", kernels.CASES)
def test_emitted_kernels_type_check(ttnn_root: Path, name: str, architecture: str) -> None:
    """Reader, writer, and the three compute roles of every variant."""
    for kernel in roles(kernels.emitted(name, TARGETS[architecture])):
        for answer in check(ttnn_root, kernel, architecture):
            assert answer.accepted, f"{name} {kernel.role} {answer.unit}\n{answer.output[:4000]}"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_kernels_of_programs_with_control_flow_type_check(ttnn_root: Path, case: Case, architecture: str) -> None:
    """Kernels that take loop indices, and those that only fill or copy."""
    target = targets.load(TARGETS[architecture])
    made = emit(pipeline.lower(pypto.jit(case.function).graph(*case.arrays, case.want), target), target)
    for kernel in roles(made):
        for answer in check(ttnn_root, kernel, architecture):
            assert answer.accepted, f"{case.function.__name__} {kernel.role} {answer.unit}\n{answer.output[:4000]}"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("fp32_dest", [False, True], ids=["16-bit", "32-bit"])
def test_every_intrinsic_type_checks(ttnn_root: Path, architecture: str, fp32_dest: bool) -> None:
    """The whole table, whether a kernel uses the row or not."""
    kernel = Kernel("compute", every_call(fp32_dest), (), {0: "bf16", 1: "bf16", 2: "bf16"}, fp32_dest=fp32_dest)
    for answer in check(ttnn_root, kernel, architecture):
        assert answer.accepted, answer.output[:4000]
