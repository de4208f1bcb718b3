"""The examples of PyPTO's published page of `pypto.pow`, with the values it prints."""
from __future__ import annotations

import numpy as np

import pypto_dsl as pypto


@pypto.jit
def pow_scalar(x: pypto.Tensor([2, 2], pypto.DT_FP32), out: pypto.Tensor([2, 2], pypto.DT_FP32)):
    pypto.set_vec_tile_shapes(2, 2)
    out[:] = pypto.pow(x, 2)


@pypto.jit
def pow_tensor(
    x: pypto.Tensor([2, 2], pypto.DT_FP32), exponent: pypto.Tensor([2, 2], pypto.DT_FP32), out: pypto.Tensor([2, 2], pypto.DT_FP32)
):
    pypto.set_vec_tile_shapes(2, 2)
    out[:] = pypto.pow(x, exponent)


def main() -> None:
    """Print both results; they are the page's."""
    out = np.empty((2, 2), np.float32)
    pow_scalar(np.array([[1, 2], [3, 4]], np.float32), out)
    print(out)
    assert out.tolist() == [[1, 4], [9, 16]]
    pow_tensor(np.array([[1, 2], [-3, 4]], np.float32), np.array([[1, 2], [1, 1]], np.float32), out)
    print(out)
    assert out.tolist() == [[1, 4], [-3, 4]]


if __name__ == "__main__":
    main()
