"""Targets as data: one TOML file per chip or CPU family, and the record that passes read."""
from pypto_dsl.compiler.targets.target import FAMILIES, Target, TargetWarning, TileChoices, available, is_built_in, is_file, load, names

__all__ = ["FAMILIES", "Target", "TargetWarning", "TileChoices", "available", "is_built_in", "is_file", "load", "names"]
