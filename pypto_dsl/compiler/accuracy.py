"""How exact an operation is: one bound per operation, dtype and target, by rule from the op table and the target's `[bounds]`.

The facts are the `bound` of an operation's definition (its expansion's largest error in ulp of f32, with a derivation) and the rows of a
target's `[bounds.<dtype>]` (what the target has itself). Everything else follows:

1. Integers and truth values are exact, and so is what moves or selects elements.
2. A row of the target for the dtype itself holds there.
3. A 16-bit result is the f32 result rounded once: half an ulp, and the f32 bound as small as an ulp of f32 is against one of 16 bits.
4. f64 has the f32 bound, and two ulp for the reference's own functions, which are float64 too; what is rounded once is rounded once.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pypto_dsl.compiler.dtypes import F32, F64, SIXTEEN_BIT_FLOATS, DType
from pypto_dsl.compiler.ops import OpDefinition
from pypto_dsl.compiler.targets import Target

# Families whose operations move elements, or choose among them: where none is stated, nothing is rounded.
EXACT = frozenset({"layout", "generator", "scalar", "sort", "compare", "index", "cast"})
REFERENCE = 2.0  # ulp of f64 that the reference's own functions may be off: the C library's [GNU C Library manual, Known Maximum Errors]
ROUNDED_ONCE = 0.5


@dataclass(frozen=True)
class Bound:
    """The largest error of a result in ulp of its dtype against the exact one (of the operation's `scale`, where it has one), and why."""

    ulp: float
    source: str

    def text(self) -> str:
        """`exact`, `rounded once`, `0.51 ulp`."""
        return "exact" if self.ulp == 0 else "rounded once" if self.ulp == ROUNDED_ONCE else f"{self.ulp:.4g} ulp"


def bound(definition: OpDefinition, dtype: DType, target: Target | None = None) -> Bound | None:
    """The bound of a result of ``dtype`` on ``target``; without one, of the op table alone. None where no bound is stated."""
    if not dtype.is_float or definition.family == "compare":
        return Bound(0, "integers and truth values are exact")
    rows = _rows(definition, target)
    if dtype.name in rows:
        return rows[dtype.name]
    single = rows.get(F32.name)
    if definition.name == "cast":
        return Bound(ROUNDED_ONCE, "a conversion rounds once")
    if single is None:
        return Bound(0, "elements are moved or chosen") if definition.family in EXACT and not definition.bounds else None
    if single.ulp == 0:
        return single
    if dtype is F64:
        if single.ulp <= ROUNDED_ONCE:
            return single
        return Bound(single.ulp + REFERENCE, f"{single.source}; and the reference's own {REFERENCE:g}")
    if dtype in SIXTEEN_BIT_FLOATS:
        share = 2.0 ** (dtype.mantissa - F32.mantissa)
        return Bound(ROUNDED_ONCE + single.ulp * share, f"the f32 result, within {single.ulp:g} ulp, rounded once")
    return Bound(ROUNDED_ONCE, "computed in f32 and rounded once")


def _rows(definition: OpDefinition, target: Target | None) -> dict[str, Bound]:
    """What is stated of an operation by dtype: the op table's, and over it the target's own."""
    found = {dtype: Bound(ulp, definition.derivation) for dtype, ulp in definition.bounds.items()}
    if target is None:
        return found
    tables: Mapping[str, Any] = target.table("bounds")
    sources: Mapping[str, Any] = tables.get("sources", {})
    for dtype, rows in tables.items():
        if dtype != "sources" and definition.name in rows:
            source = sources.get(definition.name) or sources.get(dtype) or f"[bounds.{dtype}] of {target.name}"
            found[dtype] = Bound(float(rows[definition.name]), str(source))
    return found
