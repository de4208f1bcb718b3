"""Placement: passes that turn structured Tile IR into what one family of device targets can spell, one folder per family."""
from __future__ import annotations

from collections.abc import Callable

from pypto_dsl.compiler.placement import ascend, ttmetal
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import Program

# Family of a target -> its placement. A family without one (llvm) spells structured Tile IR as it stands.
PLACEMENTS: dict[str, Callable[[Program, Target], Program]] = {"ascend": ascend.place, "ttmetal": ttmetal.place}
