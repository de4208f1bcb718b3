"""Rewrites a user's function so that one run with symbolic tensors records every path.

What is rewritten, and to what (`__pt` is `control.Hooks`, passed as a closure cell, never a global of the user's):

    if c: A else: B          r = __pt.branch(c, (x, y))                        # x, y: names assigned in A or B
                             if r.take(True): A; r.leave((x, y))
                             (x, y) = r.restart((x, y))
                             if r.take(False): B; r.leave((x, y))
                             (x, y) = r.results((x, y), names)
    for t in pypto.loop(n):  r = __pt.loop(iterable, names, carried, label)
        A                    for t in r:
                                 (x, y) = r.enter((x, y)); A; r.leave((x, y))
                             (x, y) = r.results((x, y))
    a and b, not a, c ? :    __pt.and_(a, lambda: b), __pt.not_(a), __pt.choose(c, lambda: a, lambda: b)
    a < b < c                __pt.chain(("Lt", "Lt"), a, lambda: b, lambda: c)
    f(x)                     __pt.call(f, x)   helpers are rewritten when first called; min, max, int, abs see symbols
    out = e  (parameter)     out = e; __pt.rebind("out", out, "=")   likewise `+=`, targets of tuples and annotations, and `:=`

Everything else is left alone. All nodes keep their positions, so tracebacks, spans and carets are the user's own lines.
"""
from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Iterable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any, TypeVar

from pypto_dsl.compiler.span import Span
from pypto_dsl.frontend.spans import definition_alone, parsed_again, statements, tree_of

HOOKS = "__pt"
LEFT_ALONE = frozenset({"super", "locals", "globals", "vars", "eval", "exec", "dir", "isinstance", "issubclass", "print", "len", "getattr",
                        "hasattr", "setattr", "type", "repr", "str"})
PYTHON_LOOPS = frozenset({"range", "enumerate", "zip"})
_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
_ANNOTATIONS_FLAG = 0x1000000  # `from __future__ import annotations`
Node = TypeVar("Node", bound=ast.AST)
Statements = list[ast.stmt]

_functions: dict[int, tuple[ast.Module, dict[tuple[str, int], ast.FunctionDef]]] = {}
_places: dict[int, tuple[CodeType, Span]] = {}  # by the identity of code objects, which are kept
_rewritten: dict[tuple[CodeType, str, tuple[str, ...]], CodeType] = {}


def definition_of(function: FunctionType) -> ast.FunctionDef | None:
    """The AST of a function, by the line its code starts at (decorators included); a lambda as a function; None without source."""
    code = function.__code__
    alone = definition_alone(code.co_filename, code.co_name, code.co_firstlineno)
    if alone is not None:
        return alone
    tree = tree_of(code.co_filename)
    if tree is None:
        return None
    cached = _functions.get(id(tree))
    if cached is None or cached[0] is not tree:
        found: dict[tuple[str, int], ast.FunctionDef] = {}
        for node in statements(tree):
            if isinstance(node, ast.FunctionDef):
                for line in {node.lineno, *(d.lineno for d in node.decorator_list)}:
                    found.setdefault((node.name, line), node)
        cached = _functions[id(tree)] = (tree, found)
    if code.co_name != "<lambda>":
        return cached[1].get((code.co_name, code.co_firstlineno))
    return next((_as_function(node) for node in ast.walk(tree) if isinstance(node, ast.Lambda) and _is_code_of(node, code)), None)


def place_of(function: FunctionType) -> Span:
    """Where a function's definition begins; looked up once, for its code does not change with the file."""
    code = function.__code__
    found = _places.get(id(code))
    if found is None:
        node = definition_of(function)
        line, column = (code.co_firstlineno, 1) if node is None else (node.lineno, node.col_offset + 1)
        found = _places[id(code)] = (code, Span(code.co_filename, line, column))
    return found[1]


