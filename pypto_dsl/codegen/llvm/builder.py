"""A typed writer of LLVM IR text: types, values with operators, straight-line code, branches and loops."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import zip_longest
from typing import ClassVar, TypeVar

from pypto_dsl.codegen.llvm.features import FeatureLevel

_MANGLED = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16", "ptr": "p0"}
_BYTES = {"float": 4, "double": 8, "half": 2, "bfloat": 2, "ptr": 8, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
_FLOATS = frozenset({"float", "double", "half", "bfloat"})


@dataclass(frozen=True)
class Type:
    """An LLVM type: a scalar (``lanes == 0``) or a vector of ``lanes`` elements."""

    element: str
    lanes: int = 0

    def __str__(self) -> str:
        return f"<{self.lanes} x {self.element}>" if self.lanes else self.element

    @property
    def is_float(self) -> bool:
        return self.element in _FLOATS

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return _BYTES[self.element]

    @property
    def mangled(self) -> str:
        """The suffix that LLVM's overloaded intrinsics carry, such as ``v16f32``."""
        code = _MANGLED.get(self.element, self.element)
        return f"v{self.lanes}{code}" if self.lanes else code

    def of(self, element: str) -> Type:
        """The type with the same number of lanes and another element."""
        return Type(element, self.lanes)


I1, I8, I16, I32, I64 = Type("i1"), Type("i8"), Type("i16"), Type("i32"), Type("i64")
PTR, F32, F64 = Type("ptr"), Type("float"), Type("double")
VOID = Type("void")


def literal(element: str, number: float | int | bool) -> str:
    """The text of one element's constant; floats are written as exact bits, never as decimals."""
    if element == "i1":
        return "true" if number else "false"
    if element == "bfloat":
        bits = struct.unpack("<I", struct.pack("<f", number))[0]
        return f"0xR{bits >> 16:04X}"
    if element == "half":
        return f"0xH{struct.unpack('<H', struct.pack('<e', number))[0]:04X}"
    if element == "float":
        number = struct.unpack("<f", struct.pack("<f", number))[0]
    if element in _FLOATS:
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    return str(int(number))


