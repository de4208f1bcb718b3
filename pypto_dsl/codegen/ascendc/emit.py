"""A placed Program as the files of an Ascend C project: kernels, host program, build file, manifest, source map."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pypto_dsl.codegen.ascendc.host import cmake_text, host_text
from pypto_dsl.codegen.ascendc.kernel import kernel_text
from pypto_dsl.codegen.ascendc.manifest import manifest, text
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import Program, TileKernel, kernels_of

HEAD = """// {title}: Ascend C for {chip}, written by pypto_dsl. Emulated; not compiled by bisheng, not run on a device.
#include "kernel_operator.h"

using namespace AscendC;
"""


@dataclass(frozen=True)
class Emitted:
    """File name -> text, and the manifest as data (it is one of the files too)."""

    files: Mapping[str, str]
    manifest: Mapping[str, Any]

    @property
    def kernels(self) -> Mapping[str, str]:
        """The files that hold device code."""
        name = f"{self.manifest['name']}.cpp"
        return {name: self.files[name]}


def emit(program: Program, target: Target) -> Emitted:
    """Spell a placed program. The same program gives the same bytes, whatever the process, folder or hash seed.

    Raises CompilerBug for a statement that is not placed, or two kernels of one name.
    """
    kernels = list(kernels_of(program.steps))
    names = [kernel.name for kernel in kernels]
    if len(set(names)) != len(names):
        raise CompilerBug("codegen.ascendc", f"two kernels of {program.name} have one name: {', '.join(names)}")
    source = f"{program.name}.cpp"
    body, places = _source(program, kernels, target)
    names_of_files = (source, "main.cpp", "CMakeLists.txt", "manifest.json", "source_map.json")
    data = manifest(program, target, names_of_files)
    files = {
        source: body,
        "main.cpp": host_text(data),
        "CMakeLists.txt": cmake_text(data),
        "manifest.json": text(data),
        "source_map.json": text({"file": source, "lines": places}),
    }
    return Emitted(files, data)


def _source(program: Program, kernels: list[TileKernel], target: Target) -> tuple[str, list[dict[str, Any]]]:
    lines = HEAD.format(title=program.name, chip=target.title).split("\n")
    places: list[dict[str, Any]] = []
    for kernel in kernels:
        written = kernel_text(kernel)
        for entry in written.sources:
            places.append({"line": len(lines) + entry.line, "file": entry.file, "user_line": entry.user_line, "note": entry.note})
        lines += [*written.lines, ""]
    return "\n".join(lines).rstrip("\n") + "\n", places
