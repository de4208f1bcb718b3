"""Users' names on the devices: a loop, tensor or number may be called what emitted kernels and hosts call something of their own."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto

WORDS = {"ascend-a2-emu": ("core", "cores", "item", "line", "kStep", "pipe", "main", "half", "template"),
         "tt-wormhole-emu": ("item", "start", "count", "tile_row", "tile_col", "lane", "main", "device", "template")}
TEXT = '''
import pypto_dsl as p

T, F, B = p.Tensor, p.DT_FP32, p.DT_BF16


def rows({w}: T([2, 64, 64], F), {w}0: T([2, 64, 64], F)):
    for {w}1 in p.loop(2):
        {w}0[{w}1] = p.softmax({w}[{w}1], -1)


def turns(x: T([2, 64, 64], B), b: T([64, 64], B), out: T([2, 64, 64], F)):
    for {w} in p.loop(2):
        out[{w}] = p.matmul(x[{w}], b, F)
'''


@pytest.mark.parametrize(("target", "word"), [(t, w) for t, words in WORDS.items() for w in words])
def test_any_name(target: str, word: str, tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(TEXT.format(w=word))
    made: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), made)
    rng = np.random.default_rng(0)
    x, b = (rng.normal(size=size).astype(np.float32) for size in ((2, 64, 64), (64, 64)))
    out = np.zeros_like(x)
    pypto.jit(made["rows"], target=target)(x, out)
    e = np.exp(x - x.max(-1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(-1, keepdims=True), rtol=1e-5, atol=1e-6)
    half = [v.astype(pypto.DT_BF16.numpy) for v in (x, b)]
    pypto.jit(made["turns"], target=target)(*half, out)
    np.testing.assert_allclose(out, half[0].astype(np.float32) @ half[1].astype(np.float32), rtol=1e-4, atol=1e-4)
    if target == "tt-wormhole-emu":
        host = pypto.jit(made["turns"]).source("tt-wormhole", *half, out)
        assert f"for {word}_ in" in host if word in ("start", "count", "device") else f"for {word} in" in host
