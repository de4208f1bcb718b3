"""The libraries that are measured: one module each, loaded when it is asked for.

A peer's module has a function ``load(threads)`` that gives a `Prepare`: called with a workload and its inputs it returns what runs the
workload once, or None for what the library does not offer.
"""
from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.workloads import Array, Workload

PEERS = ("pypto", "pypto_fast", "numpy", "numexpr", "numba", "jax", "torch", "torch_compile", "halide", "limit")


@dataclass(frozen=True)
class Prepared:
    """A workload ready to run: ``run`` computes it once, ``result`` makes a NumPy array of what ``run`` gave."""

    run: Callable[[], Any]
    result: Callable[[Any], Array] = np.asarray


Inputs = Mapping[str, Array]
Prepare = Callable[[Workload, Inputs], Prepared | None]


def load(name: str, threads: int) -> Prepare:
    """The peer called ``name``. Raises ValueError for an unknown name, ImportError when it is not installed."""
    if name not in PEERS:
        raise ValueError(f"no peer is called `{name}`; there are {', '.join(PEERS)}")
    prepare: Prepare = importlib.import_module(f"benchmarks.peers.{name}_peer").load(threads)
    return prepare
