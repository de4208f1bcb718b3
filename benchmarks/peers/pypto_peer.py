"""pypto_dsl through its public interface: kernels as a user would write them, called on arrays."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.kernels import KERNELS
from benchmarks.peers import Inputs, Prepare, Prepared
from benchmarks.workloads import Workload


def load(threads: int) -> Prepare:
    """Threads follow the cores that the process may use, which the run has set."""
    return calls(KERNELS)


def calls(kernels: Mapping[str, Any]) -> Prepare:
    """The kernel of a workload's operation, writing into preallocated memory."""

    def prepare(workload: Workload, inputs: Inputs) -> Prepared | None:
        kernel = kernels.get(workload.operation.name)
        if kernel is None:
            return None
        arguments = (*inputs.values(), workload.output())
        out = arguments[-1]
        return Prepared(lambda: kernel(*arguments), lambda _: out)

    return prepare
