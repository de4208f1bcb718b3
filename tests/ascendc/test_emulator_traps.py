"""Every trap of the Ascend C emulator: one wrong kernel each, with the message it must stop with."""
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.runtime.emulator.ascendc.kernel_library import FLAGS, INCLUDE, EmulatorTrap, GlobalArray, KernelLibrary, Number
from pypto_dsl.runtime.toolchain import build_shared_object

FOLDER = Path(__file__).parent / "negative"
LENGTH = 1024
QUIET = (*(flag for flag in FLAGS if flag != "-Werror"), "-w")


@dataclass(frozen=True)
class Negative:
    """One wrong kernel: the file's first two lines say what must happen, where and on how many cores."""

    name: str
    text: str
    kind: str
    expected: str
    arch: int
    blocks: int


def read(path: Path) -> Negative:
    first, second = path.read_text().split("\n")[:2]
    what = re.fullmatch(r"// expect (compile|trap): (.+)", first)
    where = re.fullmatch(r"// arch (2201|3510), blocks (\d+)", second)
    assert what and where, f"{path.name}: no header"
    return Negative(path.stem, path.read_text(), what[1], what[2], int(where[1]), int(where[2]))


NEGATIVES = [read(path) for path in sorted(FOLDER.glob("*.cpp"))]
TRAPS = [negative for negative in NEGATIVES if negative.kind == "trap"]
REFUSED = [negative for negative in NEGATIVES if negative.kind == "compile"]


def build(title: str, arch: int, negatives: list[Negative]) -> KernelLibrary:
    """One unit of kernels that all define `negative`; each is renamed on the way in."""
    renamed = '#define negative {0}\n#include "{0}.cpp"\n#undef negative\nASCENDC_EMU_LAUNCHER({0})\n'
    files = {f"{n.name}.cpp": n.text for n in negatives} | {"unit.cpp": "".join(renamed.format(n.name) for n in negatives)}
    flags = [*QUIET, "-O0", f"-DASCENDC_EMU_ARCH={arch}"]
    return KernelLibrary(build_shared_object(title, files, ["unit.cpp"], include_folders=[INCLUDE], flags=flags))


@cache
def trapping_library(arch: int) -> KernelLibrary:
    return build(f"negative{arch}", arch, [negative for negative in TRAPS if negative.arch == arch])


@cache
def trap_of(negative: Negative) -> str:
    """What the emulator says to this kernel; empty when nothing fires."""
    x, y = np.arange(LENGTH, dtype=np.float32), np.zeros(LENGTH, np.float32)
    arguments = [GlobalArray("x", x, False), GlobalArray("y", y, True), Number(LENGTH)]
    try:
        trapping_library(negative.arch).launch(negative.name, negative.blocks, arguments)
    except EmulatorTrap as caught:
        return caught.trap
    return ""


@pytest.mark.parametrize("negative", TRAPS, ids=lambda n: n.name)
def test_traps_with_its_message(negative: Negative) -> None:
    assert negative.expected in trap_of(negative)


@pytest.mark.parametrize("negative", REFUSED, ids=lambda n: n.name)
def test_does_not_compile_and_says_why(negative: Negative) -> None:
    with pytest.raises(KernelError) as caught:
        build(f"refused_{negative.name}", negative.arch, [negative])
    assert any(part in str(caught.value) for part in negative.expected.split(" | "))


def sentences() -> list[tuple[str, str]]:
    """(header, format string) of every trap in the emulation headers, adjacent literals joined."""
    found = []
    for header in sorted((INCLUDE / "emu").glob("*.h")):
        for call in re.finditer(r"\btrap\((?:\{[^}]*\}|[\w.]+),\s*((?:\"(?:[^\"\\\\]|\\\\.)*\"\s*)+)", header.read_text()):
            text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', call[1]))
            found.append((header.name, text))
    return found


def test_every_sentence_of_the_headers_is_provoked() -> None:
    said = [trap_of(negative) for negative in TRAPS]
    silent = []
    for header, sentence in sentences():
        pattern = re.compile(".+?".join(re.escape(part) for part in re.split(r"%[a-z0-9]*[sdulzp]+", sentence)))
        if not any(pattern.search(message) for message in said):
            silent.append(f"{header}: {sentence}")
    assert silent == [], "\n".join(silent)
