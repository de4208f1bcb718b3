"""Results as tables: milliseconds per peer, the best other peer, and our ratio to it, with a summary of every group."""
from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OURS, FAST, LIMIT = "pypto", "pypto_fast", "limit"
NOT_PEERS = frozenset({OURS, FAST, LIMIT})
ACCURATE = 4.0  # ulp: the promise of most of our functions, doubled
Row = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """One workload of one run: the rows of its peers by name."""

    workload: str
    rows: dict[str, Row]

    @property
    def best(self) -> str | None:
        """The fastest peer that is not ours."""
        others = {name: row["best_ms"] for name, row in self.rows.items() if name not in NOT_PEERS}
        return min(others, key=lambda name: others[name]) if others else None

    @property
    def best_accurate(self) -> str | None:
        """Element by element: the fastest peer within 4 ulp, or within our own error where cancellation makes that larger.

        Elsewhere the fastest: errors of sums in ulp say more about the data's cancellation than about the peer.
        """
        ours = self.rows.get(OURS, {})
        if ours.get("group") != "elementwise":
            return self.best
        bound = max(ACCURATE, ours.get("ulp", 0.0))
        return Line(self.workload, {n: r for n, r in self.rows.items() if r.get("ulp", bound) <= bound}).best

    @property
    def ratio(self) -> float | None:
        """How many times as long the best peer takes; None when it or we are missing."""
        return self._times(self.best)

    @property
    def accurate_ratio(self) -> float | None:
        """The same for the best accurate peer."""
        return self._times(self.best_accurate)

    def _times(self, peer: str | None) -> float | None:
        return None if peer is None or OURS not in self.rows else self.rows[peer]["best_ms"] / self.rows[OURS]["best_ms"]

    @property
    def share(self) -> float | None:
        """Our speed as a part of what the machine can do."""
        return self.rows[LIMIT]["best_ms"] / self.rows[OURS]["best_ms"] if {OURS, LIMIT} <= self.rows.keys() else None

    @property
    def gain(self) -> float | None:
        """How many times as long the exact kernel takes as the one with precision="fast"."""
        return self.rows[OURS]["best_ms"] / self.rows[FAST]["best_ms"] if {OURS, FAST} <= self.rows.keys() else None


def read(paths: Sequence[Path]) -> tuple[Row, list[Line]]:
    """The head of the first file, and the lines of all: a workload comes whole from the first file that has it."""
    head: Row = {}
    lines: dict[str, Line] = {}
    for path in paths:
        data = json.loads(path.read_text(encoding="utf-8"))
        head = head or {k: v for k, v in data.items() if k != "rows"}
        here: dict[str, dict[str, Row]] = {}
        for row in data["rows"]:
            here.setdefault(row["workload"], {})[row["peer"]] = row
        lines |= {name: Line(name, rows) for name, rows in here.items() if name not in lines}
    return head, list(lines.values())


def table(lines: Sequence[Line]) -> str:
    """A Markdown table of milliseconds (best of the rounds), ratios, shares of the limit and largest errors.

    "accurate" is the ratio to the best peer whose error is at most 4 ulp, or at most ours (element by element; elsewhere to the best).
    Where kernels with precision="fast" took part: their time, how many times as long the exact ones take, and their error.
    """
    fast = any(FAST in line.rows for line in lines)
    peers = list(dict.fromkeys(name for line in lines for name in line.rows if name not in NOT_PEERS))
    disturbed = any("clean" in row for line in lines for row in line.rows.values())
    heads = ["workload", *peers, OURS, "best peer", "ratio", "accurate", "of the limit", "ulp: best peer / pypto", "first call ms"]
    heads += [FAST, "exact / fast", "ulp: fast"] if fast else []
    heads += ["clean"] if disturbed else []
    text = [_cells(heads), _cells(["---", *["---:"] * (len(heads) - 1)])]
    for line in lines:
        best, ours = line.best, line.rows.get(OURS)
        cells = [line.workload, *(_number(line.rows[p]["best_ms"]) if p in line.rows else "–" for p in (*peers, OURS)), best or "–",
                 _times(line.ratio), _times(line.accurate_ratio), f"{line.share:.0%}" if line.share is not None else "–",
                 f"{_ulp(line.rows.get(best or ''))} / {_ulp(ours)}", _number(ours["first_ms"]) if ours else "–"]
        if fast:
            cells += [_number(line.rows[FAST]["best_ms"]) if FAST in line.rows else "–", _times(line.gain), _ulp(line.rows.get(FAST))]
        cells += [f"{ours['clean']}/{ours['rounds']}" if ours else "–"] if disturbed else []
        text.append(_cells(cells))
    return "\n".join(text)


