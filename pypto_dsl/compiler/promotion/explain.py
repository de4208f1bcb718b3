"""Why a combination of types promotes as it does: the result, the path in the lattice, and what every other rule set says."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import networkx as nx

from pypto_dsl.compiler.dtypes import BY_NAME, BY_PYPTO
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.promotion.definitions import COMPLEX_MANTISSA, KIND_ORDER, LATTICES, LatticeDefinition, kind
from pypto_dsl.compiler.promotion.lattice import graph
from pypto_dsl.compiler.promotion.rules import RuleSet
from pypto_dsl.compiler.promotion.rulesets import RULE_SETS, rule_set


@dataclass(frozen=True)
class Step:
    """One join of a left fold. ``paths`` lead from each operand up to the result along the lattice's edges; empty where the rule set is no
    lattice or the pair is refused. ``notes`` say what happened before the join (a Python scalar took its default dtype)."""

    lhs: str
    rhs: str
    result: str | None
    reason: str
    candidates: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """The promotion of ``operands`` under ``ruleset``, step by step, and the other rule sets' results (a node, or "refused: ...")."""

    ruleset: str
    operands: tuple[str, ...]
    result: str | None
    steps: tuple[Step, ...]
    others: dict[str, str]

    def data(self) -> dict[str, Any]:
        """Plain data, for ``--json``."""
        return asdict(self)

    def text(self) -> str:
        """The explanation as `ptc promote` prints it."""
        lines = [f"{' and '.join(self.operands)} under `{self.ruleset}`: {self.result or 'refused'}"]
        for step in self.steps:
            if len(self.steps) > 1:
                lines.append(f"  {step.lhs} and {step.rhs}: {step.result or 'refused'}")
            lines += [f"  note: {note}" for note in step.notes]
            if step.reason:
                lines.append(f"  reason: {step.reason}")
            lines += [f"  path: {' -> '.join(path)}" for path in step.paths if len(path) > 1]
        same = [name for name, result in self.others.items() if result == self.result]
        differing = {name: result for name, result in self.others.items() if name not in same}
        if same:
            lines.append(f"  the same under: {', '.join(same)}")
        width = max(map(len, differing), default=0)
        lines += [f"  {name.ljust(width)}  {result}" for name, result in differing.items()]
        return "\n".join(lines)


def parse_node(text: str, rules: RuleSet) -> str:
    """The table node that ``text`` names: ``f16``, ``DT_FP16``, ``f32*``, ``c64``, or ``int``, ``float`` for a Python scalar.

    Raises KernelError (PT208) for anything else.
    """
    mark = "*" if text.endswith("*") else ""
    name = text.removesuffix("*")
    if name in ("int", "float") and not mark:
        return rules.default(name).name + "*"
    if name in BY_PYPTO:
        return BY_PYPTO[name].name + mark
    if name in BY_NAME or name in COMPLEX_MANTISSA:
        return name + mark
    raise error("PT208", f"`{text}` is no dtype",
                help=f"one of {', '.join(BY_NAME)} or a DT_ name, with * for a weak type; or int, float for a Python scalar")


def explain(operands: Sequence[str], rules: str = "pypto") -> Explanation:
    """Explain the join of ``operands``, folded from the left, under the rule set called ``rules``.

    Raises KernelError: PT207 unknown rule set, PT208 unknown dtype. A refusal is part of the explanation, not an error.
    """
    chosen = rule_set(rules)
    nodes = tuple(parse_node(text, chosen) for text in operands)
    steps = _fold(chosen, nodes)
    others = {name: _outcome(other, tuple(parse_node(text, other) for text in operands))
              for name, other in RULE_SETS.items() if name != chosen.name}
    return Explanation(chosen.name, nodes, steps[-1].result if steps else nodes[0], steps, others)


def _outcome(rules: RuleSet, nodes: tuple[str, ...]) -> str:
    steps = _fold(rules, nodes)
    if not steps:
        return nodes[0]
    return steps[-1].result or f"refused: {steps[-1].reason}"


def _fold(rules: RuleSet, nodes: tuple[str, ...]) -> tuple[Step, ...]:
    steps: list[Step] = []
    joined = nodes[0]
    for node in nodes[1:]:
        step = _step(rules, joined, node)
        steps.append(step)
        if step.result is None:
            break
        joined = step.result
    return tuple(steps)


def _step(rules: RuleSet, lhs: str, rhs: str) -> Step:
    cell = rules.cell(lhs, rhs)
    if cell.result is None:
        return Step(lhs, rhs, None, rules.reason(lhs, rhs, cell), cell.candidates, (), ())
    definition = LATTICES.get(rules.name)
    if definition is None:
        return Step(lhs, rhs, cell.result, "", (), (), ("the left tensor's dtype; a number takes the tensor's",))
    starts, notes = _starts(definition, lhs, rhs)
    order = graph(definition)
    target = _lattice_node(definition, cell.result)
    paths = tuple(tuple(nx.shortest_path(order, start, target)) for start in starts if start in order and target in order)
    return Step(lhs, rhs, cell.result, "", (), paths, notes)


def _starts(definition: LatticeDefinition, lhs: str, rhs: str) -> tuple[tuple[str, str], tuple[str, ...]]:
    """The lattice nodes that the operands start from, and a note for each scalar that took its default dtype first."""
    starts, notes = [], []
    for node, other in ((lhs, rhs), (rhs, lhs)):
        default = definition.resolves.get(node)
        if default and not other.endswith("*") and KIND_ORDER.index(kind(other)) < KIND_ORDER.index(kind(node)):
            notes.append(f"a scalar {node} on a tensor of {other} is {default} first")
            starts.append(default)
        else:
            starts.append(_lattice_node(definition, node))
    return (starts[0], starts[1]), tuple(notes)


def _lattice_node(definition: LatticeDefinition, node: str) -> str:
    """JAX's weak kinds stand for all their widths."""
    return next((weak for weak, storages in definition.storages.items() if node in storages), node)


def markdown_table(rules: str) -> str:
    """The join table of a rule set over this compiler's dtypes and the two Python scalars, as Markdown; a dash is a refusal."""
    chosen = rule_set(rules)
    scalars = {chosen.infer(1).node: "int", chosen.infer(1.0).node: "float"}
    columns = [node for node in chosen.nodes if node in scalars or node in BY_NAME]
    names = [scalars.get(node, node) for node in columns]
    lines = [f"| | {' | '.join(names)} |", "|---" * (len(columns) + 1) + "|"]
    for lhs, name in zip(columns, names, strict=True):
        cells = [chosen.cell(lhs, rhs).result or "-" for rhs in columns]
        lines.append(f"| **{name}** | {' | '.join(cells)} |")
    return "\n".join(lines)
