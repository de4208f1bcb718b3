"""What is printed: JSON, tables, coloured diagnostics, and a line on stderr when something takes longer than a second."""
from __future__ import annotations

import contextlib
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
SCHEMA = 1
_STYLES: tuple[tuple[re.Pattern[str], dict[str, Any]], ...] = (
    (re.compile(r"^(error|bug)(\[PT\d{3}\])?:"), {"fg": "red", "bold": True}),
    (re.compile(r"^warning(\[PT\d{3}\])?:"), {"fg": "yellow", "bold": True}),
    (re.compile(r"(?<=\| )\s*\^+.*$"), {"fg": "red"}),
    (re.compile(r"^\s+(-->|:::)"), {"fg": "blue"}),
    (re.compile(r"^\s+= (help|note|more|reproducer):"), {"bold": True}),
)


def json_option(command: F) -> F:
    """The option ``--json``: one JSON document on stdout, for errors too."""
    def remember(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
        ctx.find_root().meta["json"] = value
        return value

    return click.option("--json", "as_json", is_flag=True, callback=remember, is_eager=True,
                        help="Print one JSON document, for errors too.")(command)


def sarif_option(command: F) -> F:
    """The option ``--sarif``: diagnostics as one SARIF 2.1.0 log on stdout, instead of anything else."""
    def remember(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
        ctx.find_root().meta["sarif"] = value
        return value

    return click.option("--sarif", "as_sarif", is_flag=True, callback=remember, is_eager=True,
                        help="Print errors and warnings as one SARIF 2.1.0 log, for code hosts and editors.")(command)


def wants_json(ctx: click.Context) -> bool:
    """Whether the running command was called with ``--json``."""
    return bool(ctx.find_root().meta.get("json"))


def emit_json(document: dict[str, Any]) -> None:
    """Print a JSON document with the number of its schema."""
    emit_document({"schema": SCHEMA, **document})


def emit_document(document: dict[str, Any]) -> None:
    """Print a JSON document as it is."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def paint(text: str) -> str:
    """A rendered diagnostic with colours; click takes them out again where the output is no terminal."""
    return "\n".join(_paint_line(line) for line in text.split("\n"))


def _paint_line(line: str) -> str:
    for pattern, style in _STYLES:
        if (found := pattern.search(line)) is not None:
            return line[:found.start()] + click.style(found.group(), **style) + line[found.end():]
    return line


def table(rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Columns aligned at the left, two spaces apart; the last one runs on."""
    lines = [tuple(head), *map(tuple, rows)] if head else [tuple(row) for row in rows]
    widths = [max(len(row[i]) for row in lines) for i in range(len(lines[0]))] if lines else []
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in lines)


@contextlib.contextmanager
def progress(what: str, after: float = 1.0) -> Iterator[None]:
    """Say on stderr what is being done when it takes longer than ``after`` seconds; on terminals only."""
    if not sys.stderr.isatty():
        yield
        return
    timer = threading.Timer(after, lambda: click.echo(f"{what} ...", err=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
