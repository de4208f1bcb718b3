#!/usr/bin/env python3
"""A stand-in for the SFPI compiler: takes the command line of ttnn's own JIT, drops what only that compiler knows, checks with GCC.

Objects and ELF files that it leaves are placeholders, nothing here can run on a device. $TTCHECK_HOME is the folder that holds
cxx32/, $TTCHECK_LOG collects a line per translation unit.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

VERSION = "riscv-tt-elf-g++ (tenstorrent/sfpi:7.89.0[1050]) 15.1.0"  # part of ttnn's build key: with it the wheel's firmware is used
DROPPED = ("-ftt-", "-flto", "-mcpu=", "-march=", "-fno-extern-tls", "-W", "--param", "-std=", "-O", "-g", "-mno-tt")


def main(arguments: list[str]) -> int:
    """0 when the unit compiles, or when there is nothing to check (precompiled header, link)."""
    if "--version" in arguments or "-dumpversion" in arguments:
        print(VERSION)
        return 0
    out = Path(arguments[arguments.index("-o") + 1]) if "-o" in arguments else None
    if "-c" not in arguments or out is None:
        if out is not None:
            out.write_bytes(b"")
        return 0
    kept: list[str] = []
    dependencies = str(out) + ".d"
    words = iter(arguments)
    for word in words:
        if word in ("-o", "-MF", "-include"):
            value = next(words)
            dependencies = value if word == "-MF" else dependencies
        elif not word.startswith(DROPPED) and word not in ("-c", "-MMD"):
            kept.append(word)
    version = max((p.name for p in Path("/usr/include/c++").iterdir() if p.name.isdigit()), key=int)
    base = ["riscv64-unknown-elf-g++", "-std=c++20", "-march=rv32im", "-mabi=ilp32", "-nostdinc++", "-ffreestanding", "-w"]
    for folder in (os.environ["TTCHECK_HOME"] + "/cxx32", f"/usr/include/c++/{version}", f"/usr/include/x86_64-linux-gnu/c++/{version}",
                   "/usr/lib/picolibc/riscv64-unknown-elf/include"):
        base += ["-isystem", folder]
    text = Path(str(out) + ".ii")
    status = subprocess.run([*base, *kept, "-E", "-MMD", "-MF", dependencies, "-MT", str(out), "-o", str(text)]).returncode
    if status == 0:
        relaxed = re.sub(r"(?m)^#pragma GCC unroll.*$", "", text.read_text())
        text.write_text(re.sub(r"static_assert\s*\(\s*false\b", "static_assert(true", relaxed))
        status = subprocess.run([*base, *(k for k in kept if k.startswith("-f")), "-O1", "-S", str(text), "-o", str(out)]).returncode
        text.unlink()
    with open(os.environ["TTCHECK_LOG"], "a") as log:
        log.write(f"{'ok' if status == 0 else 'FAIL'} {os.getcwd().split('/kernels/')[-1]}\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
