"""Builds kernel files against the emulated headers and launches them on a grid of emulated Tensix cores."""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from pypto_dsl.compiler.errors import error
from pypto_dsl.runtime.formats import Pages, tile_format
from pypto_dsl.runtime.toolchain import build_shared_object

HERE = Path(__file__).resolve().parent
INCLUDE = HERE / "include"
ROLES = ("reader", "compute", "writer")
RUNTIME_FLAGS = ("-std=c++20", "-O2", "-fvisibility=default", "-Wno-int-to-pointer-cast")
KERNEL_FLAGS = ("-std=c++20", "-O1", "-fvisibility=hidden", "-Wall", "-Werror", "-Wno-int-to-pointer-cast", "-Wno-unused",
                "-include", "ttemu/entry.h")
CIRCULAR_BUFFERS = 32
MESSAGE_BYTES = 2000


class Trap(Exception):
    """The emulator's answer to a broken rule: ``trap[code] file:line (kernel, core): ...``."""

    @property
    def code(self) -> str:
        """The word in the brackets."""
        return str(self).split("]", 1)[0].removeprefix("trap[")


@dataclass(frozen=True)
class Ring:
    """A circular buffer of one launch. ``page_bytes`` is that of the format unless a test says otherwise."""

    index: int
    dtype: str
    pages: int
    page_bytes: int = 0


@dataclass(frozen=True)
class DramTensor:
    """An interleaved DRAM tensor: its address, and its pages [tiles, bytes], which the kernels read or fill in place."""

    address: int
    pages: Pages
    writable: bool


@dataclass(frozen=True)
class Launch:
    """One run: rings, tensors, run-time arguments [core][word] per role, and how the cores are set up."""

    rings: Sequence[Ring]
    tensors: Sequence[DramTensor]
    arguments: Mapping[str, Sequence[Sequence[int]]]
    cores: int
    dst_tiles: int
    l1_budget: int
    fp32_dest: bool = False
    unpack_to_dest: int = 0  # bit per circular buffer: UnpackToDestFp32
    seed: int = 0            # 0: fixed order; else every circular-buffer call may switch kernels


class _Ring(ctypes.Structure):
    _fields_ = [("format", ctypes.c_int32), ("page_bytes", ctypes.c_uint32), ("pages", ctypes.c_uint32)]


class _Tensor(ctypes.Structure):
    _fields_ = (*((n, ctypes.c_uint32) for n in ("base", "page_bytes", "pages", "writable")), ("data", ctypes.c_void_p))


class _Program(ctypes.Structure):  # mirrors ttemu::Program in core.h
    _fields_ = (
        *((n, ctypes.c_uint32) for n in ("cores", "fp32_dest", "unpack_to_dest", "l1_budget", "seed", "tensors", "dst_tiles")),
        ("cb", _Ring * CIRCULAR_BUFFERS), ("tensor", ctypes.POINTER(_Tensor)), ("kernel", ctypes.c_void_p * 3),
        ("args", ctypes.c_uint32 * 3), ("arg_words", ctypes.c_void_p * 3))


@dataclass(frozen=True)
class Built:
    """A kernel in a shared object: `kernel_main` of an object of its own, or one of many in a unit."""

    path: Path
    symbol: str = "_Z11kernel_mainv"


@cache
def runtime() -> ctypes.CDLL:
    """The emulator's library, built once per machine and shared by every kernel."""
    sources = sorted((HERE / "source").glob("*.cpp"))
    files = {p.name: p.read_text(encoding="utf-8") for p in sources}
    path = build_shared_object("ttemu", files, [p.name for p in sources], include_folders=[INCLUDE], flags=RUNTIME_FLAGS)
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    library.ttemu_run.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32]
    library.ttemu_run.restype = ctypes.c_int
    return library


def build_role(role: str, text: str, compile_arguments: Sequence[int], fp32_dest: bool) -> Path:
    """One kernel file as a shared object; raises BuildFailed with the compiler's words."""
    words = ",".join(map(str, compile_arguments))
    flags = (*KERNEL_FLAGS, f"-DKERNEL_COMPILE_TIME_ARGS={words}", f"-DDST_ACCUM_MODE={str(fp32_dest).lower()}")
    return build_shared_object(role, {f"{role}.cpp": text}, [f"{role}.cpp"], include_folders=[INCLUDE], flags=flags)


def build(files: Mapping[str, str], compile_arguments: Mapping[str, Sequence[int]], fp32_dest: bool) -> dict[str, Path]:
    """The three kernel files (role -> text) as shared objects, built side by side."""
    runtime()
    with ThreadPoolExecutor(len(ROLES)) as pool:
        made = pool.map(lambda role: build_role(role, files[role], compile_arguments.get(role, ()), fp32_dest), ROLES)
        return dict(zip(ROLES, made, strict=True))


@cache
def _load(path: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(path))


def _address(kernel: Path | Built) -> int | None:
    built = Built(kernel) if isinstance(kernel, Path) else kernel
    return ctypes.cast(getattr(_load(built.path), built.symbol), ctypes.c_void_p).value


_ONE_AT_A_TIME = threading.Lock()  # L1 is one mapping, and a run owns it


def launch(objects: Mapping[str, Path | Built], run: Launch) -> None:
    """Run built kernels to the end on ``run.cores`` cores, one after the other; output tensors are filled in place.

    Raises Trap, and KernelError PT905 for a launch without tensors or cores.
    """
    if not run.tensors or run.cores < 1:
        raise error("PT905", "an emulated launch needs at least one tensor and one core")
    program = _Program(run.cores, int(run.fp32_dest), run.unpack_to_dest, run.l1_budget, run.seed, len(run.tensors), run.dst_tiles)
    for ring in run.rings:
        form = tile_format(ring.dtype)
        program.cb[ring.index] = _Ring(form.code, ring.page_bytes or form.bytes, ring.pages)
    for tensor in run.tensors:
        if not tensor.pages.flags.c_contiguous or tensor.pages.dtype != np.uint8:
            raise ValueError("pages must be contiguous bytes")
    program.tensor = (_Tensor * len(run.tensors))(*[
        _Tensor(t.address, t.pages.shape[1], t.pages.shape[0], int(t.writable), t.pages.ctypes.data) for t in run.tensors])
    keep = []
    for i, role in enumerate(ROLES):
        program.kernel[i] = _address(objects[role])
        words = np.array(run.arguments[role], np.uint32).reshape(run.cores, -1)
        keep.append(words)
        program.args[i], program.arg_words[i] = words.shape[1], words.ctypes.data
    text = ctypes.create_string_buffer(MESSAGE_BYTES)
    with _ONE_AT_A_TIME:
        failed = runtime().ttemu_run(ctypes.byref(program), text, MESSAGE_BYTES)
    if failed:
        raise Trap(text.value.decode())
