"""A pass makes something new: the graph that it is given prints the same behind it, and the pipeline gives the same a second time."""
from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from random_graphs import graphs

import pypto_dsl as pypto
from pypto_dsl.compiler import pipeline
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.targets import load

TARGETS = ("llvm-cpu", "ascend-a2", "tt-wormhole")


@pypto.jit(lint="off")
def element(x: pypto.Tensor([8, 8], pypto.DT_FP32), n: pypto.Tensor([4], pypto.DT_INT32), out: pypto.Tensor([8, 8], pypto.DT_FP32)):
    first = x[0, 0]
    second = x[1, 1]
    out[:] = x * first + second
    for i in pypto.loop(n[0]):
        out[:] = out * x[2, 2] + i


@pypto.jit(lint="off", precision="fast")
def half(x: pypto.Tensor([8, 8], pypto.DT_BF16), y: pypto.Tensor([8, 8], pypto.DT_FP32), out: pypto.Tensor([8, 8], pypto.DT_BF16)):
    soft = pypto.softmax(pypto.cast(x, pypto.DT_FP32) / 3.0 + y, -1)
    out[:] = pypto.where(x > 0.0, pypto.cast(soft, pypto.DT_BF16), pypto.exp(x) / 3.0)


def hold(graph: Graph, target: str) -> int:
    """Run every stage and compare what it was given before and behind it; the number of stages that ran."""
    ran = 0
    given = [(graph, pipeline.text(graph))]
    try:
        for stage in pipeline.stages(graph, load(target)):
            for earlier, text in given:
                assert pipeline.text(earlier) == text, f"{stage.name} changed what it was given"
            given.append((stage.result, pipeline.text(stage.result)))
            ran += 1
    except KernelError:
        pass  # what a target refuses has no further stages
    return ran


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", [element, half], ids=["element", "half"])
def test_kernels(kernel, target):
    assert hold(kernel.graph(), target) == len(pipeline.STAGES) or target != "llvm-cpu"


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_random_graphs(graph):
    for target in TARGETS:
        assert hold(graph, target)
