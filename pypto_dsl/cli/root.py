"""The command group: commands by name, loaded when they are called, and every error turned into its exit code."""
from __future__ import annotations

import difflib
import importlib
import os
from typing import Any, cast

import click

from pypto_dsl.cli import outcome
from pypto_dsl.cli.versions import VERSION

# Command -> module that defines `command`. Loaded on use: `ptc --version` does not load the compiler.
COMMANDS = {
    "run": "pypto_dsl.cli.run",
    "check": "pypto_dsl.cli.check",
    "compile": "pypto_dsl.cli.compile",
    "explain": "pypto_dsl.cli.explain",
    "opt": "pypto_dsl.cli.opt",
    "ops": "pypto_dsl.cli.ops",
    "targets": "pypto_dsl.cli.targets",
    "promote": "pypto_dsl.cli.promote",
    "cache": "pypto_dsl.cli.cache",
    "doctor": "pypto_dsl.cli.doctor",
    "report": "pypto_dsl.cli.report",
    "completion": "pypto_dsl.cli.completion",
}
# One line each, so that the list of commands needs no command loaded; a test holds them against the commands' own help.
SUMMARIES = {
    "run": "Run a file's kernel on generated inputs and report numbers, error and time.",
    "check": "Hold a kernel on a target against a reference; exit code 3 when an element is wrong.",
    "compile": "Write the sources of a kernel for a target, with manifest and source map.",
    "explain": "Explain an error code, or what the compiler made of a kernel and why.",
    "opt": "Run single passes on a .ptir file and print the result.",
    "ops": "List the operations, or show one with its signature and documentation.",
    "targets": "List the targets and what they can do here.",
    "promote": "Show the dtype that a combination of dtypes promotes to, and why.",
    "cache": "List, clear or question the compiled kernels kept on disk.",
    "doctor": "Report what is installed and what each target can do on this machine.",
    "report": "Write an archive with a kernel and all that was made of it, to attach to a bug report.",
    "completion": "Print the script that makes a shell complete ptc's commands and options.",
}

EPILOG = """\b
Exit codes:
  0   it worked
  1   an error in the kernel, or a limit of the target
  2   the command line itself is wrong
  3   a numeric check failed
  4   a compiler or SDK that is needed was not found
  70  a bug in pypto_dsl; a reproducer has been written

\b
Environment:
  NO_COLOR       plain output on terminals too
  PTC_CACHE_DIR  where compiled kernels are kept
  PTC_CACHE_SIZE how much of them, "500M"; 1 GiB when not set, 0 for no limit
  PTC_PROFILE    1: where the time of each compilation went, on stderr
  PTC_CXX        the C++ compiler that the emulators use
"""


class Ptc(click.Group):
    """The group of all commands. Errors of every command end here."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order in which a user meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Load a command's module when it is called."""
        if name not in COMMANDS:
            return None
        return cast(click.Command, importlib.import_module(COMMANDS[name]).command)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest command where there is none of a name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            close = difflib.get_close_matches(args[0], COMMANDS, 1)
            if not close:
                raise
            raise click.UsageError(f"there is no command {args[0]}; did you mean {close[0]}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from their summaries."""
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; anything it raises becomes a message and an exit code."""
        try:
            with outcome.warnings_shown():
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as failure:
            ctx.exit(outcome.report(failure, ctx))


@click.group(cls=Ptc, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, "-V", "--version", prog_name="ptc", message="%(prog)s %(version)s")
def main() -> None:
    """Compile kernels written in PyPTO's tile language: run them on this machine's CPU, or write Ascend C and TT-Metal C++.

    A KERNEL is a Python file with one `@pypto.jit` function (`FILE.py`, or `FILE.py:NAME` where it has several), or a graph in
    text form (`FILE.ptir`). `ptc COMMAND --help` describes a command.

    \b
      ptc run examples/softmax.py
      ptc compile examples/softmax.py --target ascend-a2 -o out/
      ptc explain examples/softmax.py
    """
    if os.environ.get("NO_COLOR"):
        click.get_current_context().color = False
