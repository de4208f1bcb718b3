"""Every code's failing kernel, from the catalogue: its exact message is a golden file, and the fix is applied and runs.

`kernels/PTnnn.py` is the program of the catalogue's example, `kernels/PTnnn.golden` what it prints. Both are rewritten by
`PTC_UPDATE_GOLDEN=1 python -m pytest tests/errors`, and then read by a person.
"""
from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler import catalogue
from pypto_dsl.compiler.errors import Diagnostic, KernelError
from pypto_dsl.frontend.capture import KernelWarning

FOLDER = Path(__file__).resolve().parent / "kernels"
CODES = tuple(catalogue.entries())
# Codes whose mistake stands in no line that could be quoted: in a command line, a target's file, the machine, or a text that is no file.
NOWHERE = frozenset({"PT142", "PT206", "PT208", "PT501", "PT504", "PT520", "PT524", "PT715", "PT721", "PT901", "PT902", "PT905"})
WORD = re.compile(r"[A-Za-z_]\w*")
LANGUAGE = frozenset(dir(pypto)) | {"keepdim", "a_trans", "b_trans", "promotion", "precision", "np", "DYNAMIC"}


@dataclass(frozen=True)
class Told:
    """What a program was told: the records of its error or of its warnings, and the text that a user sees."""

    records: tuple[Diagnostic, ...]
    text: str


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """Examples about machines change the environment."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def run(text: str, path: Path) -> Told:
    """Run a program from a file, so that its lines can be quoted."""
    path.write_text(text, encoding="utf-8")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(compile(text, str(path), "exec", dont_inherit=True), {"__name__": "example"})
            records = tuple(w.message.diagnostic for w in warned if isinstance(w.message, KernelWarning))
        except KernelError as failed:
            records = (failed.diagnostic,)
    return Told(records, "\n".join(r.render() for r in records).replace(f"{path.parent}{os.sep}", "") + "\n")


def kernel_of(code: str) -> str:
    """The text of a code's failing kernel. It is the catalogue's example; an update writes it anew."""
    file, text = FOLDER / f"{code}.py", catalogue.program(catalogue.entries()[code].wrong)
    if os.environ.get("PTC_UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text, "the catalogue's example has changed: PTC_UPDATE_GOLDEN=1 writes the file anew"
    return text


@pytest.mark.parametrize("code", CODES)
def test_message(code: str, tmp_path: Path) -> None:
    told = run(kernel_of(code), tmp_path / f"{code}.py")
    golden = FOLDER / f"{code}.golden"
    if os.environ.get("PTC_UPDATE_GOLDEN"):
        golden.write_text(told.text, encoding="utf-8")
    assert told.text == golden.read_text(encoding="utf-8")
    assert [r.code for r in told.records] == [code]
    (record,) = told.records
    assert record.help, "nothing says what to write instead"
    assert (record.primary is not None and "^" in told.text) or code in NOWHERE or code[:3] == "PT6", "no place"


@pytest.mark.parametrize("code", CODES)
def test_the_fix(code: str, tmp_path: Path) -> None:
    """The record's own fix where it has one, and the catalogue's mended example: both run without the code."""
    wrong = kernel_of(code)
    (record,) = run(wrong, tmp_path / f"{code}.py").records
    mended = [catalogue.program(catalogue.entries()[code].right)]
    if record.fix is not None and record.primary is not None:
        mended.append(applied(wrong, record))
    for i, text in enumerate(mended):
        after = run(text, tmp_path / f"mended{i}.py")
        assert code not in [r.code for r in after.records] and all(r.severity == "warning" for r in after.records), after.text


def applied(text: str, record: Diagnostic) -> str:
    """The text with a record's fix in place of what its caret marks."""
    assert record.primary is not None and record.fix is not None
    span, lines = record.primary.span, text.splitlines(keepends=True)
    begin = sum(map(len, lines[:span.line - 1])) + span.column - 1
    end = sum(map(len, lines[:(span.end_line or span.line) - 1])) + span.end_column - 1
    return text[:begin] + record.fix + text[end:]


@pytest.mark.parametrize("code", CODES)
def test_the_message_names_the_fix(code: str) -> None:
    """Names of the language that the mended example has and the wrong one has not stand in the message or on the code's page."""
    entry = catalogue.entries()[code]
    new = (set(WORD.findall(entry.right)) - set(WORD.findall(entry.wrong))) & LANGUAGE
    said = set(WORD.findall((FOLDER / f"{code}.golden").read_text(encoding="utf-8"))) | set(WORD.findall(entry.fix))
    assert not new or new & said, f"the example is mended by {sorted(new)}, which nothing tells the reader"


def test_no_code_is_without_kernel_golden_and_fix() -> None:
    assert {f.name for f in FOLDER.iterdir()} == {f"{code}{end}" for code in CODES for end in (".py", ".golden")}
    assert all(e.wrong and e.right and e.wrong != e.right for e in catalogue.entries().values())
