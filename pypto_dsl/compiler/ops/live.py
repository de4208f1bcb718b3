"""Live extents: which part of a result holds values when an operand is a tail, family by family.

An element-wise result is live where all its operands are; broadcasting goes by static extent 1 only. Nothing outside is ever read.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pypto_dsl.compiler.graph import Graph, TensorType, Value
from pypto_dsl.compiler.index import Compound, Index, as_index, at_most, floordiv, maximum, minimum, modulo, var

Shape = tuple[Index, ...]


def is_never_negative(x: Index, graph: Graph) -> bool:
    """Whether ``x`` is provably >= 0, from the bounds of the loops and extents it names; False means "not proved"."""
    for _ in range(8):
        if x.constant is not None:
            return x.constant >= 0
        replaceable: list[tuple[Index, Index, int]] = []
        for monomial, coefficient in x.terms:
            symbol = graph.symbols.get(getattr(monomial[0], "name", "")) if len(monomial) == 1 else None
            bound = None if symbol is None else symbol.minimum if coefficient > 0 else symbol.maximum
            if bound is not None:
                replaceable.append((as_index(bound), Index(((monomial, coefficient),)), coefficient))
        if not replaceable:
            return False
        # a bound of other symbols goes first: i <= M - 1 must meet M before M meets its own minimum
        bound, term, coefficient = min(replaceable, key=lambda r: r[0].is_constant)
        x = x - term + bound * coefficient
    return False


def decided(x: Index, graph: Graph) -> Index:
    """``x`` with every minimum and maximum replaced by the side that the bounds of loops and extents prove to be it."""
    total = as_index(0)
    for monomial, coefficient in x.terms:
        product = as_index(coefficient)
        for atom in monomial:
            product = product * (_decided(atom, graph) if isinstance(atom, Compound) else var(atom.name))
        total = total + product
    return total


def _decided(atom: Compound, graph: Graph) -> Index:
    a, b = decided(atom.a, graph), decided(atom.b, graph)
    if atom.op in ("min", "max"):
        if is_never_negative(b - a, graph):
            return a if atom.op == "min" else b
        if is_never_negative(a - b, graph):
            return b if atom.op == "min" else a
    return {"min": minimum, "max": maximum, "//": floordiv, "%": modulo}[atom.op](a, b)


def clip(shape: Sequence[Index], live: Sequence[Index], offsets: Sequence[Index], graph: Graph) -> Shape:
    """The live part of a window of ``shape`` at ``offsets`` into a tensor whose live extents are ``live``."""
    return tuple(extent if is_never_negative(have - offset - extent, graph) else maximum(at_most(extent, have - offset), 0)
                 for extent, have, offset in zip(shape, live, offsets, strict=True))


def broadcast(operands: Sequence[Value], rank: int) -> Shape:
    """Common live extents of operands that broadcast together; an axis of static extent 1 says nothing where another is wider."""
    result: list[Index] = []
    for axis in range(rank):
        wide: Index | None = None
        single: Index | None = None
        for value in operands:
            at = axis - (rank - value.type.rank)
            if at < 0:
                continue
            extent = value.type.live[at]
            if value.type.shape[at].constant == 1:
                single = extent if single is None else at_most(single, extent)
            else:
                wide = extent if wide is None else at_most(wide, extent)
        found = single if wide is None else wide
        result.append(as_index(1) if found is None else found)
    return tuple(result)


def _reduce(operands: Sequence[Value], attributes: Mapping[str, Any], shape: Shape, graph: Graph) -> Shape:
    source = operands[0].type
    dim = attributes.get("dim")
    axes = {d % source.rank for d in (range(source.rank) if dim is None else dim if isinstance(dim, tuple) else (dim,))}
    if attributes.get("keepdim"):
        return tuple(as_index(1) if i in axes else e for i, e in enumerate(source.live))
    return tuple(e for i, e in enumerate(source.live) if i not in axes)


def _matmul(operands: Sequence[Value], attributes: Mapping[str, Any], shape: Shape, graph: Graph) -> Shape:
    a, b = operands[0].type, operands[1].type
    rows = a.live[-1 if attributes.get("a_trans") else -2]
    cols = b.live[-2 if attributes.get("b_trans") else -1]
    lead = [Value(TensorType(t.dtype, t.shape[:-2], valid=t.live[:-2])) for t in (a, b)]
    return (*broadcast(lead, len(shape) - 2), rows, cols)


def _permute(operands: Sequence[Value], attributes: Mapping[str, Any], shape: Shape, graph: Graph) -> Shape:
    live = operands[0].type.live
    return tuple(live[p % len(live)] for p in attributes["perm"])


def _reshape(operands: Sequence[Value], attributes: Mapping[str, Any], shape: Shape, graph: Graph) -> Shape:
    """Elements are compacted. Axes that stay keep their live extent; otherwise only the leading axis shrinks."""
    if attributes.get("valid") is not None:
        return tuple(as_index(v) for v in attributes["valid"])
    source = operands[0].type
    if source.valid is None:
        return shape
    queue = _kept(source, shape)
    if queue is not None:
        return tuple(e if e.constant == 1 else queue.pop(0) for e in shape)
    return (_product(source.live) // _product(shape[1:]), *shape[1:])


def _kept(source: TensorType, shape: Shape) -> list[Index] | None:
    """The live extents of the axes wider than 1, where ``shape`` has the same ones; else None."""
    pairs = [(e, v) for e, v in zip(source.shape, source.live, strict=True) if e.constant != 1]
    return [v for _, v in pairs] if [e for e, _ in pairs] == [e for e in shape if e.constant != 1] else None


def _product(extents: Sequence[Index]) -> Index:
    count = as_index(1)
    for extent in extents:
        count = count * extent
    return count


def is_moved_by_reshape(source: TensorType, shape: Shape) -> bool:
    """Whether compacting a tail under ``shape`` would change where its live elements lie in row-major order.

    They stay where the axes stay, and where whole rows at the start are live and make whole rows of the result.
    """
    if source.valid is None or _kept(source, shape) is not None:
        return False
    wide = [(e, v) for e, v in zip(source.shape, source.live, strict=True) if e.constant != 1]
    count, rest = _product(source.live), _product(shape[1:])
    return any(e != v for e, v in wide[1:]) or (count // rest) * rest != count


LiveRule = Callable[[Sequence[Value], Mapping[str, Any], Shape, Graph], Shape]
BY_FAMILY: dict[str, LiveRule] = {"reduce": _reduce, "matmul": _matmul}
BY_NAME: dict[str, LiveRule] = {"permute": _permute, "reshape": _reshape}
MAKES_TAILS: set[str] = {"reshape"}  # operations whose result may be a tail although no operand is


def live_extents(name: str, family: str, operands: Sequence[Value], attributes: Mapping[str, Any], shape: Shape,
                 graph: Graph) -> Shape | None:
    """The live extents of a result, or None when they are its shape. The operations of `layout` enter their rules in `BY_NAME`."""
    if not [o for o in operands if o.type.valid is not None] and name not in MAKES_TAILS:
        return None
    rule = BY_NAME.get(name) or BY_FAMILY.get(family)
    live = rule(operands, attributes, shape, graph) if rule else broadcast(operands, len(shape))
    return None if live == shape else live
