"""PyTorch under torch.compile: the functions of the eager peer through its own compiler (needs a host compiler, seconds per workload)."""
from __future__ import annotations

import torch

from benchmarks.peers import Inputs, Prepare, Prepared, torch_peer
from benchmarks.workloads import Workload


def load(threads: int) -> Prepare:
    """As the eager peer."""
    torch_peer.load(threads)
    return prepare


def prepare(workload: Workload, inputs: Inputs) -> Prepared | None:
    """The workload's function, compiled for these shapes."""
    torch.compiler.reset()
    operands = [torch_peer.to_torch(a) for a in inputs.values()]
    function = torch.compile(torch_peer.FUNCTIONS[workload.operation.name], dynamic=False, fullgraph=True)
    return Prepared(lambda: function(*operands), torch_peer.to_numpy)
