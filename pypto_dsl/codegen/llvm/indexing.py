"""Index expressions as i64 values, and views: where a buffer's elements lie in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pypto_dsl.codegen.llvm.builder import I64, Builder, Value
from pypto_dsl.codegen.llvm.elements import memory_element
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.index import Compound, Index, Var, as_index

Scope = Mapping[str, Value]


def evaluate(b: Builder, index: Index | int, scope: Scope) -> Value:
    """The value of an Index with every variable in ``scope``; constants stay literals."""
    return _sum(b, as_index(index), scope, {})


def _sum(b: Builder, index: Index, scope: Scope, known: dict[Compound, Value]) -> Value:
    """``known`` keeps the values of parts that an expression names more than once."""
    if index.constant is not None:
        return b.constant(I64, index.constant)
    total: Value | None = None
    for monomial, coefficient in index.terms:
        product: Value | None = None
        for atom in monomial:
            factor = _atom(b, atom, scope, known)
            product = factor if product is None else product * factor
        if product is None:
            product = b.constant(I64, coefficient)
        elif coefficient != 1:
            product = product * coefficient
        total = product if total is None else total + product
    assert total is not None
    return total


def _atom(b: Builder, atom: Var | Compound, scope: Scope, known: dict[Compound, Value]) -> Value:
    if isinstance(atom, Compound):
        if atom not in known:
            known[atom] = _compound(b, atom, _sum(b, atom.a, scope, known), _sum(b, atom.b, scope, known))
        return known[atom]
    if atom.name not in scope:
        raise CompilerBug("codegen/llvm", f"the Index variable `{atom.name}` has no value here")
    return scope[atom.name]


def _compound(b: Builder, atom: Compound, left: Value, right: Value) -> Value:
    if atom.op in ("min", "max"):
        return b.intrinsic(f"llvm.s{atom.op}", left, right)
    divisor = as_index(atom.b).constant
    if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
        return left >> (divisor.bit_length() - 1) if atom.op == "//" else left & (divisor - 1)
    quotient = b.binary("sdiv", left, right)
    remainder = left - quotient * right
    # sdiv truncates and an Index floors: step down where signs differ and something is left
    lower = b.compare("ne", remainder, 0) & b.compare("slt", remainder ^ right, 0)
    if atom.op == "//":
        return quotient + b.convert("sext", lower, "i64")
    return remainder + b.select(lower, right, 0)


@dataclass(frozen=True)
class View:
    """Elements (row, column) of a buffer: ``pointer`` is (0, 0), strides are in elements."""

    pointer: Value
    dtype: DType
    row_stride: Value
    column_stride: Value

    @property
    def element(self) -> str:
        return memory_element(self.dtype)

    def turned(self) -> View:
        """The view with rows and columns exchanged."""
        return View(self.pointer, self.dtype, self.column_stride, self.row_stride)


def times(b: Builder, position: Value, stride: Value) -> Value | None:
    """``position * stride``, None when that is known to be 0."""
    if position.name == "0" or stride.name == "0":
        return None
    if stride.name == "1":
        return position
    return stride if position.name == "1" else position * stride


def address(b: Builder, view: View, row: Value, column: Value) -> Value:
    """The address of element (row, column)."""
    pointer = view.pointer
    for position, stride in ((row, view.row_stride), (column, view.column_stride)):
        distance = times(b, position, stride)
        if distance is not None:
            pointer = b.offset(pointer, distance, view.element)
    return pointer


def zero(b: Builder) -> Value:
    """The index 0."""
    return b.constant(I64, 0)
