"""One decoding step of attention over a paged cache: each sequence's keys and values lie in blocks that a table names."""
from __future__ import annotations

import math

import numpy as np

import pypto_dsl as pypto
from pypto_dsl import measure

SEQUENCES, HEADS, DEPTH, PAGE, PAGES = 3, 4, 32, 16, 12


@pypto.jit
def paged_attention(
    query: pypto.Tensor([SEQUENCES, HEADS, DEPTH], pypto.DT_FP32),
    keys: pypto.Tensor([PAGES, PAGE, DEPTH], pypto.DT_FP32),
    values: pypto.Tensor([PAGES, PAGE, DEPTH], pypto.DT_FP32),
    table: pypto.Tensor([SEQUENCES, pypto.STATIC], pypto.DT_INT32),
    lengths: pypto.Tensor([SEQUENCES], pypto.DT_INT32),
    out: pypto.Tensor([SEQUENCES, HEADS, DEPTH], pypto.DT_FP32),
):
    for sequence in pypto.loop(SEQUENCES):
        length = lengths[sequence]
        mine = query[sequence, :, :]
        top = pypto.full([HEADS, 1], -1e30, pypto.DT_FP32)
        total = pypto.zeros(HEADS, 1)
        mixed = pypto.zeros(HEADS, DEPTH)
        for block in pypto.loop((length + PAGE - 1) // PAGE):
            page = table[sequence, block]
            live = pypto.min(length - block * PAGE, PAGE)
            k = pypto.reshape(pypto.view(keys, [1, PAGE, DEPTH], [page, 0, 0], valid_shape=[1, live, DEPTH]), [PAGE, DEPTH],
                              valid_shape=[live, DEPTH])
            v = pypto.reshape(pypto.view(values, [1, PAGE, DEPTH], [page, 0, 0], valid_shape=[1, live, DEPTH]), [PAGE, DEPTH],
                              valid_shape=[live, DEPTH])
            scores = pypto.matmul(mine, k, pypto.DT_FP32, b_trans=True) * (1 / math.sqrt(DEPTH))
            higher = pypto.maximum(top, pypto.amax(scores, -1, True))
            weights = pypto.exp(scores - higher)
            scale = pypto.exp(top - higher)
            total = total * scale + pypto.sum(weights, -1, True)
            mixed = mixed * scale + pypto.matmul(weights, v, pypto.DT_FP32)
            top = higher
        out[sequence, :, :] = mixed / total


def inputs(generator):
    query = generator.standard_normal((SEQUENCES, HEADS, DEPTH), np.float32)
    keys, values = (generator.standard_normal((PAGES, PAGE, DEPTH), np.float32) for _ in range(2))
    table = generator.permutation(PAGES).reshape(SEQUENCES, -1).astype(np.int32)
    return query, keys, values, table, np.array([5, 64, 33], np.int32), np.empty_like(query)


def reference(query, keys, values, table, lengths, out):
    for sequence, length in enumerate(lengths):
        k, v = (pages[table[sequence]].reshape(-1, DEPTH)[:length] for pages in (keys, values))
        scores = query[sequence] @ k.T / math.sqrt(DEPTH)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        out[sequence] = weights / weights.sum(-1, keepdims=True) @ v


def main() -> None:
    """Run the kernel, print its result, and its largest error in units of the last place (ulp) against float64."""
    given = inputs(np.random.default_rng(0))
    paged_attention(*given)
    exact = [a.astype(np.float64) if a.dtype.kind not in "iub" else a.copy() for a in given]
    reference(*exact)
    print(given[-1])
    error = measure.largest_error(given[-1], exact[-1])
    print(f"largest error {error.ulp:.3f} ulp, {error.relative:.1e} of the largest value")


if __name__ == "__main__":
    main()
