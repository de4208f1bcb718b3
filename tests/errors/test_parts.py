"""Operations that a target lacks are refused in terms of what the user wrote, however deep in an expansion the missing one is."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler import targets
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.passes.legalize import STRUCTURAL, legalize
from pypto_dsl.compiler.passes.promote import promote

UNARY = sorted(n for n, d in REGISTRY.items() if len(d.operands) == 1 and n not in STRUCTURAL and n != "cast")


@pytest.mark.parametrize("name", UNARY)
def test_a_target_without_operations(name: str) -> None:
    machine = targets.load("tt-wormhole")
    bare = replace(machine, ops={}, data={**machine.data, "lacks": {}})

    @pypto.jit(lint="off")
    def k(x: pypto.Tensor([4, 8], pypto.DT_FP32), use: object):
        return use(x)

    try:
        graph = promote(k.graph(np.ones((4, 8), np.float32), getattr(pypto, name)))
    except pypto.KernelError:
        pytest.skip(f"{name} does not take one f32 matrix")
    if not any(op.opcode == name for op in graph.body.ops):
        pytest.skip(f"{name} is written as other operations when it is recorded")
    try:
        legalize(graph, bare)
    except pypto.KernelError as refused:
        found = refused.diagnostic
        if "op" not in found.fields:  # the target has no tensors of what the operation makes
            assert found.code == "PT502" and found.message.startswith(f"the result of {name} is ") and "has no tensors of" in found.message
            return
        missing = found.fields["op"]
        assert found.code == "PT502" and (missing in (name, "cast") or f"a part of {name}," in found.message), found.message
        assert "cast the operands" not in found.help
        conversion = "has no such conversion" in found.message and found.notes[0] == "tt-wormhole converts f32 to nothing; nothing to bool"
        assert conversion or f"no {missing}" in found.notes[0], found.render()
        assert "  " not in found.message
