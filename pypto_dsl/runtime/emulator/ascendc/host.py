"""Runs an emitted host program in emulation: main.cpp as it stands, against emulated AscendCL and the emulated kernels."""
from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto_dsl.codegen.host_steps import kernel_rows
from pypto_dsl.runtime.emulator.ascendc.kernel_library import FLAGS, INCLUDE
from pypto_dsl.runtime.toolchain import build_shared_object

_START = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
given = [word.encode() for word in sys.argv[2:]]
library.main.argtypes = [ctypes.c_int, ctypes.c_void_p]
sys.exit(library.main(len(given), (ctypes.c_char_p * (len(given) + 1))(*given, None)))
"""


def launch_header(entry: str) -> str:
    """What CANN's build would generate for a kernel: the function behind ACLRT_LAUNCH_KERNEL."""
    return f"""#pragma once
#include "all_kernels.h"
template <class... A> uint32_t aclrtlaunch_{entry}(uint32_t blocks, aclrtStream, A... arguments) {{
    return emu::host_launch("{entry}", &{entry}, blocks, arguments...);
}}
#define ACLRT_LAUNCH_KERNEL(kernel) aclrtlaunch_##kernel
"""


def build_host(manifest: Mapping[str, Any], files: Mapping[str, str]) -> Path:
    """Compile main.cpp with its kernels; the library's `main` is the program. Raises PT901, PT902."""
    source = f"{manifest['name']}.cpp"
    entries = [kernel["entry"] for kernel in kernel_rows(manifest["steps"])]
    every = {"main.cpp": files["main.cpp"], source: files[source], "all_kernels.h": f'#pragma once\n#include "{source}"\n'}
    every |= {f"aclrtlaunch_{entry}.h": launch_header(entry) for entry in entries}
    flags = [flag for flag in FLAGS if flag != "-fvisibility=hidden"]
    return build_shared_object(f"{manifest['name']}_host", every, ["main.cpp"], include_folders=[INCLUDE],
                               flags=[*flags, "-O0", f"-DASCENDC_EMU_ARCH={manifest['architecture']}"])


def run_host(
    manifest: Mapping[str, Any], files: Mapping[str, str], folder: Path, scalars: Sequence[int | float]
) -> subprocess.CompletedProcess[str]:
    """Run the host program on `<argument>.bin` files of ``folder``; scalars in the manifest's order. The exit code is the program's.

    Raises PT901, PT902 when it cannot be built.
    """
    library = build_host(manifest, files)
    words = [str(library), manifest["name"], str(folder), *map(str, scalars)]
    return subprocess.run([sys.executable, "-c", _START, *words], capture_output=True, text=True)
