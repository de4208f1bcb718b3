"""What the refusals of indexing operations on Ascend tell to write instead computes the same: loops that read the indices."""
from __future__ import annotations

import re

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler import targets

TABLE = pypto.Tensor([40, 24], pypto.DT_FP32)
ROWS = pypto.Tensor([3], pypto.DT_INT32)
VALUES = pypto.Tensor([3, 24], pypto.DT_FP32)


@pypto.jit
def by_loops(put: TABLE, added: TABLE, x: TABLE, rows: ROWS, values: VALUES, out: VALUES):
    n = 3
    for i in pypto.loop(n):
        put[rows[i], :] = values[i, :]
    for i in pypto.loop(n):
        added[rows[i], :] += values[i, :]
    for i in pypto.loop(n):
        out[i, :] = x[rows[i], :]


SPELLED = {
    "index_put": "x[rows[i], :] = values[i, :]",
    "index_add": "x[rows[i], :] += values[i, :]",
    "index_select": "out[i, :] = x[rows[i], :]",
}


def test_the_loops_compute_what_the_operations_do() -> None:
    generator = np.random.default_rng(0)
    x, values = generator.standard_normal((40, 24), np.float32), generator.standard_normal((3, 24), np.float32)
    rows = np.array([5, 0, 33], np.int32)
    put, added, out = x.copy(), x.copy(), np.empty_like(values)
    by_loops.run(put, added, x, rows, values, out, target="ascend-a2-emu")
    assert (put == pypto.index_put_(x.copy(), [rows], values)).all()
    assert (added == pypto.index_add(x, 0, rows, values)).all()
    assert (out == pypto.index_select(x, 0, rows)).all()


@pytest.mark.parametrize("target", ["ascend-a2", "ascend-950"])
@pytest.mark.parametrize(("name", "loop"), SPELLED.items())
def test_the_refusal_spells_the_loop_and_names_a_target_that_has_the_operation(target: str, name: str, loop: str) -> None:
    @pypto.jit
    def k(x: TABLE, rows: ROWS, values: VALUES, out: VALUES, use: object):
        use(x, rows, values, out)

    uses = {
        "index_put": lambda x, r, v, o: pypto.index_put_(x, [r], v),
        "index_add": lambda x, r, v, o: x.move(pypto.index_add(x, 0, r, v)),
        "index_select": lambda x, r, v, o: o.move(pypto.index_select(x, 0, r)),
    }
    x, values = np.zeros((40, 24), np.float32), np.zeros((3, 24), np.float32)
    with pytest.raises(pypto.KernelError) as refused:
        k.source(target, x, np.zeros(3, np.int32), values, values.copy(), uses[name])
    found = refused.value.diagnostic
    assert found.code == "PT502" and any(note.endswith(loop) for note in found.notes), found.notes
    assert found.help.endswith(f"choose a target that has {name}: llvm-cpu"), found.help


@pytest.mark.parametrize("target", targets.names())
def test_reasons_are_of_operations_that_the_target_lacks(target: str) -> None:
    found = targets.load(target)
    lacks = found.table("lacks")
    assert not lacks.keys() & found.ops.keys()
    assert all(re.match(r"\w", why) and not why.endswith(".") for why in lacks.values())