class Value:
    """One SSA value or constant; the operators emit the element's own arithmetic, without any fast-math flag."""

    __slots__ = ("builder", "name", "type")

    def __init__(self, builder: Builder, type: Type, name: str) -> None:
        self.builder, self.type, self.name = builder, type, name

    def __str__(self) -> str:
        return self.name

    @property
    def typed(self) -> str:
        return f"{self.type} {self.name}"

    def _binary(self, other: Operand, integer: str, floating: str) -> Value:
        return self.builder.binary(floating if self.type.is_float else integer, self, other)

    def __add__(self, other: Operand) -> Value:
        return self._binary(other, "add", "fadd")

    def __radd__(self, other: Operand) -> Value:
        return self.builder.value(self.type, other) + self

    def __sub__(self, other: Operand) -> Value:
        return self._binary(other, "sub", "fsub")

    def __rsub__(self, other: Operand) -> Value:
        return self.builder.value(self.type, other) - self

    def __mul__(self, other: Operand) -> Value:
        return self._binary(other, "mul", "fmul")

    def __rmul__(self, other: Operand) -> Value:
        return self.builder.value(self.type, other) * self

    def __truediv__(self, other: Operand) -> Value:
        return self.builder.binary("fdiv", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self.builder.value(self.type, other) / self

    def __and__(self, other: Operand) -> Value:
        return self.builder.binary("and", self, other)

    def __or__(self, other: Operand) -> Value:
        return self.builder.binary("or", self, other)

    def __xor__(self, other: Operand) -> Value:
        return self.builder.binary("xor", self, other)

    def __lshift__(self, other: Operand) -> Value:
        return self.builder.binary("shl", self, other)

    def __rshift__(self, other: Operand) -> Value:
        """Arithmetic shift; ``lshr`` is the logical one."""
        return self.builder.binary("ashr", self, other)

    def lshr(self, other: Operand) -> Value:
        return self.builder.binary("lshr", self, other)

    def __neg__(self) -> Value:
        if self.type.is_float:
            return self.builder.emit(self.type, f"fneg {self.typed}")
        return self.builder.binary("sub", self.builder.value(self.type, 0), self)

    def __invert__(self) -> Value:
        return self.builder.binary("xor", self, True if self.type.element == "i1" else -1)


Operand = Value | float | int
Piece = TypeVar("Piece")


@dataclass(frozen=True)
class Guarded:
    """A value with a fast path for ordinary lanes, and a rare one that computes all lanes."""

    fast: Value
    size: Value  # a lane needs the rare path where this, an unsigned integer, is not below the limit
    limit: Operand
    cold: Callable[[], Value]
    hint: str

    @property
    def special(self) -> Value:
        """The mask of lanes that need the rare path."""
        return self.size.builder.compare("uge", self.size, self.limit)


@dataclass
class Module:
    """The functions, tables and declarations of one LLVM module, each written once."""

    level: FeatureLevel
    functions: dict[str, str] = field(default_factory=dict)
    globals: dict[str, str] = field(default_factory=dict)
    declarations: dict[str, str] = field(default_factory=dict)
    shared: dict[str, Module] = field(default_factory=dict)  # functions that are the same in every kernel, each with what it needs

    def declare(self, result: Type, name: str, arguments: Sequence[Type], variadic: bool = False) -> None:
        """Declare a function that is called, once."""
        if name not in self.declarations:
            listed = ", ".join([str(a) for a in arguments] + (["..."] if variadic else []))
            self.declarations[name] = f"declare {result} @{name}({listed})"

    def define(self, name: str, write: Callable[[Module], str]) -> str:
        """Write the function ``name`` if the module does not have it yet; the name is returned."""
        if name not in self.functions:
            self.functions[name] = ""  # holds the place, so that definitions keep the order of first use
            self.functions[name] = write(self)
        return name

    def share(self, name: str, write: Callable[[Module], str]) -> str:
        """`define` for a function that depends on its name and the level alone: it can be compiled once, apart from those who call it."""
        made = _shared.get((self.level, name))
        if made is None:
            made = _shared[self.level, name] = Module(self.level)
            made.define(name, write)
        self.shared[name] = made
        return name

    def table(self, name: str, element: str, numbers: Sequence[float | int]) -> str:
        """A constant array, written once; the symbol, which no kernel can have, is returned."""
        name = f"table.{name}"
        listed = ", ".join(f"{element} {literal(element, n)}" for n in numbers)
        self.globals[name] = f"@{name} = private unnamed_addr constant [{len(numbers)} x {element}] [{listed}], align 64"
        return f"@{name}"

    def text(self, apart: bool = False) -> str:
        """The module as text; equal inputs give equal bytes. ``apart``: shared functions are declared only."""
        if self.shared and not apart:
            return self._together().text()
        width = self.level.vector_bits
        attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}" }}'
        declared = [line for name, line in sorted(self.declarations.items()) if name not in self.functions]
        parts = [*self.globals.values(), *self.functions.values(), *declared, attributes, Builder.METADATA]
        return "\n".join(parts) + "\n"

    def _together(self) -> Module:
        """The module with its shared functions in it, which then are nobody else's."""
        whole = Module(self.level, dict(self.functions), dict(self.globals), dict(self.declarations))
        for name, module in self.shared.items():
            every = module._together()
            whole.functions |= {**every.functions, name: every.functions[name].replace("define ", "define internal ", 1)}
            whole.globals |= every.globals
            whole.declarations |= every.declarations
        return whole


_shared: dict[tuple[FeatureLevel, str], Module] = {}  # by level and name


