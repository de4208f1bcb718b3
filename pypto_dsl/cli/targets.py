"""`ptc targets`: the targets, what they are, and whether their code can be executed on this machine."""
from __future__ import annotations

from typing import Any

import click

from pypto_dsl.cli import kernels, terminal
from pypto_dsl.compiler import targets
from pypto_dsl.compiler.ops import REGISTRY


def describe(name: str) -> dict[str, Any]:
    """One target as plain data."""
    target = targets.load(name)
    return {"name": name, "title": target.title, "family": target.family, "operations": len(target.ops),
            "limits": dict(target.table("limits")), "memory": dict(target.table("memory"))}


@click.command("targets")
@click.argument("name", required=False, callback=kernels.checked_target(targets.names))
@terminal.json_option
def command(name: str | None, as_json: bool) -> None:
    """List the targets and what they can do here.

    With NAME, show one target: its limits, its memories, and the operations it has natively with their dtypes.
    """
    if name is None:
        rows = [describe(n) for n in targets.names()]
        if as_json:
            terminal.emit_json({"ok": True, "targets": rows})
            return
        click.echo(terminal.table([(r["name"], r["family"], r["title"]) for r in rows], head=("target", "family", "what it is")))
        return
    target = targets.load(name)
    native = {op: sorted(dtypes) for op, dtypes in sorted(target.ops.items())}
    if as_json:
        terminal.emit_json({"ok": True, "target": describe(name) | {"native": native}})
        return
    click.echo(f"{target.name}: {target.title} (family {target.family})")
    for title in ("limits", "memory"):
        facts = target.table(title)
        if facts:
            click.echo(f"\n{title}")
            click.echo(terminal.table([(f"  {key}", _plain(value)) for key, value in facts.items()]))
    click.echo("\nnative operations (all others are built from these, or refused)")
    click.echo(terminal.table([(f"  {op}", ", ".join(dtypes)) for op, dtypes in native.items()]))
    missing = sorted(n for n, d in REGISTRY.items() if d.is_primitive and n not in target.ops and d.family not in ("generator", "layout"))
    if missing:
        click.echo(f"\nprimitives it does not have: {', '.join(missing)}")


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return "yes" if value is True else "no" if value is False else str(value)
