"""Runs emitted TT-Metal programs on NumPy arrays: the very files, built against the emulated headers, over a grid of cores."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import BY_NAME
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.placement.ttmetal.roles import COUNT, START
from pypto_dsl.runtime.emulator.manifest import bind_extents, choose, evaluate, index, integers, run_steps
from pypto_dsl.runtime.emulator.ttmetal.machine import ROLES, Built, DramTensor, Launch, Ring, build, launch
from pypto_dsl.runtime.formats import POISON, Array, Pages, page_count, tile_format, tilize, untilize

FIRST_ADDRESS = 1_048_640  # where ttnn 0.81.1 places the first DRAM tensor
GAP = 4096                 # between tensors, so that an address one page off belongs to nobody
ACCESSOR_FLAGS = 2         # interleaved, in DRAM
# Compiles the three files of a kernel (by role), given their compile-time arguments and whether DST has 32 bits.
Builder = Callable[[Mapping[str, str], Mapping[str, Sequence[int]], bool], Mapping[str, Path | Built]]


@dataclass
class Memory:
    """DRAM of one run: every tensor's pages and address."""

    pages: dict[str, Pages] = field(default_factory=dict)
    addresses: dict[str, int] = field(default_factory=dict)
    next: int = FIRST_ADDRESS

    def place(self, name: str, pages: Pages) -> None:
        """Give a tensor its pages and an address."""
        self.pages[name] = np.ascontiguousarray(pages)
        self.addresses[name] = self.next
        self.next += (pages.size + 63) // 64 * 64 + GAP


def run(manifest: Mapping[str, Any], files: Mapping[str, str], arrays: Mapping[str, Array],
        scalars: Mapping[str, float | int] | None = None, *, cores: int = 1, seed: int = 0, builder: Builder = build) -> dict[str, Array]:
    """Run a program on ``arrays`` (inputs by argument name; outputs give shape and are returned, not written).

    Lanes beyond a tensor's extents hold NaN, so that a kernel which lets them into a result shows. Raises Trap for a broken rule,
    BuildFailed for a file that does not compile, KernelError PT520 for extents that no schedule takes. ``builder`` compiles a kernel's
    files: an object each, or many together (see `batch`).
    """
    values = bind_extents(manifest, arrays)
    numbers = dict(scalars or {})
    values |= integers(numbers)
    held: dict[str, Array | Unwritten] = {a["name"]: np.array(arrays[a["name"]]) for a in manifest["arguments"] if a["role"] != "out"}
    for t in (*manifest["arguments"], *manifest["workspaces"]):
        if t["name"] not in held:  # nobody has written it yet
            given = arrays.get(t["name"])
            held[t["name"]] = Unwritten(evaluate(t["shape"], values) if given is None else np.shape(given))

    def launch(variants: Sequence[Mapping[str, Any]], known: Mapping[str, int]) -> None:
        _run_kernel(choose(variants, known, manifest["name"]), manifest, files, held, known, numbers, cores, seed, builder)

    run_steps(manifest["steps"], values, numbers, held, launch)
    return {a["name"]: _whole(held[a["name"]], a["dtype"]) for a in manifest["arguments"] if a["role"] != "in"}


@dataclass(frozen=True)
class Unwritten:
    """A tensor that no kernel has written yet: its pages are poison, so that an element which stays so is seen."""

    shape: tuple[int, ...]


def _whole(tensor: Array | Unwritten, dtype: str) -> Array:
    if not isinstance(tensor, Unwritten):
        return tensor
    return untilize(_pages(tensor, tensor.shape, dtype), tensor.shape, dtype)


def _pages(tensor: Array | Unwritten, shape: tuple[int, ...], dtype: str) -> Pages:
    """The pages of a tensor that a kernel sees with ``shape``."""
    if isinstance(tensor, Unwritten):
        return np.resize(np.array(POISON, np.uint8), (page_count(shape), tile_format(dtype).bytes))
    return tilize(tensor.reshape(shape), dtype)


