"""Results as tables: milliseconds per peer, the best other peer, and our ratio to it, with a summary of every group."""
from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OURS, LIMIT = "pypto", "limit"
NOT_PEERS = frozenset({OURS, LIMIT})
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
    def ratio(self) -> float | None:
        """How many times as long the best peer takes; None when it or we are missing."""
        best = self.best
        return None if best is None or OURS not in self.rows else self.rows[best]["best_ms"] / self.rows[OURS]["best_ms"]

    @property
    def share(self) -> float | None:
        """Our speed as a part of what the machine can do."""
        return self.rows[LIMIT]["best_ms"] / self.rows[OURS]["best_ms"] if {OURS, LIMIT} <= self.rows.keys() else None


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
    """A Markdown table of milliseconds (best of the rounds), ratios, shares of the limit and largest errors."""
    peers = list(dict.fromkeys(name for line in lines for name in line.rows if name not in NOT_PEERS))
    heads = ["workload", *peers, OURS, "best peer", "ratio", "of the limit", "ulp: best peer / pypto", "first call ms", "clean"]
    text = [_cells(heads), _cells(["---", *["---:"] * (len(heads) - 1)])]
    for line in lines:
        best, ours = line.best, line.rows.get(OURS)
        cells = [line.workload, *(_number(line.rows[p]["best_ms"]) if p in line.rows else "–" for p in (*peers, OURS)), best or "–",
                 _times(line.ratio), f"{line.share:.0%}" if line.share is not None else "–",
                 f"{_ulp(line.rows.get(best or ''))} / {_ulp(ours)}", _number(ours["first_ms"]) if ours else "–",
                 f"{ours['clean']}/{ours['rounds']}" if ours else "–"]
        text.append(_cells(cells))
    return "\n".join(text)


def summary(lines: Iterable[Line]) -> str:
    """Per group and dtype: rows, geometric mean of the ratios, rows at 1.0x and more, rows below 0.95x."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for line in lines:
        if line.ratio is not None:
            row = line.rows[OURS]
            for key in ((row["group"], row["dtype"], row["size"]), (row["group"], "all", "all"), ("all", "all", "all")):
                groups.setdefault(key, []).append(line.ratio)
    heads = ["group", "dtype", "size", "rows", "geometric mean", "at least 1.0x", "below 0.95x", "worst"]
    text = [_cells(heads), _cells(["---"] * 3 + ["---:"] * 5)]
    for key, ratios in groups.items():
        if key[0] == "matmul" and key[1] != "all":
            continue
        mean = math.exp(sum(math.log(r) for r in ratios) / len(ratios))
        text.append(_cells([*key, str(len(ratios)), _times(mean), str(sum(r >= 1 for r in ratios)), str(sum(r < 0.95 for r in ratios)),
                            _times(min(ratios))]))
    return "\n".join(text)


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
