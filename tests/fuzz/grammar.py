"""A grammar of kernels: texts of whole programs in the language, well formed, or with mistakes of every sort mixed in.

What a name holds is tracked (kind of elements, shape), so that most expressions fit together and the rest of the pipeline is reached.
With ``wrong``, one choice in a few is made against the rules: another dtype, shape, axis, type of Python object, a name that does
not exist, control flow that cannot be recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

Choose = Callable[[int], int]  # a number from 0 to n - 1
ROWS, COLS = 6, 8
FLOATS, INTS, BOOL = ("FP32", "FP32", "BF16", "FP16"), ("INT32", "INT32", "INT8", "INT16", "UINT8"), "BOOL"
DTYPES = {
    "FP32": np.float32,
    "BF16": ml_dtypes.bfloat16,
    "FP16": np.float16,
    "FP64": np.float64,
    "INT32": np.int32,
    "INT8": np.int8,
    "INT16": np.int16,
    "UINT8": np.uint8,
    "BOOL": np.bool_,
    "INT64": np.int64,
}
UNARY = ("neg", "abs", "square", "relu", "rint", "floor", "exp", "tanh", "sigmoid", "silu", "sqrt", "rsqrt", "log", "sin", "erf", "gelu")
BINARY = ("+", "-", "*", "+", "-", "*", "/")
CALLS = ("maximum", "minimum", "pow", "ldexp", "atan2", "fmod", "hypot", "remainder", "copysign")
COMPARE = ("<", "<=", ">", ">=", "==", "!=")
INTEGER = ("+", "-", "*", "&", "|", "^", "//", "%")
NUMBERS = ("0.5", "2.0", "1", "0", "-1.5", "3", "0.0", "-1", "1e-3")
# What does not belong where a tensor or a number is expected.
ODD = tuple(re.split(r" ¦\s", r"""None ¦ "x" ¦ [1, 2] ¦ {} ¦ () ¦ ... ¦ slice(0, 2) ¦ object() ¦ 10**30 ¦ 1e400 ¦
float('nan') ¦ 1j ¦ np.ones((6, 8)) ¦ x.shape ¦
pypto.DT_INT8 ¦ pypto ¦ lambda v: v ¦ np.float64(0.1) ¦ np.int64(3) ¦ True ¦ x.shape[0] ¦ pypto.conv2d ¦ range(3) ¦ type ¦ x.value ¦
b'x' ¦ np.datetime64('2020') ¦ float ¦ print ¦ missing ¦ x.T ¦ pypto.DYNAMIC ¦ -x ¦ not x ¦ x in [x] ¦ pypto.Tensor([2]) ¦ np.array(2) ¦
np.array('a') ¦ bool ¦ frozenset({1}) ¦ x.dtype ¦ str(x) ¦ len(x) ¦ iter ¦ [x, y]"""))
AXES = ("0", "1", "-1", "-2")
ODD_AXES = ("2", "-3", "None", "'a'", "(0, 0)", "1.5", "True", "x", "[]", "10**20", "(0, 1)", "()")


@dataclass(frozen=True)
class Held:
    """A tensor that a name or expression holds: its text, dtype name and shape."""

    text: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def kind(self) -> str:
        return "bool" if self.dtype == BOOL else "int" if "INT" in self.dtype else "float"


@dataclass(frozen=True)
class Program:
    """A program: its text (which defines ``kernel``), and its arguments by name, some of which are written."""

    text: str
    arguments: dict[str, Any]


@dataclass
class Writer:
    """Writes one program; every choice is asked of ``choose``. ``wrong`` is how many choices in 100 are made against the rules."""

    choose: Choose
    wrong: int = 0
    lines: list[str] = field(default_factory=list)
    names: list[Held] = field(default_factory=list)
    counter: int = 0
    loops: list[str] = field(default_factory=list)
    recorded: list[str] = field(default_factory=list)  # those of `pypto.loop`

    def pick(self, options: Iterable[Any]) -> Any:
        every = list(options)
        return every[self.choose(len(every))]

    def chance(self, percent: int) -> bool:
        return self.choose(100) < percent

    def astray(self) -> bool:
        """Whether this choice goes against the rules."""
        return self.wrong > 0 and self.choose(100) < self.wrong

    def fresh(self) -> str:
        self.counter += 1
        return f"t{self.counter}"

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # ---- expressions -----------------------------------------------------------------------------------------------------------

    def operand(self, kind: str = "float", shape: tuple[int, ...] | None = None) -> Held:
        """A tensor of a kind that stands in a name, or is made of one."""
        if self.astray():
            return Held(f"({self.pick(ODD)})", "FP32", (ROWS, COLS))
        fitting = [h for h in self.names if h.kind == kind and (shape is None or h.shape == shape)]
        if fitting:
            return self.pick(fitting)
        if shape is not None:
            return Held(
                f"pypto.full([{', '.join(map(str, shape))}], {1 if kind == 'int' else True if kind == 'bool' else 1.5}, "
                f"pypto.DT_{'INT32' if kind == 'int' else BOOL if kind == 'bool' else 'FP32'})",
                "INT32" if kind == "int" else BOOL if kind == "bool" else "FP32",
                shape,
            )
        any_kind = self.pick(self.names)
        made = {"int": "INT32", "bool": BOOL, "float": "FP32"}[kind]
        if kind == "bool":
            return Held(f"({any_kind.text} > 0)", BOOL, any_kind.shape)
        return Held(f"pypto.cast({any_kind.text}, pypto.DT_{made})", made, any_kind.shape)

    def expression(self, depth: int = 2, kind: str = "float", shape: tuple[int, ...] | None = None) -> Held:
        """An expression of a kind; of the shape, where one is asked for (by broadcasting up to it)."""
        if depth == 0 or self.chance(15):
            return self.operand(kind, shape)
        if kind == "bool":
            a = self.expression(depth - 1, "float", shape)
            if self.chance(25):
                b = self.expression(depth - 1, "bool", shape or a.shape)
                return Held(f"(({a.text} {self.pick(COMPARE)} 0.5) {self.pick('&|^')} {b.text})", BOOL, a.shape)
            return Held(f"({a.text} {self.pick(COMPARE)} {self.other(a, depth).text})", BOOL, a.shape)
        if kind == "int":
            a = self.operand("int", shape)
            if self.chance(30):
                return Held(
                    f"pypto.cast({self.expression(depth - 1, 'bool', shape or a.shape).text}, pypto.DT_{a.dtype})", a.dtype, a.shape
                )
            b = self.pick((a.text, a.text, "2", "3", "(-1)", "x.shape[1]") if not a.dtype.startswith("U") else (a.text, "2", "3"))
            operator = self.pick(("<<", ">>") if self.chance(15) else INTEGER)
            return Held(f"({a.text} {operator} {'2' if operator in ('<<', '>>') else b})", a.dtype, a.shape)
        return self.pick(EXPRESSIONS)(self, depth - 1, shape)

    def other(self, a: Held, depth: int) -> Held:
        """A second operand beside ``a``: a number, the same shape, or one that broadcasts."""
        if self.astray():
            return self.operand(self.pick(("int", "bool", "float")))
        if self.chance(35):
            return Held(self.pick((*NUMBERS, "s", "s", "n")), a.dtype, ())
        if len(a.shape) == 2 and self.chance(40):
            shape = self.pick(((1, a.shape[1]), (a.shape[0], 1), (a.shape[1],)))
            return self.operand("float", shape)
        return self.expression(depth, "float", a.shape)

    def dtype(self) -> str:
        return self.pick((*FLOATS, *INTS, BOOL, "FP64")) if not self.astray() else self.pick(("HF8", "FP8E4M3", "INT4", "FLOAT", "INT64"))

    def axis(self) -> str:
        return self.pick(ODD_AXES) if self.astray() else self.pick(AXES)

    # ---- statements ------------------------------------------------------------------------------------------------------------

    def block(self, depth: int, count: int, nested: int) -> None:
        """Statements one after the other; names that a block binds are gone after it."""
        kept = list(self.names)
        before = len(self.lines)
        for _ in range(count):
            self.statement(depth, nested)
        if len(self.lines) == before:
            self.emit(depth, "pass")
        self.names = kept

    def statement(self, depth: int, nested: int) -> None:
        if self.astray():
            self.emit(depth, self.pick(MISTAKES))
            return
        kinds = STATEMENTS if nested else STATEMENTS[:PLAIN]
        self.pick(kinds)(self, depth, nested)

    def bind(self, depth: int, value: Held) -> None:
        name = self.fresh()
        self.emit(depth, f"{name} = {value.text}")
        self.names.append(Held(name, value.dtype, value.shape))


# ---- expressions of floats -------------------------------------------------------------------------------------------------------


def _unary(w: Writer, depth: int, shape: tuple[int, ...] | None) -> Held:
    a = w.expression(depth, "float", shape)
    name = w.pick(UNARY)
    return Held(f"pypto.{name}({a.text})" if w.chance(70) else f"({a.text}).{name}()", a.dtype, a.shape)


def _binary(w: Writer, depth: int, shape: tuple[int, ...] | None) -> Held:
    a = w.expression(depth, "float", shape)
    b = w.other(a, depth)
    if w.chance(25):
        return Held(f"pypto.{w.pick(CALLS)}({a.text}, {b.text})", a.dtype, a.shape)
    first, second = (b.text, a.text) if w.chance(25) and b.text[0] != "-" else (a.text, b.text)
    return Held(f"({first} {w.pick(BINARY)} {second})", a.dtype, a.shape)


def _where(w: Writer, depth: int, shape: tuple[int, ...] | None) -> Held:
    a = w.expression(depth, "float", shape)
    condition = w.expression(depth, "bool", a.shape)
    return Held(f"pypto.where({condition.text}, {a.text}, {w.other(a, depth).text})", a.dtype, a.shape)


def _reduced(w: Writer, depth: int, shape: tuple[int, ...] | None) -> Held:
    """A reduction that keeps its axis and is repeated over it again."""
    a = w.expression(depth, "float", shape)
    if not a.shape:
        return a
    name = w.pick(("sum", "amax", "amin", "mean", "prod", "logsumexp", "var"))
    dim = "-1" if len(a.shape) == 1 and not w.astray() else w.axis()
    kept = "True" if not w.astray() else w.pick(("False", "2", "None", "x"))
    return Held(f"({a.text} {w.pick('+-')} pypto.{name}({a.text}, {dim}, keepdim={kept}))", a.dtype, a.shape)


def _row_operation(w: Writer, depth: int, shape: tuple[int, ...] | None) -> Held:
    a = w.expression(depth, "float", shape)
    if not a.shape:
        return a
    call = w.pick(("softmax({}, -1)", "layer_norm({})", "rms_norm({})", "cumsum({}, -1)", "log_softmax({}, -1)", "sort({}, -1)"))
    if "sort" in call:
        return Held(f"pypto.sort32({a.text})[0]" if w.astray() else a.text, a.dtype, a.shape)
    return Held("pypto." + call.format(a.text), a.dtype, a.shape)


def _cast(w: Writer, depth: int, shape: tuple[int, ...] | None) -> Held:
    a = w.expression(depth, w.pick(("float", "float", "int", "bool")), shape)
    dtype = w.pick(FLOATS) if not w.astray() else w.dtype()
    return Held(f"pypto.cast({a.text}, pypto.DT_{dtype})", dtype, a.shape)


def _layout(w: Writer, depth: int, shape: tuple[int, ...] | None) -> Held:
    """There and back again: reshapes and transposes whose result has the shape that is asked for."""
    a = w.expression(depth, "float", shape)
    if len(a.shape) != 2:
        return Held(f"pypto.reshape(pypto.unsqueeze({a.text}, 0), [{', '.join(map(str, a.shape))}])", a.dtype, a.shape)
    rows, cols = a.shape
    sizes = f"[{rows * cols}]" if not w.astray() else w.pick(("[-1, -1]", "[5]", "[]", "-1", "None", "[x.shape[0], 3]", "['a']"))
    texts = (
        f"pypto.reshape(pypto.reshape({a.text}, {sizes}), [{rows}, {cols}])",
        f"({a.text}).transpose(0, 1).transpose(0, 1)",
        f"pypto.concat([{a.text}[0:1, :], {a.text}[1:{rows}, :]], 0)" if rows > 1 else a.text,
        f"pypto.clone({a.text})",
        f"pypto.view({a.text}, [{rows}, {cols}], [0, 0])",
        f"pypto.tril({a.text})",
        f"pypto.triu({a.text}, 1)",
        f"pypto.expand_clone({a.text}[0:1, :], [{rows}, {cols}])",
        f"pypto.permute({a.text}, [0, 1])",
        f"pypto.view({a.text}, [{rows}, {cols}], [{w.pick(('0', '1', '-1', 'n', '99'))}, 0])" if w.astray() else a.text,
    )
    return Held(w.pick(texts), a.dtype, a.shape)


def _twice(w: Writer, depth: int, shape: tuple[int, ...] | None) -> Held:
    """A value beside itself in another order."""
    a = w.expression(depth, "float", shape)
    if len(a.shape) != 2:
        return a
    rows, cols = a.shape
    other = w.pick((
        "v[:, 0:1]",
        f"v[{rows - 1}:{rows}, :]",
        f"pypto.reshape(v.transpose(0, 1), [{rows}, {cols}])",
        f"pypto.reshape(pypto.view(v, [1, 1], [{rows - 1}, 0]), [])",
        "pypto.sum(v, 0, keepdim=True)",
        "pypto.sum(v[:, 0:1], 1, keepdim=True)",
        "(pypto.matmul(v, v.transpose(0, 1)) * 0.01)[:, 0:1]",
    ))
    return Held(f"[v {w.pick('+-*')} {other} for v in ({a.text},)][0]", a.dtype, a.shape)


def _matmul(w: Writer, depth: int, shape: tuple[int, ...] | None) -> Held:
    """``a @ (b.T @ a)``-like products of the shape that is asked for."""
    a = w.expression(depth, "float", shape)
    if len(a.shape) != 2:
        return a
    square = f"pypto.matmul({a.text}, {a.text}, a_trans=True)" if not w.astray() else f"pypto.matmul({a.text}, {w.operand('float').text})"
    return Held(f"(pypto.matmul({a.text}, {square}) * 0.01)", a.dtype, a.shape)


def _helper(w: Writer, depth: int, shape: tuple[int, ...] | None) -> Held:
    a = w.expression(depth, "float", shape)
    return Held(f"helper({a.text}, {w.pick(('0.5', '2', '3') if not w.astray() else ('s', 'x', 'None'))})", a.dtype, a.shape)


EXPRESSIONS = (_unary, _unary, _binary, _binary, _binary, _where, _reduced, _row_operation, _cast, _layout, _twice, _matmul, _helper)


# ---- statements ------------------------------------------------------------------------------------------------------------------


def _bind(w: Writer, depth: int, nested: int) -> None:
    w.bind(depth, w.expression(2, w.pick(("float", "float", "float", "int", "bool"))))


def _write(w: Writer, depth: int, nested: int) -> None:
    """The whole output, or a part of it."""
    value = w.expression(2, "float", (ROWS, COLS))
    text = value.text if value.dtype == "FP32" else f"pypto.cast({value.text}, out.dtype)"
    text = f"pypto.cast({text}, pypto.DT_FP32)" if not w.astray() else value.text
    row = w.pick(w.loops) if w.loops else "2"
    forms = (
        f"out[:] = {text}",
        f"out[0:2, :] = ({text})[0:2, :]",
        f"out[{row}:{row} + 1, :] = ({text})[{row}:{row} + 1, :]",
        f"out[{row}] = ({text})[{row}]",
        f"out.move({text})",
        f"pypto.assemble(({text})[0:2, 0:4], [1, 2], out)",
        f"out[:] += {text}",
        f"out[0, 1] = ({text})[1, 0]",
        f"out[:, 0:4] = ({text})[:, 4:8]",
    )
    w.emit(depth, w.pick(forms))


def _rebind(w: Writer, depth: int, nested: int) -> None:
    held = [h for h in w.names if h.text.startswith("t")]
    if not held:
        return
    a = w.pick(held)
    value = w.expression(1, a.kind, a.shape)
    same = f"pypto.cast({value.text}, pypto.DT_{a.dtype})"
    w.emit(
        depth,
        w.pick((f"{a.text} = {same}", f"{a.text}[:] = {same}", f"{a.text} += {'1' if a.kind == 'int' else same}"))
        if a.kind != "bool"
        else f"{a.text} = {a.text} & {same}",
    )


def _tile(w: Writer, depth: int, nested: int) -> None:
    sizes = (
        w.pick(("2, 4", "4, 8", "1, 8", "6, 8", "1, 1", "32, 64"))
        if not w.astray()
        else w.pick(("0, 4", "4", "", "-1, 2", "2.5, 2", "x.shape[0], 4", "'a', 1", "1, 1, 1, 1, 1, 1, 1, 1, 1", "10**9, 10**9", "None"))
    )
    w.emit(depth, f"pypto.set_vec_tile_shapes({sizes})")


def _loop(w: Writer, depth: int, nested: int) -> None:
    index = w.fresh().replace("t", "i")
    bound = (
        w.pick(("3", "x.shape[0]", "0, 4, 2", "n", "1", "pypto.min(x.shape[0], 2)"))
        if not w.astray()
        else w.pick(("0", "-1", "1.5", "x", "None", "3, 0, -1", "'a'", "0, 4, 0", "10**20", "", "True", "x[0, 0]"))
    )
    head = w.pick(("pypto.loop({})", "pypto.loop({})", "range(2)", "pypto.loop_unroll({}, unroll_list=[2, 1])", "range(0)"))
    names = f"{index}, factor" if "unroll" in head else index
    w.emit(depth, f"for {names} in {head.format(bound)}:")
    kept = list(w.recorded)
    w.loops.append(index)
    w.recorded += [index] if head.startswith("pypto") else []
    w.block(depth + 1, 1 + w.choose(3), nested - 1)
    w.loops.pop()
    w.recorded = kept


def _branch(w: Writer, depth: int, nested: int) -> None:
    mask = w.operand("bool")
    conditions = [
        "n > 2",
        "s > 0",
        "x.shape[0] > 3",
        "flag",
        "pypto.cond(x.shape[0] == 6)",
        "f[0, 0] > 0",
        "0 < n < 5",
        "n > 0 and f[1, 0] > 2",
        "not flag",
        "f[0, 0] == f[0, 1] or n > 3",
    ]
    conditions += [f"{i} == 1" for i in w.loops] + [f"pypto.is_loop_begin({i})" for i in w.recorded]
    condition = (
        w.pick(conditions) if not w.astray() else w.pick((mask.text, "x", "None", "x > 0", "x[0]", "x[0, 0]", "f", "missing", "1 / 0"))
    )
    w.emit(depth, f"if {condition}:")
    w.block(depth + 1, 1 + w.choose(2), nested - 1)
    if w.chance(40):
        w.emit(depth, "else:")
        w.block(depth + 1, 1 + w.choose(2), nested - 1)


def _accumulate(w: Writer, depth: int, nested: int) -> None:
    """A tensor that a loop carries."""
    name, index = w.fresh(), w.fresh().replace("t", "i")
    start = w.pick(("pypto.full([1, 8], 0.0)", "x[0:1, :] * 1.0", "pypto.zeros(1, 8, dtype=pypto.DT_FP32)"))
    if w.astray():
        start = w.pick(("0.0", "None", "pypto.full([8], 0.0)", "pypto.full([1, 8], 0)", "x[0]", "pypto.tensor([1, 8], pypto.DT_FP32)"))
    w.emit(depth, f"{name} = {start}")
    w.emit(depth, f"for {index} in pypto.loop({w.pick(('x.shape[0]', '3', 'n'))}):")
    w.emit(depth + 1, f"{name} = {name} {w.pick('+-*')} x[{index}:{index} + 1, :]")
    w.names.append(Held(name, "FP32", (1, COLS)))


def _ternary(w: Writer, depth: int, nested: int) -> None:
    a, b = w.expression(1, "float", (ROWS, COLS)), w.expression(1, "float", (ROWS, COLS))
    condition = w.pick(("n > 1", "s > 0.5", "flag", "f[0, 0] > 1"))
    first, second = (f"pypto.cast({v.text}, pypto.DT_FP32)" for v in (a, b))
    w.bind(depth, Held(f"{first} if {condition} else {second}", "FP32", (ROWS, COLS)))


def _python(w: Writer, depth: int, nested: int) -> None:
    """Plain Python around tensors: comprehensions, lists, tuples, lambdas, closures."""
    a = w.operand("float", (ROWS, COLS))
    name = w.fresh()
    texts = (
        f"{name} = sum([{a.text}, {a.text}], start=0.0 * {a.text})",
        f"{name} = [v * 2.0 for v in ({a.text}, {a.text})][0]",
        f"{name}, unused = {a.text} + 1.0, {a.text}",
        f"{name} = (lambda v: v - 1.0)({a.text})",
        f"{name} = {{'k': {a.text}}}['k']",
        f"{name} = {a.text}.clone() if True else None",
        f"{name} = ({name}_ := {a.text} * 2.0)",
    )
    w.emit(depth, w.pick(texts))
    w.names.append(Held(name, a.dtype, a.shape))


STATEMENTS = (_bind, _bind, _bind, _write, _write, _rebind, _tile, _ternary, _python, _accumulate, _loop, _loop, _branch, _branch)
PLAIN = 9
# Statements that go against the rules, between broken bars; a line break inside one is written \n.
MISTAKES = tuple(m.replace("\\n", "\n") for m in re.split(r" ¦\s", r"""out = x + y ¦ out += x ¦ x > y and out ¦
return ¦ return 3 ¦ return x, 'a' ¦ break ¦ continue ¦ raise ValueError('mine') ¦ 1 / 0 ¦
while x[0, 0] > 0: pass ¦ while n > 0: n = n - 1 ¦ assert x[0, 0] > 0 ¦ assert n < 0, 'n' ¦ del x ¦ global q; q = x ¦ yield x ¦
for v in x: pass ¦ with open('/nonexistent') as q: pass ¦ try:\n        out[:] = x\n    except: pass ¦ x[0, 0] = 1 ¦ x[:] = y ¦
import os ¦ def inner(): return x\n    out[:] = inner() ¦ class C: v = x ¦ out[x > 0] = 1.0 ¦ out[::2] = x[::2] ¦ out[9] = x[0] ¦
out[0, 0, 0] = 1.0 ¦ out['a'] = x ¦ out[:] = 'a' ¦ out[:] = None ¦ out[:] = [1, 2] ¦ x.foo = 1 ¦ x.foo ¦ pypto.foo(x) ¦ print(x) ¦
f'{x:.3f}' ¦ int(x[0, 0]) ¦ bool(x) ¦ max(x, y) ¦ round(x) ¦ np.exp(x) ¦ np.asarray(x) ¦ x.astype('f4') ¦ [v for v in x] ¦ hash(x) ¦
x @ 3 ¦ x ** y ** 2 ¦ x << 2 ¦ ~x ¦ x // 0 ¦ f // 0 ¦ f << 99 ¦ f << -1 ¦ x[10**20] ¦ pypto.view(x, [2], [0]) ¦
pypto.set_cube_tile_shapes(1) ¦ pypto.loop(3) ¦ for i in pypto.loop(2): out = x ¦ for i in pypto.loop(2): break ¦ async def q(): pass ¦
lambda: x ¦ x.shape[0] = 3 ¦ x.shape[5] ¦ x.shape[0] / 0 ¦ x.shape[0] // 0 ¦ x.shape[0] ** -1 ¦ x[n] ¦ out[n:n + 99] = x ¦
out[n, :] = x[0] ¦ pypto.set_pass_options(foo=1) ¦ pypto.pass_verify_print(x) ¦ pypto.cast(x, 'f32') ¦ pypto.concat([], 0) ¦
pypto.concat([x, f], 0) ¦ pypto.concat(x, 0) ¦ pypto.concat([x, None], 0) ¦ pypto.gather(x, 0, f) ¦ pypto.gather(x, 0, y) ¦
kernel(x, y, f, b, 1.0, 2, True, out) ¦ pypto.loop_unroll(3, unroll_list=[0]) ¦ pypto.is_loop_end(n) ¦ pypto.ldexp_(x, f) ¦
pypto.exp(x, y) ¦ pypto.exp() ¦ pypto.sum(x, 7) ¦ pypto.sum(x, dim=0, axis=0) ¦ pypto.topk(x, 99) ¦ pypto.topk(x, -1) ¦
pypto.scatter(x, 0, f, y) ¦ pypto.full([2, -2], 1.0) ¦ pypto.full([x.shape[0], n], s) ¦ pypto.arange(0) ¦ pypto.arange(3, 1) ¦
pypto.tensor([2, 2], 'f') ¦ pypto.tensor(2) ¦ pypto.tensor([n, 2], pypto.DT_FP32)[:] = 1.0 ¦ pypto.symbolic_scalar('a') + x.shape[0] ¦
x.move(y) ¦ x.assemble(y, [0]) ¦ pypto.assemble(x, [9, 9], out) ¦ pypto.reshape(x, [7, 7]) ¦ pypto.unsqueeze(x, 9)"""))

HEAD = """import numpy as np
import pypto_dsl as pypto