def _is_code_of(node: ast.Lambda, code: CodeType) -> bool:
    body = node.body
    place = (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset)
    return node.lineno == code.co_firstlineno and place in set(code.co_positions())


def _as_function(node: ast.Lambda) -> ast.FunctionDef:
    made = _parsed("def lambda_(): return 0")
    made.args = node.args
    value = ast.copy_location(ast.Return(node.body), node.body)
    made.body = [value]
    return ast.copy_location(made, node)


def _parsed(text: str) -> ast.FunctionDef:
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


# ---- which names a region binds and reads ------------------------------------------------------------------------------------


class _Assigned(ast.NodeVisitor):
    """Names bound by statements; nested functions and comprehensions have scopes of their own."""

    def __init__(self) -> None:
        self.found: dict[str, None] = {}

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self.found[node.id] = None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.found[node.name] = None

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.found[node.name] = None

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.found[alias.asname or alias.name.split(".")[0]] = None

    visit_ImportFrom = visit_Import

    def skip(self, node: ast.AST) -> None:
        """Another scope."""

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_Lambda = skip


def assigned(statements: Iterable[ast.stmt]) -> list[str]:
    """Names bound by these statements, in order."""
    visitor = _Assigned()
    for statement in statements:
        visitor.visit(statement)
    return list(visitor.found)


