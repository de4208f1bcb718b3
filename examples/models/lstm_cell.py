"""One step of an LSTM cell: four gates from one product, a new cell state and a new output."""
from __future__ import annotations

import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure

WIDTH, HIDDEN = 40, 32


@pypto.jit
def lstm_cell(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    hidden: pypto.Tensor([pypto.DYNAMIC, HIDDEN], pypto.DT_FP32),
    cell: pypto.Tensor([pypto.DYNAMIC, HIDDEN], pypto.DT_FP32),
    from_input: pypto.Tensor([WIDTH, 4 * HIDDEN], pypto.DT_FP32),
    from_hidden: pypto.Tensor([HIDDEN, 4 * HIDDEN], pypto.DT_FP32),
    bias: pypto.Tensor([4 * HIDDEN], pypto.DT_FP32),
    new_cell: pypto.Tensor([pypto.DYNAMIC, HIDDEN], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, HIDDEN], pypto.DT_FP32),
):
    gates = pypto.matmul(x, from_input) + pypto.matmul(hidden, from_hidden) + bias
    enter, forget, candidate, leave = (gates[:, i * HIDDEN:(i + 1) * HIDDEN] for i in range(4))
    state = pypto.sigmoid(forget) * cell + pypto.sigmoid(enter) * pypto.tanh(candidate)
    new_cell[:] = state
    out[:] = pypto.sigmoid(leave) * pypto.tanh(state)


def inputs(generator):
    shapes = ((21, WIDTH), (21, HIDDEN), (21, HIDDEN), (WIDTH, 4 * HIDDEN), (HIDDEN, 4 * HIDDEN), (4 * HIDDEN,))
    arrays = [generator.standard_normal(s, np.float32) / 4 for s in shapes]
    return *arrays, np.empty((21, HIDDEN), np.float32), np.empty((21, HIDDEN), np.float32)


def reference(x, hidden, cell, from_input, from_hidden, bias, new_cell, out):
    gates = x @ from_input + hidden @ from_hidden + bias
    enter, forget, candidate, leave = np.split(gates, 4, axis=1)
    enter, forget, leave = (1 / (1 + np.exp(-g)) for g in (enter, forget, leave))
    new_cell[...] = forget * cell + enter * np.tanh(candidate)
    out[...] = leave * np.tanh(new_cell)


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    given = inputs(np.random.default_rng(0))
    lstm_cell(*given)
    exact = [a.astype(np.float64) if a.dtype.kind not in "iub" else a.copy() for a in given]
    reference(*exact)
    print(given[-1])
    error = measure.largest_error(given[-1], exact[-1])
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
