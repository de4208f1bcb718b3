"""`ptc ops`: the operation table as a list, or one operation with its signature, documentation, dtypes and bounds."""
from __future__ import annotations

import inspect
import re
from typing import Any

import click

from pypto_dsl import namespace
from pypto_dsl.cli import terminal
from pypto_dsl.compiler import conformance, targets
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.ops import REGISTRY, OpDefinition
from pypto_dsl.compiler.ops.arguments import signature_text
from pypto_dsl.frontend.spellings import TEXT_ONLY
from pypto_dsl.frontend.tensor import Tensor


def describe(definition: OpDefinition) -> dict[str, Any]:
    """One operation as plain data.

    ``targets`` maps a target to the dtypes on which it is native there, ``conformance`` to the bound, or the refusal, of each dtype;
    ``instead`` is what a kernel writes for an operation of the text form alone.
    """
    internal = definition.name in TEXT_ONLY
    signature, doc = (signature_text(definition), definition.doc) if internal else (
        namespace.public_signature(definition.name), namespace.public_doc(definition.name))
    native = {target.name: sorted(target.ops.get(definition.name, ())) for target in targets.available()}
    return {"name": definition.name, "family": definition.family, "signature": signature, "doc": doc,
            "instead": TEXT_ONLY[definition.name].format(x="x") if internal else None,
            "dtypes": None if definition.dtypes is None else [d.name for d in definition.dtypes],
            "primitive": definition.is_primitive, "bounds_ulp": dict(definition.bounds), "results": list(definition.results),
            "targets": {name: dtypes for name, dtypes in native.items() if dtypes},
            "conformance": {t.name: said for t in targets.available() if (said := conformance.support(definition, t))}}


@click.command("ops")
@click.argument("name", required=False)
@click.option("--family", metavar="FAMILY",
              help="Only operations of this family: elementwise, compare, reduce, row, matmul, cast, layout, ...")
@terminal.json_option
def command(name: str | None, family: str | None, as_json: bool) -> None:
    """List the operations, or show one with its signature and documentation.

    An operation that a target does not have natively is built there from simpler ones, or refused with a code.

    \b
      ptc ops
      ptc ops softmax
      ptc ops --family reduce
    """
    if name is not None:
        _show(name, as_json)
        return
    families = sorted({d.family for d in REGISTRY.values()})
    if family is not None and family not in families:
        raise click.BadParameter(f"there is no family {family}; families are {', '.join(families)}", param_hint="--family")
    chosen = [d for _, d in sorted(REGISTRY.items()) if family in (None, d.family) and d.name not in TEXT_ONLY]
    if as_json:
        terminal.emit_json({"ok": True, "operations": [describe(d) for d in chosen]})
        return
    rows = [(d.name, d.family, summary(namespace.public_doc(d.name))) for d in chosen]
    click.echo(terminal.table(rows, head=("operation", "family", "what it computes")))


def summary(doc: str) -> str:
    """The first sentence of a docstring on one line, without its stop: what a full stop and white space end, in no code and no ellipsis."""
    paragraph = " ".join(doc.split("\n\n")[0].split())
    return re.split(r"(?<![.])[.]\s+(?=[A-Z`\"(])|[.]$", paragraph, maxsplit=1)[0]


def _show(name: str, as_json: bool) -> None:
    definition = REGISTRY.get(name)
    if definition is None:
        _show_language(name, as_json)
        return
    data = describe(definition)
    if as_json:
        terminal.emit_json({"ok": True, "operation": data})
        return
    click.echo(f"{'' if data['instead'] else 'pypto.'}{data['signature']}\n")
    click.echo(data["doc"])
    if data["instead"]:
        click.echo(f"\nin the text form alone; a kernel writes {data['instead']}")
    click.echo(f"\nfamily: {definition.family}")
    click.echo(f"dtypes: {', '.join(data['dtypes'] or ['all'])}")
    if data["bounds_ulp"]:
        click.echo("largest error: " + ", ".join(f"{bound:g} ulp in {dtype}" for dtype, bound in data["bounds_ulp"].items()))
    click.echo("a primitive: every target has it or refuses it" if definition.is_primitive
               else "built from simpler operations where a target does not have it")
    if data["targets"]:
        click.echo("\nnative on")
        click.echo(terminal.table([(f"  {target}", ", ".join(dtypes)) for target, dtypes in data["targets"].items()]))
    if data["conformance"]:
        click.echo("\nlargest error by dtype of the first operand (devices: emulated)")
        rows = [(f"  {target}" if not i else "", line) for target, dtypes in data["conformance"].items()
                for i, line in enumerate(conformance.grouped(dtypes))]
        click.echo(terminal.table(rows))


PAGE = "docs/language.md"


def of_language(name: str) -> dict[str, str]:
    """A public name that is no operation of the table, or a method of tensors: how it is called, and what it says of itself.

    A usage error for what is neither, with what the language says instead, or the nearest name.
    """
    if name in namespace.names():
        found = namespace.lookup(name)
        called = callable(found) and not isinstance(found, type)
        text = inspect.getdoc(getattr(found, "func", found)) if called or isinstance(found, type) else None  # not that of `partial`
        return {"name": name, "signature": f"pypto.{namespace.public_signature(name) if called else name}", "doc": text or "", "page": PAGE}
    method = getattr(Tensor, name, None) if not name.startswith("_") else None
    if method is not None:
        called = callable(method)
        signature = namespace.public_signature(name, method).replace("(self, ", "(").replace("(self)", "()") if called else name
        return {"name": name, "signature": f"x.{signature}", "doc": inspect.getdoc(method) or "", "page": PAGE}
    try:
        namespace.lookup(name)
    except namespace.UnknownName as unknown:
        _, colon, reason = unknown.diagnostic.message.partition(": ")
        help = unknown.diagnostic.help.replace("`pypto.", "`")
        instead = "" if "dir(pypto)" in help else f"; {help}"  # where nothing is near
        raise click.BadParameter(f"there is no operation {name}{colon}{reason}{instead}", param_hint="NAME") from None
    raise CompilerBug("ptc ops", f"{name} is a public name that is not listed")


def _show_language(name: str, as_json: bool) -> None:
    data = of_language(name)
    if as_json:
        terminal.emit_json({"ok": True, "language": data})
        return
    click.echo(data["signature"] + "\n")
    if data["doc"]:
        click.echo(data["doc"] + "\n")
    click.echo(f"part of the language, which {data['page']} describes")
