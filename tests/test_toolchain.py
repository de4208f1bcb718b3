"""The host toolchain: finding a compiler, cache keys, concurrent builds, and what a failure says."""
from __future__ import annotations

import ctypes
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pypto_dsl.cli.cache import remove
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.runtime import toolchain

SOURCE = '#include "number.h"\nextern "C" int answer() { return NUMBER + EXTRA; }\n'


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTC_CACHE_DIR", str(tmp_path / "cache"))


def include_folder(tmp_path: Path, number: int) -> Path:
    folder = tmp_path / f"include{number}"
    folder.mkdir(exist_ok=True)
    (folder / "number.h").write_text(f"#define NUMBER {number}\n")
    return folder


def build(folder: Path, extra: int = 0) -> Path:
    flags = [f"-DEXTRA={extra}"]
    return toolchain.build_shared_object("answer", {"answer.cpp": SOURCE}, ["answer.cpp"], include_folders=[folder], flags=flags)


def test_builds_once_and_finds_it_again(tmp_path: Path) -> None:
    first = build(include_folder(tmp_path, 40), extra=2)
    stamp = first.stat().st_mtime_ns
    assert build(include_folder(tmp_path, 40), extra=2) == first
    assert first.stat().st_mtime_ns == stamp
    assert ctypes.CDLL(str(first)).answer() == 42


def test_a_changed_header_or_flag_is_another_build(tmp_path: Path) -> None:
    paths = {build(include_folder(tmp_path, 1)), build(include_folder(tmp_path, 2)), build(include_folder(tmp_path, 1), extra=5)}
    assert sorted(ctypes.CDLL(str(path)).answer() for path in paths) == [1, 2, 6]


def test_key_does_not_depend_on_the_folder_but_on_every_input(tmp_path: Path) -> None:
    compiler = toolchain.HostCompiler(("g++",), "gcc", "g++ 1.0")
    one, other = include_folder(tmp_path, 1), tmp_path / "moved"
    other.mkdir()
    (other / "number.h").write_bytes((one / "number.h").read_bytes())

    def key(compiler: toolchain.HostCompiler = compiler, text: str = "a", folder: Path = one, flags: tuple[str, ...] = ("-O1",)) -> str:
        return toolchain.build_key(compiler, {"a.cpp": text}, ["a.cpp"], [folder], flags)

    assert key() == key(folder=other)
    newer = toolchain.HostCompiler(("g++",), "gcc", "g++ 1.1")
    changed = [key(newer), key(text="b"), key(folder=include_folder(tmp_path, 2)), key(flags=("-O0",))]
    assert len({key(), *changed}) == 5


def test_concurrent_builds_agree(tmp_path: Path) -> None:
    folder = include_folder(tmp_path, 7)
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: build(folder), range(4)))) == 1
    assert not list((tmp_path / "cache").rglob("*.partial"))


def test_clearing_the_cache_leaves_what_is_being_built(tmp_path: Path) -> None:
    built = build(include_folder(tmp_path, 1))
    with toolchain.locked(built.parent):
        assert not remove(built.parent) and built.exists()
    assert remove(built.parent) and not built.parent.exists()


def test_a_folder_that_was_removed_while_it_was_waited_for_is_made_again(tmp_path: Path) -> None:
    folder = build(include_folder(tmp_path, 1)).parent
    with ThreadPoolExecutor(1) as pool:
        with toolchain.locked(folder):
            (folder / "answer.so").unlink()
            waiting = pool.submit(build, include_folder(tmp_path, 1))
            time.sleep(0.2)
            shutil.rmtree(folder)
        assert waiting.result(60).exists()


def test_a_source_that_does_not_compile_says_what_the_compiler_said(tmp_path: Path) -> None:
    with pytest.raises(KernelError) as caught:
        toolchain.build_shared_object("broken", {"broken.cpp": "int f( { }\n"}, ["broken.cpp"])
    assert caught.value.code == "PT902"
    assert "broken.cpp:1" in str(caught.value)
    assert not list((tmp_path / "cache").rglob("*.so"))


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTC_CXX", "no-such-compiler-anywhere")
    with pytest.raises(KernelError) as caught:
        toolchain.find_compiler()
    assert caught.value.code == "PT901"
    assert "no-such-compiler-anywhere" in str(caught.value) and "ziglang" in caught.value.diagnostic.help


def test_the_named_compiler_comes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTC_CXX", "clang++ --sysroot=/x")
    assert toolchain.candidates() == (("clang++", "--sysroot=/x"),)
