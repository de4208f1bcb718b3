"""Holding a kernel's results against a reference: element by element within a derived tolerance, over given, edge and special inputs."""
from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pypto_dsl import measure, trials
from pypto_dsl.compiler.dtypes import BY_NAME, F64, of_numpy
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.targets import Target
from pypto_dsl.measure import Array
from pypto_dsl.runtime import interpreter
from pypto_dsl.tolerance import Tolerance, tolerances
from pypto_dsl.trials import Trial

# Where a formula magnifies its roundings beyond their bound (seen by evaluating it operation by operation in its own dtypes), results may
# be off by this many times as much: an order of summation or a fusion changes it by less than that.
FORMULA = 4.0
# Elements of integers and truth values that rounding may turn: a floor or a comparison at its edge.
TURNED = 0.01
BUCKETS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 1024.0, math.inf)

# Letters of a map, the gravest first, and what an element that has one is.
MARKS = {"N": "NaN without cause", "n": "should be NaN", "i": "infinities differ", "x": "beyond the tolerance"}
MAP_SIZE = (16, 64)

Reference = Callable[..., Any]


class ReferenceFault(Exception):
    """A reference that cannot be compared with: it raises, or gives other results or shapes than the kernel."""


@dataclass(frozen=True)
class Worst:
    """The element that is furthest from its reference: its place, both values, and the error in ulp (None: one of them is not finite)."""

    at: tuple[int, ...]
    got: float
    expected: float
    ulp: float | None


@dataclass(frozen=True)
class Verdict:
    """One result of one trial.

    ``limit`` is the absolute error that is allowed at the magnitude ``scale``; ``wrong`` counts elements beyond their tolerance.
    ``nan_extra`` and ``nan_missing`` count NaNs that the reference does not have, and the other way round; ``infinite`` differences of
    infinities. ``formula`` counts elements that differ from a reference as the kernel's own formula does at special values. ``histogram``
    counts elements by ulp, up to the bounds in `BUCKETS`; ``error`` is the largest absolute error. ``map`` is a picture of where the wrong
    elements are, in the letters of `MARKS`.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    tolerance: Tolerance
    scale: float
    limit: float
    wrong: int
    nan_extra: int
    nan_missing: int
    infinite: int
    formula: int
    worst: Worst | None
    histogram: tuple[int, ...]
    error: float = 0.0
    map: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every element is right."""
        return not (self.wrong or self.nan_extra or self.nan_missing or self.infinite)

    @property
    def is_float(self) -> bool:
        """Whether elements have a distance in ulp; those of integers and truth values are equal or not."""
        return BY_NAME[self.dtype].is_float

    @property
    def different(self) -> int:
        """Elements of integers and truth values that are not the reference's."""
        return 0 if self.is_float else self.histogram[-1]

    def allowed(self) -> str:
        """How far off an element may be, in words."""
        if self.is_float or self.tolerance.coarsest is None:
            return self.tolerance.text()
        return f"equal, but for {TURNED:.0%} of the elements that a rounding before them may turn"


@dataclass(frozen=True)
class Tried:
    """One trial and what came of it. ``refused`` is why it could not be made, when the arguments are none of this kernel's."""

    name: str
    kind: str
    verdicts: tuple[Verdict, ...]
    refused: str = ""

    @property
    def ok(self) -> bool:
        """Whether every result is right."""
        return all(v.ok for v in self.verdicts)


@dataclass(frozen=True)
class Subject:
    """The kernel under test: ``prepare`` gives the graph and the symbols of a call, ``compute`` the results by name, on copies.

    ``expanded`` gives a graph in the simpler operations that the target has (the graph itself where it has all).
    """

    prepare: Callable[[Mapping[str, Any]], tuple[Graph, Mapping[str, int]]]
    compute: Callable[[Mapping[str, Any]], Mapping[str, Array]]
    target: Target | None
    expanded: Callable[[Graph], Graph] = field(default=lambda graph: graph)


