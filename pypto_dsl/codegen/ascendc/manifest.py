"""The manifest of an emitted program: one record for the emulator's runner, the host program, gates and people."""
from __future__ import annotations

import json
from typing import Any

from pypto_dsl.codegen import host_steps
from pypto_dsl.codegen.extents import stated
from pypto_dsl.compiler.placement.ascend import ITEMS
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.ascend import Copy, Drain
from pypto_dsl.compiler.tile_ir.nodes import For, If, Param, Program, Scalar, Statement, TileKernel, Workspace

VERSION = 2


def manifest(program: Program, target: Target, files: tuple[str, ...]) -> dict[str, Any]:
    """Plain data with every extent as index text: what to pass, what to allocate, which variant to launch, in which order."""
    program = stated(program)
    return {
        "version": VERSION,
        "name": program.name,
        "target": target.name,
        "architecture": target.data["architecture"],
        "files": sorted(files),
        "arguments": [_tensor(p) for p in program.arguments],
        "scalars": [_scalar(s) for s in program.scalars],
        "checks": [[str(left), str(right)] for left, right, _ in program.checks],
        "workspaces": [_tensor(w) for w in program.workspaces],
        "steps": host_steps.rows(program.steps, _kernel),
    }


def _tensor(tensor: Param | Workspace) -> dict[str, Any]:
    row: dict[str, Any] = {"name": tensor.name, "dtype": tensor.dtype.name, "shape": [str(e) for e in tensor.shape]}
    if isinstance(tensor, Workspace) and tensor.host:
        row["host"] = True
    if isinstance(tensor, Param):
        row["role"] = tensor.role
        if tensor.strides is not None:
            row["strides"] = [str(e) for e in tensor.strides]
    return row


def _scalar(scalar: Scalar) -> dict[str, Any]:
    return {"name": scalar.name, "dtype": scalar.dtype.name, "value": None if scalar.value is None else str(scalar.value)}


def _kernel(kernel: TileKernel) -> dict[str, Any]:
    return {
        "entry": kernel.name,
        "title": kernel.title,
        "unit": kernel.unit,
        "requires": [str(condition) for condition in kernel.requires],
        "items": str(dict(kernel.properties).get(ITEMS, "1")),
        "params": [{"name": p.name, "tensor": p.bound_to, "writes": writes(kernel, p.name)} for p in kernel.params],
        "scalars": [_scalar(s) for s in kernel.scalars if s.value is None],
    }


def writes(kernel: TileKernel, name: str) -> bool:
    """Whether a kernel writes a parameter: a workspace's role does not say."""
    return name in _written(kernel.body)


def _written(body: tuple[Statement, ...]) -> set[str]:
    found: set[str] = set()
    for s in body:
        if isinstance(s, (Copy, Drain)) and not (isinstance(s, Copy) and s.direction == "in"):
            found.add(s.param.name)
        elif isinstance(s, For):
            found |= _written(s.body)
        elif isinstance(s, If):
            found |= _written(s.body) | _written(s.orelse)
    return found


def text(data: Any) -> str:
    """JSON with one order and one layout."""
    return json.dumps(data, indent=2, sort_keys=False, ensure_ascii=False) + "\n"
