"""What the passes cost on large graphs, stage by stage: chains, diamonds, reductions and several outputs of 1,000 to 100,000 operations.

    python -m benchmarks.passes --targets llvm-cpu ascend-a2 tt-wormhole --json benchmarks/results/passes.json
    python -m benchmarks.passes --operations 10000

Processor time of one run in a fresh process per size, the verifier behind every graph pass included.
"""
from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from pypto_dsl.compiler import pipeline, targets
from pypto_dsl.compiler.dtypes import BF16, F32
from pypto_dsl.compiler.graph import Builder, Graph, Symbol, Value, tensor_type, walk
from pypto_dsl.compiler.index import var
from pypto_dsl.compiler.ops import REGISTRY as R
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.compiler.verify import verify

SIZES = (1000, 3000, 10_000, 30_000, 100_000)
OUTPUT_EVERY = 200  # operations


def mixed_graph(operations: int) -> Graph:
    """A graph of about ``operations`` operations over bf16[M, 256] and f32[M, 256]: in turns a chain, a diamond, a row softmax by hand,
    and a cast; every 200 operations one result is an output of its own."""
    graph = Graph("mixed", symbols={"M": Symbol("M", "dim", "x", 0)})
    x, y = (Value(tensor_type(dtype, (var("M"), 256)), name) for dtype, name in ((BF16, "x"), (F32, "y")))
    graph.parameters += [x, y]
    builder = Builder(graph)
    value, written = y, 0
    with building(builder):
        while len(graph.body.ops) < operations:
            for _ in range(6):  # a chain
                value = R["add"](R["mul"](value, 0.5), y)
            left, right = R["tanh"](value), R["mul"](R["abs"](value), R["neg"](y))  # a diamond, with a branch of its own
            value = R["sub"](R["maximum"](left, right), R["mul"](left, right))
            shifted = R["sub"](value, R["amax"](value, -1, True))  # reductions
            exponentials = R["exp"](shifted)
            value = R["div"](exponentials, R["sum"](exponentials, -1, True))
            value = R["add"](R["cast"](R["add"](R["cast"](value, BF16), x), F32), y)
            if len(graph.body.ops) >= (written + 1) * OUTPUT_EVERY:
                written += 1
                out = Value(tensor_type(F32, (var("M"), 256)), f"out{written}")
                graph.parameters.append(out)
                graph.outputs[out.name] = value
    graph.returns = [value]
    return graph


@dataclass(frozen=True)
class Row:
    """One graph on one target: processor seconds per stage."""

    target: str
    operations: int
    total: float
    seconds: dict[str, float]


def measure(operations: int, target: str) -> Row:
    """Build a graph of this size and time every stage."""
    graph = mixed_graph(operations)
    found: dict[str, float] = {}
    began = time.process_time()
    verify(graph, "recorded")
    found["verify"] = time.process_time() - began
    last = time.process_time()
    for stage in pipeline.stages(graph, targets.load(target)):
        now = time.process_time()
        found[stage.name] = now - last
        last = time.process_time()
    return Row(target, sum(1 for _ in walk(graph.body)), round(sum(found.values()), 3), {k: round(v, 3) for k, v in found.items()})


def main() -> None:
    """Measure, print a table in Markdown, and write the JSON file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--targets", nargs="*", default=["llvm-cpu"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[Row] = []
    for target, size in itertools.product(options.targets, options.operations):
        with multiprocessing.get_context("spawn").Pool(1) as fresh:
            row = fresh.apply(measure, (size, target))
        if not rows:
            print(f"| target | operations | {' | '.join(row.seconds)} | total s | us per operation |")
            print(f"| --- | ---: |{' ---: |' * (len(row.seconds) + 2)}")
        stages = " | ".join(f"{v:.2f}" for v in row.seconds.values())
        print(f"| {target} | {row.operations} | {stages} | {row.total:.2f} | {row.total / row.operations * 1e6:.0f} |", flush=True)
        rows.append(row)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
