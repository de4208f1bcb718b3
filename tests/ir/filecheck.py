"""A small FileCheck: `RUN:` says what to do with a `.ptir` file, `CHECK` lines say what the printed result must hold.

    # RUN: promote canonicalize --target llvm-cpu
    # CHECK: %r = add(%x, %[[one:\\d+]])          a line below the last match holds this; [[name:regex]] binds, [[name]] repeats
    # CHECK-NEXT: return %r                       the very next line
    # CHECK-NOT: exp                              no line before the next match (or the end) holds this
    # ERROR: PT606 its result is f32[9]           instead of CHECK: reading or a pass raises this

In patterns `{{regex}}` is a regular expression, everything else stands for itself; white space matches white space.
"""
from __future__ import annotations

import re
from dataclasses import dataclass

_DIRECTIVE = re.compile(r"^#\s*(RUN|CHECK|CHECK-NEXT|CHECK-NOT|ERROR):\s*(.*?)\s*$")
_PART = re.compile(r"\{\{(?P<regex>.*?)\}\}|\[\[(?P<bind>\w+):(?P<as>.*?)\]\]|\[\[(?P<use>\w+)\]\]")


@dataclass(frozen=True)
class Directive:
    """One line of directions: its kind, its text and its line number in the file."""

    kind: str
    text: str
    line: int


@dataclass(frozen=True)
class Script:
    """What a file asks for: passes in order, the target, and the checks."""

    passes: tuple[str, ...]
    target: str
    checks: tuple[Directive, ...]


def script(text: str) -> Script:
    """The directions of a file; ValueError when it says nothing to run, or nothing to check."""
    found = [Directive(m[1], m[2], i) for i, line in enumerate(text.splitlines(), 1) if (m := _DIRECTIVE.search(line))]
    runs = [d for d in found if d.kind == "RUN"]
    if len(runs) != 1 or len(found) < 2:
        raise ValueError("a test needs one RUN line and at least one CHECK or ERROR line")
    words, target = runs[0].text.split(), "llvm-cpu"
    if "--target" in words:
        at = words.index("--target")
        target = words[at + 1]
        del words[at:at + 2]
    return Script(tuple(words), target, tuple(d for d in found if d.kind != "RUN"))


def compiled(pattern: str, bound: dict[str, str]) -> re.Pattern[str]:
    """The regular expression of a pattern."""
    regex, at = "", 0
    for part in _PART.finditer(pattern):
        regex += _literal(pattern[at:part.start()])
        if part["regex"] is not None:
            regex += f"(?:{part['regex']})"
        elif part["bind"] is not None:
            regex += f"(?P<{part['bind']}>{part['as']})"
        else:
            regex += re.escape(bound[part["use"]])
        at = part.end()
    return re.compile(regex + _literal(pattern[at:]))


def _literal(text: str) -> str:
    return re.sub(r"(\\ )+", r"\\s+", re.escape(text))


def check(directives: tuple[Directive, ...], printed: str) -> str:
    """What is wrong with the printed text, "" when every direction holds."""
    lines = printed.splitlines()
    bound: dict[str, str] = {}
    at = 0
    forbidden: list[Directive] = []
    for directive in directives:
        if directive.kind == "CHECK-NOT":
            forbidden.append(directive)
            continue
        regex = compiled(directive.text, bound)
        candidates = range(at, min(at + 1, len(lines))) if directive.kind == "CHECK-NEXT" else range(at, len(lines))
        found = next(((i, m) for i in candidates if (m := regex.search(lines[i]))), None)
        if found is None:
            return f"line {directive.line}: {directive.kind}: {directive.text}\nis not in\n" + "\n".join(lines[at:])
        wrong = _forbidden(forbidden, lines[at:found[0]], bound)
        if wrong:
            return wrong
        forbidden = []
        bound.update(found[1].groupdict())
        at = found[0] + 1
    return _forbidden(forbidden, lines[at:], bound)


def _forbidden(directives: list[Directive], lines: list[str], bound: dict[str, str]) -> str:
    for directive in directives:
        regex = compiled(directive.text, bound)
        for line in lines:
            if regex.search(line):
                return f"line {directive.line}: CHECK-NOT: {directive.text}\nis in\n{line}"
    return ""
