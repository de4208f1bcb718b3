"""Index: integer expressions over loop variables, extents and scalars, kept in polynomial normal form.

An Index is a sum of integer multiples of products of atoms; an atom is a variable or a floor division, remainder,
minimum or maximum of Indexes. The normal form makes equal expressions equal objects (`(i + 1)*s - i*s == s`), so passes
compare with `==` and emitters print what is left. Division and remainder floor, as in Python.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Literal, TypeAlias, cast

AtomOp = Literal["//", "%", "min", "max"]


@dataclass(frozen=True)
class Var:
    """A loop variable, an extent or a scalar, by name."""

    name: str

    def key(self) -> str:
        return self.name


@dataclass(frozen=True)
class Compound:
    """An operation that polynomials cannot absorb."""

    op: AtomOp
    a: Index
    b: Index

    def key(self) -> str:
        return f"~{self.op}({self.a!r},{self.b!r})"


Atom = Var | Compound
Monomial = tuple[Atom, ...]
IndexLike: TypeAlias = "Index | int"


class Index:
    """``terms`` is a sorted tuple of (product of atoms, coefficient); the empty product is the constant.

    ``constant`` is the value when it is known, else None. Never changed once made; no dataclass, because passes make, compare and look
    up millions of them.
    """

    __slots__ = ("_hash", "_text", "constant", "terms")
    terms: tuple[tuple[Monomial, int], ...]
    constant: int | None

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self.constant = 0 if not terms else terms[0][1] if len(terms) == 1 and not terms[0][0] else None
        self._hash: int | None = None
        self._text: str | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Index) and self.constant == other.constant and self.terms == other.terms)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.terms)
        return self._hash

    def __reduce__(self) -> tuple[type[Index], tuple[tuple[tuple[Monomial, int], ...]]]:
        """Copied and pickled without the hash, which differs between processes."""
        return Index, (self.terms,)

    def __add__(self, other: IndexLike) -> Index:
        other = as_index(other)
        if not other.terms:
            return self
        if self.constant is not None and other.constant is not None:
            return as_index(self.constant + other.constant)
        return _sum((*self.terms, *other.terms))

    __radd__ = __add__

    def __neg__(self) -> Index:
        return Index(tuple((m, -c) for m, c in self.terms))

    def __sub__(self, other: IndexLike) -> Index:
        other = as_index(other)
        return as_index(0) if self == other else _difference(self, other)

    def __rsub__(self, other: IndexLike) -> Index:
        return as_index(other) - self

    def __mul__(self, other: IndexLike) -> Index:
        other = as_index(other)
        for a, b in ((self, other), (other, self)):
            if a.constant is not None:
                return as_index(0) if not a.constant else Index(tuple((m, c * a.constant) for m, c in b.terms))
        return _sum((tuple(sorted((*m, *n), key=_atom_key)), c * d) for m, c in self.terms for n, d in other.terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: IndexLike) -> Index:
        return floordiv(self, other)

    def __rfloordiv__(self, other: IndexLike) -> Index:
        return floordiv(other, self)

    def __mod__(self, other: IndexLike) -> Index:
        return modulo(self, other)

    def __rmod__(self, other: IndexLike) -> Index:
        return modulo(other, self)

    @property
    def is_constant(self) -> bool:
        return self.constant is not None

    @property
    def name(self) -> str | None:
        """The variable's name when the Index is exactly one variable."""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1:
            atom = self.terms[0][0][0]
            return atom.name if isinstance(atom, Var) else None
        return None

    def variables(self) -> frozenset[str]:
        """Names of every variable below."""
        return _variables(self)

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value with every variable given; division by zero raises ZeroDivisionError, a missing name KeyError."""
        return _evaluate(self, values, {})

    def substitute(self, values: Mapping[str, IndexLike]) -> Index:
        """Replace variables by Indexes or integers, simplifying again."""
        if self.variables().isdisjoint(values):
            return self
        if self.name is not None:
            return as_index(values[self.name])
        total = as_index(0)
        for monomial, coefficient in self.terms:
            product = as_index(coefficient)
            for atom in monomial:
                if isinstance(atom, Var):
                    product = product * as_index(values.get(atom.name, Index((((atom,), 1),))))
                else:
                    product = product * _MAKE[atom.op](atom.a.substitute(values), atom.b.substitute(values))
            total = total + product
        return total

    def __repr__(self) -> str:
        """Kept, because it is the order of terms: nested expressions would be spelled once per level and comparison otherwise."""
        if self._text is None:
            self._text = _sum_text(self, PYTHON)
        return self._text

    __str__ = __repr__


def _atom_key(atom: Atom) -> str:
    return atom.key()


def _monomial_key(term: tuple[Monomial, int]) -> tuple[int, tuple[str, ...]]:
    """Variables first and the constant last, as people write them."""
    return (0 if term[0] else 1, tuple(a.key() for a in term[0]))


def _sum(terms: Iterable[tuple[Monomial, int]]) -> Index:
    collected: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        collected[monomial] = collected.get(monomial, 0) + coefficient
    return Index(tuple(sorted(((m, c) for m, c in collected.items() if c), key=_monomial_key)))


def _evaluate(x: Index, values: Mapping[str, int], known: dict[Compound, int]) -> int:
    """``known`` keeps what was evaluated: nested expressions name the same parts again and again."""
    total = 0
    for monomial, coefficient in x.terms:
        product = coefficient
        for atom in monomial:
            if isinstance(atom, Var):
                product *= values[atom.name]
                continue
            value = known.get(atom)
            if value is None:
                value = known[atom] = _APPLY[atom.op](_evaluate(atom.a, values, known), _evaluate(atom.b, values, known))
            product *= value
        total += product
    return total


@lru_cache(maxsize=16384)
def _difference(a: Index, b: Index) -> Index:
    """Kept, because every operation compares the same few extents."""
    return a + (-b)


@lru_cache(maxsize=4096)
def _variables(x: Index) -> frozenset[str]:
    found: set[str] = set()
    for monomial, _ in x.terms:
        for atom in monomial:
            if isinstance(atom, Var):
                found.add(atom.name)
            else:
                found |= _variables(atom.a) | _variables(atom.b)
    return frozenset(found)


def as_index(x: IndexLike) -> Index:
    """An int as a constant Index; an Index as itself."""
    return x if isinstance(x, Index) else _constant(int(x))


@lru_cache(maxsize=4096)
def _constant(x: int) -> Index:
    return Index((((), x),)) if x else Index(())


@lru_cache(maxsize=4096)
def var(name: str) -> Index:
    """The Index that is one variable."""
    return Index((((Var(name),), 1),))


def _compound(op: AtomOp, a: Index, b: Index) -> Index:
    return Index((((Compound(op, a, b),), 1),))


def content(x: Index) -> int:
    """The greatest number that divides every coefficient, so that ``x`` is a multiple of it; 0 for 0."""
    result = 0
    for _, c in x.terms:
        result = gcd(result, c)
    return result


def floordiv(a: IndexLike, b: IndexLike) -> Index:
    """a // b, with multiples of b taken out of the division."""
    a, b = as_index(a), as_index(b)
    if a.constant is not None and b.constant:
        return as_index(a.constant // b.constant)
    if b.constant == 1 or a.constant == 0:
        return a
    if a == b:
        return as_index(1)
    if b.constant is not None and b.constant > 0:
        whole = _sum((m, c // b.constant) for m, c in a.terms if c % b.constant == 0)
        rest = _sum((m, c) for m, c in a.terms if c % b.constant)
        if not rest.terms:
            return whole
        if whole.terms:
            return whole + floordiv(rest, b)
        common = gcd(content(a), b.constant)
        if common > 1:
            return floordiv(_sum((m, c // common) for m, c in a.terms), b.constant // common)
    return _compound("//", a, b)


def modulo(a: IndexLike, b: IndexLike) -> Index:
    """a % b, with multiples of a constant b dropped."""
    a, b = as_index(a), as_index(b)
    if a.constant is not None and b.constant:
        return as_index(a.constant % b.constant)
    if b.constant == 1 or a == b or a.constant == 0:
        return as_index(0)
    if b.constant is not None and b.constant > 0:
        rest = _sum((m, c) for m, c in a.terms if c % b.constant)
        if rest != a:
            return modulo(rest, b)
    return _compound("%", a, b)


@lru_cache(maxsize=4096)
def _choices(op: AtomOp, x: Index) -> frozenset[Index]:
    """What nested choices of one kind choose from: x, y and z of min(min(x, y), z)."""
    if len(x.terms) == 1 and x.terms[0][1] == 1 and len(x.terms[0][0]) == 1:
        atom = x.terms[0][0][0]
        if isinstance(atom, Compound) and atom.op == op:
            return _choices(op, atom.a) | _choices(op, atom.b)
    return frozenset((x,))


def _extreme(op: AtomOp, a: IndexLike, b: IndexLike) -> Index:
    a, b = as_index(a), as_index(b)
    difference = (a - b).constant
    if difference is not None:
        return a if (difference <= 0) == (op == "min") else b
    among_a, among_b = _choices(op, a), _choices(op, b)
    if among_a >= among_b:
        return a
    if among_b >= among_a:
        return b
    return _compound(op, *sorted((a, b), key=lambda x: (x.is_constant, repr(x))))


def _bounds(x: Index) -> tuple[int | None, int | None]:
    """The least and the largest value that constants inside ``x`` leave: 0 and 6 for max(min(M, 6), 0); None where nothing is known."""
    if x.constant is not None:
        return x.constant, x.constant
    if len(x.terms) != 1 or x.terms[0][1] != 1 or len(x.terms[0][0]) != 1:
        return None, None
    atom = x.terms[0][0][0]
    if not isinstance(atom, Compound) or atom.op not in ("min", "max"):
        return None, None
    (low, high), (lower, higher) = _bounds(atom.a), _bounds(atom.b)
    lows, highs = [x for x in (low, lower) if x is not None], [x for x in (high, higher) if x is not None]
    if atom.op == "max":
        return max(lows, default=None), max(highs) if len(highs) == 2 else None
    return min(lows) if len(lows) == 2 else None, min(highs, default=None)


def minimum(a: IndexLike, b: IndexLike) -> Index:
    """The smaller of two Indexes."""
    return _extreme("min", a, b)


def maximum(a: IndexLike, b: IndexLike) -> Index:
    """The larger of two Indexes."""
    return _extreme("max", a, b)


def at_most(a: IndexLike, b: IndexLike) -> Index:
    """The smaller of two Indexes, and only one of them where the constants inside decide: max(min(M, 6), 0) for it and 6."""
    a, b = as_index(a), as_index(b)
    (low, high), (lower, higher) = _bounds(a), _bounds(b)
    if high is not None and lower is not None and high <= lower:
        return a
    return b if higher is not None and low is not None and higher <= low else minimum(a, b)


def is_maximum_with(x: Index, part: Index) -> bool:
    """Whether ``x`` is exactly the larger of something and ``part``."""
    if len(x.terms) != 1 or x.terms[0][1] != 1 or len(x.terms[0][0]) != 1:
        return False
    atom = x.terms[0][0][0]
    return isinstance(atom, Compound) and atom.op == "max" and part in (atom.a, atom.b)


def ceildiv(a: IndexLike, b: IndexLike) -> Index:
    """The least n with n * b >= a, for b > 0."""
    return floordiv(as_index(a) + as_index(b) - 1, b)


def most_without(x: Index, unknown: Mapping[str, bool]) -> Index | None:
    """An expression without the names in ``unknown`` (True: never negative) that ``x`` does not exceed; None when none is found.

    What is multiplied by a name is a count, and never negative.
    """
    if not x.variables() & unknown.keys():
        return x
    total = as_index(0)
    for monomial, coefficient in x.terms:
        names = _sum([(monomial, 1)]).variables() & unknown.keys()
        if not names:
            total = total + _sum([(monomial, coefficient)])
        elif coefficient < 0 and all(unknown[name] for name in names):
            continue  # something is taken away: at most nothing
        else:
            factors = [_atom_without(atom, unknown) for atom in monomial] if coefficient > 0 else [None]
            if any(f is None for f in factors):
                return None
            product = as_index(coefficient)
            for factor in factors:
                product = product * cast(Index, factor)
            total = total + product
    return total


def _atom_without(atom: Atom, unknown: Mapping[str, bool]) -> Index | None:
    if isinstance(atom, Var):
        return None if atom.name in unknown else var(atom.name)
    a, b = most_without(atom.a, unknown), most_without(atom.b, unknown)
    if atom.op == "min":
        return minimum(a, b) if a is not None and b is not None else a if b is None else b
    if atom.op == "max":
        return None if a is None or b is None else maximum(a, b)
    if b is None or atom.b.variables() & unknown.keys():
        return None
    return b - 1 if atom.op == "%" else None if a is None else floordiv(a, b)


def dense_strides(shape: Sequence[Index]) -> tuple[Index, ...]:
    """Row-major strides of a shape, in elements."""
    strides: list[Index] = []
    step = as_index(1)
    for extent in reversed(shape):
        strides.append(step)
        step = step * extent
    return tuple(reversed(strides))


def round_up(a: IndexLike, b: IndexLike) -> Index:
    """The least multiple of b that is >= a, for b > 0."""
    return ceildiv(a, b) * b


_MAKE: dict[AtomOp, Callable[[IndexLike, IndexLike], Index]] = {"//": floordiv, "%": modulo, "min": minimum, "max": maximum}
_APPLY: dict[AtomOp, Callable[[int, int], int]] = {
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "min": min, "max": max}


@dataclass(frozen=True)
class Spelling:
    """How a language writes the compound operations; operands arrive already spelled and bracketed."""

    floordiv: str = "{a} // {b}"
    modulo: str = "{a} % {b}"
    minimum: str = "min({a}, {b})"
    maximum: str = "max({a}, {b})"
    call_like: frozenset[str] = frozenset({"min", "max"})
    names: Callable[[str], str] = str


PYTHON = Spelling()
# Operands of division are never negative where C is emitted (extents and offsets), so truncation is floor.
C = Spelling("{a} / {b}", "{a} % {b}", "{a} < {b} ? {a} : {b}", "{a} > {b} ? {a} : {b}", frozenset())


def text(x: IndexLike, spelling: Spelling = PYTHON, bracket: bool = False) -> str:
    """Spell an Index; ``bracket`` adds parentheses unless it is one name or number."""
    x = as_index(x)
    spelled = repr(x) if spelling is PYTHON else _sum_text(x, spelling)
    one_atom = x.is_constant or (len(x.terms) == 1 and len(x.terms[0][0]) + (x.terms[0][1] != 1) == 1)
    simple = one_atom and re.fullmatch(r"[\w.]+|(min|max)\(.*\)", spelled) is not None
    return f"({spelled})" if bracket and not simple else spelled


def _sum_text(x: Index, spelling: Spelling) -> str:
    if not x.terms:
        return "0"
    parts: list[str] = []
    for monomial, coefficient in sorted(x.terms, key=lambda t: (t[1] < 0 and bool(t[0]), _monomial_key(t))):
        factors = [_factor(atom, spelling, alone=len(monomial) == 1 and coefficient == 1 and len(x.terms) == 1)
                   for atom in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.append(str(abs(coefficient)))
        product = "*".join(factors)
        sign = "-" if coefficient < 0 else "+"
        parts.append((f" {sign} " if parts else ("-" if sign == "-" else "")) + product)
    return "".join(parts)


def _factor(atom: Atom, spelling: Spelling, alone: bool) -> str:
    if isinstance(atom, Var):
        return spelling.names(atom.name)
    form = {"//": spelling.floordiv, "%": spelling.modulo, "min": spelling.minimum, "max": spelling.maximum}[atom.op]
    call = atom.op in spelling.call_like
    loose = atom.op in ("min", "max")  # a comparison binds looser than sums and products, not than another choice
    spelled = form.format(**{side: _operand(x, spelling, call, loose) for side, x in (("a", atom.a), ("b", atom.b))})
    return spelled if call or alone else f"({spelled})"


def _operand(x: Index, spelling: Spelling, call: bool, loose: bool) -> str:
    spelled = text(x, spelling, not call and not loose)
    return f"({spelled})" if loose and not call and "?" in spelled else spelled


_TOKEN = re.compile(r"\s*(//|[-+*%(),]|\w+(?:\.\w+)*)")


def parse(source: str) -> Index:
    """Read what `text` wrote; raises ValueError with the offending column."""
    tokens: list[tuple[str, int]] = []
    at = 0
    while at < len(source.rstrip()):
        match = _TOKEN.match(source, at)
        if match is None:
            raise ValueError(f"column {at + 1}: not an index expression: {source!r}")
        tokens.append((match.group(1), match.start(1)))
        at = match.end()
    position = 0

    def peek() -> str:
        return tokens[position][0] if position < len(tokens) else ""

    def take(expected: str = "") -> str:
        nonlocal position
        token = peek()
        if not token or (expected and token != expected):
            column = tokens[position][1] + 1 if position < len(tokens) else len(source) + 1
            raise ValueError(f"column {column}: expected {expected or 'a name or number'} in {source!r}")
        position += 1
        return token

    def total() -> Index:
        value = product()
        while peek() in ("+", "-"):
            value = value + product() if take() == "+" else value - product()
        return value

    def product() -> Index:
        value = primary()
        while peek() in ("*", "//", "%"):
            op = take()
            value = value * primary() if op == "*" else value // primary() if op == "//" else value % primary()
        return value

    def primary() -> Index:
        token = take()
        if token == "-":
            return -primary()
        if token == "(":
            value = total()
            take(")")
            return value
        if token in ("min", "max") and peek() == "(":
            take("(")
            a = total()
            take(",")
            b = total()
            take(")")
            return minimum(a, b) if token == "min" else maximum(a, b)
        return as_index(int(token)) if token.isdigit() else var(token)

    value = total()
    if position != len(tokens):
        raise ValueError(f"column {tokens[position][1] + 1}: unexpected {peek()!r} in {source!r}")
    return value
