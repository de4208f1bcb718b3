"""The texts in docs/text.md are read, verified and run."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pypto_dsl.compiler.text.printer import print_graph
from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.compiler.tile_ir.reader import read_kernel
from pypto_dsl.compiler.tile_ir.text import print_kernel
from pypto_dsl.compiler.verify import require_valid
from pypto_dsl.runtime.interpreter import run

PAGE = (Path(__file__).parents[2] / "docs" / "text.md").read_text(encoding="utf-8")
BLOCKS = {re.split(r"\W+", text)[1]: text for text in re.findall(r"```(?:ptir|tile_ir)\n(.*?)```", PAGE, re.S)}


@pytest.mark.parametrize("name", ["scale_rows", "running_maximum"])
def test_graph_of_the_page(name: str) -> None:
    graph = read_graph(BLOCKS[name], places=True)
    require_valid(graph)
    text = print_graph(graph)
    assert print_graph(read_graph(text)) == text


def test_what_the_kernels_compute() -> None:
    x = np.arange(24, dtype=np.float32).reshape(3, 8) - 9
    start = np.zeros((1, 8), np.float32)
    graph = read_graph(BLOCKS["running_maximum"])
    for limit, expected in ((1.0, np.maximum(start, x.max(0))), (-1.0, start)):
        np.testing.assert_array_equal(run(graph, {"x": x, "start": start, "limit": limit, "y": start})["y"], expected)
    gain = np.full((3, 1), 0.5, np.float32).astype(read_graph(BLOCKS["scale_rows"]).parameters[1].type.dtype.numpy)
    got = run(read_graph(BLOCKS["scale_rows"]), {"x": x, "gain": gain, "factor": 3.0})["y"]
    np.testing.assert_array_equal(got, x * 1.5)


def test_tile_kernel_of_the_page() -> None:
    assert print_kernel(read_kernel(BLOCKS["softmax_0"])) == BLOCKS["softmax_0"]
