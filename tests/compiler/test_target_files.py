"""Target files: what is wrong in one is said with file, table and key; packages and paths give targets without harm to others."""
from __future__ import annotations

import sys
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler import targets
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.placement import PLACEMENTS
from pypto_dsl.compiler.targets.target import _named, from_data
from pypto_dsl.explain import known_differences
from pypto_dsl.frontend import targets as backends

SMALL = """
name = "{name}"
title = "Small tiles"
family = "llvm"

[tile]
flatten = true
flat = 256
rows = 1
cols = 256
column_rows = 256
column_cols = 16
matmul = [16, 32, 256]

[ops]
add = ["f32"]
"""


def changed(table: str, key: str, value: Any) -> dict[str, Any]:
    """The small target with one key set, or removed (None)."""
    data = tomllib.loads(SMALL.format(name="small"))
    rows = data.setdefault(table, {}) if table else data
    if value is None:
        del rows[key]
    else:
        rows[key] = value
    return data


WRONG = [
    *[("", key, None) for key in ("name", "title", "family", "tile")],
    *[("tile", key, None) for key in ("flatten", "flat", "rows", "cols", "column_rows", "column_cols", "matmul")],
    ("", "family", "llvmm"),
    ("", "title", ""),
    ("", "tile", 3),
    ("", "ops", ["add"]),
    ("", "limits", 8),
    ("tile", "flat", "many"),
    ("tile", "flat", 0),
    ("tile", "flat", True),
    ("tile", "rows", 1.5),
    ("tile", "flatten", 1),
    ("tile", "colums", 4),
    ("tile", "matmul", [16, 32]),
    ("tile", "matmul", 16),
    ("tile", "matmul", [16, 32, 64]),
    ("tile", "column_rows", 128),
    ("tile", "align", [1, 0]),
    ("tile", "whole_row", -1),
    ("tile", "rematerialize", -1),
    ("ops", "adds", ["f32"]),
    ("ops", "add", ["f33"]),
    ("ops", "add", ["f32->f33"]),
    ("ops", "add", "f32"),
    ("ops", "add", [32]),
]


@pytest.mark.parametrize(("table", "key", "value"), WRONG)
def test_a_mistake_is_named_with_file_table_and_key(table: str, key: str, value: Any) -> None:
    with pytest.raises(KernelError) as refused:
        from_data(changed(table, key, value), "small.toml")
    assert refused.value.code == "PT504"
    assert refused.value.diagnostic.fields == {"file": "small.toml", "table": table, "key": key}
    assert refused.value.diagnostic.message.startswith(f"small.toml: {f'[{table}] ' if table else ''}{key} ")


@pytest.mark.parametrize(
    ("table", "key", "value", "help"),
    [
        ("", "family", "llvmm", "did you mean llvm?"),
        ("ops", "adds", ["f32"], "did you mean add?"),
        ("ops", "add", ["f33"], "did you mean f32?"),
        ("tile", "colums", 4, "did you mean cols?"),
    ],
)
def test_a_misspelling_is_mended(table: str, key: str, value: Any, help: str) -> None:
    with pytest.raises(KernelError) as refused:
        from_data(changed(table, key, value))
    assert refused.value.diagnostic.help == help


@pytest.mark.parametrize(("table", "key", "value"), [("tile", "plane", [4, 64]), ("tile", "whole_row", 512), ("tile", "rematerialize", 0),
                                                     ("tile", "obey", False), ("ops", "add", ["*"]), ("", "limits", None)])
def test_what_is_allowed(table: str, key: str, value: Any) -> None:
    data = changed(table, key, value) if value is not None else changed("", "ops", None)
    assert from_data(data).name == "small"


@pytest.mark.parametrize("name", targets.names())
def test_what_a_family_needs_beyond_tile_is_named_too(name: str) -> None:
    """Every table and key that placement and emission read is missed by name: the file is read without any of its own tables."""
    if targets.load(name).family == "llvm":
        return
    data = {key: value for key, value in targets.load(name).data.items() if key in ("name", "title", "family", "tile", "ops")}
    with pytest.raises(KernelError) as refused:
        backends._lower(
            pypto.jit(_doubled).specialise(np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)).graph, from_data(data)
        )
    assert refused.value.code == "PT504" and refused.value.diagnostic.message.endswith("is missing")


def _doubled(x: pypto.Tensor([64, 64], pypto.DT_FP32), out: pypto.Tensor([64, 64], pypto.DT_FP32)) -> None:  # type: ignore[valid-type]
    out[:] = x + x


def test_families_are_those_that_something_places_and_runs() -> None:
    assert set(targets.FAMILIES) - {"llvm", "none"} == set(PLACEMENTS) == set(backends.DEVICES)


# ---- files by their path -----------------------------------------------------------------------------------------------------------


