"""What the compiler made of a kernel and why: types and what forced them, fused groups, tiles, memory, steps; as data and as text."""
from __future__ import annotations

from pypto_dsl.explain.collect import SOURCE_MAP, explain, known_differences, source_lines
from pypto_dsl.explain.text import Explanation

__all__ = ["SOURCE_MAP", "Explanation", "explain", "known_differences", "source_lines"]