def check(subject: Subject, arguments: Mapping[str, Any], reference: Reference | None, *, shapes: bool = True,
          values: bool = True) -> Iterator[Tried]:
    """Compare a kernel with a reference on ``arguments``, then on edge shapes and special values, one `Tried` after the other.

    Without ``reference`` the kernel is compared with itself on the interpreter: in float64, or in its own dtypes where those agree. The
    interpreter goes first, so that arguments which the kernel is not made for (PT707, PT710) never reach compiled code.
    Raises KernelError as the kernel does on ``arguments``, and ReferenceFault where the reference cannot be compared with.
    """
    graph, _, verdicts = given(subject, arguments, reference)
    yield Tried("as given", "given", verdicts)
    scales = {v.name: v.scale for v in verdicts}
    if shapes:
        for trial in trials.shapes(graph, arguments, None if subject.target is None else subject.target.tile):
            yield _tried(subject, trial, reference, None)
    if values:
        for trial in trials.values(graph, arguments, integers=reference is None):
            yield _tried(subject, trial, reference, scales)


def given(subject: Subject, arguments: Mapping[str, Any],
          reference: Reference | None = None) -> tuple[Graph, Mapping[str, Array], tuple[Verdict, ...]]:
    """The graph of a call, its results by name, and what they are beside their reference; errors as for `check`."""
    graph, symbols = subject.prepare(arguments)
    judge = _Judge(subject, graph, Trial("as given", "given", arguments), symbols, reference)
    results = subject.compute(arguments)
    return graph, results, judge.verdicts(results)


def _tried(subject: Subject, trial: Trial, reference: Reference | None, scales: Mapping[str, float] | None) -> Tried:
    try:
        graph, symbols = subject.prepare(trial.arguments)
        judge = _Judge(subject, graph, trial, symbols, reference, scales)
    except KernelError as refused:
        return Tried(trial.name, trial.kind, (), f"{refused.code}: {refused.diagnostic.message}")
    except ReferenceFault as fault:
        return Tried(trial.name, trial.kind, (), str(fault))
    return Tried(trial.name, trial.kind, judge.verdicts(subject.compute(trial.arguments)))


