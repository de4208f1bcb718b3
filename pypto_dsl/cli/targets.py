"""`ptc targets`: the targets, what they are, and how kernels for them are executed on this machine."""
from __future__ import annotations

from typing import Any

import click

from pypto_dsl.cli import kernels, terminal
from pypto_dsl.compiler import targets
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.frontend.targets import DEVICES, EMULATED, INTERPRETER
from pypto_dsl.runtime.toolchain import find_compiler

# What a target's family can do here, by whether a host compiler was found.
ABILITIES = {
    "llvm": ("compile and run", "compile and run"),
    "ascend": ("write sources, and run them in the emulator", "write sources; the emulator needs a C++ compiler"),
    "ttmetal": ("write sources, and run them in the emulator", "write sources; the emulator needs a C++ compiler"),
    "none": ("be lowered to Tile IR", "be lowered to Tile IR"),
}
INTERPRETED = "NumPy, one operation after the other: the meaning of a kernel"


def compiler_found() -> dict[str, str] | None:
    """The C++ compiler that builds emulated kernels: its command and version, None when there is none."""
    try:
        compiler = find_compiler()
    except KernelError:
        return None
    return {"command": " ".join(compiler.command), "version": compiler.version}


def ability(family: str, compiler: bool) -> str:
    """What a target of this family can do here, with a host compiler or without."""
    with_compiler, without = ABILITIES[family]
    return with_compiler if compiler else without


def describe(target: targets.Target) -> dict[str, Any]:
    """One target as plain data; ``run_as`` is the name under which its kernels run on this machine, if they do."""
    run_as = target.name + EMULATED if target.family in DEVICES else target.name if target.family == "llvm" else None
    return {"name": target.name, "title": target.title, "family": target.family, "run_as": run_as, "operations": len(target.ops),
            "limits": dict(target.table("limits")), "memory": dict(target.table("memory"))}


@click.command("targets")
@click.argument("name", required=False, callback=kernels.checked_target(targets.names))
@terminal.json_option
def command(name: str | None, as_json: bool) -> None:
    """List the targets and what they can do here.

    With NAME, or the path of a target's file, show one target: its limits, its memories, and the operations it has natively with their
    dtypes. `ptc run --target` takes the names under `run it as`, `ptc compile --target` those under `target`.

    \b
      ptc targets
      ptc targets ascend-a2
      ptc targets chips/mine.toml
    """
    if name is None:
        _list(as_json)
        return
    target = targets.load(name)
    native = {op: sorted(dtypes) for op, dtypes in sorted(target.ops.items())}
    if as_json:
        terminal.emit_json({"ok": True, "target": describe(target) | {"native": native}})
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


def _list(as_json: bool) -> None:
    compiler = compiler_found() is not None
    rows = [describe(t) | {"here": ability(t.family, compiler)} for t in targets.available()]
    if as_json:
        terminal.emit_json({"ok": True, "targets": rows, "interpreter": {"run_as": INTERPRETER, "title": INTERPRETED}})
        return
    shown = [(r["name"], r["family"], r["run_as"] or "-", r["here"], r["title"]) for r in rows]
    shown.append((INTERPRETER, "-", INTERPRETER, "run", INTERPRETED))
    click.echo(terminal.table(shown, head=("target", "family", "run it as", "here it can", "what it is")))


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return "yes" if value is True else "no" if value is False else str(value)
