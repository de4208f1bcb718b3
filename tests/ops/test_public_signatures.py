"""docs/operations.md and `ptc ops` show every operation as it is called: names, kinds and defaults are those of the public function."""
from __future__ import annotations

import enum
import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import pypto_dsl as pypto
from pypto_dsl.cli import main
from pypto_dsl.cli.ops import describe, of_language
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.frontend.foreign import UnknownName
from pypto_dsl.frontend.spellings import TEXT_ONLY
from pypto_dsl.namespace import names

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
CALLED, INTERNAL = PAGE.split("## In the text form alone")
HEADINGS = {name: f"{name}({rest})" for name, rest in re.findall(r"^### `(\w+)\((.*)\)`$", CALLED, re.M)}
PUBLIC = sorted(set(REGISTRY) - set(TEXT_ONLY))


def called(signature: str) -> list[inspect.Parameter]:
    """The parameters of `name(...)` as Python reads them; names of enumerations' members stand for themselves."""
    name = signature.partition("(")[0]
    space: dict[str, object] = {"pypto": pypto}
    exec(f"def {name}{signature.removeprefix(name)}: ...", space)
    return list(inspect.signature(space[name]).parameters.values())


def plain(p: inspect.Parameter) -> tuple[str, object, object]:
    return p.name, p.kind, p.default.name if isinstance(p.default, enum.Enum) else p.default


@pytest.mark.parametrize("name", PUBLIC)
def test_page_and_command_show_the_public_signature(name: str) -> None:
    wanted = [plain(p) for p in inspect.signature(getattr(pypto, name)).parameters.values()]
    for shown in (HEADINGS[name], describe(REGISTRY[name])["signature"]):
        assert [plain(p) for p in called(shown)] == wanted


def test_every_operation_is_on_the_page_and_no_other() -> None:
    assert sorted(HEADINGS) == PUBLIC
    assert sorted(re.findall(r"^### `(\w+)\(", INTERNAL, re.M)) == sorted(TEXT_ONLY)


@pytest.mark.parametrize("name", sorted(TEXT_ONLY))
def test_operations_of_the_text_form_are_marked_as_such(name: str) -> None:
    instead = TEXT_ONLY[name].format(x="x")
    with pytest.raises(UnknownName) as refused:
        getattr(pypto, name)
    assert refused.value.code == "PT109" and refused.value.diagnostic.help == f"write {instead}"
    assert f"a kernel writes {instead}" in CliRunner().invoke(main, ["ops", name]).output
    listed = [line.split()[0] for line in CliRunner().invoke(main, ["ops"]).output.splitlines() if line.split()]
    assert name not in listed


def test_names_of_the_language_are_shown_and_say_where_they_are_described() -> None:
    for name in sorted({*dir(pypto)} & {*names()} - set(REGISTRY)):
        data = of_language(name)
        assert data["page"] == "docs/language.md" and data["signature"].startswith(f"pypto.{name}"), name
        assert "partial(" not in data["doc"]


@pytest.mark.parametrize(("name", "shown"), [
    ("loop", "pypto.loop("), ("assemble", "pypto.assemble(src"), ("move", "x.move(other)"), ("valid_shape", "x.valid_shape")])
def test_ptc_ops_of_a_name_of_the_language(name: str, shown: str) -> None:
    done = CliRunner().invoke(main, ["ops", name])
    assert done.exit_code == 0 and done.output.startswith(shown) and "part of the language, which docs/language.md describes" in done.output
    assert json.loads(CliRunner().invoke(main, ["ops", name, "--json"]).output)["language"]["name"] == name


@pytest.mark.parametrize(("name", "said"), [
    ("conv", "there is no operation conv: convolutions"), ("expand", "expand_clone"), ("lop", "did you mean `loop`?"), ("zzzzq", "zzzzq")])
def test_ptc_ops_of_what_is_neither(name: str, said: str) -> None:
    done = CliRunner().invoke(main, ["ops", name])
    assert done.exit_code == 2 and said in done.output


@pytest.mark.parametrize(("call", "said"), [
    (lambda x: pypto.sum(x, axis=0), "did you mean `dim`? sum("), (lambda x: pypto.amax(x, 0, keepdims=True), "did you mean `keepdim`?"),
    (lambda x: pypto.concat([x, x], axis=1), "did you mean `dim`? concat("), (lambda x: pypto.concat(x), "pypto.concat([a, b])"),
    (lambda x: pypto.arange(stop=4), "did you mean `end`?"), (lambda x: pypto.index_put_(x, x, x), "pypto.index_put_(x, [rows], values)")])
def test_arguments_of_other_libraries_name_the_one_that_is_meant(call, said: str) -> None:
    with pytest.raises(pypto.KernelError) as refused:
        call(np.ones((4, 4), np.float32))
    assert said in refused.value.diagnostic.help
