"""The processor feature levels that the LLVM emitter writes for, and what suits one model better, read from the target's data file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Tuning:
    """What suits a model of processor. It changes speed and no result."""

    name: str  # LLVM's name of the processor, or "default"
    streaming_bits: int  # the widest vector of loops that move elements of 32 bits and hardly compute
    fetches_ahead: bool  # reductions of rows from memory ask for what they read next


@dataclass(frozen=True)
class FeatureLevel:
    """One width of vector code: what the emitter may use, and how LLVM is told."""

    name: str
    architecture: str  # as in the first word of a target triple
    vector_bits: int
    cpu: str  # LLVM's name of the smallest processor that has the level
    requires: tuple[str, ...]  # LLVM feature names that the host must have
    vectors_together: int  # the most vectors of long functions that are worth working on at the same time
    fuses: bool  # multiply-add is an instruction
    permutes_tables: bool  # 16- and 32-entry float tables live in vector registers
    permutes_eights: bool  # eight f32 lanes are permuted in one instruction
    scales_by_exponent: bool  # x * 2^n in one instruction
    takes_apart: bool  # exponent and significand of an f32 number, in one instruction each
    converts_half: bool  # f16 <-> f32 in one instruction
    has_ranges: bool  # minimum and maximum that order the zeros in one instruction
    tuning: Tuning

    def lanes(self, element_bytes: int) -> int:
        """Elements of one vector register."""
        return self.vector_bits // (8 * element_bytes)

    @property
    def float_lanes(self) -> int:
        """Lanes of an f32 vector: the iteration width of every vector loop."""
        return self.vector_bits // 32


    def tuned(self, processor: str) -> FeatureLevel:
        """The level on a processor, by LLVM's name of it."""
        return replace(self, tuning=tunings().get(processor, tunings()[DEFAULT]))


DEFAULT = "default"  # the tuning of processors that have none of their own


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(files("pypto_dsl.compiler.targets").joinpath("llvm-cpu.toml").read_text("utf-8"))


@cache
def tunings() -> dict[str, Tuning]:
    """All tunings by LLVM's name of the processor, and the default one."""
    return {name: Tuning(name, row["streaming_bits"], row["fetches_ahead"]) for name, row in _data()["tuning"].items()}


@cache
def feature_levels() -> dict[str, FeatureLevel]:
    """All levels by name, widest first per architecture, with the default tuning."""
    return {
        name: FeatureLevel(
            name=name,
            architecture=row["architecture"],
            vector_bits=row["vector_bits"],
            cpu=row["cpu"],
            requires=tuple(row["requires"]),
            vectors_together=row["vectors_together"],
            fuses=row["fuses"],
            permutes_tables=row["permutes_tables"],
            permutes_eights=row["permutes_eights"],
            scales_by_exponent=row["scales_by_exponent"],
            takes_apart=row["takes_apart"],
            converts_half=row["converts_half"],
            has_ranges=row["has_ranges"],
            tuning=tunings()[DEFAULT],
        )
        for name, row in _data()["level"].items()
    }
