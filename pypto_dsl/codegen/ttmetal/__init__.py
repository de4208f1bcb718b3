"""TT-Metal C++ from placed Tile IR: three kernel files, a Python host over ttnn.generic_op, and a manifest per program."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pypto_dsl.codegen.ttmetal.emitter import emit_kernel
from pypto_dsl.codegen.ttmetal.host import host_text
from pypto_dsl.codegen.ttmetal.manifest import kernel_manifest, program_manifest, to_json
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import Program


@dataclass(frozen=True)
class Emitted:
    """What `ptc compile` writes: paths below the output folder and their texts; ``manifest`` is that of `manifest.json`."""

    files: Mapping[str, str]
    manifest: Mapping[str, Any]


def emit(program: Program, target: Target) -> Emitted:
    """Spell a placed program: `<kernel>/{reader,compute,writer}.cpp`, `host.py`, `manifest.json`."""
    files: dict[str, str] = {}
    steps: list[list[dict[str, Any]]] = []
    for variants in program.steps:
        if not isinstance(variants, tuple):
            raise CompilerBug("codegen.ttmetal", f"{type(variants).__name__} has no spelling")
        steps.append([])
        for kernel in variants:
            emitted = emit_kernel(kernel, target.table("device")["ttnn"])
            files |= {f"{kernel.name}/{role}.cpp": e.text for role, e in emitted.items()}
            steps[-1].append(kernel_manifest(kernel, emitted, target))
    manifest = program_manifest(program, steps, target)
    return Emitted({**files, "host.py": host_text(manifest), "manifest.json": to_json(manifest)}, manifest)
