"""Many emitted kernels in few shared objects: one compiled unit per role and compile-time arguments, for callers that run hundreds."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pypto_dsl.codegen.host_steps import kernel_rows
from pypto_dsl.runtime.emulator.ttmetal.machine import INCLUDE, KERNEL_FLAGS, ROLES, Built, runtime
from pypto_dsl.runtime.emulator.ttmetal.runner import compile_arguments, texts
from pypto_dsl.runtime.toolchain import build_shared_object

Key = tuple[str, tuple[int, ...], bool]  # role, compile-time arguments, 32-bit DST: what a unit is compiled with
_INCLUDES = re.compile(r'^#include "[^"]+"$', re.M)
_UNIT = """{includes}
{kernels}
"""
_KERNEL = """namespace {name} {{
#include "{name}.cpp"
}}
extern "C" __attribute__((visibility("default"))) void {name}_main() {{ {name}::kernel_main(); }}
"""


class Batch:
    """Kernels that are compiled together. `add` programs, then give the batch to `runner.run` as its builder.

    The files are compiled as they are, each in a namespace of its own behind the headers of all, without optimisation: of hundreds, the
    compiler takes longer than the runs. The units are built when the first of them runs; what is added later is built then.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._waiting: dict[Key, dict[str, None]] = {}
        self._built: dict[tuple[Key, str], Built] = {}

    def add(self, manifest: Mapping[str, Any], files: Mapping[str, str]) -> None:
        """Every kernel of a program, all variants of it."""
        for kernel in kernel_rows(manifest["steps"]):
            for role, text in texts(kernel, files).items():
                key = (role, tuple(compile_arguments(kernel, role)), bool(kernel["fp32_dest"]))
                if (key, text) not in self._built:
                    self._waiting.setdefault(key, {})[text] = None

    def __call__(self, files: Mapping[str, str], arguments: Mapping[str, Sequence[int]], fp32_dest: bool) -> dict[str, Built]:
        """The three kernels of a program that was added; raises BuildFailed with the compiler's words, KeyError for any other."""
        runtime()
        for key in list(self._waiting):
            self._build(key, list(self._waiting.pop(key)))
        return {role: self._built[(role, tuple(arguments.get(role, ())), fp32_dest), files[role]] for role in ROLES}

    def _build(self, key: Key, kernels: Sequence[str]) -> None:
        role, arguments, fp32_dest = key
        names = {text: f"{role}{i}" for i, text in enumerate(kernels)}
        includes = dict.fromkeys(line for text in kernels for line in _INCLUDES.findall(text))
        unit = _UNIT.format(includes="\n".join(includes), kernels="".join(_KERNEL.format(name=name) for name in names.values()))
        files = {f"{self.title}.cpp": unit, **{f"{name}.cpp": text for text, name in names.items()}}
        words = ",".join(map(str, arguments))
        flags = (*KERNEL_FLAGS, "-O0", f"-DKERNEL_COMPILE_TIME_ARGS={words}", f"-DDST_ACCUM_MODE={str(fp32_dest).lower()}")
        path = build_shared_object(self.title, files, [f"{self.title}.cpp"], include_folders=[INCLUDE], flags=flags)
        self._built.update({(key, text): Built(path, f"{name}_main") for text, name in names.items()})
