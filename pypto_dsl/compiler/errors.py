"""The one error record: code, message, spans, notes and help, rendered for terminals, JSON and exceptions alike."""
from __future__ import annotations

import linecache
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from pypto_dsl.compiler import catalogue
from pypto_dsl.compiler.span import Span


@dataclass(frozen=True)
class Label:
    """A span with the text that stands beside its caret."""

    span: Span
    text: str = ""


@dataclass(frozen=True)
class Diagnostic:
    """What is wrong, where, and what to write instead.

    ``code`` is a row of `pypto_dsl.compiler.catalogue`; ``primary`` carries the caret; ``fix`` is replacement text for
    the primary span, set only when applying it literally gives a kernel that compiles.
    """

    code: str
    message: str
    primary: Label | None = None
    others: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str = ""
    fix: str | None = None
    severity: str = "error"
    fields: dict[str, Any] = field(default_factory=dict, compare=False)

    def render(self) -> str:
        """The terminal form: header, one frame with caret per label, notes, help."""
        lines = [f"{self.severity}[{self.code}]: {self.message}"]
        for label in (self.primary, *self.others):
            if label is not None:
                lines += _frame(label, arrow="-->" if label is self.primary else ":::")
        lines += [f"   = note: {note}" for note in self.notes]
        if self.help:
            lines.append(f"   = help: {self.help}")
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """The same record as plain data; the schema is part of the public interface."""

        def span(label: Label) -> dict[str, Any]:
            s = label.span
            return {"file": s.file, "line": s.line, "column": s.column, "end_line": s.end_line or s.line,
                    "end_column": s.end_column or s.column, "text": label.text}

        return {
            "code": self.code, "severity": self.severity, "message": self.message,
            "primary": span(self.primary) if self.primary else None,
            "others": [span(o) for o in self.others],
            "notes": list(self.notes), "help": self.help, "fix": self.fix, "fields": self.fields,
        }


def _frame(label: Label, arrow: str) -> list[str]:
    span = label.span
    source = linecache.getline(span.file, span.line).rstrip("\n")
    number = str(span.line)
    pad = " " * len(number)
    head = f"{pad} {arrow} {span.file}:{span.line}:{span.column}"
    if not source:
        return [head + (f"  {label.text}" if label.text else "")]
    stop = span.end_column if span.end_column and (span.end_line or span.line) == span.line else len(source) + 1
    width = max(1, stop - span.column)
    marker = " " * (span.column - 1) + "^" * width + (f" {label.text}" if label.text else "")
    return [head, f"{pad} |", f"{number} | {source}", f"{pad} | {marker}"]


MOST_SHOWN = 40  # characters of an object's own text in a message


def value_text(value: object) -> str:
    """A value that a message says it got: `None`, `str 'x'`, `the module math`, `a value of type Odd`; no addresses, no long texts.

    What stands for a name without a value raises instead, in a method ``__refuse__`` of its type: why there is none says more.
    """
    if value is None:
        return "None"
    if (refuse := getattr(type(value), "__refuse__", None)) is not None:
        refuse(value)
    if isinstance(value, type):
        return f"the type {value.__name__}"
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    name = type(value).__name__
    if isinstance(value, int) and value.bit_length() > 128:  # Python refuses to write the longest ones out
        return f"an int of {value.bit_length()} bits"
    shown = "" if callable(value) or type(value).__repr__ is object.__repr__ else repr(value)
    if not shown or len(shown) > MOST_SHOWN or "\n" in shown or shown.startswith("<"):
        return f"a value of type {name}"
    return f"{name} {shown}"


class KernelError(Exception):
    """A user's mistake, or a limit of a target, as one Diagnostic. Never raised for our own bugs."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.render())
        self.diagnostic = diagnostic

    def __reduce__(self) -> tuple[type[KernelError], tuple[Diagnostic]]:
        """Between processes an error travels as its Diagnostic, whatever more a subclass was made from."""
        return KernelError, (self.diagnostic,)

    @property
    def code(self) -> str:
        return self.diagnostic.code


class CompilerBug(Exception):
    """Our own mistake: names the pass, and the driver writes a reproducer beside it (exit code 70)."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"internal error in `{where}`: {message}")
        self.where = where


def advice(code: str) -> str:
    """What the page of a code says to do, in one sentence; "" for a code without a page."""
    entry = catalogue.find(code)
    return "" if entry is None else entry.advice


def error(code: str, message: str, span: Span | None = None, *, label: str = "", others: tuple[Label, ...] = (),
          notes: tuple[str, ...] = (), help: str = "", fix: str | None = None, **fields: Any) -> KernelError:
    """Build the KernelError of one mistake; raise what it returns. Without ``help`` it is what the code's page says to do."""
    help = help or advice(code)
    primary = Label(span, label) if span is not None else None
    return KernelError(Diagnostic(code, message, primary, others, notes, help, fix, "error", fields))
