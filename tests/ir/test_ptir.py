"""Every `.ptir` file of this folder through `ptc opt`: passes run by name, the printed result against its CHECK lines."""
from __future__ import annotations

from pathlib import Path

import filecheck
import pytest
from click.testing import CliRunner

from pypto_dsl.cli import main
from pypto_dsl.compiler.pipeline import STAGES

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.ptir"))


def opt(file: Path, *options: str) -> tuple[int, str, str]:
    """The exit code of `ptc opt` on a file, its output and its errors."""
    done = CliRunner().invoke(main, ["opt", str(file), *options], prog_name="ptc")
    return done.exit_code, done.stdout, done.stderr


def options(script: filecheck.Script) -> list[str]:
    return [*(word for name in script.passes for word in ("--pass", name)), "--target", script.target, "--no-spans"]


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_file(file: Path) -> None:
    script = filecheck.script(file.read_text(encoding="utf-8"))
    code, printed, said = opt(file, *options(script))
    if script.checks[0].kind != "ERROR":
        assert code == 0, said
        wrong = filecheck.check(script.checks, printed)
        assert not wrong, f"{file.name}: {wrong}"
        return
    expected, _, words = script.checks[0].text.partition(" ")
    assert code == 1 and not printed
    assert said.startswith(f"error[{expected}]: ") and words in said, said
    assert f"{file.name}:" in said and "^" in said, "no place"


SCRIPTS = [filecheck.script(f.read_text(encoding="utf-8")) for f in FILES]


@pytest.mark.parametrize("name", STAGES)
def test_every_pass_has_a_file(name: str) -> None:
    assert any(s.passes[-1:] == (name,) or (name in s.passes and name in ("promote", "legalize", "simplify")) for s in SCRIPTS)


@pytest.mark.parametrize("name", ["canonicalize", "tile", "place"])
def test_passes_have_checks_of_what_is_not_there(name: str) -> None:
    mine = [s for s in SCRIPTS if s.passes[-1:] == (name,)]
    assert {c.kind for s in mine for c in s.checks} >= {"CHECK", "CHECK-NOT"}


@pytest.mark.parametrize("target", ["llvm-cpu", "ascend-a2", "tt-wormhole"])
@pytest.mark.parametrize("file", [f for f, s in zip(FILES, SCRIPTS, strict=True) if s.checks[0].kind != "ERROR"], ids=lambda f: f.stem)
def test_print_after(file: Path, target: str) -> None:
    """Every pass in turn, headed by its name; what a pass leaves as it is, is said so and not printed again."""
    names = ("promote", "canonicalize", "legalize", "simplify", "sink", "relax")
    flags = [word for name in names for word in ("--pass", name)]
    code, printed, said = opt(file, *flags, "--target", target, "--print-after", "--no-spans")
    if code == 1:  # not for this target
        assert said.startswith("error[PT")
        return
    heads = [line for line in printed.splitlines() if line.startswith("// after ")]
    assert [h.split()[2].rstrip(":") for h in heads] == ["read", *names]
    texts = printed.split("// after ")[1:]
    assert all((": unchanged" in text) == (len(text.splitlines()) == 1) for text in texts)
    again = opt(file, *flags, "--target", target, "--no-spans")[1]
    assert next(t for t in reversed(texts) if ": unchanged" not in t).split("\n", 1)[1] == again


PRINTED = "kernel k() {\n  %0 = exp(%x)\n  %1 = add(%0, %0)\n  return %1\n}"

@pytest.mark.parametrize(("lines", "wrong"), [
    (["CHECK: exp(%x)"], ""),
    (["CHECK: [[v:%\\d+]] = exp", "CHECK-NEXT: add([[v]], [[v]])"], ""),
    (["CHECK: exp", "CHECK-NEXT: return"], "CHECK-NEXT: return"),
    (["CHECK: add", "CHECK: exp"], "CHECK: exp"),
    (["CHECK: kernel", "CHECK-NOT: exp", "CHECK: return"], "CHECK-NOT: exp"),
    (["CHECK: kernel", "CHECK-NOT: log", "CHECK: return"], ""),
    (["CHECK: return", "CHECK-NOT: exp"], ""),
    (["CHECK: exp(%{{[a-z]}})"], ""),
    (["CHECK: exp(%{{[0-9]}})"], "CHECK: exp"),
])
def test_the_checker(lines: list[str], wrong: str) -> None:
    directions = filecheck.script("# RUN: canonicalize\n" + "\n".join(f"# {line}" for line in lines)).checks
    found = filecheck.check(directions, PRINTED)
    assert (wrong in found) if wrong else not found


def test_a_file_without_checks_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one CHECK"):
        filecheck.script("# RUN: canonicalize\nkernel k() {}")
