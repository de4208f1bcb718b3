"""pypto_dsl through its public interface: kernels as a user would write them, called on arrays."""
from __future__ import annotations

from benchmarks.kernels import KERNELS
from benchmarks.peers import Inputs, Prepare, Prepared
from benchmarks.workloads import Workload


def load(threads: int) -> Prepare:
    """Threads follow the cores that the process may use, which the run has set."""
    return prepare


def prepare(workload: Workload, inputs: Inputs) -> Prepared | None:
    """The kernel of the workload's operation, writing into preallocated memory."""
    kernel = KERNELS.get(workload.operation.name)
    if kernel is None:
        return None
    arguments = (*inputs.values(), workload.output())
    out = arguments[-1]
    return Prepared(lambda: kernel(*arguments), lambda _: out)