class _Judge:
    """What the results of one trial should be, and how far off they may be."""

    def __init__(self, subject: Subject, graph: Graph, trial: Trial, symbols: Mapping[str, int], reference: Reference | None,
                 scales: Mapping[str, float] | None = None) -> None:
        self.trial, self.from_user = trial, reference is not None
        self.scales = scales if trials.is_pointwise(graph) else None  # sums may cancel what is as large as the largest result
        self.tolerances = tolerances(graph, symbols, subject.target)
        self.own = interpreter.run(graph, _native(trial.arguments), symbols)
        # At the largest numbers the simpler operations that an operation is made of pass the range before the operation itself would.
        self.expanded = interpreter.run(subject.expanded(graph), _native(trial.arguments), symbols) if trial.is_extreme else self.own
        self.ideal = measure.reference(graph, trial.arguments, symbols)
        self.expected = self.ideal if reference is None else expected_of(reference, graph, trial.arguments)

    def verdicts(self, results: Mapping[str, Array]) -> tuple[Verdict, ...]:
        return tuple(self.verdict(name, np.asarray(got)) for name, got in results.items())

    def verdict(self, name: str, got: Array) -> Verdict:
        expected, own = self.expected[name], self.own[name]
        if expected.shape != got.shape:
            raise ReferenceFault(f"the reference gives `{name}` the shape {list(expected.shape)}, and the kernel {list(got.shape)}")
        dtype = of_numpy(got.dtype) or F64
        return self.floats(name, got, expected, own) if dtype.is_float else self.exact(name, got, expected, own)

    def excuses(self, as_own: Array) -> tuple[Array, Array]:
        """Elements that are right because the interpreter has them too, and those that differ from a reference by the kernel's formula."""
        none = np.zeros(as_own.shape, bool)
        if not self.from_user:
            return as_own, none
        return (none, as_own) if self.trial.kind == "values" else (none, none)

    def exact(self, name: str, got: Array, expected: Array, own: Array) -> Verdict:
        """Integers and truth values: equal, but for a few that rounding before them has turned."""
        tolerance = self.tolerances[name]
        differ = np.asarray(got != expected)
        as_own = np.asarray(got == own)
        right, formula = self.excuses(as_own)
        if not self.from_user:
            right = as_own
        wrong = differ & ~right & ~formula
        count = _count(wrong)
        if tolerance.relative and count <= max(1, int(TURNED * got.size)):
            count = 0
        worst = None
        if differ.any():
            place = _place(got, int(np.argmax(wrong if wrong.any() else differ)))
            worst = Worst(place, float(got[place]), float(expected[place]), None)
        histogram = (_count(~differ), *[0] * (len(BUCKETS) - 2), _count(differ))
        return Verdict(
            name, str(of_numpy(got.dtype)), got.shape, tolerance, 0.0, 0.0, count, 0, 0, 0, _count(differ & formula), worst, histogram,
            map=picture({"x": wrong}) if count else ()
        )

    def floats(self, name: str, got: Array, expected: Array, own: Array) -> Verdict:
        """Floats: the same NaNs and infinities, and every error within the tolerance."""
        dtype = of_numpy(got.dtype) or F64
        a, b, c, ideal = (_wide(x) for x in (got, expected, own, self.ideal[name]))
        b = _rounded_to_infinity(b, dtype)
        tolerance = self.tolerances[name]
        finite = np.isfinite(b)
        scale = float(np.max(np.abs(b), where=finite, initial=0.0))
        spread = 0.0
        if self.trial.kind != "values":
            off = np.abs(np.subtract(c, ideal, where=np.isfinite(c) & np.isfinite(ideal), out=np.zeros(c.shape)))
            magnified = float(off.max(initial=0.0))
            spread = FORMULA * magnified if magnified > tolerance.relative * scale else 0.0
        elif self.scales is not None:
            scale = min(scale, self.scales.get(name, scale))
        floor = measure.limits(dtype)[1]

        def allowed(x: Array) -> Array:
            size: Array = np.maximum(np.abs(np.where(np.isfinite(x), x, 0.0)), scale)
            return tolerance.relative * size + spread + floor

        near = measure.limits(dtype)[0] / max(1, *tolerance.lengths, 1)
        kinds = _kinds_differ(a, b) & ~(_overflows(a, b, near) | _overflows(b, a, near))
        error = _distance(a, b)
        beyond = kinds | (error > allowed(b))
        as_own = ~_kinds_differ(a, c) & (_distance(a, c) <= allowed(c))
        right, formula = self.excuses(as_own)
        if self.trial.is_extreme:
            e = _wide(self.expanded[name])
            formula = formula | (~_kinds_differ(a, e) & (_distance(a, e) <= allowed(e)) & ~right)
        wrong = beyond & ~right & ~formula
        kinds = kinds & wrong
        nan_extra, nan_missing = kinds & np.isnan(a), kinds & np.isnan(b)
        infinite = kinds & ~nan_extra & ~nan_missing
        both = np.isfinite(a) & finite
        units = np.where(both, error / measure.spacing(np.where(both, b, 1.0), dtype), 0.0)
        return Verdict(name, dtype.name, got.shape, tolerance, scale, float(tolerance.relative * scale + spread),
                       _count(wrong & ~kinds), _count(nan_extra), _count(nan_missing), _count(infinite), _count(beyond & formula),
                       _worst(got.shape, a, b, units, wrong, kinds), _histogram(units[both]), float(error.max(initial=0.0)),
                       picture({"N": nan_extra, "n": nan_missing, "i": infinite, "x": wrong & ~kinds}))


def _native(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        n: v.astype(v.dtype.newbyteorder("=")) if isinstance(v, np.ndarray) and not v.dtype.isnative else v for n, v in arguments.items()
    }


def _count(where: Array) -> int:
    return int(np.count_nonzero(where))


def _wide(x: Array) -> Array:
    return np.asarray(x).astype(np.float64)


def _rounded_to_infinity(x: Array, dtype: Any) -> Array:
    """Numbers beyond the largest of ``dtype`` as the infinities that they round to."""
    largest = measure.limits(dtype)[0]
    rounded: Array = np.where(np.abs(x) >= largest * (1 + 2.0 ** -dtype.mantissa), np.copysign(np.inf, x), x)
    return rounded


def _kinds_differ(a: Array, b: Array) -> Array:
    """Where one is NaN and the other is not, or one is infinite and the other is not the same."""
    nan = np.isnan(a) | np.isnan(b)
    found: Array = (np.isnan(a) != np.isnan(b)) | ((np.isinf(a) | np.isinf(b)) & (a != b) & ~nan)
    return found


def _overflows(a: Array, b: Array, near: float) -> Array:
    """Where one is infinite and the other so large that a sum of its terms in another order passes the largest number."""
    found: Array = np.isinf(a) & np.isfinite(b) & (np.abs(b) > near) & (np.sign(a) == np.sign(b))
    return found