def split(items: int, cores: int) -> list[tuple[int, int]]:
    """(start, count) per core, as even as possible, extra items first."""
    share, rest = divmod(items, cores)
    return [(c * share + min(c, rest), share + (c < rest)) for c in range(cores)]


def kernel_values(kernel: Mapping[str, Any], values: Mapping[str, int], numbers: Mapping[str, float | int]) -> dict[str, int]:
    """Every scalar of a kernel as the 32-bit word that its kernels take."""
    words = dict(values)
    for s in kernel["scalars"]:
        if s["value"] is not None:
            number: float | int = index(s["value"]).evaluate(words)
        elif s["name"] in numbers:
            number = numbers[s["name"]]
        else:
            number = words[s["name"]]
        words[s["name"]] = _word(number, s["dtype"])
    return words


def _word(number: float | int, dtype: str) -> int:
    if BY_NAME[dtype].is_float:
        rounded = np.float32(BY_NAME[dtype].numpy.type(number))
        return int(rounded.view(np.uint32))
    return int(number) & 0xFFFFFFFF


def texts(kernel: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, str]:
    """The three kernel files by role."""
    return {role: files[f"{kernel['name']}/{kernel['roles'][role]['file']}"] for role in ROLES}


def compile_arguments(kernel: Mapping[str, Any], role: str) -> list[int]:
    """The accessor words of a role: flags and page bytes of each tensor it transfers."""
    dtype = {p["name"]: p["dtype"] for p in kernel["params"]}
    return [w for name in kernel["roles"][role]["accessors"] for w in (ACCESSOR_FLAGS, tile_format(dtype[name]).bytes)]


def _run_kernel(kernel: Mapping[str, Any], manifest: Mapping[str, Any], files: Mapping[str, str], held: dict[str, Array | Unwritten],
                values: Mapping[str, int], numbers: Mapping[str, float | int], cores: int, seed: int, builder: Builder) -> None:
    words = kernel_values(kernel, values, numbers)
    items = prod(evaluate(kernel["items"], words))
    if items == 0:
        return
    memory = Memory()
    shapes = {p["name"]: evaluate(p["shape"], words) for p in kernel["params"]}
    seen: dict[str, str] = {}  # tensor -> the parameter that has its pages: what a kernel reads and writes lies in one place
    for p in kernel["params"]:
        first = seen.setdefault(p["tensor"], p["name"])
        if first == p["name"]:
            memory.place(first, _pages(held[p["tensor"]], shapes[first], p["dtype"]))
        elif shapes[first] != shapes[p["name"]]:
            raise CompilerBug("emulator.ttmetal", f"{kernel['name']} sees `{p['tensor']}` in two shapes")
        words[f"{p['name']}.address"] = memory.addresses[first]
    written = {p["tensor"] for p in kernel["params"] if _written(kernel, p["name"])}
    arguments = {role: [[{**words, START: s, COUNT: n}[a] for a in kernel["roles"][role]["arguments"]] for s, n in split(items, cores)]
                 for role in ROLES}
    objects = builder(texts(kernel, files), {role: compile_arguments(kernel, role) for role in ROLES}, kernel["fp32_dest"])
    rings = [Ring(r["index"], r["dtype"], evaluate([r["pages"]], words)[0], r["page_bytes"]) for r in kernel["rings"]]
    tensors = [DramTensor(memory.addresses[first], memory.pages[first], name in written) for name, first in seen.items()]
    launch(objects, Launch(rings, tensors, arguments, cores, kernel["dst_tiles"], manifest["l1_budget"], kernel["fp32_dest"],
                           sum(1 << r for r in kernel["unpack_to_dest"]), seed))
    for p in kernel["params"]:
        first = seen[p["tensor"]]
        if first == p["name"] and p["tensor"] in written:
            held[p["tensor"]] = untilize(memory.pages[first], shapes[first], p["dtype"]).reshape(held[p["tensor"]].shape)


def _written(kernel: Mapping[str, Any], name: str) -> bool:
    return name in kernel["roles"]["writer"]["accessors"]
