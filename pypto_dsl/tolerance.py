"""How far a result may be off: an error bound for every result of a kernel, from dtypes, operations and reduction lengths."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pypto_dsl.compiler.dtypes import F32, F64, DType
from pypto_dsl.compiler.graph import Graph, Op, Region, TensorType, Value
from pypto_dsl.compiler.index import as_index
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.targets import Target

# Families whose operations move elements, or choose among them, and round nothing.
EXACT = frozenset({"layout", "generator", "scalar", "sort", "compare"})
# Operations that add up: the sum of n terms, in any order, is off by at most n roundings of the accumulator [Higham, Accuracy and
# Stability of Numerical Algorithms, section 4.2], relative to the sum of the magnitudes.
ADDING = frozenset({"reduce", "matmul", "scan", "row", "attention"})
CHOOSING = frozenset({"amax", "amin", "nanmax", "nanmin", "argmax", "argmin", "nanargmax", "nanargmin", "any", "all"})
UNSTATED = 4.0  # ulp of an operation for which no bound is stated


@dataclass(frozen=True)
class Tolerance:
    """The bound of one value: ``relative`` to the largest magnitude, and what it is made of along the worst way through the kernel.

    ``roundings`` is the sum of the operations' bounds in ulp, ``lengths`` the number of terms of each sum, ``coarsest`` the float dtype
    with the fewest digits on the way (None: nothing was rounded).
    """

    relative: float = 0.0
    roundings: float = 0.0
    lengths: tuple[int, ...] = ()
    coarsest: DType | None = None

    def text(self) -> str:
        """What the bound is made of, in words."""
        if self.coarsest is None:
            return "exact: nothing on the way rounds"
        sums = f" and sums of {', '.join(map(str, self.lengths))} terms" if self.lengths else ""
        return (f"within {self.relative:.1e} of the magnitude: {self.roundings:g} ulp of rounding{sums}, "
                f"{self.coarsest.name} at the coarsest")


def ulp(dtype: DType) -> float:
    """The distance of neighbours relative to a number of ``dtype``, at most: 2**(1 - digits)."""
    return 2.0 ** (1 - dtype.mantissa)


def tolerances(graph: Graph, symbols: Mapping[str, int], target: Target | None = None) -> dict[str, Tolerance]:
    """The tolerance of every output and returned value (`return0`, ...), by name.

    Along each way from the parameters to a result, every operation adds its bound in ulp (the larger of the op table's and the
    target's) times the ulp of its dtype, and every sum of n terms adds n half-ulps of its accumulator, which is f32 for dtypes of 16 bits
    or fewer. A fast kernel adds what the target's cheaper forms may be off. The worst way counts. How a formula magnifies errors
    (cancellation, exp of large numbers) is not in the bound.
    """
    walker = _Walker(dict(symbols), target, graph.is_fast)
    for parameter in graph.parameters:
        walker.found[parameter] = Tolerance()
    walker.region(graph.body)
    names = [*graph.outputs, *(f"return{i}" for i in range(len(graph.returns)))]
    return {name: walker.of(value) for name, value in zip(names, graph.results(), strict=True)}


class _Walker:
    """Tolerances by value while a graph is walked; regions by recursion, a loop's body once, times its turns."""

    def __init__(self, symbols: dict[str, int], target: Target | None, fast: bool) -> None:
        self.symbols = symbols
        self.target = target
        self.forms = {} if target is None or not fast else target.table("fast").get("bounds", {})
        self.bounds = {} if target is None else target.table("bounds")
        self.found: dict[Value, Tolerance] = {}

    def of(self, value: Value) -> Tolerance:
        return self.found.get(value, Tolerance())

    def region(self, region: Region) -> None:
        for op in region.ops:
            if op.opcode == "loop":
                self.loop(op)
            elif op.opcode == "if":
                for branch in op.regions:
                    self.region(branch)
                for position, result in enumerate(op.results):
                    self.found[result] = _worst([self.of(b.yields[position]) for b in op.regions])
            else:
                self.operation(op)

    def loop(self, op: Op) -> None:
        """What one turn adds to a carried value, as often as the loop turns."""
        (body,) = op.regions
        turns = self.turns(op)
        for argument, start in zip(body.arguments, op.operands, strict=True):
            self.found[argument] = self.of(start)
        self.symbols.setdefault(str(op.attributes["index"]), 0)
        self.region(body)
        for result, start, made in zip(op.results, op.operands, body.yields, strict=True):
            before, after = self.of(start), self.of(made)
            grown = max(0.0, after.relative - before.relative) * max(turns, 1)
            self.found[result] = Tolerance(before.relative + grown, before.roundings + (after.roundings - before.roundings) * max(turns, 1),
                                           after.lengths, after.coarsest)

    def turns(self, op: Op) -> int:
        start, stop, step = (self.extent(op.attributes[k]) for k in ("start", "stop", "step"))
        return len(range(start, stop, step)) if step else 0

    def operation(self, op: Op) -> None:
        worst = _worst([self.of(o) for o in op.operands])
        for result in op.results:
            own = self.own(op, result.type)
            coarsest = min((d for d in (worst.coarsest, own.coarsest) if d is not None), key=lambda d: d.mantissa, default=None)
            self.found[result] = Tolerance(
                worst.relative + own.relative, worst.roundings + own.roundings, worst.lengths + own.lengths, coarsest
            )

    def own(self, op: Op, result: TensorType) -> Tolerance:
        """What one operation adds."""
        dtype, definition = result.dtype, REGISTRY.get(op.opcode)
        if not dtype.is_float or definition is None or definition.family in EXACT:
            return Tolerance()
        adds = definition.family in ADDING and op.opcode not in CHOOSING
        stated = definition.bound(dtype)
        rows = self.bounds.get(dtype.name, self.bounds.get("f32", {})) if isinstance(self.bounds, Mapping) else {}
        here = None if adds else rows.get(op.opcode)  # a target's bound of a sum is of its longest chain, which is counted below
        known = [float(b) for b in (stated, here) if isinstance(b, (int, float))]
        bound = max(known) if known else UNSTATED
        if op.opcode == "cast":
            narrower = op.operands[0].type.dtype.mantissa > dtype.mantissa
            bound = 0.5 if narrower else 0.0
        length = self.terms(op, result) if adds else 0
        if length == 0 and (bound == 0 or op.opcode in CHOOSING):
            return Tolerance()
        bound = max(bound, 0.5)
        accumulator = F64 if dtype == F64 else F32
        cheaper = self.cheaper(op, accumulator)
        relative = bound * ulp(dtype) + (cheaper + length / 2) * ulp(accumulator)
        return Tolerance(relative, bound + cheaper, (length,) if length else (), dtype)

    def cheaper(self, op: Op, dtype: DType) -> float:
        """What a fast kernel's operation may be off beyond an exact one's, in ulp of the dtype that it is computed in."""
        rows = self.forms.get(dtype.name)
        if self.target is None or not rows:
            return 0.0
        if op.opcode in rows:
            return float(rows[op.opcode])
        if self.target.native(op.opcode, (dtype,) * len(op.operands), dtype):
            return 1.0 if op.opcode == "div" else 0.0
        return float(max(rows.values()))  # built of others, of which one may be in its cheaper form

    def terms(self, op: Op, result: TensorType) -> int:
        """How many terms each element of a sum has."""
        if not op.operands:
            return 0
        extents = [self.extent(e) for e in op.operands[0].type.shape]
        family = REGISTRY[op.opcode].family
        if family == "reduce":
            return math.prod(extents) // max(1, math.prod(self.extent(e) for e in result.shape))
        if family == "matmul":
            return extents[-2 if op.attributes.get("a_trans") else -1] if len(extents) > 1 else 0
        if family == "attention" and len(op.operands) > 1:
            keys = [self.extent(e) for e in op.operands[1].type.shape]
            return sum(keys[-2:])
        dim = op.attributes.get("dim", -1)
        return extents[dim] if isinstance(dim, int) and -len(extents) <= dim < len(extents) else max(extents, default=0)

    def extent(self, value: object) -> int:
        """An Index with what is known; a number that only the running kernel knows counts as 1."""
        index = as_index(value)  # type: ignore[arg-type]
        return index.evaluate({name: self.symbols.get(name, 1) for name in index.variables()})


def _worst(ways: Sequence[Tolerance]) -> Tolerance:
    return max(ways, key=lambda t: t.relative, default=Tolerance())
