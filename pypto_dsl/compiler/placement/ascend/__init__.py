"""Placement for Ascend targets: `place` turns structured Tile IR into calls, queue actions, addresses and barriers."""
from pypto_dsl.compiler.placement.ascend.place import CORE, CORES, ITEMS, largest_tile, place, place_kernel

__all__ = ["CORE", "CORES", "ITEMS", "largest_tile", "place", "place_kernel"]
