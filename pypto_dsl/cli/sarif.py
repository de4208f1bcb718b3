"""Diagnostics as SARIF 2.1.0, the format that code hosts and editors show beside the lines they speak of."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pypto_dsl.cli import terminal
from pypto_dsl.cli.kernels import Source
from pypto_dsl.cli.versions import VERSION
from pypto_dsl.compiler import catalogue
from pypto_dsl.compiler.errors import Diagnostic, Label
from pypto_dsl.compiler.span import Span

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def document(diagnostics: Sequence[Diagnostic], others: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """A SARIF log with one run: a result for each diagnostic, and results made elsewhere; rules are the catalogue's entries in use."""
    codes = list(dict.fromkeys(d.code for d in diagnostics))
    driver = {"name": "ptc", "version": VERSION, "rules": [_rule(code) for code in codes]}
    results = [_result(d, codes.index(d.code)) for d in diagnostics]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": [*results, *others]}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def plain(message: str, file: str | None = None, line: int | None = None) -> dict[str, Any]:
    """A result that has no code: an exception of the user's own, a bug, a wrong number."""
    made: dict[str, Any] = {"level": "error", "message": {"text": message}}
    if file is not None:
        made["locations"] = [{"physicalLocation": {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": line or 1}}}]
    return made


def emit(source: Source, wrong: Sequence[str] = ()) -> None:
    """Print the log of a command that has come through: the kernel's warnings, and what is wrong with its numbers."""
    kernel = source.kernel
    warnings = [] if kernel is None else [w for form in kernel.specializations() for w in form.captured.warnings]
    line = 1 if kernel is None else kernel.function.__code__.co_firstlineno
    terminal.emit_document(document(list(dict.fromkeys(warnings)), [plain(message, str(source.path), line) for message in wrong]))


def is_wanted(ctx: click.Context) -> bool:
    """Whether the running command was called with ``--sarif``."""
    return bool(ctx.find_root().meta.get("sarif"))


def _rule(code: str) -> dict[str, Any]:
    entry = catalogue.find(code)
    if entry is None:
        return {"id": code}
    return {"id": code, "shortDescription": {"text": entry.title}, "fullDescription": {"text": entry.cause}, "help": {"text": entry.fix}}


def _result(d: Diagnostic, rule: int) -> dict[str, Any]:
    text = "\n".join([d.message, *d.notes, *([f"help: {d.help}"] if d.help else [])])
    made: dict[str, Any] = {"ruleId": d.code, "ruleIndex": rule, "level": "warning" if d.severity == "warning" else "error",
                            "message": {"text": text}}
    if d.primary is not None:
        made["locations"] = [_location(d.primary)]
    if d.others:
        made["relatedLocations"] = [_location(label) for label in d.others]
    if d.fix is not None and d.primary is not None:
        change = {"deletedRegion": _region(d.primary.span), "insertedContent": {"text": d.fix}}
        made["fixes"] = [{"description": {"text": d.help or d.message}, "artifactChanges": [
            {"artifactLocation": {"uri": _uri(d.primary.span.file)}, "replacements": [change]}]}]
    return made


def _location(label: Label) -> dict[str, Any]:
    made: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": _uri(label.span.file)}, "region": _region(label.span)}}
    if label.text:
        made["message"] = {"text": label.text}
    return made


def _region(span: Span) -> dict[str, int]:
    made = {"startLine": span.line, "startColumn": span.column, "endLine": span.end_line or span.line}
    return made | ({"endColumn": span.end_column} if span.end_column else {})


def _uri(file: str) -> str:
    """A file below the working folder by its relative path, any other as a file: URI."""
    path = Path(file)
    if not path.is_absolute():
        return path.as_posix()
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else path.as_uri()
