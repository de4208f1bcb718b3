"""The emitted host program, executed against emulated AscendCL: the same bytes as the runner, and its own refusals."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pypto_dsl.runtime.emulator.ascendc.host import run_host
from pypto_dsl.runtime.emulator.ascendc.runner import run
from pypto_dsl.runtime.emulator.manifest import bind_extents
from tests.ascendc.kernels import KERNELS, arguments, emitted


def write(folder: Path, name: str, extents: dict[str, int]) -> tuple[dict[str, np.ndarray], list[int | float]]:  # type: ignore[type-arg]
    kernel, manifest = KERNELS[name], emitted(name).manifest
    arrays = arguments(kernel, extents)
    for key, array in arrays.items():
        (folder / f"{key}.bin").write_bytes(array.tobytes())
    values = bind_extents(manifest, arrays)
    numbers = kernel.scalars or {}
    return arrays, [numbers.get(row["name"], values.get(row["name"])) for row in manifest["scalars"] if row["value"] is None]


@pytest.mark.parametrize(("name", "extents"), [
    ("add", {"M": 5, "N": 2001}), ("softmax", {"M": 9, "N": 257}), ("softmax", {"M": 3, "N": 1100}), ("pow_named", {"M": 3, "N": 11}),
    ("bias_gelu", {"M": 65, "N": 129, "K": 96})])
def test_host_program_gives_the_same_bytes(name: str, extents: dict[str, int], tmp_path: Path) -> None:
    arrays, scalars = write(tmp_path, name, extents)
    done = run_host(emitted(name).manifest, emitted(name).files, tmp_path, scalars)
    assert done.returncode == 0, done.stderr
    want = run(emitted(name).manifest, emitted(name).files, arrays, KERNELS[name].scalars or {}, cores=3)["out"]
    assert (tmp_path / "out.bin").read_bytes() == want.tobytes()


def test_host_program_says_what_is_missing(tmp_path: Path) -> None:
    files = emitted("add")
    usage = run_host(files.manifest, files.files, tmp_path, [])
    assert usage.returncode == 2 and "usage: add FOLDER M N" in usage.stderr
    missing = run_host(files.manifest, files.files, tmp_path, [3, 4])
    assert missing.returncode == 1 and "x.bin cannot be read" in missing.stderr
    (tmp_path / "x.bin").write_bytes(b"1234")
    short = run_host(files.manifest, files.files, tmp_path, [3, 4])
    assert short.returncode == 1 and "holds 4 bytes, and 48 are needed" in short.stderr
