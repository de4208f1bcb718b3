"""`ptc doctor`: versions, compilers and SDKs of this machine, and what each target can do with them."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from pypto_dsl.cli import terminal
from pypto_dsl.cli.targets import ability, compiler_found
from pypto_dsl.cli.versions import installed, versions
from pypto_dsl.compiler import targets
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.runtime.cpu import jit
from pypto_dsl.runtime.cpu.pool import usable_processors
from pypto_dsl.runtime.toolchain import INSTALL_HINT, cache_folder


def findings() -> dict[str, Any]:
    """Everything that is reported, as plain data."""
    compiler = compiler_found()
    cann = os.environ.get("ASCEND_HOME_PATH") or os.environ.get("ASCEND_TOOLKIT_HOME")
    return {"versions": versions(), "cpu": _cpu(), "compiler": compiler, "ttnn": installed("ttnn"),
            "cann": cann if cann and Path(cann).is_dir() else None,
            "cache": {"folder": str(cache_folder()), "writable": _writable(cache_folder())},
            "targets": {"interpreter": "run"} | {t.name: ability(t.family, compiler is not None) for t in targets.available()}}


def _cpu() -> dict[str, Any]:
    """The feature level that kernels are compiled for here, and how many processors may work on one call."""
    try:
        machine = jit.machine()
    except KernelError as refused:
        return {"level": None, "reason": refused.diagnostic.message}
    return {"level": machine.level.name, "name": machine.cpu, "triple": machine.triple, "processors": usable_processors()}


def _writable(folder: Path) -> bool:
    existing = next((p for p in (folder, *folder.parents) if p.exists()), None)
    return existing is not None and os.access(existing, os.W_OK)


@click.command("doctor")
@terminal.json_option
def command(as_json: bool) -> None:
    """Report what is installed and what each target can do on this machine.

    Nothing is changed and nothing is downloaded. Running on a device is not offered here: sources are written for the vendors' own
    toolchains, and executed in emulators of their APIs.

    \b
      ptc doctor
      ptc doctor --json
    """
    found = findings()
    if as_json:
        terminal.emit_json({"ok": True, **found})
        return
    click.echo(terminal.table([(name, version or "missing") for name, version in found["versions"].items()]))
    compiler = found["compiler"]
    cpu = found["cpu"]
    click.echo("\n" + terminal.table([
        ("processor", f"{cpu['name']}, level {cpu['level']}, {cpu['processors']} in use" if cpu["level"] else cpu["reason"]),
        ("C++ compiler", f"{compiler['version']} ({compiler['command']})" if compiler else f"none: {INSTALL_HINT}"),
        ("ttnn", found["ttnn"] or "not installed: needed only to type-check TT-Metal sources against its headers"),
        ("CANN", found["cann"] or "not found: needed only to compile Ascend C sources for a device"),
        ("cache", found["cache"]["folder"] + ("" if found["cache"]["writable"] else " (not writable: nothing is kept)")),
    ]))
    click.echo("\n" + terminal.table(list(found["targets"].items()), head=("target", "here it can")))
