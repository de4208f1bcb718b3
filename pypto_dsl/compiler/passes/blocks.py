"""Graph operations as Block operations: names, operands and leaves, the same for every kind of group."""
from __future__ import annotations

import re
from collections.abc import Callable, Container
from typing import cast

from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.graph import TIER, Op, Value
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.passes.fuse import VIEWS, Partition
from pypto_dsl.compiler.tile_ir.nodes import BlockOp, Constant, IndexValue, Operand, ScalarRead

# Attributes that say which dtype or shape results; a Block operation carries the result's dtype itself.
DROPPED = frozenset({"dtype", "shape", "axis", "value", "absent", "out_dtype"})
PASSED_THROUGH = frozenset({"clone", "expand_clone", "reshape"})


class Names:
    """Unique identifiers that are also legal in C and LLVM text. ``reserved`` is shared, not copied."""

    def __init__(self, reserved: Container[str] = ()) -> None:
        self.reserved = reserved
        self.taken: set[str] = set()
        self.last: dict[str, int] = {}

    def fresh(self, wish: str) -> str:
        """``wish`` or ``wish_1``, ..., never given before."""
        base = re.sub(r"\W", "_", wish) or "value"
        base = f"v{base}" if base[0].isdigit() else base
        candidate, n = base, self.last.get(base, 0)
        while candidate in self.taken or candidate in self.reserved:
            n += 1
            candidate = f"{base}_{n}"
        self.last[base] = n
        self.taken.add(candidate)
        return candidate


def generated(op: Op) -> Operand:
    """A constant or an extent as an operand."""
    dtype = op.results[0].type.dtype
    value = op.attributes.get("value")
    if op.opcode == "extent":
        return IndexValue(as_index(cast("Index | int", value)), dtype)
    return Constant(_number(value, dtype), dtype)


def _number(value: object, dtype: DType) -> float | int:
    if not isinstance(value, (bool, int, float)):
        raise TypeError(f"a constant is a number, and this is {value!r}")
    return float(value) if dtype.is_float else int(value)


class BlockBuilder:
    """Collects the operations of one Block; ``leaf`` reads values made elsewhere, ``lane`` gives lane indexes."""

    def __init__(self, names: Names, partition: Partition, leaf: Callable[[Value, Op], Operand],
                 lane: Callable[[Op, Op], Operand]) -> None:
        self.names, self.partition, self.leaf, self.lane = names, partition, leaf, lane
        self.ops: list[BlockOp] = []
        self.made: dict[Value, Operand] = {}
        self.same: dict[object, str] = {}

    def operand(self, value: Value, reader: Op) -> Operand:
        """The operand that stands for a value where ``reader`` reads it; uniform ones are computed on first use."""
        if value in self.made:
            return self.made[value]
        op = self.partition.cloned.get(value)
        if value in self.partition.numbers:
            return ScalarRead(value.name, value.type.dtype)
        if value in self.partition.elements:
            return ScalarRead(self.partition.elements[value], value.type.dtype)
        if op is None or op.opcode in VIEWS:
            return self.leaf(value, reader)
        if op.opcode == "iota":
            return self.lane(op, reader)
        return generated(op) if op.opcode in ("constant", "extent", "full") else self.add(op)

    def add(self, op: Op) -> Operand:
        """Append an elementwise operation and return its result."""
        value = op.results[0]
        if value in self.made:
            return self.made[value]
        operands = tuple(self.operand(o, op) for o in op.operands)
        if op.opcode in PASSED_THROUGH:
            self.made[value] = operands[0]
            return operands[0]
        if op.opcode == "cast" and isinstance(operands[0], ScalarRead) and operands[0].dtype == value.type.dtype:
            return operands[0]
        key = (op.opcode, operands, value.type.dtype, repr(_attributes(op)))
        if key in self.same:
            self.made[value] = self.same[key]
            return self.same[key]
        name = self.names.fresh(value.name or op.opcode)
        self.same[key] = name
        self.ops.append(BlockOp(name, op.opcode, operands, value.type.dtype, _attributes(op), op.span, value.name))
        self.made[value] = name
        return name


def _attributes(op: Op) -> tuple[tuple[str, str | int | float | bool], ...]:
    definition = REGISTRY[op.opcode]
    known = {TIER, *(p.name for p in definition.attributes)} - DROPPED
    return tuple((k, v) for k, v in sorted(op.attributes.items()) if k in known and isinstance(v, (str, int, float, bool)))
