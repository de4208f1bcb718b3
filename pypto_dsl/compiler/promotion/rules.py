"""A promotion rule set: how two types join, what a Python or NumPy value is, and why a pair is refused."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import BOOL, F32, I32, DType
from pypto_dsl.compiler.promotion import refusal
from pypto_dsl.compiler.promotion.atype import AType, of_node
from pypto_dsl.compiler.promotion.definitions import COMPLEX_MANTISSA, KIND_ORDER, LATTICES, NARROW_FLOATS, kind, mantissa
from pypto_dsl.compiler.promotion.join_table import Cell
from pypto_dsl.compiler.promotion.refusal import PromotionError, cast_fix
from pypto_dsl.compiler.promotion.result_rules import ResultRules
from pypto_dsl.compiler.promotion.scalars import describe, misfit, strong_node
from pypto_dsl.compiler.promotion.tables import TABLES


@dataclass(frozen=True, eq=False)
class RuleSet:
    """One promotion rule set over a join table. Rule sets compare by identity, so that they can be keys.

    ``laws`` names what holds for every pair or triple of its types: "total", "commutative", "associative" (both bracketings of a triple are
    refused, or both give one value), "value-associative" (two defined bracketings agree), "value-associative-strong" (the same over
    strong types). ``scalar_int`` is the dtype a Python int must fit when its type is inferred (TensorFlow, JAX), None when only the dtype
    it lands on counts. ``pow_table`` names another rule set's table for pow. ``in_place_pairs`` are (operation, destination, value) triples
    that an in-place operation takes beside the joins.
    """

    name: str
    laws: frozenset[str]
    results: ResultRules
    defaults: Mapping[str, DType] = field(default_factory=lambda: {"bool": BOOL, "int": I32, "float": F32})
    scalar_int: DType | None = None
    pow_table: str = ""
    in_place_pairs: frozenset[tuple[str, str, str]] = frozenset()

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node of the rule set's table, complex ones included."""
        return TABLES[self.name].nodes

    def default(self, kind: str) -> DType:
        """The dtype of a Python scalar of ``kind`` ("bool", "int", "float") that no tensor decides for."""
        return self.defaults[kind]

    def cell(self, lhs: str, rhs: str, table: str = "") -> Cell:
        """The join of two nodes, or the refusal.

        A dtype outside the table joins with itself and with Python scalars of its kind or lower, keeping its type.
        """
        cells = TABLES[table or self.name].cells
        lhs, rhs = self._known(lhs), self._known(rhs)
        if (found := cells.get((lhs, rhs))) is not None:
            return found
        if "complex" in (kind(lhs), kind(rhs)):
            return Cell(None)
        if lhs == rhs:
            return Cell(lhs)
        for strong_side, weak_side in ((lhs, rhs), (rhs, lhs)):
            if weak_side.endswith("*") and not strong_side.endswith("*") and _order(weak_side) <= _order(strong_side):
                return Cell(strong_side)
        return Cell(None)

    def reason(self, lhs: str, rhs: str, cell: Cell) -> str:
        """Why ``cell`` refuses the pair, in words."""
        mask = LATTICES[self.name].mask if self.name in LATTICES else None
        if cell.masked and mask is not None:
            return mask(lhs, rhs, cell.candidates[0])
        for node in (lhs, rhs):
            if node not in self.nodes:
                return f"{node} is no type of these rules"
        if {kind(lhs), kind(rhs)} == {"int"} and not lhs.endswith("*") and not rhs.endswith("*"):
            return "two different integer dtypes have no common dtype" + _candidates(cell)
        for node in (lhs, rhs):
            if node in NARROW_FLOATS:
                return f"{node} is a storage dtype and has no common dtype with another"
        return "they have no common dtype" + _candidates(cell)

    def join(self, lhs: AType, rhs: AType, *, op: str = "join", names: Sequence[str] = (), table: str = "") -> AType:
        """The type of an operation over ``lhs`` and ``rhs``. Raises PromotionError (PT202) when the rule set has none.

        ``names`` are the operands' names in the user's source, for the remedies. ``table`` is another rule set's table (pow).
        """
        cell = self.cell(lhs.node, rhs.node, table)
        if cell.result is None:
            raise self.refuse(op, lhs, rhs, self.reason(self._known(lhs.node), self._known(rhs.node), cell), cell, names)
        if cell.result.removesuffix("*") in COMPLEX_MANTISSA:
            raise self.refuse(op, lhs, rhs, f"the join {cell.result} is complex, and no tensor is", cell, names)
        forcing = lhs if cell.result == lhs.node else rhs if cell.result == rhs.node else None
        return of_node(cell.result, forcing.origin if forcing else "")

    def fold(self, types: Sequence[AType], *, op: str = "join", names: Sequence[str] = (), table: str = "") -> AType:
        """The join of all ``types``, folded from the left in source order. The error of a failing step names the operands so far."""
        if not types:
            raise ValueError(f"{op}: no operands to join")
        joined = types[0]
        for position, following in enumerate(types[1:], 1):
            if position > 1:
                joined = replace(joined, origin=f"operands 1 to {position} joined")
            pair = (names[0] if position == 1 else "", names[position]) if len(names) > position else ()
            joined = self.join(joined, following, op=op, names=pair, table=table)
        return joined

    def refuse(self, op: str, lhs: AType, rhs: AType | None, reason: str, cell: Cell | None = None, names: Sequence[str] = (),
               code: str = refusal.NO_JOIN) -> PromotionError:
        """The error of a refused pair, with its remedies."""
        fixes = self._fixes(lhs, rhs, cell, names) if rhs is not None and cell is not None else ()
        return PromotionError(code, op, lhs, rhs, self.name, reason, cell.candidates if cell else (), fixes)

    def infer(self, value: Any) -> AType:
        """The type of a Python or NumPy value: Python scalars weak (bool strong), NumPy scalars and arrays strong.

        A nested list or tuple has the join of its leaves, weak only where the rule set says so. Raises PromotionError: PT201 for a value
        without a type here (complex, object, str), PT204 for a Python int outside the rule set's integers.
        """
        origin = describe(value)
        node = self.infer_node(value)
        if node.removesuffix("*") in COMPLEX_MANTISSA:
            raise self._untyped(value, f"{origin} is complex, and no tensor is")
        return of_node(node, origin)

    def infer_node(self, value: Any) -> str:
        """As `infer`, as a table node, where complex values have one (``c64``, ``c128*``)."""
        # np.float64 is a float and np.bool_ no bool: NumPy first. bool is an int: bool before int.
        if isinstance(value, (np.generic, np.ndarray)):
            node = strong_node(value.dtype)
            if node is None:
                raise self._untyped(value, f"NumPy dtype {value.dtype} has no twin here")
            return node
        if isinstance(value, bool):
            return BOOL.name
        if isinstance(value, int):
            if self.scalar_int is not None and (why := misfit(value, self.scalar_int)):
                raise PromotionError(refusal.NO_FIT, "value", AType(self.scalar_int, True, describe(value)), None, self.name, why)
            return self.defaults["int"].name + "*"
        if isinstance(value, float):
            return self.defaults["float"].name + "*"
        if isinstance(value, complex) and (node := self._weak_complex()):
            return node
        if isinstance(value, (list, tuple)):
            return self._infer_nested(value)
        raise self._untyped(value, f"a value of type {type(value).__name__} has no dtype")

    def storage(self, atype: AType, supported: frozenset[DType], op: str = "storage") -> AType:
        """``atype`` as a target with the dtypes ``supported`` stores it: a weak i64 or f64 becomes the 32-bit type of its kind.

        Raises PromotionError (PT206) for a strong dtype that the target lacks: it is never narrowed silently.
        """
        if atype.dtype in supported:
            return atype
        narrow = {"int": I32, "float": F32}.get(atype.dtype.kind)
        if atype.weak and narrow in supported and narrow is not None:
            return replace(atype, dtype=narrow)
        raise PromotionError(refusal.TOO_WIDE, op, atype, None, self.name, f"the target has no {atype.dtype.name}",
                             fixes=(cast_fix("x", narrow.name),) if narrow else ())

    def _known(self, node: str) -> str:
        """A weak type of a width that the table lacks is the default weak type of its kind."""
        if node in self.nodes or not node.endswith("*") or kind(node) == "complex":
            return node
        return self.defaults[kind(node)].name + "*"

    def _weak_complex(self) -> str:
        return next((node for node in reversed(self.nodes) if node.startswith("c") and node.endswith("*")), "")

    def _infer_nested(self, values: Sequence[Any]) -> str:
        joined = ""
        for value in values:
            node = self.infer_node(value)
            cell = self.cell(joined, node) if joined else Cell(node)
            if cell.result is None:
                raise self._untyped(values, f"elements of {joined} and {node} have no common dtype")
            joined = cell.result
        joined = joined or self.defaults["float"].name + "*"
        return joined if self.results.weak_lists else joined.removesuffix("*")

    def _untyped(self, value: Any, reason: str) -> PromotionError:
        return PromotionError(refusal.NO_TYPE, "value", AType(self.defaults["float"], True, describe(value)), None, self.name, reason)

    def _fixes(self, lhs: AType, rhs: AType, cell: Cell, names: Sequence[str]) -> tuple[str, ...]:
        """At most two remedies: the cast of the lesser operand, and the first other rule set that has a join."""
        left, right = names if len(names) == 2 else ("", "")
        fixes = [self._cast_fix((lhs, left or "lhs"), (rhs, right or "rhs"), cell)]
        for other in ("pypto", "tf-all", "jax"):
            if other == self.name or not {lhs.node, rhs.node} <= set(TABLES[other].nodes):
                continue
            if TABLES[other].cells[lhs.node, rhs.node].result is not None:
                fixes.append(f'@pypto.jit(promotion="{other}")')
                break
        return tuple(fix for fix in fixes if fix)

    def _cast_fix(self, left: tuple[AType, str], right: tuple[AType, str], cell: Cell) -> str:
        """The cast of one tensor, the lesser first, after which the pair joins: to the join that the mask refused, or to the other's
        dtype; "" when there is none."""
        lesser, other = (left, right) if _rank(left[0]) < _rank(right[0]) else (right, left)
        masked = cell.candidates[:1] if cell.masked else ()
        for subject, rest in ((lesser, other), (other, lesser)):
            if subject[0].weak:
                continue
            for node in (*masked, rest[0].dtype.name):
                target = node.removesuffix("*")
                if target != subject[0].dtype.name and self.cell(target, rest[0].node).result and (fix := cast_fix(subject[1], target)):
                    return fix
        return ""