def test_a_file_is_a_target_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL.format(name="small"))
    x, out = np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
    pypto.jit(_doubled).run(x, out, target=str(tmp_path / "small.toml"))
    assert (out == 2).all()


@pytest.mark.parametrize(("name", "text", "code"), [
    ("missing.toml", None, "PT501"), ("broken.toml", "name = ", "PT504"), ("small.toml", SMALL.format(name="other"), "PT504"),
    ("bytes.toml", b"\xff", "PT504")])
def test_a_wrong_path_says_so(name: str, text: str | bytes | None, code: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(KernelError) as refused:
        targets.load(str(tmp_path / name))
    assert refused.value.code == code and name in refused.value.diagnostic.message


@pytest.mark.parametrize(("family", "old", "new", "said"), [
    ("tt-wormhole", "bytes = 1499136", "byts = 1499136", "[memory.l1] byts is unknown"),
    ("tt-wormhole", "[rings]", "wibble = 3\n[rings]", "[dst] wibble is unknown"),
    ("tt-wormhole", "[rings]", "[foo]\nx = 1\n[rings]", "foo is unknown"),
    ("tt-wormhole", "rows = 32                   # [doc] tile", "rows = 16", "written for 32"),
    ("tt-wormhole", "bytes = 1499136", "bytes = 400000", "more than the 400000 bytes"),
    ("tt-wormhole", "bytes = 1499136", 'bytes = "many"', "[memory.l1] bytes is 'many', and must be a whole number"),
    ("llvm-cpu", "serial_elements = 32768 ", "serial_elements = true ", "is True, and must be a whole number"),
    ("ascend-a2", "[limits]", "[limits]\nrnak = 4", "did you mean rank"),
    ("llvm-cpu", "[launch]", "[launch]\nchunks = 4", "[launch] chunks is unknown")])
def test_keys_and_values_that_no_target_has_are_refused(family: str, old: str, new: str, said: str, tmp_path: Path) -> None:
    text = (Path(targets.__file__).parent / f"{family}.toml").read_text()
    assert text.count(old) == 1
    (tmp_path / "mine.toml").write_text(text.replace(old, new).replace(f'name = "{family}"', 'name = "mine"'))
    with pytest.raises(KernelError) as refused:
        targets.load(str(tmp_path / "mine.toml"))
    assert refused.value.code == "PT504" and said in str(refused.value)


# ---- bases ------------------------------------------------------------------------------------------------------------------------

CHILD = """
name = "child"
title = "Smaller still"
base = "{base}"

[tile]
flat = 64

[ops]
mul = ["f32"]
"""


def test_a_base_gives_what_the_file_does_not(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL.format(name="small"))
    (tmp_path / "child.toml").write_text(CHILD.format(base="small.toml"))
    child = targets.load(str(tmp_path / "child.toml"))
    assert (child.name, child.family, child.tile.flat, child.tile.cols, set(child.ops)) == ("child", "llvm", 64, 256, {"add", "mul"})
    (tmp_path / "grandchild.toml").write_text('name = "grandchild"\ntitle = "G"\nbase = "child.toml"\n[ops]\nmul = []\n')
    grandchild = targets.load(str(tmp_path / "grandchild.toml"))
    assert grandchild.tile.flat == 64 and not grandchild.ops["mul"] and grandchild.ops["add"]
    x, out = np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
    pypto.jit(_doubled).run(x, out, target=str(tmp_path / "child.toml"))
    assert (out == 2).all()


def test_a_built_in_target_is_a_base_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\ntitle = "More L1"\nbase = "tt-wormhole"\n[memory.l1]\nbytes = 2000000\n')
    mine, wormhole = targets.load(str(tmp_path / "mine.toml")), targets.load("tt-wormhole")
    assert mine.data["memory"]["l1"] == {**wormhole.data["memory"]["l1"], "bytes": 2000000} and mine.ops == wormhole.ops


@pytest.mark.parametrize(("base", "said"), [
    ("child.toml", "leads back to itself"), ("nowhere.toml", "no such file"), ("tt-wormhol", "is the unknown 'tt-wormhol'"),
    ("broken.toml", "cannot be read"), ("cycle.toml", "leads back to itself")])
def test_a_wrong_base_is_named(base: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "child.toml").write_text(CHILD.format(base=base))
    (tmp_path / "broken.toml").write_text("name = ")
    (tmp_path / "cycle.toml").write_text('name = "cycle"\ntitle = "C"\nbase = "child.toml"\n')
    with pytest.raises(KernelError) as refused:
        targets.load(str(tmp_path / "child.toml"))
    assert refused.value.code == "PT504" and said in refused.value.diagnostic.message


def test_a_base_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "child.toml").write_text(CHILD.format(base="x").replace('"x"', "3"))
    with pytest.raises(KernelError) as refused:
        targets.load(str(tmp_path / "child.toml"))
    assert refused.value.diagnostic.fields == {"file": "child.toml", "table": "", "key": "base"}


