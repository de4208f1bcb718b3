"""What special operands cost pow: `python -m benchmarks.special_lanes` times arrays with 1 % and 10 % of each kind, beside NumPy."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np

from benchmarks.sweep.cases import BINARY, Array, Kernel

COUNT = 1 << 16  # operands and results in a second-level cache
CALLS = 10  # in a sample
Operands = tuple[Array, Array]
Change = Callable[[Array, Array, Array, np.random.Generator], None]


def _base(number: float) -> Change:
    def change(x: Array, y: Array, at: Array, rng: np.random.Generator) -> None:
        x[at] = number

    return change


def _negative(x: Array, y: Array, at: Array, rng: np.random.Generator) -> None:
    """Negative bases with whole exponents."""
    x[at] *= -1
    y[at] = np.round(y[at])


def _huge(x: Array, y: Array, at: Array, rng: np.random.Generator) -> None:
    """Results that overflow or vanish."""
    x[at] = 1e30
    y[at] = rng.choice([-10, 10], int(at.sum()))


KINDS: dict[str, Change] = {
    "zeros": _base(0.0), "negative": _negative, "subnormal": _base(1e-40), "overflowing": _huge, "infinite": _base(np.inf),
    "NaN": _base(np.nan),
}


def operands() -> dict[str, Operands]:
    """Pairs by name: ordinary ones, and the same with a share of each kind at random places."""
    rng = np.random.default_rng(0)
    x, y = np.exp(rng.uniform(-3, 3, COUNT)).astype(np.float32), rng.uniform(-6, 6, COUNT).astype(np.float32)
    found = {"ordinary": (x, y)}
    for kind, change in KINDS.items():
        for share in (0.01, 0.1):
            a, b = x.copy(), y.copy()
            change(a, b, rng.random(COUNT) < share, rng)
            found[f"{share:.0%} {kind}"] = a, b
    return found


def timed(function: Callable[..., Any], pair: Operands) -> float:
    """Processor time of an element, in nanoseconds."""
    began = time.process_time()
    for _ in range(CALLS):
        function(*pair)
    return (time.process_time() - began) * 1e9 / (CALLS * COUNT)


@click.command()
@click.option("--rounds", default=15, show_default=True, help="The best of so many, every kind in each.")
@click.option("--level", help="A feature level instead of this processor's best: avx512, avx2, baseline.")
def main(rounds: int, level: str | None) -> None:
    """Time f32 pow on special operands, on one thread, and print a table."""
    kernel, out = Kernel(BINARY["pow"], "f32", COUNT, level), np.empty(COUNT, np.float32)
    pairs = operands()
    best = {name: [np.inf, np.inf] for name in pairs}
    with np.errstate(all="ignore"):
        for _ in range(rounds):
            for name, pair in pairs.items():
                best[name][0] = min(best[name][0], timed(kernel, pair))
                best[name][1] = min(best[name][1], timed(lambda x, y: np.power(x, y, out=out), pair))
    click.echo("| operands | ns | to ordinary | NumPy ns |\n| --- | ---: | ---: | ---: |")
    for name, (ours, numpy) in best.items():
        click.echo(f"| {name} | {ours:.3f} | {ours / best['ordinary'][0]:.2f}x | {numpy:.3f} |")


if __name__ == "__main__":
    main()
