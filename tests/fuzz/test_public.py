"""Every public function, method and command with arguments that make no sense: a result, a KernelError, or the call's own TypeError."""

from __future__ import annotations

import contextvars
import itertools
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import pypto_dsl as pypto
from pypto_dsl import check, measure
from pypto_dsl.cli import main
from pypto_dsl.compiler.dtypes import BF16, BOOL, F16, F32, F64, I8, I64, U8
from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.frontend import operations

PACKAGE = str(Path(pypto.__file__).parent)
F = np.float32


class Odd:
    """An object that is nothing to the language."""


def ones(*shape: int) -> Any:
    return np.ones(shape, F)


def overlapping() -> Any:
    return np.lib.stride_tricks.as_strided(np.zeros(8, F), (4, 4), (0, 4))


def read_only() -> Any:
    array = np.zeros((4, 4), F)
    array.flags.writeable = False
    return array


STRANGE: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: "x",
    Odd,
    lambda: [],
    lambda: [[1.0, 2.0], [3.0]],
    lambda: {},
    lambda: -1,
    lambda: 10**30,
    lambda: 1.5,
    lambda: float("nan"),
    lambda: 1j,
    lambda: True,
    lambda: b"x",
    lambda: int,
    lambda: len,
    lambda: pypto.DT_INT8,
    lambda: slice(0, 2),
    lambda: ones(4, 4),
    lambda: ones(0, 3),
    lambda: ones(),
    lambda: ones(2, 3, 4),
    lambda: np.ones((4, 4), np.complex64),
    lambda: np.array(["a"]),
    lambda: np.array([None]),
    lambda: np.ones(3, np.int64)[::-1],
    overlapping,
    read_only,
    lambda: np.ones((4, 4), ">f4"),
    lambda: np.zeros(3, [("a", "f4")]),
    lambda: np.datetime64("2020-01-01"),
)