def summary(lines: Iterable[Line]) -> str:
    """Per group, dtype and size: rows, geometric mean of the ratios (and of those to accurate peers), rows at 1.0x and below 0.95x."""
    groups: dict[tuple[str, str, str], list[Line]] = {}
    for line in lines:
        if line.ratio is not None:
            row = line.rows[OURS]
            for key in ((row["group"], row["dtype"], row["size"]), (row["group"], "all", "all"), ("all", "all", "all")):
                groups.setdefault(key, []).append(line)
    heads = ["group", "dtype", "size", "rows", "geometric mean", "accurate", "at least 1.0x", "below 0.95x", "worst"]
    text = [_cells(heads), _cells(["---"] * 3 + ["---:"] * 6)]
    for key, members in sorted(groups.items(), key=lambda item: (item[0][0] == "all", item[0][0], item[0][1] == "all", item[0][1])):
        ratios = [line.ratio or 0.0 for line in members]
        accurate = [line.accurate_ratio for line in members if line.accurate_ratio is not None]
        text.append(_cells([*key, str(len(ratios)), _times(_geometric_mean(ratios)), _times(_geometric_mean(accurate)),
                            str(sum(r >= 1 for r in ratios)), str(sum(r < 0.95 for r in ratios)), _times(min(ratios))]))
    return "\n".join(text)


def bars(lines: Iterable[Line]) -> str:
    """What the bars are about, as a list: ratios of all but matrix products, with each counted as 4 at most too (some say more about the
    peers: page faults of fresh results, scalar 16-bit code); functions of 16-bit floats, pow of two tensors, and parts of the limit."""
    ratios = {line.workload: line.ratio for line in lines if line.ratio is not None and line.rows[OURS]["group"] != "matmul"}
    functions = {name: r for name, r in ratios.items() if _is_16_bit_function(name)}
    shares = {line.workload: line.share for line in lines if line.share is not None and line.workload.endswith("16M")
              and line.rows[OURS]["group"] == "elementwise"}
    ahead, at_twice, at_85 = (sum(x >= bar for x in found.values()) for found, bar in ((ratios, 1.0), (functions, 2.0), (shares, 0.85)))
    mean, capped = _geometric_mean(list(ratios.values())), _geometric_mean([min(r, CAP) for r in ratios.values()])
    text = [f"- {len(ratios)} rows: geometric mean {_times(mean)} ({_times(capped)} with each ratio counted as {CAP:g} at most), "
            f"{ahead} at 1.0x or more ({ahead / max(1, len(ratios)):.0%}).",
            f"- Below 0.95x: {_listed({n: r for n, r in ratios.items() if r < 0.95})}.",
            f"- Functions of 16-bit floats at 1M and 16M: {at_twice} of {len(functions)} at 2x or more; below: "
            f"{_listed({n: r for n, r in functions.items() if r < 2})}.",
            f"- pow of two f32 tensors: {_listed({n: r for n, r in ratios.items() if n.startswith('pow_f32')})}."]
    if shares:
        text.append(f"- Of the stream beyond the caches, element by element: {at_85} of {len(shares)} at 85 % or more: "
                    + ", ".join(f"{n} {s:.0%}" for n, s in sorted(shares.items(), key=lambda item: -item[1])) + ".")
    return "\n".join(text)


def _listed(ratios: Mapping[str, float]) -> str:
    return ", ".join(f"{n} {_times(r)}" for n, r in sorted(ratios.items(), key=lambda item: item[1])) or "none"


CAP = 4.0
# bound by memory, square roots or page faults: sums, products of two numbers, roots
MEMORY_BOUND = ("add", "fma_relu", "pow_2_", "pow_half", "ldexp", "sum", "max", "rms_norm", "layer_norm")


def _is_16_bit_function(workload: str) -> bool:
    return ("bf16" in workload or "_f16" in workload) and not workload.endswith("_64") and not workload.startswith(MEMORY_BOUND)


def _geometric_mean(ratios: Sequence[float]) -> float | None:
    return math.exp(sum(math.log(r) for r in ratios) / len(ratios)) if ratios else None


def losses(lines: Iterable[Line]) -> str:
    """The workloads where another peer is faster, worst first."""
    below = sorted((line for line in lines if line.ratio is not None and line.ratio < 1), key=lambda line: line.ratio or 0)
    text = [_cells(["workload", "ratio", "best peer", "its ms", "pypto ms"]), _cells(["---", "---:", "---", "---:", "---:"])]
    for line in below:
        best = line.best or ""
        text.append(_cells([line.workload, _times(line.ratio), best, _number(line.rows[best]["best_ms"]),
                            _number(line.rows[OURS]["best_ms"])]))
    return "\n".join(text)


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _times(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}x"


def _ulp(row: Row | None) -> str:
    return _number(row["ulp"]) if row and "ulp" in row else "–"
