"""`ptc completion`: the script by which a shell completes commands, options and file names of ptc."""
from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_PTC_COMPLETE"  # what click derives from the name of the program
SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete ptc's commands and options.

    \b
      eval "$(ptc completion bash)"                               in ~/.bashrc
      eval "$(ptc completion zsh)"                                in ~/.zshrc
      ptc completion fish > ~/.config/fish/completions/ptc.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click knows no completion for {shell}")
    made = kind(ctx.find_root().command, {}, "ptc", VARIABLE)
    click.echo(made.source_template % made.source_vars())