class _Exposed:
    """Which of ``names`` may be read before these statements have assigned them."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = set(names)
        self.out: set[str] = set()

    def reads(self, node: ast.AST, have: set[str]) -> None:
        for n in ast.walk(node):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in self.names and n.id not in have:
                self.out.add(n.id)

    def run(self, body: Sequence[ast.stmt], have: set[str]) -> set[str]:
        for statement in body:
            have = self.step(statement, have)
        return have

    def step(self, s: ast.stmt, have: set[str]) -> set[str]:
        if isinstance(s, ast.If):
            self.reads(s.test, have)
            return self.run(s.body, set(have)) & self.run(s.orelse, set(have))
        if isinstance(s, ast.For):
            self.reads(s.iter, have)
            self.run(s.body, have | {n.id for n in ast.walk(s.target) if isinstance(n, ast.Name)})
            self.run(s.orelse, set(have))
            return have
        if isinstance(s, ast.While):
            self.reads(s.test, have)
            self.run(s.body, set(have))
            return have
        if isinstance(s, ast.With):
            for item in s.items:
                self.reads(item.context_expr, have)
            return self.run(s.body, have)
        if isinstance(s, ast.AugAssign):
            self.reads(s.value, have)
            if isinstance(s.target, ast.Name) and s.target.id in self.names and s.target.id not in have:
                self.out.add(s.target.id)
            self.reads(s.target, have)
        elif isinstance(s, ast.Assign):
            self.reads(s.value, have)
            for target in s.targets:
                self.reads(target, have)
        else:
            self.reads(s, have)
        return have | set(assigned([s]))


def exposed(statements: Sequence[ast.stmt], names: Iterable[str]) -> set[str]:
    """Those of ``names`` that carry a value into these statements."""
    finder = _Exposed(names)
    finder.run(statements, set())
    return finder.out


# ---- the rewriting -----------------------------------------------------------------------------------------------------------


class Rewriter(ast.NodeTransformer):
    """Rewrites one function; nested functions are rewritten as functions of their own, lambdas as part of it."""

    def __init__(self, parameters: Iterable[str] = ()) -> None:
        self.count = 0
        self.parameters = frozenset(parameters)
        self.regions: list[str] = []
        self.loop_base = 0
        self.declared: list[str] = []
        self.scope: list[ast.Global | ast.Nonlocal] = []

    # -- building blocks

    @staticmethod
    def locate(node: Node, at: ast.expr | ast.stmt) -> Node:
        """Give new nodes the place of the user's; attributes stay on one line, else CPython moves a call's place to the attribute's end."""
        stack: list[ast.AST] = [node]
        while stack:
            n = stack.pop()
            if isinstance(n, (ast.expr, ast.stmt)):
                if hasattr(n, "lineno"):
                    continue  # the user's, or located before; so is all below
                ast.copy_location(n, at)
                if isinstance(n, ast.Attribute):
                    n.end_lineno, n.end_col_offset = n.lineno, n.col_offset + 1
            stack += ast.iter_child_nodes(n)
        return node

    @staticmethod
    def name(identifier: str, context: type[ast.expr_context] = ast.Load) -> ast.Name:
        return ast.Name(identifier, context())

    def method(self, at: ast.expr | ast.stmt, owner: str, method: str, *args: ast.expr) -> ast.Call:
        return self.locate(ast.Call(ast.Attribute(self.name(owner), method, ast.Load()), list(args), []), at)

    def hook(self, at: ast.expr | ast.stmt, method: str, *args: ast.expr) -> ast.Call:
        return self.method(at, HOOKS, method, *args)

    def statement(self, at: ast.expr | ast.stmt, expression: ast.expr) -> ast.stmt:
        return self.locate(ast.Expr(expression), at)

    def assign(self, at: ast.expr | ast.stmt, target: ast.expr, value: ast.expr) -> ast.stmt:
        return self.locate(ast.Assign([target], value), at)

    def pack(self, names: Sequence[str], context: type[ast.expr_context] = ast.Load) -> ast.Tuple:
        return ast.Tuple([self.name(n, context) for n in names], context())

    @staticmethod
    def strings(values: Iterable[str]) -> ast.Tuple:
        return ast.Tuple([ast.Constant(v) for v in values], ast.Load())

    def unpack(self, at: ast.expr | ast.stmt, names: Sequence[str], call: ast.expr) -> ast.stmt:
        return self.assign(at, self.pack(names, ast.Store), call) if names else self.statement(at, call)

    def lazy(self, at: ast.expr, expression: ast.expr) -> ast.expr:
        empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return self.locate(ast.Lambda(empty, expression), at)

    def region(self) -> str:
        self.count += 1
        return f"__pt_region_{self.count}"

    def body(self, statements: Iterable[ast.stmt]) -> Statements:
        out: Statements = []
        for statement in statements:
            new = self.visit(statement)
            out += new if isinstance(new, list) else [new]
        return out

    # -- statements

    def visit_If(self, node: ast.If) -> Statements:
        names = assigned(node.body + node.orelse)
        self.declared += names
        r, at, test = self.region(), node.test, self.visit(node.test)
        self.regions.append(r)
        then, otherwise = self.body(node.body), self.body(node.orelse)
        self.regions.pop()

        def arm(side: bool, body: Statements) -> ast.stmt:
            leave = self.statement(at, self.method(at, r, "leave", self.pack(names)))
            return self.locate(ast.If(self.method(at, r, "take", ast.Constant(side)), [*body, leave], []), at)

        return [
            self.assign(at, self.name(r, ast.Store), self.hook(at, "branch", test, self.pack(names))),
            arm(True, then),
            self.unpack(at, names, self.method(at, r, "restart", self.pack(names))),
            arm(False, otherwise),
            self.unpack(at, names, self.method(at, r, "results", self.pack(names), self.strings(names))),
        ]

    def _python_loop(self, node: ast.For | ast.While) -> None:
        saved, self.loop_base = self.loop_base, len(self.regions)
        node.body, node.orelse = self.body(node.body), self.body(node.orelse)
        self.loop_base = saved

    def visit_For(self, node: ast.For) -> ast.stmt | Statements:
        function = node.iter.func if isinstance(node.iter, ast.Call) else None
        if (isinstance(function, ast.Name) and function.id in PYTHON_LOOPS) or node.orelse:
            node.iter = self.visit(node.iter)
            self._python_loop(node)
            return node
        indices = sorted({n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)})
        names = [n for n in assigned(node.body) if n not in indices]
        self.declared += names + indices
        carried = exposed(node.body, names)
        first = node.target.elts[0] if isinstance(node.target, ast.Tuple) and node.target.elts else node.target
        label = first.id if isinstance(first, ast.Name) else "i"
        r, at, iterable = self.region(), node.iter, self.visit(node.iter)
        saved, self.loop_base = self.loop_base, len(self.regions)
        self.regions.append(r)
        body = self.body(node.body)
        self.regions.pop()
        self.loop_base = saved
        make = self.hook(at, "loop", iterable, self.strings(names), self.strings(n for n in names if n in carried), ast.Constant(label))
        node.iter = self.locate(self.name(r), at)
        node.body = [self.unpack(at, names, self.method(at, r, "enter", self.pack(names))), *body,
                     self.statement(at, self.method(at, r, "leave", self.pack(names)))]
        after = [*names, *indices]
        results = self.unpack(at, after, self.method(at, r, "results", self.pack(after)))
        return [self.assign(at, self.name(r, ast.Store), make), node, results]

    def visit_While(self, node: ast.While) -> ast.stmt:
        node.test = self.hook(node.test, "static_condition", self.visit(node.test), ast.Constant("while"))
        self._python_loop(node)
        return node

    def _jump(self, node: ast.stmt, word: str, regions: Sequence[str]) -> Statements:
        self.generic_visit(node)
        return [self.statement(node, self.method(node, r, "forbid", ast.Constant(word))) for r in regions] + [node]

    def visit_Return(self, node: ast.Return) -> Statements:
        return self._jump(node, "return", self.regions)

    def visit_Break(self, node: ast.Break) -> Statements:
        return self._jump(node, "break", self.regions[self.loop_base:])

    def visit_Continue(self, node: ast.Continue) -> Statements:
        return self._jump(node, "continue", self.regions[self.loop_base:])

    def visit_Delete(self, node: ast.Delete) -> Statements:
        unbound = ast.Attribute(self.name(HOOKS), "unbound", ast.Load())
        return [self.assign(node, self.name(t.id, ast.Store), unbound) if isinstance(t, ast.Name) else self.locate(ast.Delete([t]), node)
                for t in node.targets]

    def _rebinds(self, node: ast.stmt, targets: Iterable[ast.expr], symbol: str) -> Statements:
        """An assignment, and behind it a note for every parameter whose name it binds."""
        self.generic_visit(node)
        names = [n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        return [node, *(self.statement(n, self.hook(n, "rebind", ast.Constant(n.id), self.name(n.id), ast.Constant(symbol)))
                        for n in names if n.id in self.parameters)]

    def visit_Assign(self, node: ast.Assign) -> Statements:
        return self._rebinds(node, node.targets, "=")

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Statements:
        return self._rebinds(node, [node.target] if node.value is not None else [], "=")

    def visit_AugAssign(self, node: ast.AugAssign) -> Statements:
        return self._rebinds(node, [node.target], f"{_SYMBOLS[type(node.op)]}=")

    def visit_Global(self, node: ast.Global) -> ast.stmt:
        return self._hoisted(node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.stmt:
        return self._hoisted(node)

    def _hoisted(self, node: ast.Global | ast.Nonlocal) -> ast.stmt:
        """Declarations of scope stand first, wherever the user wrote them: names start out unbound before everything else."""
        self.scope.append(node)
        return ast.copy_location(ast.Pass(), node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        self.generic_visit(node)
        if node.target.id in self.parameters:
            node.value = self.hook(node.target, "rebind", ast.Constant(node.target.id), node.value, ast.Constant(":="))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        inner = Rewriter()
        node.body = inner.finish(inner.body(node.body), node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        saved, self.regions = self.regions, []
        self.generic_visit(node)
        self.regions = saved
        return node

    # -- expressions

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        values = [self.visit(v) for v in node.values]
        if any(isinstance(n, ast.NamedExpr) for v in values for n in ast.walk(v)):
            node.values = values  # a walrus inside a lambda would bind in the lambda
            return node
        return self.hook(node, "and_" if isinstance(node.op, ast.And) else "or_", values[0], *(self.lazy(v, v) for v in values[1:]))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return self.hook(node, "not_", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return self.hook(node, "choose", node.test, self.lazy(node.body, node.body), self.lazy(node.orelse, node.orelse))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        ops = self.strings(type(o).__name__ for o in node.ops)
        return self.hook(node, "chain", ops, node.left, *(self.lazy(c, c) for c in node.comparators))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in LEFT_ALONE:
            return node
        call = self.locate(ast.Attribute(self.name(HOOKS), "call", ast.Load()), node)
        return ast.copy_location(ast.Call(call, [node.func, *node.args], node.keywords), node)

    # -- the whole function

    def finish(self, body: Statements, node: ast.FunctionDef) -> Statements:
        """Names that a region may bind start out unbound, so that `(x, y)` can always be packed."""
        a = node.args
        parameters = {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, *(v for v in (a.vararg, a.kwarg) if v is not None))}
        outer = {n for s in self.scope for n in s.names}
        names = [n for n in dict.fromkeys(self.declared) if n not in parameters and n not in outer]
        is_documented = bool(body) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        head, rest = (body[:1], body[1:]) if is_documented else ([], body)
        unbound = ast.Attribute(self.name(HOOKS), "unbound", ast.Load())
        start = [self.locate(ast.Assign([self.name(n, ast.Store) for n in names], unbound), node)] if names else []
        return [*head, *self.scope, *start, *rest]


def rewrite(function: FunctionType, hooks: object, tensor_parameters: Iterable[str] = ()) -> FunctionType | None:
    """A function with the same globals, defaults and closure cells whose control flow goes through ``hooks``; None without source."""
    # Code objects of two files with the same text are equal, and their errors stand in different files.
    key = (function.__code__, function.__code__.co_filename, tuple(tensor_parameters))
    code = _rewritten.get(key)
    if code is None:
        node = definition_of(function)
        if node is None:
            return None
        code = _rewritten[key] = _compiled(node, function, key[2])
    cells: dict[str, Any] = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[HOOKS] = CellType(hooks)
    closure = tuple(cells[n] for n in code.co_freevars)
    new = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    new.__kwdefaults__ = function.__kwdefaults__
    return new


def forget_rewritten() -> None:
    """Drop every rewritten function; measurements of cold capture start here."""
    for table in (_functions, _places, _rewritten):
        table.clear()


def _compiled(node: ast.FunctionDef, function: FunctionType, tensor_parameters: tuple[str, ...]) -> CodeType:
    # the cached tree of the file stays as it is
    file = function.__code__.co_filename
    node = copy.deepcopy(node) if function.__code__.co_name == "<lambda>" else parsed_again(node, file)
    rewriter = Rewriter(tensor_parameters)
    node.decorator_list, node.returns = [], None
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    node.args.defaults = [ast.copy_location(ast.Constant(None), d) for d in node.args.defaults]
    node.args.kw_defaults = [d and ast.copy_location(ast.Constant(None), d) for d in node.args.kw_defaults]
    node.body = rewriter.finish(rewriter.body(node.body), node)
    factory = _parsed(f"def __factory({', '.join([HOOKS, *function.__code__.co_freevars])}): pass")
    factory.body = [node]
    if node.name not in function.__code__.co_freevars:  # a function of a module that calls itself finds itself there
        factory.body = [ast.copy_location(ast.Global([node.name]), node), node]
    module = ast.parse("")
    module.body = [factory]
    ast.fix_missing_locations(module)
    flags = function.__code__.co_flags & _ANNOTATIONS_FLAG
    compiled = compile(module, file, "exec", dont_inherit=True, flags=flags)
    return _code_named(_code_named(compiled, "__factory"), node.name)


def _code_named(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if inspect.iscode(c) and c.co_name == name)


