"""Exit codes, and how a failure becomes a message, a JSON record and, when it is our bug, a reproducer."""
from __future__ import annotations

import contextlib
import enum
import hashlib
import json
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import click

from pypto_dsl.cli import sarif, terminal
from pypto_dsl.cli.versions import versions
from pypto_dsl.compiler import catalogue
from pypto_dsl.compiler.errors import CompilerBug, Diagnostic, KernelError
from pypto_dsl.frontend.control import FOR_THE_USER
from pypto_dsl.runtime.toolchain import cache_folder

PACKAGE = str(Path(__file__).resolve().parents[1])


class ExitCode(enum.IntEnum):
    """What `ptc` exits with."""

    OK = 0
    KERNEL = 1
    USAGE = 2
    NUMERIC = 3
    TOOLCHAIN = 4
    BUG = 70


def report(failure: Exception, ctx: click.Context) -> int:
    """Print what went wrong, on stderr or with ``--json`` on stdout, and return the exit code."""
    if isinstance(failure, KernelError):
        entry = catalogue.find(failure.code)
        code = ExitCode.KERNEL if entry is None else ExitCode(entry.exit)
        return _tell(ctx, code, [failure.diagnostic])
    if not isinstance(failure, CompilerBug) and not _is_ours(failure.__traceback__):
        return _users_failure(failure, ctx)
    return _bug(failure, ctx)


@contextlib.contextmanager
def warnings_shown() -> Iterator[None]:
    """Warnings about a kernel are shown as its errors are; Python's own form would quote the line once more."""
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
                 line: str | None = None) -> None:
            found = getattr(message, "diagnostic", None)
            if isinstance(found, Diagnostic):
                _show(found)
            else:
                others(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def _show(diagnostic: Diagnostic) -> None:
    click.echo(terminal.paint(_nearby(diagnostic.render())), err=True)
    if catalogue.find(diagnostic.code) is not None:
        click.echo(f"   = more: ptc explain {diagnostic.code}", err=True)


def _tell(ctx: click.Context, code: ExitCode, diagnostics: Sequence[Diagnostic], **fields: Any) -> int:
    if sarif.is_wanted(ctx):
        terminal.emit_document(sarif.document(diagnostics))
        return int(code)
    if terminal.wants_json(ctx):
        terminal.emit_json({"ok": False, "exit": int(code), "errors": [d.json() for d in diagnostics], **fields})
        return int(code)
    for diagnostic in diagnostics:
        _show(diagnostic)
    return int(code)


def _nearby(text: str) -> str:
    """Frames name files below the working folder by their relative path."""
    here = f"{Path.cwd()}{os.sep}"
    return "\n".join(line.replace(here, "", 1) if line.lstrip().startswith(("-->", ":::")) else line for line in text.split("\n"))


def _is_ours(trace: TracebackType | None) -> bool:
    """Whether the innermost frame that belongs to this package or to the user belongs to this package.

    Frames of other libraries are whoever's called them: an exception inside NumPy is ours when we called it with nonsense. So are frames
    that evaluate a kernel's expression as it stands.
    """
    for frame, _ in reversed(list(traceback.walk_tb(trace))):
        path = frame.f_code.co_filename
        if frame.f_code in FOR_THE_USER:
            continue
        if path.startswith(PACKAGE):
            return True
        if not _is_library(path):
            return False
    return True


def _is_library(path: str) -> bool:
    return "site-packages" in path or path.startswith((sys.base_prefix, sys.prefix, "<frozen"))


def _users_failure(failure: Exception, ctx: click.Context) -> int:
    """An exception out of the user's own Python: their frames, without ours."""
    kept = [f for f in traceback.extract_tb(failure.__traceback__) if not f.filename.startswith(PACKAGE) and not _is_library(f.filename)]
    message = f"{type(failure).__name__}: {failure}"
    if sarif.is_wanted(ctx):
        terminal.emit_document(sarif.document([], [sarif.plain(message, *((kept[-1].filename, kept[-1].lineno) if kept else ()))]))
        return int(ExitCode.KERNEL)
    if terminal.wants_json(ctx):
        where = {"file": kept[-1].filename, "line": kept[-1].lineno} if kept else None
        terminal.emit_json({"ok": False, "exit": int(ExitCode.KERNEL), "errors": [], "exception": message, "where": where})
        return int(ExitCode.KERNEL)
    click.echo("".join(traceback.format_list(kept)).rstrip("\n"), err=True)
    click.echo(terminal.paint(f"error: {message}"), err=True)
    return int(ExitCode.KERNEL)


def _bug(failure: Exception, ctx: click.Context) -> int:
    where = failure.where if isinstance(failure, CompilerBug) else "ptc"
    words = str(failure) if isinstance(failure, CompilerBug) else f"{type(failure).__name__}: {failure}"
    folder = write_reproducer(failure, where, sys.argv[1:], ctx.find_root().meta.get("kernel files", {}))
    if sarif.is_wanted(ctx):
        terminal.emit_document(sarif.document([], [sarif.plain(f"a mistake in pypto_dsl (in {where}): {words}; reproducer: {folder}")]))
        return int(ExitCode.BUG)
    if terminal.wants_json(ctx):
        bug = {"pass": where, "message": words, "reproducer": str(folder)}
        terminal.emit_json({"ok": False, "exit": int(ExitCode.BUG), "errors": [], "bug": bug})
        return int(ExitCode.BUG)
    click.echo(terminal.paint(f"bug: this is a mistake in pypto_dsl, not in your kernel (in `{where}`)"), err=True)
    click.echo(f"  {words}", err=True)
    click.echo(f"   = reproducer: {folder}", err=True)
    click.echo("   = please report it, with that folder", err=True)
    return int(ExitCode.BUG)


def write_reproducer(failure: Exception, where: str, arguments: Sequence[str], files: Mapping[str, str]) -> Path:
    """A folder with the command, the versions, the traceback and the kernel's files; its name depends on its contents.

    The command names the kernel's copy, so it repeats the failure when it is run in the folder.
    """
    trace = "".join(traceback.format_exception(failure))
    names = {Path(name).name for name in files}
    here = [Path(a).name if Path(a.partition(".py:")[0] + ".py" * (".py:" in a)).name in names else a for a in arguments]
    contents = {
        "command.txt": f"ptc {shlex.join(here)}\n",
        "where.txt": where + "\n",
        "traceback.txt": trace,
        "versions.json": json.dumps(versions(), indent=2) + "\n",
        **{Path(name).name: text for name, text in files.items()},
    }
    digest = hashlib.sha256("\0".join(f"{k}\0{v}" for k, v in sorted(contents.items())).encode()).hexdigest()[:12]
    folder = cache_folder() / "reproducers" / digest
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder
