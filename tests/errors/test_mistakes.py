"""Real mistakes: each file of `mistakes/` prints its golden message, and the fix that the message names makes it compile.

A golden file is rewritten by `PTC_UPDATE_GOLDEN=1 python -m pytest tests/errors`, and then read by a person.
"""
from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from pypto_dsl.cli import main

FOLDER = Path(__file__).resolve().parent / "mistakes"


@dataclass(frozen=True)
class Mistake:
    """A file, the target that refuses it, the code, and the edit (old text, new text) whose ``words`` the message names."""

    file: str
    target: str
    code: str
    old: str
    new: str
    words: tuple[str, ...]


MISTAKES = [
    Mistake("dtype.py", "llvm-cpu", "PT203", "(x, mask)", "(x, pypto.cast(mask, pypto.DT_INT32))", ("pypto.cast(mask, pypto.DT_INT32)",)),
    Mistake("shape.py", "llvm-cpu", "PT301", "x + bias", "x + pypto.reshape(bias, [64, 1])", ("[64, 128] and [64]", "reshape")),
    Mistake("tile.py", "llvm-cpu", "PT401", "tile_shapes(0, 64)", "tile_shapes(32, 64)", ("set_vec_tile_shapes(32, 64)",)),
    Mistake(
        "rank.py",
        "llvm-cpu",
        "PT402",
        "pypto.set_vec_tile_shapes(64)",
        "pypto.set_vec_tile_shapes(1, 64)",
        ("pypto.set_vec_tile_shapes(1, 64)",),
    ),
    Mistake("lost.py", "llvm-cpu", "PT104", "out = x + y", "out[:] = x + y", ("out[:] = ",)),
    Mistake("symbolic_and.py", "llvm-cpu", "PT101", "x > 0.0 and x < 1.0", "(x > 0.0) & (x < 1.0)", ("no single truth value", " & ")),
    Mistake("too_big.py", "ascend-a2", "PT410", "tile_shapes(1, 65536)", "tile_shapes(1, 4096)", ("1310720 B", "too_big.py:8")),
    Mistake(
        "unsupported.py",
        "tt-wormhole",
        "PT502",
        "pypto.cast(x, pypto.DT_INT8)",
        "pypto.cast(x, pypto.DT_INT32)",
        ("no tensors of i8", "pypto.DT_INT32"),
    ),
    Mistake(
        "narrow.py", "llvm-cpu", "PT205", "y * 2.0", "pypto.cast(y * 2.0, pypto.DT_BF16)", ("out[:] = pypto.cast(y * 2.0, pypto.DT_BF16)",)
    ),
    Mistake("method.py", "llvm-cpu", "PT109", "x.astype(pypto.DT_BF16)", "pypto.cast(x, pypto.DT_BF16)", ("pypto.cast(x, pypto.DT_BF16)",)),
    Mistake("numpy_function.py", "llvm-cpu", "PT128", "np.sqrt(x)", "pypto.sqrt(x)", ("pypto.sqrt",)),
    Mistake("added.py", "llvm-cpu", "PT104", "out += x", "out[:] += x", ("out[:] += ",)),
    Mistake("subscript.py", "llvm-cpu", "PT312", "= x", "= x[0]", ("rank 1",)),
    Mistake("text.ptir", "llvm-cpu", "PT603", "%tow", "%two", ("did you mean %two?",)),
    Mistake("unknown.py", "llvm-cpu", "PT109", "pypto.sofmax", "pypto.softmax", ("pypto.softmax",)),
]


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """Compiles a mistake, with or without an edit; gives the exit code and what went to stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTC_CACHE_DIR", str(tmp_path / "cache"))

    def run(mistake: Mistake, mended: bool) -> tuple[int, str]:
        shutil.copy(FOLDER / mistake.file, tmp_path)
        if mended:
            text = (tmp_path / mistake.file).read_text()
            assert text.count(mistake.old) == 1
            (tmp_path / mistake.file).write_text(text.replace(mistake.old, mistake.new))
        arguments = ["compile", mistake.file, "--target", mistake.target, "-o", "out"]
        done = CliRunner().invoke(main, arguments, prog_name="ptc")
        return done.exit_code, done.stderr

    return run


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.file)
def test_message(mistake, compiled):
    code, message = compiled(mistake, mended=False)
    golden = FOLDER / f"{mistake.file}.golden"
    if os.environ.get("PTC_UPDATE_GOLDEN"):
        golden.write_text(message)
    assert code == 1
    assert message == golden.read_text()
    assert message.startswith(f"error[{mistake.code}]: ")
    assert f"--> {mistake.file}:" in message and "^" in message, "no place"
    assert "= help: " in message and all(word in message for word in mistake.words)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.file)
def test_the_fix_compiles(mistake, compiled):
    code, message = compiled(mistake, mended=True)
    assert code == 0, message


def test_every_file_is_used():
    assert {p.name for p in FOLDER.iterdir() if not p.name.endswith(".golden")} == {m.file for m in MISTAKES}