def settled(call: Callable[[], Any]) -> None:
    """The call comes back, is refused with a record that says what to do, or does not fit the function's signature."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            contextvars.copy_context().run(call)  # options that a call sets are gone after it
        except pypto.KernelError as refused:
            assert refused.diagnostic.message and refused.diagnostic.help, str(refused)
        except TypeError as wrong:  # Python's own, in the caller's or the kernel's line
            last = traceback.extract_tb(wrong.__traceback__)[-1]
            assert not last.filename.startswith(PACKAGE), f"{wrong}: {last}"


LANGUAGE = [n for n in dir(pypto) if n[0].islower() and callable(getattr(pypto, n)) and n not in ("jit", "import_module")]


@pytest.mark.parametrize("name", LANGUAGE)
def test_outside_kernels(name: str) -> None:
    function = getattr(pypto, name)
    settled(lambda: function())
    for make in STRANGE:
        settled(lambda make=make: function(make()))
        settled(lambda make=make: function(ones(4, 4), make()))
        settled(lambda make=make: function(ones(4, 4), ones(4, 4), make()))
    for keyword in ("dim", "dtype", "shape", "nothing_of_this_name"):
        settled(lambda keyword=keyword: function(ones(4, 4), **{keyword: "x"}))


@pypto.jit
def double(x: pypto.Tensor([pypto.DYNAMIC, 4]), out: pypto.Tensor([pypto.DYNAMIC, 4])):
    out[:] = x + x


@pypto.jit
def plain(x, s, out):
    out[:] = x * s


METHODS = ("__call__", "run", "graph", "specialise", "explain", "source", "compile")


@pytest.mark.parametrize("kernel", [double, plain], ids=lambda k: k.name)
@pytest.mark.parametrize("method", METHODS)
def test_kernels_called_with_anything(kernel: Any, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call = getattr(kernel, method)
    settled(lambda: call())
    first = ("interpreter",) if method == "source" else ("llvm-cpu", "folder") if method == "compile" else ()
    for make in STRANGE:
        settled(lambda make=make: call(make()))
        settled(lambda make=make: call(*first, make(), ones(4, 4)))
        settled(lambda make=make: call(*first, ones(4, 4), make()))
        settled(lambda make=make: call(*first, ones(4, 4), make(), ones(4, 4)))
        settled(lambda make=make: call(*first, x=ones(4, 4), nothing_of_this_name=make()))
    for target in ("", "nothing", "llvm", "tt", None, 3, Odd()):
        settled(lambda target=target: kernel.run(ones(4, 4), 2.0, ones(4, 4), target=target))
        settled(lambda target=target: kernel.source(target, ones(4, 4), ones(4, 4)))
        settled(lambda target=target: kernel.graph(ones(4, 4), ones(4, 4), after=target))


@pytest.mark.parametrize("make", STRANGE)
def test_nothing_is_written_when_a_call_is_refused(make: Callable[[], Any]) -> None:
    out = np.full((4, 4), 7.0, F)
    for call in (
        lambda: double(make(), out),
        lambda: double(ones(4, 4), out, make()),
        lambda: plain(make(), 2.0, out),
        lambda: plain(ones(3, 5), 2.0, out),
        lambda: double.run(make(), out, target="interpreter"),
    ):
        before = out.copy()
        try:
            call()
        except (pypto.KernelError, TypeError):
            np.testing.assert_array_equal(out, before)


@pytest.mark.parametrize("options", [{k: make()} for make in STRANGE for k in ("promotion", "precision", "lint", "target", "pass_options")])
def test_decorators(options: dict[str, Any]) -> None:
    settled(lambda: pypto.jit(**options)(lambda x: x)(ones(4, 4)))


@pytest.mark.parametrize("make", STRANGE)
def test_annotations(make: Callable[[], Any]) -> None:
    settled(lambda: pypto.jit(make()))
    settled(lambda: pypto.Tensor(make()))
    settled(lambda: pypto.Tensor([4, 4], make()))
    settled(lambda: pypto.Tensor([make(), 4]))


@pytest.mark.parametrize("make", STRANGE)
def test_a_closed_over_array(make: Callable[[], Any]) -> None:
    """What a kernel reads from outside is plain data, or refused."""
    kept = make()

    @pypto.jit(target="interpreter")
    def k(x: pypto.Tensor()):
        return x * kept

    try:
        settled(lambda: k(ones(4, 4)))
    except (AttributeError, OverflowError) as raised:  # of Python's own operators, in the user's line
        assert not traceback.extract_tb(raised.__traceback__)[-1].filename.startswith(PACKAGE)


def test_measures_of_arrays() -> None:
    """Comparisons of results of every dtype and shape with references of any values, the empty and the infinite ones too."""
    values = [np.zeros((0,)), np.zeros((0, 3)), np.ones(()), np.array([np.nan]), np.array([np.inf, -np.inf]), np.array([1e300, -0.0])]
    dtypes = (F16, BF16, F32, F64, I8, I64, U8, BOOL)
    with np.errstate(all="ignore"):
        for dtype, exact in itertools.product(dtypes, values):
            x = (exact if dtype.is_float else np.nan_to_num(exact, nan=0, posinf=1, neginf=1).clip(-1, 1)).astype(dtype.numpy)
            graph = read_graph(f"kernel k(%x: {dtype}[{', '.join(map(str, exact.shape))}]) {{ return %x }}", "k.ptir")
            for got in (x, np.zeros(exact.shape, dtype.numpy)):
                subject = check.Subject(lambda _, g=graph: (g, {}), lambda _, a=got: {"return0": a}, None)
                _, _, (verdict,) = check.given(subject, {"x": x})
                assert verdict.ok or got is not x
    assert measure.generated((0, 3), F32, np.random.default_rng(0)).shape == (0, 3)
    graph = double.graph(ones(4, 4), ones(4, 4))
    for reference in (lambda: None, lambda x: x, lambda x, out: 1 / 0, lambda *_: (1, 2, 3), lambda **k: "a", lambda x: None, abs):
        try:
            check.expected_of(reference, graph, {"x": ones(4, 4), "out": ones(4, 4)})
        except check.ReferenceFault as fault:
            assert str(fault).startswith("the reference")


WORDS = (
    "kernel.py",
    "kernel.ptir",
    "kernel.py:k",
    "kernel.py:nothing",
    "missing.py",
    "PT203",
    "PT999",
    "f16",
    "nothing",
    "--target",
    "llvm-cpu",
    "tt-wormhole",
    "--shape",
    "x=4x4",
    "x=4x4,f32",
    "x=",
    "=",
    "--json",
    "--sarif",
    "-o",
    "out",
    "--pass",
    "promote",
    "place",
    "--ref",
    "kernel:k",
    "a:b",
    ":",
    "--seed",
    "-1",
    "x",
    "--rules",
    "tf-safe",
    "",
    "--help",
    "-",
    "--",
    "é",
    "ls",
    "clear",
    "why",
    "bash",
    "exp",
)
COMMANDS = (
    tuple(main.commands)
    if getattr(main, "commands", None)
    else ("run", "check", "compile", "explain", "opt", "ops", "targets", "promote", "cache", "doctor", "report", "completion")
)
KERNEL = "import pypto_dsl as pypto\n\n\n@pypto.jit\ndef k(x: pypto.Tensor([4, 4], pypto.DT_FP32)):\n    return x * 2.0\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words in any order: an exit code that is documented, and never that of a bug."""
    monkeypatch.chdir(tmp_path)
    if command == "cache":  # others keep theirs
        monkeypatch.setenv("PTC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "kernel.py").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "kernel.ptir").write_text("kernel k(%x: f32[4]) { %y = exp(%x) return %y }", encoding="utf-8")
    lines = [[a] for a in WORDS] + [
        ["kernel.py", a, b] for a in ("--target", "--shape", "--ref", "-o", "--pass", "--seed") for b in WORDS[:36]
    ]
    lines += [["kernel.ptir", a] for a in WORDS]
    for line in lines if command not in ("run", "check", "report") else lines[::5]:
        done = CliRunner().invoke(main, [command, *line], prog_name="ptc")
        assert done.exit_code in (0, 1, 2, 3, 4), f"{line}: {done.output}"


def test_operations_are_public() -> None:
    assert set(operations.operation_names()) <= set(LANGUAGE) | {n for n in dir(pypto) if not n[0].islower()}
