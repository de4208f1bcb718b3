"""Numbers that the host computes once: tile counts and tails of the extents, as scalars with a definition."""
from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from pypto_dsl.compiler.dtypes import F32, I64
from pypto_dsl.compiler.index import Compound, Index, as_index, var
from pypto_dsl.compiler.placement.ttmetal.rebuild import rebuild
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import IndexValue, Scalar, ScalarRead, TileKernel
from pypto_dsl.compiler.tile_ir.ttmetal import FillTile, PadTile


@dataclass
class Hoisted:
    """Scalars made so far, by what they are."""

    known: frozenset[str]
    tile: int
    names: set[str]
    made: dict[tuple[Index, str], Scalar] = field(default_factory=dict)

    def scalar(self, value: Index, dtype: str, wish: str) -> str:
        """The name of the scalar with that value."""
        key = (value, dtype)
        if key not in self.made:
            base = re.sub(r"\W+", "_", wish).strip("_")
            name, n = base, 1
            while name in self.names:
                n += 1
                name = f"{base}_{n}"
            self.names.add(name)
            self.made[key] = Scalar(name, F32 if dtype == "f32" else I64, value)
        return self.made[key].name

    def fixed(self, x: Index) -> bool:
        """Whether only scalars decide the value, and more than one constant or name does."""
        return bool(x.variables()) and x.variables() <= self.known

    def index(self, x: Index) -> Index:
        """``x`` with every division, remainder and extreme of scalars replaced by a scalar."""
        total = as_index(0)
        for monomial, coefficient in x.terms:
            product = as_index(coefficient)
            for atom in monomial:
                if not isinstance(atom, Compound):
                    product = product * var(atom.name)
                    continue
                here = Index((((atom,), 1),))
                if self.fixed(here):
                    product = product * var(self.scalar(here, "i64", self._wish(atom)))
                else:
                    product = product * _again(replace(atom, a=self.index(atom.a), b=self.index(atom.b)))
            total = total + product
        return total

    def _wish(self, atom: Compound) -> str:
        numerator = (atom.a - (self.tile - 1)).name
        if atom.op == "//" and atom.b.constant == self.tile and numerator is not None:
            return f"{numerator}_tiles"
        names = "_".join(sorted(atom.a.variables() | atom.b.variables()))
        if atom.op == "//" and atom.b.constant is not None:
            return f"{names}_by_{atom.b.constant}"
        return f"{names}_{ {'//': 'part', '%': 'rest', 'min': 'least', 'max': 'most'}[atom.op] }"


def _again(atom: Compound) -> Index:
    return Index((((atom,), 1),))


def hoist_scalars(kernel: TileKernel, target: Target) -> TileKernel:
    """Scalars for what depends on extents alone: tile counts, live lanes of last tiles, counts as f32 words."""
    known = frozenset(s.name for s in kernel.scalars)
    names = {*known, *kernel.grid.vars, *(p.name for p in kernel.params)}
    hoisted = Hoisted(known, int(target.table("geometry")["cols"]), names)

    def first(node: Any) -> Any:
        if isinstance(node, IndexValue) and hoisted.fixed(node.value):
            return ScalarRead(hoisted.scalar(node.value, "f32", f"{node.value}_f32"), F32)
        if isinstance(node, (PadTile, FillTile)) and node.valid is not None and hoisted.fixed(node.valid) and node.valid.name is None:
            wish = "_".join(sorted(node.valid.variables())) + "_last"
            return replace(node, valid=var(hoisted.scalar(node.valid, "i64", wish)))
        return node

    body, once = (rebuild(x, index=hoisted.index, first=first) for x in (kernel.body, kernel.once))
    grid = replace(kernel.grid, extents=tuple(hoisted.index(e) for e in kernel.grid.extents))
    scalars = (*kernel.scalars, *sorted(hoisted.made.values(), key=lambda s: s.name))
    return replace(kernel, body=body, once=once, grid=grid, scalars=scalars)
