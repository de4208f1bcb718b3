"""The record of an emitted kernel: all that a host, the emulator's runner and the gates need, as plain JSON data."""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pypto_dsl.codegen.extents import stated
from pypto_dsl.codegen.ttmetal.emitter import EmittedRole
from pypto_dsl.compiler.index import text as index_text
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import Buffer, Param, Program, TileKernel, Workspace
from pypto_dsl.compiler.tile_ir.ttmetal import Ring, RoleBody

VERSION = 2


def kernel_manifest(kernel: TileKernel, emitted: Mapping[str, EmittedRole], target: Target) -> dict[str, Any]:
    """One kernel: parameters, scalars with their definitions, items, rings, and the words each role takes."""
    roles = [s for s in kernel.body if isinstance(s, RoleBody)]
    fp32_dest = bool(dict(kernel.properties).get("fp32_dest"))
    formats = target.table("formats")
    rings = sorted(_rings(roles).values(), key=lambda b: b.ring)
    return {
        "name": kernel.name,
        "title": kernel.title,
        "source": None if kernel.span is None else f"{kernel.span.basename}:{kernel.span.line}",
        "params": [{**_param(p), "tensor": p.bound_to} for p in kernel.params],
        "scalars": [{"name": s.name, "dtype": s.dtype.name, "value": None if s.value is None else index_text(s.value)}
                    for s in kernel.scalars],
        "requires": [index_text(e) for e in kernel.requires],
        "items": [index_text(e) for e in kernel.grid.extents],
        "rings": [{"index": b.ring, "name": b.name, "dtype": b.dtype.name, "page_bytes": int(formats[b.dtype.name]["bytes"]),
                   "pages": index_text(b.tiles * b.slots if b.tiles is not None else b.slots)} for b in rings],
        "fp32_dest": fp32_dest,
        "dst_tiles": int(target.table("dst")["tiles_32" if fp32_dest else "tiles_16"]),
        "unpack_to_dest": [b.ring for b in rings if b.direct],
        "roles": {r.role: {"file": f"{r.role}.cpp", "arguments": list(r.arguments), "accessors": [p.name for p in r.accessors]}
                  for r in roles},
        "source_map": {f"{role}.cpp": [list(o) for o in e.origins] for role, e in emitted.items()},
    }


def program_manifest(program: Program, steps: list[Any], target: Target) -> dict[str, Any]:
    """A whole program; ``steps`` are rows of `codegen/host_steps.py` over kernel manifests."""
    program = stated(program)
    return {
        "version": VERSION,
        "name": program.name,
        "target": target.name,
        "ttnn": target.table("device")["ttnn"],
        "fidelity": target.table("device")["fidelity"],
        "ring_count": int(target.table("rings")["count"]),
        "l1_budget": int(target.table("memory")["l1"]["budget"]),
        "arguments": [_param(p) for p in program.arguments],
        "scalars": [{"name": s.name, "dtype": s.dtype.name} for s in program.scalars],
        "checks": [[index_text(left), index_text(right)] for left, right, _ in program.checks],
        "workspaces": [_workspace(w) for w in program.workspaces],
        "steps": steps,
    }


def _workspace(w: Workspace) -> dict[str, Any]:
    row = {"name": w.name, "dtype": w.dtype.name, "shape": [index_text(e) for e in w.shape]}
    return {**row, "host": True} if w.host else row


def _param(p: Param) -> dict[str, Any]:
    return {"name": p.name, "dtype": p.dtype.name, "role": p.role, "shape": [index_text(e) for e in p.shape]}


def to_json(manifest: Mapping[str, Any]) -> str:
    """Deterministic text of a manifest."""
    return json.dumps(manifest, indent=1) + "\n"


def _rings(roles: list[RoleBody]) -> dict[str, Buffer]:
    found: dict[str, Buffer] = {}
    stack: list[Any] = [r.body for r in roles]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            stack += node
        elif isinstance(node, Ring):
            found[node.buffer.name] = node.buffer
        else:
            stack += [getattr(node, f) for f in ("body", "orelse") if hasattr(node, f)]
    return found
