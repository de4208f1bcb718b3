"""Emulated kernels as a loaded library: building kernel files against the emulation headers, launching one entry on arrays."""
from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.runtime.toolchain import build_shared_object

INCLUDE = Path(__file__).parent / "include"
# -fvisibility=hidden: inline variables are otherwise one object for all loaded libraries, and kernels would share a core.
# -ffp-contract=off: clang contracts a * b + c by default, and a call rounds each of its operations.
FLAGS = ("-std=c++17", "-fwrapv", "-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter")
MESSAGE_BYTES = 2048


class EmulatorTrap(CompilerBug):
    """The emulated hardware refused something. In an emitted kernel that is our bug; ``trap`` is the emulator's sentence."""

    def __init__(self, entry: str, trap: str) -> None:
        super().__init__(f"ascendc emulator, kernel {entry}", trap)
        self.trap = trap


class Statistics(ctypes.Structure):
    """What the first block of a launch did: calls and barriers issued, bytes of the unified buffer, buffers made."""

    _fields_ = (("api_calls", ctypes.c_uint32), ("barriers", ctypes.c_uint32), ("ub_bytes", ctypes.c_uint32), ("buffers", ctypes.c_uint32))


@dataclass(frozen=True)
class GlobalArray:
    """A kernel's global tensor: its name for messages, its bytes, and whether the kernel may write them."""

    name: str
    array: npt.NDArray[Any]
    writable: bool


@dataclass(frozen=True)
class Number:
    """A kernel's scalar argument: ``kind`` is the C type, `int64_t`, `int32_t` or `float`."""

    value: int | float
    kind: str = "int64_t"


_CTYPES: dict[str, Any] = {"int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32, "float": ctypes.c_float}


class KernelLibrary:
    """A shared object with emulated kernels, each launched over blocks one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = ctypes.CDLL(str(path))

    def launch(self, entry: str, blocks: int, arguments: Sequence[GlobalArray | Number]) -> Statistics:
        """Run ``entry`` on ``blocks`` cores over the arguments in signature order; arrays are contiguous and written in place.

        Raises EmulatorTrap with the emulator's message.
        """
        keep: list[Any] = []
        pointers = (ctypes.c_void_p * len(arguments))()
        register = getattr(self._library, f"emu_tensor_{entry}")
        register.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int]
        written = {a.array.ctypes.data for a in arguments if isinstance(a, GlobalArray) and a.writable}
        known: set[int] = set()
        for position, argument in enumerate(arguments):
            if isinstance(argument, GlobalArray):
                name, address = argument.name.encode(), argument.array.ctypes.data
                if address not in known:  # one array under two names is one tensor
                    register(name, address, argument.array.nbytes, int(address in written))
                    known.add(address)
                value: Any = ctypes.c_void_p(address)
                keep += [name, argument.array]
            else:
                value = _CTYPES[argument.kind](argument.value)
            keep.append(value)
            pointers[position] = ctypes.cast(ctypes.pointer(value), ctypes.c_void_p)
        message, statistics = ctypes.create_string_buffer(MESSAGE_BYTES), Statistics()
        run = getattr(self._library, f"emu_launch_{entry}")
        run.argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
        failed = run(blocks, pointers, message, MESSAGE_BYTES, ctypes.byref(statistics))
        getattr(self._library, f"emu_forget_{entry}")()
        if failed:
            raise EmulatorTrap(entry, message.value.decode(errors="replace"))
        return statistics


def launcher_text(files: Sequence[str], entries: Sequence[str]) -> str:
    """The one translation unit of a library: the kernel files as they are, and a launcher for each entry."""
    return "".join(f'#include "{name}"\n' for name in files) + "".join(f"ASCENDC_EMU_LAUNCHER({entry})\n" for entry in entries)


def build_library(
    title: str, kernel_files: Mapping[str, str], entries: Sequence[str], *, arch: int, optimize: int = 1, flags: Sequence[str] = FLAGS
) -> KernelLibrary:
    """Compile kernel files (name -> text, unchanged) for an emulated architecture (2201 or 3510) and load the result."""
    unit = f"{title}_launch.cpp"
    files = {**kernel_files, unit: launcher_text(sorted(kernel_files), entries)}
    every_flag = [*flags, f"-O{optimize}", f"-DASCENDC_EMU_ARCH={arch}"]
    return KernelLibrary(build_shared_object(title, files, [unit], include_folders=[INCLUDE], flags=every_flag))