class Builder:
    """Writes the body of one function."""

    METADATA: ClassVar[str] = '!0 = !{i32 1}\n!1 = !{!"branch_weights", i32 1, i32 2000}'

    def __init__(self, module: Module) -> None:
        self.module = module
        self.level = module.level
        self.lines: list[str] = []
        self.entry: list[str] = []  # allocas, all in the entry block
        self.block = "entry"
        self._values = 0
        self._labels = 0
        self._single: set[str] = set()  # masks of which only the first lane holds

    @contextmanager
    def vectors_of(self, bits: int) -> Iterator[None]:
        """Write what stands inside with vectors of so many bits, where the level's own are wider."""
        outside = self.level
        self.level = replace(outside, vector_bits=min(bits, outside.vector_bits))
        yield
        self.level = outside

    # -- straight-line code ------------------------------------------------------------------------------------------
    def raw(self, line: str) -> None:
        self.lines.append("  " + line)

    def comment(self, text: str) -> None:
        self.lines.append("  ; " + text.replace("\n", " "))

    def fresh(self) -> str:
        self._values += 1
        return f"%v{self._values}"

    def emit(self, type: Type, text: str) -> Value:
        name = self.fresh()
        self.raw(f"{name} = {text}")
        return Value(self, type, name)

    def constant(self, type: Type, number: float | int | bool) -> Value:
        text = literal(type.element, number)
        return Value(self, type, f"splat ({type.element} {text})" if type.lanes else text)

    def vector(self, element: str, numbers: Sequence[float | int]) -> Value:
        """A constant vector with its own number in each lane."""
        text = ", ".join(f"{element} {literal(element, n)}" for n in numbers)
        return Value(self, Type(element, len(numbers)), f"<{text}>")

    def value(self, type: Type, operand: Operand) -> Value:
        return operand if isinstance(operand, Value) else self.constant(type, operand)

    def named(self, type: Type, name: str) -> Value:
        return Value(self, type, name)

    def binary(self, opcode: str, left: Operand, right: Operand) -> Value:
        type = left.type if isinstance(left, Value) else right.type if isinstance(right, Value) else None
        assert type is not None, "one operand carries the type"
        a, b = self.value(type, left), self.value(type, right)
        return self.emit(type, f"{opcode} {type} {a}, {b}")

    def compare(self, predicate: str, left: Value, right: Operand) -> Value:
        """``icmp`` or ``fcmp`` by the type of ``left``."""
        opcode = "fcmp" if left.type.is_float else "icmp"
        return self.emit(left.type.of("i1"), f"{opcode} {predicate} {left.type} {left}, {self.value(left.type, right)}")

    def select(self, condition: Value, yes: Operand, no: Operand) -> Value:
        type = yes.type if isinstance(yes, Value) else no.type if isinstance(no, Value) else None
        assert type is not None, "one operand carries the type"
        return self.emit(type, f"select {condition.typed}, {type} {self.value(type, yes)}, {type} {self.value(type, no)}")

    def convert(self, opcode: str, value: Value, element: str) -> Value:
        type = value.type.of(element)
        return self.emit(type, f"{opcode} {value.typed} to {type}")

    def bits(self, value: Value) -> Value:
        """The bits of a float as an integer of its size."""
        return self.convert("bitcast", value, f"i{8 * value.type.bytes}")

    def from_bits(self, value: Value, element: str) -> Value:
        return self.convert("bitcast", value, element)

    def call(self, result: Type, name: str, *arguments: Value) -> Value:
        self.module.declare(result, name, [a.type for a in arguments])
        return self.emit(result, f"call {result} @{name}({', '.join(a.typed for a in arguments)})")

    def call_void(self, name: str, *arguments: Value) -> None:
        self.module.declare(VOID, name, [a.type for a in arguments])
        self.raw(f"call void @{name}({', '.join(a.typed for a in arguments)})")

    def intrinsic(self, name: str, value: Value, *others: Operand) -> Value:
        """An overloaded intrinsic whose operands and result share one type, such as ``llvm.sqrt``."""
        arguments = [value, *(self.value(value.type, o) for o in others)]
        return self.call(value.type, f"{name}.{value.type.mangled}", *arguments)

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        first = next(v for v in (a, b, c) if isinstance(v, Value))
        operands = [self.value(first.type, v) for v in (a, b, c)]
        if self.level.fuses or first.type.element != "float":
            return self.intrinsic("llvm.fma", *operands)
        name = self.module.define(f"fma_{first.type.mangled}", lambda module: _fma(module, first.type))
        return self.call(first.type, name, *operands)

    def horner(self, x: Value, coefficients: Sequence[float]) -> Value:
        """``c0 + c1 x + c2 x^2 + ...`` by fused multiply-add, highest degree first."""
        result = self.value(x.type, coefficients[-1])
        for c in reversed(coefficients[:-1]):
            result = self.fma(result, x, c)
        return result

    def splat(self, scalar: Value, lanes: int) -> Value:
        if not lanes:
            return scalar
        type = Type(scalar.type.element, lanes)
        first = self.emit(type, f"insertelement {type} poison, {scalar.typed}, i64 0")
        return self.emit(type, f"shufflevector {type} {first}, {type} poison, <{lanes} x i32> zeroinitializer")

    def shuffle(self, first: Value, second: Value, order: Sequence[int]) -> Value:
        """Elements of two vectors, those of ``second`` numbered behind those of ``first``."""
        mask = ", ".join(f"i32 {i}" for i in order)
        result = Type(first.type.element, len(order))
        return self.emit(result, f"shufflevector {first.typed}, {second.typed}, <{result.lanes} x i32> <{mask}>")

    def extract(self, vector: Value, lane: int) -> Value:
        return self.emit(Type(vector.type.element), f"extractelement {vector.typed}, i64 {lane}")

    def insert(self, vector: Value, scalar: Value, lane: int) -> Value:
        return self.emit(vector.type, f"insertelement {vector.typed}, {scalar.typed}, i64 {lane}")

    def lane_numbers(self, element: str, lanes: int) -> Value:
        """``<0, 1, 2, ...>``"""
        return self.vector(element, range(lanes))

    # -- memory --------------------------------------------------------------------------------------------------------
    def alloca(self, text: str, align: int = 64) -> Value:
        name = self.fresh()
        self.entry.append(f"  {name} = alloca {text}, align {align}")
        return Value(self, PTR, name)

    def offset(self, pointer: Value, index: Operand, element: str) -> Value:
        """The address of an element behind a pointer."""
        if str(index) == "0":
            return pointer
        return self.emit(PTR, f"getelementptr {element}, ptr {pointer}, i64 {self.value(I64, index)}")

    def load(self, type: Type, pointer: Value, align: int | None = None) -> Value:
        return self.emit(type, f"load {type}, ptr {pointer}, align {align or type.bytes}")

    def store(self, value: Value, pointer: Value, align: int | None = None, suffix: str = "") -> None:
        self.raw(f"store {value.typed}, ptr {pointer}, align {align or value.type.bytes}{suffix}")

    def prefetch(self, pointer: Value) -> None:
        """Ask for a cache line that will be read; any address is fine."""
        self.call_void("llvm.prefetch.p0", pointer, *(self.constant(I32, n) for n in (0, 3, 1)))

    def lane_mask(self, index: Operand, stop: Operand, lanes: int) -> Value:
        """Lanes whose number ``index + lane`` is below ``stop``."""
        first, end = self.value(I64, index), self.value(I64, stop)
        # 32 bits are compared in one vector; what is left is more than -2^31, for nobody asks far behind the end
        left = self.convert("trunc", self.intrinsic("llvm.smin", end - first, lanes), "i32")
        made = self.compare("slt", self.lane_numbers("i32", lanes), self.splat(left, lanes))
        if first.name.isdigit() and end.name.isdigit() and int(end.name) - int(first.name) == 1:
            self._single.add(made.name)
        return made

    def lane_masks(self, start: Operand, stop: Operand, lanes: int, count: int) -> list[Value]:
        """`lane_mask` of ``count`` vectors side by side from ``start`` on, where less than 2^31 is left."""
        left = self.splat(self.convert("trunc", self.value(I64, stop) - start, "i32"), lanes)
        return [self.compare("slt", self.vector("i32", range(k * lanes, (k + 1) * lanes)), left) for k in range(count)]

    def masked_load(self, type: Type, pointer: Value, mask: Value, otherwise: Value) -> Value:
        name = f"llvm.masked.load.{type.mangled}.p0"
        return self.call(type, name, pointer, self.constant(I32, type.bytes), mask, otherwise)

    def masked_store(self, value: Value, pointer: Value, mask: Value) -> None:
        """Store the lanes that ``mask`` holds for.

        One lane that is known is stored by itself: LLVM 22 makes of a narrowed vector's masked store with such a mask a store of
        the wide element (`reduceMaskedStoreToScalarStore` overlooks truncating stores), which writes behind the lane.
        """
        if mask.name in self._single:
            self.store(self.extract(value, 0), pointer)
            return
        name = f"llvm.masked.store.{value.type.mangled}.p0"
        self.call_void(name, value, pointer, self.constant(I32, value.type.bytes), mask)

    # -- control flow ----------------------------------------------------------------------------------------------------
    def label(self, hint: str) -> str:
        self._labels += 1
        return f"{hint}{self._labels}"

    def place(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.raw(f"br label %{label}")

    def branch(self, condition: Value, yes: str, no: str, unlikely: bool = False) -> None:
        self.raw(f"br i1 {condition}, label %{yes}, label %{no}{', !prof !1' if unlikely else ''}")

    def phi(self, type: Type, incoming: Sequence[tuple[Value, str]]) -> Value:
        listed = ", ".join(f"[ {value}, %{label} ]" for value, label in incoming)
        return self.emit(type, f"phi {type} {listed}")

    def any(self, mask: Value) -> Value:
        """True when any lane of a mask is set."""
        if not mask.type.lanes:
            return mask
        return self.call(I1, f"llvm.vector.reduce.or.{mask.type.mangled}", mask)

    def when(self, condition: Value, body: Callable[[], None], hint: str = "if", unlikely: bool = False) -> None:
        """``if condition: body()``"""
        yes, done = self.label(hint), self.label(f"{hint}.end")
        self.branch(condition, yes, done, unlikely)
        self.place(yes)
        body()
        self.jump(done)
        self.place(done)

    def either(self, condition: Value, yes: Callable[[], None], no: Callable[[], None], hint: str = "if") -> None:
        first, second, done = self.label(f"{hint}.then"), self.label(f"{hint}.else"), self.label(f"{hint}.end")
        self.branch(condition, first, second)
        for label, body in ((first, yes), (second, no)):
            self.place(label)
            body()
            self.jump(done)
        self.place(done)

    def chosen(self, condition: Value, body: Callable[[], Sequence[Value]], otherwise: Sequence[Value], hint: str) -> list[Value]:
        """``body() if condition else otherwise``"""
        before, yes, done = self.block, self.label(hint), self.label(f"{hint}.end")
        self.branch(condition, yes, done)
        self.place(yes)
        values = list(body())
        after = self.block
        self.jump(done)
        self.place(done)
        return [self.phi(v.type, [(v, after), (o, before)]) for v, o in zip(values, otherwise, strict=True)]

    def settled(self, values: Sequence[Value | Guarded]) -> list[Value]:
        """Values of one function with their rare paths merged in: one test for all of them, then one for each."""
        guarded = [v for v in values if isinstance(v, Guarded)]
        if not guarded:
            return [v for v in values if isinstance(v, Value)]
        hint = guarded[0].hint
        rare, done, before = self.label(f"{hint}.cold"), self.label(f"{hint}.end"), self.block
        largest = reduce(lambda one, other: self.intrinsic("llvm.umax", one, other), (g.size for g in guarded))
        self.branch(self.any(self.compare("uge", largest, guarded[0].limit)), rare, done, unlikely=True)
        self.place(rare)
        alone = len(guarded) == 1
        results = [g.cold() if alone else self.settled([g])[0] for g in guarded]
        after = self.block
        self.jump(done)
        self.place(done)
        merged = iter([self.phi(g.fast.type, [(g.fast, before), (r, after)]) for g, r in zip(guarded, results, strict=True)])
        return [next(merged) if isinstance(v, Guarded) else v for v in values]

    def woven(self, pieces: Sequence[Callable[[], Piece]]) -> list[Piece]:
        """Independent pieces with their instructions taking turns, so that the processor overlaps their chains of dependences.

        Pieces with control flow follow one another."""
        outside, block = self.lines, self.block
        written: list[list[str]] = []
        results = []
        for piece in pieces:
            self.lines = []
            results.append(piece())
            written.append([line for line in self.lines if not (written and line.startswith("  ;"))])
        self.lines = outside
        if self.block == block:
            written = [[line for line in turn if line is not None] for turn in zip_longest(*written)]
        for lines in written:
            self.lines.extend(lines)
        return results

    def loop(
        self,
        start: Operand,
        stop: Operand,
        step: int,
        body: Callable[[Value, list[Value]], Sequence[Value] | None],
        carried: Sequence[Value] = (),
        hint: str = "loop",
        at_least_once: bool = False,
    ) -> list[Value]:
        """``for i in range(start, stop, step)`` over i64 with carried values; returns them after the last turn.

        ``stop - start`` may be anything; the loop tests before its first turn unless ``at_least_once``.
        """
        first, last = self.value(I64, start), self.value(I64, stop)
        turn, done, before = self.label(hint), self.label(f"{hint}.end"), self.block
        if at_least_once:
            self.jump(turn)
        else:
            self.branch(self.compare("slt", first, last), turn, done)
        self.place(turn)
        position = len(self.lines)
        index = Value(self, I64, self.fresh())
        phis = [Value(self, c.type, self.fresh()) for c in carried]
        results = list(body(index, phis) or ())
        assert len(results) == len(phis), "a loop body returns one value per carried value"
        # Frozen, the index is no induction variable to LLVM: rewriting loops for it (LSR) would be a third of all compilation, and
        # addresses of a base, an index and a constant are what processors have.
        following = self.emit(I64, f"freeze i64 {self.emit(I64, f'add nsw i64 {index}, {step}')}")
        latch = self.block
        rows = [f"  {index} = phi i64 [ {first}, %{before} ], [ {following}, %{latch} ]"]
        rows += [f"  {p} = phi {p.type} [ {c}, %{before} ], [ {r}, %{latch} ]" for p, c, r in zip(phis, carried, results, strict=True)]
        self.lines[position:position] = rows
        self.branch(self.compare("slt", following, last), turn, done)
        self.place(done)
        if at_least_once:
            return results
        return [self.phi(c.type, [(c, before), (r, latch)]) for c, r in zip(carried, results, strict=True)]

    def repeat(self, turn: Callable[[list[Value]], tuple[Value, list[Value]]], start: Sequence[Value], hint: str) -> list[Value]:
        """``do: again, values = turn(values) while again``; returns the last values."""
        before, head, done = self.block, self.label(hint), self.label(f"{hint}.end")
        self.jump(head)
        self.place(head)
        phis = [Value(self, s.type, self.fresh()) for s in start]
        position = len(self.lines)
        again, following = turn(phis)
        carried = zip(phis, start, following, strict=True)
        self.lines[position:position] = [f"  {p} = phi {p.type} [ {s}, %{before} ], [ {f}, %{self.block} ]" for p, s, f in carried]
        self.branch(again, head, done)
        self.place(done)
        return following

    # -- the function ------------------------------------------------------------------------------------------------------
    def finish(self, header: str, result: Value | None = None, attributes: str = "#0") -> str:
        """The whole function; ``header`` is what stands between ``define`` and the attributes."""
        self.raw(f"ret {result.typed}" if result is not None else "ret void")
        body = "\n".join([*self.entry, *self.lines])
        return f"define {header} {attributes} {{\nentry:\n{body}\n}}\n"


def _fma(module: Module, type: Type) -> str:
    """``a * b + c`` of f32 rounded once, where the processor has no instruction for it.

    The product is exact in f64. Their sum is rounded to odd (Boldo and Melquiond 2008): by Knuth's exact error an inexact sum with an even
    last bit goes to its neighbour on the error's side, so that the second rounding, to f32, is right.
    """
    b = Builder(module)
    a, x, c = (b.convert("fpext", b.named(type, name), "double") for name in ("%a", "%b", "%c"))
    product = a * x
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    bits = b.bits(total)
    inexact = b.compare("one", error, 0.0) & b.compare("eq", bits & 1, 0)
    step = ((bits ^ b.bits(error)) >> 63) | 1
    odd = b.from_bits(b.select(inexact, bits + step, bits), "double")
    return b.finish(f"internal {type} @fma_{type.mangled}({type} %a, {type} %b, {type} %c) noinline", b.convert("fptrunc", odd, "float"))
