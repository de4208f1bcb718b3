"""The catalogue of errors: one entry per code, read from the TOML files of this folder, one file per family.

A file begins with `[family]` (``prefix``, ``title``); every other table is an entry named by its code:

    [PT203]
    title = "an operand of a kind the operation does not take"
    cause = "..."                  # when this error is raised, in the user's words
    fix = "..."                    # what to write instead
    wrong = "out[:] = ..."         # the body of a kernel over `x` and `out` (or a whole program) that raises it
    right = "out[:] = ..."         # the same, mended
    exit = 1                       # what `ptc` exits with (default 1)

Tests run every `wrong` and every `right`, so a page cannot say what is not so.
"""
from __future__ import annotations

import difflib
import re
import textwrap
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# What an example may use: the arrays and names that stand before it.
PRELUDE = """\
import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)
"""
FIELDS = frozenset({"title", "cause", "fix", "wrong", "right", "exit"})
WIDTH = 88


@dataclass(frozen=True)
class Entry:
    """One code: its title, when it is raised, what to do, an example that raises it and the same example mended."""

    code: str
    family: str
    title: str
    cause: str
    fix: str
    wrong: str = ""
    right: str = ""
    exit: int = 1

    def page(self) -> str:
        """The page that `ptc explain CODE` prints."""
        parts = [f"{self.code}: {self.title}", _paragraphs(self.cause)]
        if self.wrong:
            parts += ["Raised by:", textwrap.indent(self.wrong.strip("\n"), "    ")]
        parts.append(_paragraphs(self.fix))
        if self.right:
            parts += ["Mended:", textwrap.indent(self.right.strip("\n"), "    ")]
        return "\n\n".join(parts) + "\n"

    @property
    def advice(self) -> str:
        """The first sentence of the fix, as a message's help line has it."""
        text = " ".join(self.fix.split())
        first = re.split(r"(?<=[^.])\.\s+(?=[A-Z`])|\.$", text, maxsplit=1)[0]
        return first[0].lower() + first[1:] if first[1:2].islower() else first

    def data(self) -> dict[str, str | int]:
        """The entry as plain data, for ``--json``."""
        return {"code": self.code, "family": self.family, "title": self.title, "cause": self.cause.strip(), "fix": self.fix.strip(),
                "wrong": self.wrong.strip("\n"), "right": self.right.strip("\n"), "exit": self.exit}


@dataclass(frozen=True)
class Family:
    """The codes that begin with ``prefix`` ("PT2")."""

    prefix: str
    title: str
    entries: tuple[Entry, ...]


def program(snippet: str) -> str:
    """The whole program of an example: the prelude, and around the body of a kernel the kernel and its call."""
    snippet = snippet.strip("\n")
    if "pypto.jit" in snippet or "import " in snippet:
        return f"{PRELUDE}\n{snippet}\n"
    body = textwrap.indent(snippet, "    ")
    return f"{PRELUDE}\n\n@pypto.jit\ndef kernel(x: pypto.Tensor(), out: pypto.Tensor()):\n{body}\n\n\nkernel(x, out)\n"


def family_from(data: Mapping[str, Mapping[str, object]]) -> Family:
    """A Family from parsed TOML. ValueError for a field that does not exist, a missing one, or a code of another family."""
    head = data["family"]
    prefix, title = str(head["prefix"]), str(head["title"])
    entries = []
    for code, fields in data.items():
        if code == "family":
            continue
        unknown = set(fields) - FIELDS
        missing = {"title", "cause", "fix"} - set(fields)
        if unknown or missing or not code.startswith(prefix):
            raise ValueError(f"catalogue entry {code}: unknown {sorted(unknown)}, missing {sorted(missing)}, family {prefix}")
        texts = {name: str(fields.get(name, "")) for name in ("title", "cause", "fix", "wrong", "right")}
        exit_code = fields.get("exit", 1)
        if not isinstance(exit_code, int):
            raise ValueError(f"catalogue entry {code}: exit is {exit_code!r}")
        entries.append(Entry(code, title, **texts, exit=exit_code))
    return Family(prefix, title, tuple(sorted(entries, key=lambda e: e.code)))


@cache
def families() -> tuple[Family, ...]:
    """Every family, in order of its codes."""
    files = Path(__file__).parent.glob("*.toml")
    return tuple(sorted((family_from(tomllib.loads(f.read_text(encoding="utf-8"))) for f in files), key=lambda f: f.prefix))


@cache
def entries() -> Mapping[str, Entry]:
    """Code -> entry, in order."""
    return {entry.code: entry for family in families() for entry in family.entries}


def find(code: str) -> Entry | None:
    """The entry of a code, written in any case; None when there is none."""
    return entries().get(code.upper())


def near(code: str) -> list[str]:
    """Up to three codes that look like ``code``, nearest first; where none does, the first of its family, else of all."""
    found = difflib.get_close_matches(code.upper(), entries(), 3)
    return found or [c for c in entries() if c.startswith(code.upper()[:3])][:3] or list(entries())[:3]


def _paragraphs(text: str) -> str:
    return "\n\n".join(textwrap.fill(" ".join(p.split()), WIDTH) for p in text.strip().split("\n\n"))