def _distance(a: Array, b: Array) -> Array:
    both = np.isfinite(a) & np.isfinite(b)
    with np.errstate(over="ignore"):  # the largest numbers of f64 may be further apart than f64 reaches
        return np.abs(np.subtract(a, b, where=both, out=np.zeros(a.shape)))


def _place(array: Array, flat: int) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, array.shape))


def picture(marks: Mapping[str, Array]) -> tuple[str, ...]:
    """Where elements are marked: a line for each row (axes before the last one after the other), a letter for each column, "." for none.

    Large results are drawn smaller, at most `MAP_SIZE`: a letter is then the gravest of several elements. Nothing when none is marked.
    """
    if not any(where.any() for where in marks.values()):
        return ()
    first = next(iter(marks.values()))
    columns = first.shape[-1] if first.ndim else 1
    rows = first.size // columns
    lines, width = (min(n, most) for n, most in zip((rows, columns), MAP_SIZE, strict=True))
    drawn = np.full((lines, width), ".")
    for letter, where in reversed(list(marks.items())):
        at = np.nonzero(where.reshape(rows, columns))
        drawn[at[0] * lines // rows, at[1] * width // columns] = letter
    return tuple("".join(line) for line in drawn)


def _worst(shape: tuple[int, ...], a: Array, b: Array, units: Array, wrong: Array, kinds: Array) -> Worst | None:
    """The first wrong NaN or infinity, else the wrong element that is furthest off, else the furthest of the right ones."""
    if not a.size:
        return None
    if kinds.any():
        place = _place(a, int(np.argmax(kinds)))
        return Worst(place, float(a[place]), float(b[place]), None)
    place = _place(a, int(np.argmax(np.where(wrong, units + 1.0, 0.0) if wrong.any() else units)))
    return Worst(place, float(a[place]), float(b[place]), float(units[place]))


def _histogram(units: Array) -> tuple[int, ...]:
    at_most = [int(np.count_nonzero(units <= bound)) for bound in BUCKETS]
    return tuple(n - before for n, before in zip(at_most, [0, *at_most], strict=False))


# ---- a reference of the user's -------------------------------------------------------------------------------------------------------


def expected_of(reference: Reference, graph: Graph, arguments: Mapping[str, Any]) -> dict[str, Array]:
    """What a reference function computes, by the names of the kernel's results.

    It gets float64 copies of all float arrays, so that its own rounding does not count: by name where its parameters are the kernel's,
    else the kernel's inputs in their order. Its results are what it returns, in the order of the kernel's; or what it has written into the
    outputs. Raises ReferenceFault where it raises, or gives another number of results.
    """
    given = {name: _copy(value) for name, value in arguments.items()}
    names = [*graph.outputs, *interpreter.return_names(graph)]
    try:
        with np.errstate(all="ignore"):
            if _takes_by_name(reference, given):
                accepted = inspect.signature(reference).parameters
                open_ended = any(p.kind is p.VAR_KEYWORD for p in accepted.values())
                returned = reference(**{n: v for n, v in given.items() if open_ended or n in accepted})
            else:
                returned = reference(*(v for n, v in given.items() if n not in graph.outputs))
    except Exception as failure:  # whatever a user's function raises
        raise ReferenceFault(f"the reference raises {type(failure).__name__}: {failure}") from failure
    if returned is None:
        if graph.returns:
            raise ReferenceFault(f"the reference returns nothing, and the kernel returns {len(graph.returns)} results")
        return {name: given[name] for name in names}
    made = returned if isinstance(returned, (tuple, list)) else (returned,)
    if len(made) != len(names):
        raise ReferenceFault(f"the reference returns {len(made)} results, and the kernel has {len(names)}: {', '.join(names)}")
    return {name: np.asarray(value) for name, value in zip(names, made, strict=True)}


def _copy(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    dtype = of_numpy(value.dtype)
    with np.errstate(all="ignore"):  # outputs hold anything before they are written
        return value.astype(np.float64) if dtype is not None and dtype.is_float else value.copy()


def _takes_by_name(reference: Reference, given: Mapping[str, Any]) -> bool:
    try:
        parameters = inspect.signature(reference).parameters.values()
    except (TypeError, ValueError):  # functions in C say nothing
        return False
    needed = [p.name for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return not any(p.kind is p.POSITIONAL_ONLY for p in parameters) and all(n in given for n in needed) and (
        bool(needed) or any(p.kind is p.VAR_KEYWORD for p in parameters))