# ---- packages ------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Installs a package whose entry point `NAME` is a function with a body."""
    monkeypatch.syspath_prepend(str(tmp_path))
    _named.cache_clear()

    def install(name: str, body: str) -> None:
        monkeypatch.delitem(sys.modules, f"chips_{name}", raising=False)
        (tmp_path / f"chips_{name}.py").write_text(f"import pathlib\n\n\ndef file():\n    {body}\n")
        about = tmp_path / f"chips_{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: chips-{name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[pypto_dsl.targets]\n{name} = chips_{name}:file\n")

    return install


@pytest.mark.parametrize("given", ["{!r}", "pathlib.Path({!r})", "__import__('importlib.resources').resources.files('pypto_dsl') / {!r}"])
def test_an_entry_point_gives_a_path_in_any_form(given: str, package: Callable[[str, str], None], tmp_path: Path) -> None:
    (tmp_path / "anything.toml").write_text(SMALL.format(name="small"))
    package("small", "return " + given.format(str(tmp_path / "anything.toml")))
    assert "small" in targets.names() and targets.load("small").tile.flat == 256
    assert "small" in {t.name for t in targets.available()} and "small" in backends.runnable()


@pytest.mark.parametrize("body", ["import a_module_that_is_not_there", "return 3", "return '/nowhere/small.toml'", "return __file__"])
def test_a_broken_package_harms_nobody_else(body: str, package: Callable[[str, str], None]) -> None:
    package("small", body)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert backends.runs("llvm-cpu") and targets.load("ascend-a2")
    with pytest.warns(targets.TargetWarning, match="small of the package chips-small is left out"):
        assert "small" not in {t.name for t in targets.available()}
    with pytest.raises(KernelError) as refused:
        targets.load("small")
    assert refused.value.code == "PT504" and "chips-small" in refused.value.diagnostic.message


# ---- known differences ---------------------------------------------------------------------------------------------------------

WRONG_DIFFERENCES = [
    ("a text", "must be a table"), ({"text": "t"}, "must be a table"), ({"ops": ["exp"]}, "must be a table"),
    ({"ops": ["exp"], "text": 3}, "must be a table"), ({"ops": ["exp"], "text": "t", "op": ["exp"]}, "must be a table"),
    ({"ops": ["expo"], "text": "t"}, "did you mean"), ({"ops": [], "text": "t"}, "list of operations"),
    ({"ops": "exp", "text": "t"}, "list of operations"), ({"ops": ["exp"], "dtypes": ["f33"], "text": "t"}, "did you mean"),
    ({"ops": ["exp"], "dtypes": 3, "text": "t"}, "list of dtypes"),
]


@pytest.mark.parametrize(("row", "said"), WRONG_DIFFERENCES)
def test_a_row_of_known_differences_names_operations_and_dtypes(row: Any, said: str) -> None:
    with pytest.raises(KernelError) as refused:
        from_data({**targets.load("ascend-a2").data, "conformance": {"off": row}}, "small.toml")
    found = refused.value.diagnostic
    assert found.code == "PT504" and said in f"{found.message} {found.help}" and "conformance" in found.message


def test_a_target_of_any_family_has_known_differences() -> None:
    row = {"ops": ["exp"], "text": "flushes subnormals"}
    (found,) = from_data({**tomllib.loads(SMALL.format(name="small")), "conformance": {"flushes": row}}, "small.toml").differences
    assert found.concerns({"exp"}, {"f32"}) and not found.concerns({"add"}, {"f32"})


@pytest.mark.parametrize(("body", "said"), [
    ("x + 1.0", {"ascend-a2": {"barriers"}, "tt-wormhole": set()}),
    ("pypto.exp(x)", {"ascend-a2": {"barriers", "ln_exp", "subnormals"}, "tt-wormhole": set()}),
    ("pypto.softmax(x, -1)", {"ascend-a2": {"barriers", "ln_exp", "subnormals", "maximum_nan"}, "tt-wormhole": {"sums", "zeros"}}),
    ("pypto.pow(x, 2.5)", {"ascend-a2": {"barriers", "pow"}, "tt-wormhole": {"pow_f32"}}),
    ("pypto.sin(x)", {"ascend-a2": {"barriers", "angles"}, "tt-wormhole": {"angles"}})])
def test_a_kernel_is_told_the_differences_of_its_operations_alone(body: str, said: dict[str, set[str]]) -> None:
    tensor = pypto.Tensor([64, 64], pypto.DT_FP32)
    space: dict[str, Any] = {}
    source = f"def k(x: tensor, out: tensor):\n    out[:] = {body}\n"
    exec(source, {"pypto": pypto, "tensor": tensor}, space)
    graph = pypto.jit(space["k"]).specialise().graph
    for name, rows in said.items():
        assert {text.partition(":")[0] for text in known_differences(graph, targets.load(name))} == rows, name
