"""What every file keeps to: its length, its opening sentence, documented public names, and words that have no place here."""
from __future__ import annotations

import ast
import re
import subprocess

import pytest
from tree import ROOT, modules, tree

MOST_LINES = 600
# Folders of text that we wrote; generated and recorded data is not text.
TEXT = (".py", ".toml", ".lark", ".md", ".h", ".hpp", ".cpp", ".sh", ".yaml", ".cfg", "run")
GENERATED = ("docs/operations.md", "docs/errors.md", "docs/accuracy.md", "docs/conformance.md")
# Unfinished work, and what only this machine or its makers know. Split, so that this file may hold them.
FORBIDDEN = {
    "unfinished": ["TO" "DO", "FIX" "ME", "XX" "X:", "NotImplemented" "Error", "not imple" "mented", "Lorem ip" "sum"],
    "this machine": ["/wo" "rk/", "/ro" "ot/", "/ho" "me/", "/op" "t/venv", "farm" "-", ".libr" "ary/", "site-pack" "ages/pypto"],
}


def tracked() -> list[str]:
    """Every file that git knows or would add, links aside."""
    done = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True, cwd=ROOT)
    names = done.stdout.split("\n") if done.returncode == 0 else [p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*")]
    return sorted(n for n in names if n and (ROOT / n).is_file() and not (ROOT / n).is_symlink())


FILES = [n for n in tracked() if n.endswith(TEXT) and n not in GENERATED]


@pytest.mark.parametrize("name", [n for n in FILES if n.endswith((".py", ".h", ".hpp", ".cpp", ".lark", ".sh"))])
def test_no_file_is_too_long(name):
    lines = len((ROOT / name).read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES, f"{name} has {lines} lines; split it by what its parts are about"


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_forbidden_words(kind):
    found = [f"{name}:{number}: {line.strip()[:80]}" for name in FILES
             for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
             for word in FORBIDDEN[kind] if word in line]
    assert not found, "\n".join(found)


def test_no_module_with_a_name_that_says_nothing():
    assert not [m for m in modules() if re.search(r"(^|[._])(utils?|helpers?|common|misc)($|[._])", m)]


@pytest.mark.parametrize("module", sorted(modules()))
def test_a_module_opens_with_a_sentence(module):
    doc = ast.get_docstring(tree(module))
    assert doc, f"{module} has no docstring"
    first = doc.split("\n\n")[0].replace("\n", " ")
    assert first.endswith((".", ":")) and len(first) < 400, f"{module}: {first!r}"


def public(module: str) -> list[ast.FunctionDef | ast.ClassDef]:
    """The public functions and classes of a module, of modules that are no detail of their package."""
    return [n for n in tree(module).body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and not n.name.startswith("_")]


# The meaning of an operation in NumPy: its documentation is the operation's own docstring.
REFERENCES = "pypto_dsl.compiler.ops.reference"


@pytest.mark.parametrize("module", [m for m in sorted(modules()) if not m.startswith(REFERENCES)])
def test_public_names_are_documented(module):
    missing = [f"line {n.lineno}: {n.name}" for n in public(module) if not ast.get_docstring(n) and not n.name.endswith("_reference")]
    assert not missing


def codes_raised(function: ast.FunctionDef) -> set[str]:
    """Codes that a function raises itself."""
    return {a.value for n in ast.walk(function) if isinstance(n, ast.Raise) and n.exc is not None for a in ast.walk(n.exc)
            if isinstance(a, ast.Constant) and isinstance(a.value, str) and re.fullmatch(r"PT\d{3}", a.value)}


def is_rule(function: ast.FunctionDef) -> bool:
    """Whether a function is a dtype or shape rule: it takes the Call of an operation."""
    first = function.args.args[0].annotation if function.args.args else None
    return isinstance(first, ast.Name) and first.id == "Call"


@pytest.mark.parametrize("module", sorted(modules()))
def test_public_functions_name_the_errors_they_raise(module):
    """A function that raises a code says so. Rules of the op table are exempt: users meet them as the operation that has them."""
    silent = [f"line {n.lineno}: {n.name} raises {', '.join(sorted(unsaid))}" for n in public(module) if isinstance(n, ast.FunctionDef)
              if not is_rule(n) and (unsaid := {c for c in codes_raised(n) if c not in (ast.get_docstring(n) or "")})]
    assert not silent
