"""Compiles LLVM IR text to objects and loads them with ORC; the only place, with ``cache.py``, that knows llvmlite.binding."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from pypto_dsl.codegen.llvm.features import FeatureLevel, feature_levels
from pypto_dsl.compiler.errors import CompilerBug, error
from pypto_dsl.compiler.profile import stage

# Level 0 aborts the process on AVX-512 mask registers, and a middle-end pipeline gains nothing over finished vector IR.
CODEGEN_LEVEL = 2
# Constants lie within reach of the code, as JITLink puts them: an address of 64 bits for each would fill the registers of a kernel.
RELOCATION, CODE_MODEL = "pic", "small"


@dataclass(frozen=True)
class Machine:
    """A processor to compile for: a feature level and LLVM's spelling of the processor."""

    level: FeatureLevel
    triple: str
    cpu: str
    features: str

    @property
    def fingerprint(self) -> str:
        """Everything of the compiler and processor that an object's bytes depend on."""
        version = ".".join(map(str, llvm.llvm_version_info))
        return f"llvm {version}; {self.triple}; {self.cpu}; {self.features}; codegen {CODEGEN_LEVEL} {RELOCATION} {CODE_MODEL}"


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()


@cache
def host_features() -> Mapping[str, bool]:
    """LLVM's feature names of this processor, True where present."""
    _initialize()
    return dict(llvm.get_host_cpu_features())


@cache
def host_levels() -> tuple[FeatureLevel, ...]:
    """The feature levels this processor can run, best first."""
    _initialize()
    architecture = llvm.get_default_triple().split("-")[0]
    names = {"amd64": "x86_64", "arm64": "aarch64"}
    present = host_features()
    return tuple(
        level
        for level in feature_levels().values()
        if level.architecture == names.get(architecture, architecture) and all(present.get(f, False) for f in level.requires)
    )


@cache
def machine(level: str | None = None, tuning: str | None = None) -> Machine:
    """The host as a Machine: its own best level, or an explicitly named smaller one; tuned for this processor, or for the named one.

    Raises KernelError PT524 when the processor lacks the level.
    """
    levels = host_levels()
    if not levels:
        raise error("PT524", f"no feature level of the CPU target fits this processor ({llvm.get_default_triple()})")
    chosen = levels[0] if level is None else next((entry for entry in levels if entry.name == level), None)
    if chosen is None:
        known = ", ".join(entry.name for entry in levels)
        raise error("PT524", f"this processor does not have the feature level {level!r}", help=f"one of: {known}")
    triple = llvm.get_default_triple()
    own = chosen is levels[0]
    cpu, features = (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()) if own else (chosen.cpu, "")
    return Machine(chosen.tuned(tuning or cpu), triple, cpu, features)


@cache
def _target_machine(machine: Machine) -> Any:
    _initialize()
    target = llvm.Target.from_triple(machine.triple)
    return target.create_target_machine(cpu=machine.cpu, features=machine.features, opt=CODEGEN_LEVEL, reloc=RELOCATION,
                                        codemodel=CODE_MODEL)


def parse(text: str, where: str = "codegen/llvm") -> Any:
    """The verified module of an IR text; a text that LLVM refuses is our bug."""
    _initialize()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as refused:
        raise CompilerBug(where, f"LLVM refused the emitted module: {refused}") from refused
    return module


def compile_object(text: str, machine: Machine) -> bytes:
    """IR text to the bytes of an object file for ``machine``."""
    with stage("parse IR"):
        module = parse(text)
    with stage("machine code"):
        object_bytes: bytes = _target_machine(machine).emit_object(module)
    return object_bytes


def compile_assembly(text: str, machine: Machine) -> str:
    """IR text to assembly, for people."""
    assembly: str = _target_machine(machine).emit_assembly(parse(text))
    return assembly


@cache
def _orc() -> Any:
    _initialize()
    return llvm.create_lljit_compiler(_target_machine(machine()), use_jit_link=True)


_serial = itertools.count()


class Library:
    """Loaded code. It stays in memory as long as this object does, so whoever keeps an address keeps the Library."""

    def __init__(self, object_bytes: bytes, exports: Iterable[str], imports: Mapping[str, int] | None = None) -> None:
        """Link an object; ``imports`` are addresses of symbols the process itself does not export."""
        builder = llvm.JITLibraryBuilder().add_object_img(object_bytes).add_current_process()
        for name, address in (imports or {}).items():
            builder.import_symbol(name, address)
        self._exports = tuple(exports)
        for name in self._exports:
            builder.export_symbol(name)
        self._tracker = builder.link(_orc(), f"pypto_dsl_{next(_serial)}")

    def address(self, name: str) -> int:
        """The address of an exported symbol."""
        address: int = self._tracker[name]
        return address
