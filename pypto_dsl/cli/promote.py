"""`ptc promote`: the dtype of a combination of dtypes under a rule set, the way through the lattice, and the other rule sets."""
from __future__ import annotations

import click

from pypto_dsl.cli import terminal
from pypto_dsl.compiler.promotion import DEFAULT, RULE_SETS
from pypto_dsl.compiler.promotion.explain import explain


@click.command("promote")
@click.argument("dtypes", nargs=-1, required=True, metavar="DTYPE...")
@click.option("--rules", type=click.Choice(list(RULE_SETS)), default=DEFAULT, show_default=True, help="The promotion rule set.")
@terminal.json_option
def command(dtypes: tuple[str, ...], rules: str, as_json: bool) -> None:
    """Show the dtype that a combination of dtypes promotes to, and why.

    A DTYPE is a short name (f16, bf16, i32), PyPTO's name (DT_FP16), one with a star for a weak type (f32*), or int or float for a
    Python number. Operands are combined from the left, as an expression would be.

    \b
    ptc promote f16 bf16 --rules tf-safe
    ptc promote i8 float
    """
    explanation = explain(dtypes, rules)
    if as_json:
        terminal.emit_json({"ok": True, "promotion": explanation.data()})
    else:
        click.echo(explanation.text())
