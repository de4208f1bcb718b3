"""The example of ttnn's published page of `ttnn.ldexp_`: in place, on bfloat16."""
from __future__ import annotations

import ml_dtypes
import numpy as np

import pypto_dsl as pypto


@pypto.jit
def ldexp_in_place(a: pypto.Tensor([2, 2], pypto.DT_BF16), b: pypto.Tensor([2, 2], pypto.DT_BF16)):
    pypto.ldexp_(a, b)


def main() -> None:
    """Print the tensor that was written in place."""
    a = np.array([[2, 2], [2, 2]], ml_dtypes.bfloat16)
    b = np.array([[1, 1], [1, 1]], ml_dtypes.bfloat16)
    ldexp_in_place(a, b)
    print(a)
    assert a.astype(np.float32).tolist() == [[4, 4], [4, 4]]


if __name__ == "__main__":
    main()
