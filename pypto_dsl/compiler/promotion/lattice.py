"""Closing a lattice into its join table with networkx, checking its laws, and writing `tables.py`.

Run ``python -m pypto_dsl.compiler.promotion.lattice`` after changing `definitions`: it prints the new text of `tables.py`. Nothing
imports this module at compile time; a test derives the tables again and compares.
"""
from __future__ import annotations

import networkx as nx

from pypto_dsl.compiler.promotion.definitions import KIND_ORDER, LATTICES, LatticeDefinition, kind
from pypto_dsl.compiler.promotion.join_table import Cell, JoinTable


class LatticeError(ValueError):
    """A definition that is no lattice of the promised sort: a cycle, a pair without join in a total one."""


def graph(definition: LatticeDefinition) -> nx.DiGraph:
    """The order as a graph, an edge from each node to those directly above it."""
    result = nx.DiGraph(name=definition.name)
    result.add_nodes_from(definition.edges)
    result.add_edges_from((low, high) for low, above in definition.edges.items() for high in above)
    if unknown := sorted(set(result) - set(definition.edges)):
        raise LatticeError(f"{definition.name}: edges lead to undefined nodes {', '.join(unknown)}")
    if not nx.is_directed_acyclic_graph(result):
        cycle = " -> ".join(low for low, _ in nx.find_cycle(result))
        raise LatticeError(f"{definition.name}: the order has a cycle, {cycle}")
    return result


def least_upper_bounds(order: nx.DiGraph) -> dict[tuple[str, str], Cell]:
    """For every ordered pair the unique least upper bound, or the minimal upper bounds when they are none or several."""
    above = {node: {node} | nx.descendants(order, node) for node in order}
    cells: dict[tuple[str, str], Cell] = {}
    for lhs in order:
        for rhs in order:
            common = above[lhs] & above[rhs]
            minimal = tuple(node for node in order if node in common and not any(node in above[c] for c in common - {node}))
            least = next((node for node in minimal if common <= above[node]), None)
            cells[lhs, rhs] = Cell(least) if least is not None else Cell(None, minimal)
    return cells


def close(definition: LatticeDefinition) -> JoinTable:
    """The join table of a definition: least upper bounds, weak kinds resolved or spread over their storages, then the mask.

    Raises LatticeError when the order is cyclic, a pair of a total lattice has no join, or the table is not idempotent and commutative.
    """
    bounds = least_upper_bounds(graph(definition))
    nodes = tuple(storage for node in definition.edges for storage in definition.storages.get(node, (node,)))
    of_storage = {storage: node for node, storages in definition.storages.items() for storage in storages}
    cells = {}
    for lhs in nodes:
        for rhs in nodes:
            operands = _resolved(definition, lhs, rhs)
            cell = bounds[of_storage.get(operands[0], operands[0]), of_storage.get(operands[1], operands[1])]
            if cell.result is not None and cell.result in definition.storages:
                cell = Cell(_storage(definition, of_storage, lhs, rhs, cell.result))
            if definition.mask and cell.result and definition.mask(lhs, rhs, cell.result):
                cell = Cell(None, (cell.result,), True)
            cells[lhs, rhs] = cell
    _check(definition, nodes, cells)
    rows = tuple(" ".join(str(cells[lhs, rhs]) for rhs in nodes) for lhs in nodes)
    return JoinTable(definition.name, nodes, rows)


def _resolved(definition: LatticeDefinition, lhs: str, rhs: str) -> tuple[str, str]:
    """The operands after a weak node that meets a strong one of a lower kind took its default dtype."""
    def lower(other: str, node: str) -> bool:
        return not other.endswith("*") and KIND_ORDER.index(kind(other)) < KIND_ORDER.index(kind(node))
    return (definition.resolves[lhs] if lhs in definition.resolves and lower(rhs, lhs) else lhs,
            definition.resolves[rhs] if rhs in definition.resolves and lower(lhs, rhs) else rhs)


def _storage(definition: LatticeDefinition, of_storage: dict[str, str], lhs: str, rhs: str, result: str) -> str:
    """The weak node that stores a join of weak kind ``result``: the default width, or the widest that two weak operands brought, where
    integers bring none to a float."""
    storages = definition.storages[result]
    operands = [node for node in (lhs, rhs) if node in of_storage]
    if not definition.keeps_storage or len(operands) < 2:
        return storages[-1]
    floating = [node for node in operands if kind(node) in ("float", "complex")] or operands
    position = max(definition.storages[of_storage[node]].index(node) for node in floating)
    return storages[position]


def _check(definition: LatticeDefinition, nodes: tuple[str, ...], cells: dict[tuple[str, str], Cell]) -> None:
    # A weak kind whose width is always the default (JAX strict) is idempotent at that width only.
    reset = () if definition.keeps_storage else tuple(s for storages in definition.storages.values() for s in storages[:-1])
    for lhs in nodes:
        if lhs not in reset and cells[lhs, lhs].result != lhs:
            raise LatticeError(f"{definition.name}: {lhs} joined with itself is {cells[lhs, lhs]}")
        for rhs in nodes:
            if cells[lhs, rhs] != cells[rhs, lhs]:
                raise LatticeError(f"{definition.name}: the join of {lhs} and {rhs} depends on their order")
            if definition.total and cells[lhs, rhs].result is None:
                raise LatticeError(f"{definition.name}: {lhs} and {rhs} have no unique least upper bound")


def render() -> str:
    """The text of `tables.py`: every lattice of `definitions`, closed, with aligned columns."""
    lines = ['"""Closed join tables, generated by `pypto_dsl.compiler.promotion.lattice` from `definitions`; do not edit.',
             "",
             "Cells: ``f32`` join, ``!bf16|f16`` no unique least upper bound, ``!`` no upper bound, ``~f32`` refused by the mask.",
             '"""',
             "# ruff: noqa: E501",
             "from __future__ import annotations",
             "",
             "from pypto_dsl.compiler.promotion.join_table import JoinTable",
             "",
             "TABLES: dict[str, JoinTable] = {"]
    for definition in LATTICES.values():
        table = close(definition)
        width = max(len(cell) for row in table.rows for cell in row.split())
        width = max(width, *map(len, table.nodes))
        lines += [f'    "{table.name}": JoinTable(', f'        "{table.name}",',
                  f"        ({', '.join(chr(34) + node + chr(34) for node in table.nodes)}),", "        ("]
        lines += [f'            "{" ".join(cell.ljust(width) for cell in row.split()).rstrip()}",  # {node}'
                  for node, row in zip(table.nodes, table.rows, strict=True)]
        lines += ["        ),", "    ),"]
    return "\n".join([*lines, "}", ""])


if __name__ == "__main__":
    print(render(), end="")
