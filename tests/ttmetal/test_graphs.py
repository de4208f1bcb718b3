"""The graphs of the passes' tests, symbolic and static, on the emulated device against the interpreter, or refused by code."""
from __future__ import annotations

import graphs
import numpy as np
import pytest

from pypto_dsl.codegen.ttmetal import emit
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.compiler.targets import load
from pypto_dsl.runtime.emulator.ttmetal.batch import Batch
from pypto_dsl.runtime.emulator.ttmetal.runner import run
from pypto_dsl.runtime.interpreter import run as interpret

EXTENTS = ({"M": 5, "N": 7, "K": 6, "B": 3}, {"M": 1, "N": 1, "K": 1, "B": 1}, {"M": 33, "N": 65, "K": 40, "B": 2},
           {"M": 64, "N": 32, "K": 32, "B": 2}, {"M": 1, "N": 100, "K": 3, "B": 2})
# Transposed left operands of products are refused, and so are views that whole tiles cannot read.
REFUSED = {"matmul_stacks": "PT523", "transposed": "PT522"}
TARGET = load("tt-wormhole")


@pytest.mark.parametrize("static", [False, True], ids=["symbolic", "static"])
@pytest.mark.parametrize("case", graphs.CASES)
def test_device_agrees_with_the_interpreter(case: str, static: bool) -> None:
    """Every shape class, two cores, mixed order; 16-bit results within 2 in a hundred, others within 2e-5."""
    function, parameters = graphs.CASES[case]
    if static and case == "no_keepdim":
        return  # its function names the symbol M
    batch, taken = Batch(case), []
    for extents in EXTENTS if static else EXTENTS[:1]:
        shapes = [(n, d, tuple(extents.get(e, e) if static and isinstance(e, str) else e for e in s)) for n, d, s in parameters]
        g = graphs.graph(case, function, *shapes)
        try:
            program = lower(g, TARGET)
        except KernelError as refused:
            assert refused.code == REFUSED.get(case), str(refused)
            continue
        assert case not in REFUSED or (static and extents["M"] == 1), "a view of one row is dense; anything else is refused"
        made = emit(program, TARGET)
        batch.add(made.manifest, made.files)
        taken += [(g, made, known) for known in ((extents,) if static else EXTENTS)]
    for g, made, extents in taken:
        values = graphs.arrays(g, extents, np.random.default_rng(7))
        expected = interpret(g, {k: np.array(v) for k, v in values.items()}, {} if static else {n: extents[n] for n in g.symbols})
        numbers = {p.name: float(values[p.name]) for p in g.parameters if p.type.rank == 0 and p.name not in g.outputs}
        tensors = {k: np.asarray(v) for k, v in values.items() if k not in numbers}
        got = run(made.manifest, made.files, tensors, numbers, cores=2, seed=1, builder=batch)
        for name in g.outputs:
            tolerance = 2e-2 if got[name].dtype.itemsize == 2 else 2e-5
            value, want = got[name].astype(np.float64), expected[name].astype(np.float64)
            np.testing.assert_allclose(value, want, tolerance, tolerance, err_msg=f"{extents}")
