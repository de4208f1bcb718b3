"""TT-Metal C++ from placed Tile IR: three kernel files, a Python host over ttnn.generic_op, and a manifest per program."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pypto_dsl.codegen import host_steps
from pypto_dsl.codegen.ttmetal.emitter import emit_kernel
from pypto_dsl.codegen.ttmetal.host import host_text
from pypto_dsl.codegen.ttmetal.manifest import kernel_manifest, program_manifest, to_json
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import Program, TileKernel


@dataclass(frozen=True)
class Emitted:
    """What `ptc compile` writes: paths below the output folder and their texts; ``manifest`` is that of `manifest.json`."""

    files: Mapping[str, str]
    manifest: Mapping[str, Any]


def emit(program: Program, target: Target) -> Emitted:
    """Spell a placed program: `<kernel>/{reader,compute,writer}.cpp`, `host.py`, `manifest.json`."""
    files: dict[str, str] = {}

    def record(kernel: TileKernel) -> dict[str, Any]:
        emitted = emit_kernel(kernel, target.table("device")["ttnn"])
        files.update({f"{kernel.name}/{role}.cpp": e.text for role, e in emitted.items()})
        return kernel_manifest(kernel, emitted, target)

    manifest = program_manifest(program, host_steps.rows(program.steps, record), target)
    return Emitted({**files, "host.py": host_text(manifest), "manifest.json": to_json(manifest)}, manifest)
