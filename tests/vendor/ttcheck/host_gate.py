"""Runs emitted host.py programs under the real ttnn package on a mock cluster: `python host_gate.py CLUSTER.yaml FOLDER...`.

ttnn accepts the descriptors, generates its files and compiles the five units of each kernel with the stand-in; the run then ends in
an ELF error, because the stand-in links nothing. Needs $TT_METAL_CACHE, $TTCHECK_HOME, $TTCHECK_LOG.
"""
import importlib.util
import json
import os
import sys
from pathlib import Path

EXTENTS = {"M": 65, "N": 100, "K": 70}
os.environ["TT_METAL_MOCK_CLUSTER_DESC_PATH"] = os.path.abspath(sys.argv[1])
os.environ["TT_METAL_SLOW_DISPATCH_MODE"] = "1"
os.environ.setdefault("TT_LOGGER_LEVEL", "fatal")

import numpy as np  # noqa: E402
import ttnn  # noqa: E402


def units() -> list[str]:
    log = Path(os.environ["TTCHECK_LOG"])
    return log.read_text().splitlines() if log.exists() else []


def accepted(device: object, folder: Path) -> tuple[bool, str]:
    """Whether ttnn took the program and compiled its kernels, and how the run ended."""
    spec = importlib.util.spec_from_file_location(folder.name, folder / "host.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    manifest = json.loads((folder / "manifest.json").read_text())
    names = {"f32": ttnn.float32, "bf16": ttnn.bfloat16, "i32": ttnn.int32, "bfp8_b": ttnn.bfloat8_b}
    tensors = []
    for argument in manifest["arguments"]:
        shape = [EXTENTS.get(e) or int(e) for e in argument["shape"]]
        ones = np.ones(shape, np.int32 if argument["dtype"] == "i32" else np.float32)
        tensors.append(ttnn.Tensor(ones, names[argument["dtype"]], None, ttnn.TILE_LAYOUT).to(device, ttnn.DRAM_MEMORY_CONFIG))
    known = {e for a in manifest["arguments"] for e in a["shape"]}
    users = [1.5 for s in manifest["scalars"] if s["name"] not in known]
    before = len(units())
    try:
        getattr(module, manifest["name"])(device, *tensors, *users)
        end = "returned"
    except RuntimeError as stopped:
        end = "ELF" if "elf" in str(stopped).lower() else str(stopped).splitlines()[0][:200]
    compiled = units()[before:]
    good = len(compiled) == 5 and all(u.startswith("ok") for u in compiled)
    return good and end in ("returned", "ELF"), f"{sum(u.startswith('ok') for u in compiled)} of {len(compiled)} units; ended: {end}"


def main(folders: list[str]) -> int:
    device = ttnn.open_device(device_id=0)
    bad = 0
    for folder in map(Path, folders):
        good, said = accepted(device, folder)
        bad += not good
        print(f"{folder.name}: {'accepted' if good else 'REFUSED'}, {said}", flush=True)
    sys.stdout.flush()
    os._exit(min(bad, 1))  # the mock device has nothing to close


if __name__ == "__main__":
    main(sys.argv[2:])