D = pypto.DYNAMIC


def helper(v, by):
    if by == 0.5:
        return v * by
    return v + by


@pypto.jit(lint="off"{options})
def kernel(x: pypto.Tensor({x}), y: pypto.Tensor({y}), f: pypto.Tensor({f}), b: pypto.Tensor(), s, n, flag, out: pypto.Tensor({out})):
"""


def program(choose: Choose, wrong: int = 0) -> Program:
    """A program and its arguments; with ``wrong``, about so many choices in 100 are mistakes (and the arguments may be wrong too)."""
    w = Writer(choose, wrong)
    second, third = w.pick(FLOATS), w.pick(INTS)
    w.names = [
        Held("x", "FP32", (ROWS, COLS)),
        Held("y", second, (ROWS, COLS)),
        Held("f", third, (ROWS, COLS)),
        Held("b", BOOL, (ROWS, COLS)),
        Held("x", "FP32", (ROWS, COLS)),
    ]
    patterns = {n: w.pick(("", "[D, 8]", "[6, 8]", "[D, D]", "[...]", "[pypto.STATIC, 8]")) for n in ("x", "y", "f", "out")}
    options = w.pick(("", "", "", ", promotion='tf-all'", ", precision='fast'", ", promotion='jax'", ", promotion='pypto-strict'"))
    if w.astray():
        patterns[w.pick(("x", "out"))] = w.pick(
            ("[8]", "[D, 9]", "[6, 8], pypto.DT_BF16", "['a']", "6", "[6, 8], 'f32'", "[..., 8]", "[-1, 8]")
        )
        options = w.pick(("", ", foo=1", ", promotion='x'", ", target='llvm'", ", precision=3"))
    w.block(1, 2 + w.choose(5), 2)
    _write(w, 1, 0)
    if w.chance(25):
        w.emit(1, f"return {w.expression(1, 'float').text}" if w.chance(70) else f"return x, {w.expression(1, 'int').text}")
    text = HEAD.format(options=options, **patterns) + "\n".join(w.lines) + "\n"
    return Program(text, arguments(w, second, third))


def arguments(w: Writer, second: str, third: str) -> dict[str, Any]:
    """Quarters from -4 to 4, so that sums and products are exact and comparisons do not turn on a rounding."""
    rng = np.random.default_rng(w.choose(1 << 16))
    given: dict[str, Any] = {
        "x": (rng.integers(-16, 17, (ROWS, COLS)) / 4).astype(np.float32),
        "y": (rng.integers(-16, 17, (ROWS, COLS)) / 4).astype(DTYPES[second]),
        "f": rng.integers(0 if third[0] == "U" else -5, 6, (ROWS, COLS)).astype(DTYPES[third]),
        "b": rng.integers(0, 2, (ROWS, COLS)) > 0,
        "s": w.pick((0.5, 1.5, -2.0)),
        "n": w.pick((1, 2, 3)),
        "flag": w.chance(50),
        "out": np.full((ROWS, COLS), 7.0, np.float32),
    }
    if w.astray():
        name = w.pick(given)
        given[name] = w.pick(
            (
                None,
                "x",
                3,
                2.5,
                [1.0],
                np.ones(3, np.float32),
                np.ones((6, 8), np.complex64),
                np.ones((6, 8)),
                np.ones((5, 8), "f4"),
                np.ones((6, 9), "f4"),
                np.array("a"),
                np.ones((6, 8), "f4")[::-1],
                np.float32(2),
                object(),
                {},
                (given["x"],),
            )
        )
    return given
