"""Runs emitted TT-Metal programs on NumPy arrays: the very files, built against the emulated headers, over a grid of cores."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import BY_NAME
from pypto_dsl.runtime.emulator.manifest import bind_extents, choose, evaluate, index
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
    held: dict[str, Array] = {}
    for a in manifest["arguments"]:
        if a["role"] == "in":
            held[a["name"]] = np.asarray(arrays[a["name"]])
        else:
            given = arrays.get(a["name"])
            held[a["name"]] = _unwritten(evaluate(a["shape"], values), a["dtype"]) if given is None else np.array(given)
    for w in manifest["workspaces"]:
        held[w["name"]] = _unwritten(evaluate(w["shape"], values), w["dtype"])
    for step in manifest["steps"]:
        _run_kernel(choose(step, values, manifest["name"], "name"), manifest, files, held, values, numbers, cores, seed, builder)
    return {a["name"]: held[a["name"]] for a in manifest["arguments"] if a["role"] != "in"}


def _unwritten(shape: tuple[int, ...], dtype: str) -> Array:
    lanes = np.dtype(np.float32) if BY_NAME[dtype].kind == "block" else BY_NAME[dtype].numpy
    return np.zeros(shape, lanes)


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


def _run_kernel(kernel: Mapping[str, Any], manifest: Mapping[str, Any], files: Mapping[str, str], held: dict[str, Array],
                values: Mapping[str, int], numbers: Mapping[str, float | int], cores: int, seed: int, builder: Builder) -> None:
    words = kernel_values(kernel, values, numbers)
    items = prod(evaluate(kernel["items"], words))
    if items == 0:
        return
    memory = Memory()
    shapes = {p["name"]: evaluate(p["shape"], words) for p in kernel["params"]}
    for p in kernel["params"]:
        form, shape = tile_format(p["dtype"]), shapes[p["name"]]
        if p["role"] == "in" or (p["role"] == "workspace" and not _written(kernel, p["name"])):
            memory.place(p["name"], tilize(held[p["tensor"]].reshape(shape), p["dtype"]))
        else:
            memory.place(p["name"], np.resize(np.array(POISON, np.uint8), (page_count(shape), form.bytes)))
    for p in kernel["params"]:
        words[f"{p['name']}.address"] = memory.addresses[p["name"]]
    arguments = {role: [[{**words, "start": s, "count": n}[a] for a in kernel["roles"][role]["arguments"]] for s, n in split(items, cores)]
                 for role in ROLES}
    objects = builder(texts(kernel, files), {role: compile_arguments(kernel, role) for role in ROLES}, kernel["fp32_dest"])
    rings = [Ring(r["index"], r["dtype"], evaluate([r["pages"]], words)[0], r["page_bytes"]) for r in kernel["rings"]]
    tensors = [DramTensor(memory.addresses[n], memory.pages[n], _written(kernel, n)) for n in memory.pages]
    launch(objects, Launch(rings, tensors, arguments, cores, kernel["dst_tiles"], manifest["l1_budget"], kernel["fp32_dest"],
                           sum(1 << r for r in kernel["unpack_to_dest"]), seed))
    for p in kernel["params"]:
        if _written(kernel, p["name"]):
            held[p["tensor"]] = untilize(memory.pages[p["name"]], shapes[p["name"]], p["dtype"]).reshape(held[p["tensor"]].shape)


def _written(kernel: Mapping[str, Any], name: str) -> bool:
    return name in kernel["roles"]["writer"]["accessors"]
