"""Runs emitted Ascend C programs on NumPy arrays: the very files, built against the emulation headers, on any number of cores."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pypto_dsl.codegen.host_steps import kernel_rows
from pypto_dsl.compiler.dtypes import BY_NAME
from pypto_dsl.runtime.emulator.ascendc.kernel_library import GlobalArray, KernelLibrary, Number, Statistics, build_library
from pypto_dsl.runtime.emulator.manifest import bind_extents, choose, evaluate, index, integers, run_steps

Array = npt.NDArray[Any]
Numbers = Mapping[str, float | int]


def build(manifest: Mapping[str, Any], files: Mapping[str, str], *, optimize: int = 1) -> KernelLibrary:
    """Compile the kernels of a program; a second call finds them built. Raises PT901 without a compiler, PT902 for our own mistakes."""
    source = f"{manifest['name']}.cpp"
    entries = [kernel["entry"] for kernel in kernel_rows(manifest["steps"])]
    return build_library(manifest["name"], {source: files[source]}, entries, arch=manifest["architecture"], optimize=optimize)


def run(
    manifest: Mapping[str, Any], files: Mapping[str, str], arrays: Mapping[str, Array], scalars: Numbers | None = None, *, cores: int = 1
) -> dict[str, Array]:
    """Run a program on ``arrays`` (inputs by argument name; outputs give shape and are returned, not written).

    Raises EmulatorTrap for a broken rule, BuildFailed for a file that does not compile, KernelError PT520 for extents that no
    variant takes.
    """
    return execute(build(manifest, files), manifest, arrays, scalars or {}, cores)[0]


def execute(
    library: KernelLibrary, manifest: Mapping[str, Any], arrays: Mapping[str, Array], scalars: Numbers, cores: int
) -> tuple[dict[str, Array], list[Statistics]]:
    """Run a built program; returns the tensors it writes by name, and what each launch did."""
    values = bind_extents(manifest, arrays)
    for row in manifest["scalars"]:
        if row["value"] is not None:
            values[row["name"]] = index(row["value"]).evaluate(values)
    held: dict[str, Array] = {}
    for row in manifest["arguments"]:
        given = arrays.get(row["name"])
        dtype = BY_NAME[row["dtype"]].numpy
        if given is None or row["role"] == "out":
            held[row["name"]] = unwritten(np.shape(given) if given is not None else evaluate(row["shape"], values), dtype)
        else:
            held[row["name"]] = np.array(given, dtype, order="C")  # a copy: kernels write in place
    for row in manifest["workspaces"]:
        held[row["name"]] = unwritten(evaluate(row["shape"], values), BY_NAME[row["dtype"]].numpy)
    statistics: list[Statistics] = []

    def launch(variants: Sequence[Mapping[str, Any]], known: Mapping[str, int]) -> None:
        kernel = choose(variants, known, manifest["name"])
        statistics.append(_launch(library, kernel, held, known, numbers, cores))

    numbers = dict(scalars)
    values |= integers(scalars)
    run_steps(manifest["steps"], values, numbers, held, launch)
    return {row["name"]: held[row["name"]] for row in manifest["arguments"] if row["role"] != "in"}, statistics


def unwritten(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """New memory whose bytes are all 0xFF: NaN in every float type, so that an element which no kernel writes is seen."""
    return np.full(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize, 0xFF, np.uint8).view(dtype).reshape(shape)


def _launch(library: KernelLibrary, kernel: Mapping[str, Any], held: Mapping[str, Array], values: Mapping[str, int],
            scalars: Numbers, cores: int) -> Statistics:
    arguments: list[GlobalArray | Number] = [GlobalArray(p["name"], held[p["tensor"]], p["writes"]) for p in kernel["params"]]
    for row in kernel["scalars"]:
        value = scalars[row["name"]] if row["name"] in scalars else values[row["name"]]
        arguments.append(Number(float(value), "float") if BY_NAME[row["dtype"]].is_float else Number(int(value)))
    return library.launch(kernel["entry"], cores, arguments)