@dataclass(frozen=True, eq=False)
class LeftRules(RuleSet):
    """The rules of ttnn: the result has the left operand's dtype, and few strong pairs are taken at all.

    ttnn 0.81.1 takes equal dtypes, and mixed ones only among BFLOAT16, FLOAT32, BFLOAT8_B and BFLOAT4_B; a number takes the tensor's dtype.
    """

    mixed: tuple[str, ...] = ("bf16", "f32", "bfp8_b", "bfp4_b")

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of pypto-strict: every dtype of this compiler and the two scalar types."""
        return TABLES["pypto-strict"].nodes

    def cell(self, lhs: str, rhs: str, table: str = "") -> Cell:
        """The left node, or the strong one of a tensor and a number; a refusal for strong pairs that ttnn does not mix."""
        lhs, rhs = self._known(lhs), self._known(rhs)
        if lhs not in self.nodes or rhs not in self.nodes:
            return Cell(None)
        if lhs == rhs:
            return Cell(lhs)
        left_weak, right_weak = lhs.endswith("*"), rhs.endswith("*")
        if left_weak and right_weak:
            return Cell(max(lhs, rhs, key=_order))
        if left_weak or right_weak:
            tensor, number = (rhs, lhs) if left_weak else (lhs, rhs)
            return Cell(tensor) if _order(number) <= _order(tensor) else Cell(None, (number.removesuffix("*"),))
        return Cell(lhs) if lhs in self.mixed and rhs in self.mixed else Cell(None)

    def reason(self, lhs: str, rhs: str, cell: Cell) -> str:
        """Why ttnn refuses the pair."""
        for node in (lhs, rhs):
            if node not in self.nodes:
                return f"{node} is no type of these rules"
        if lhs.endswith("*") or rhs.endswith("*"):
            tensor, number = (rhs, lhs) if lhs.endswith("*") else (lhs, rhs)
            return f"the result would have {tensor}, which cannot hold a number of {number}"
        return f"ttnn mixes only {', '.join(self.mixed)}; other operands must have equal dtypes"


def _order(node: str) -> int:
    return KIND_ORDER.index(kind(node))


def _candidates(cell: Cell) -> str:
    if not cell.candidates:
        return ""
    return f" ({' and '.join(cell.candidates)} are both minimal above them)"


def _rank(atype: AType) -> tuple[int, bool, int]:
    """Kind, then storage floats below computing ones, then precision."""
    return _order(atype.node), atype.dtype.name not in NARROW_FLOATS, mantissa(atype.node)
