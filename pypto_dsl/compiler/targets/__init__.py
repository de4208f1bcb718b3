"""Targets as data: one TOML file per chip or CPU family, and the record that passes read."""
from pypto_dsl.compiler.targets.target import Target, TileChoices, load, names

__all__ = ["Target", "TileChoices", "load", "names"]
