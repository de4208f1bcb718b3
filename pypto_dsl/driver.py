"""The kernel object that `@pypto.jit` makes: called on arrays, run on any target, and asked what became of it."""
from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any

import numpy as np

from pypto_dsl.compiler.errors import Diagnostic, KernelError, Label, error, value_text
from pypto_dsl.compiler.graph import Graph
from pypto_dsl.compiler.profile import profiled, stage
from pypto_dsl.compiler.span import Span
from pypto_dsl.frontend import targets, verify
from pypto_dsl.frontend.arguments import (
    Array,
    TensorArgument,
    as_numpy,
    check_extents,
    check_outputs,
    checked,
    is_array,
    like,
    likewise,
    symbol_values,
)
from pypto_dsl.frontend.capture import Arguments, Captured, capture
from pypto_dsl.frontend.control import HOOKS
from pypto_dsl.frontend.direct import MISSED, Direct, direct, shape_of_call
from pypto_dsl.frontend.keys import freeze, shown
from pypto_dsl.frontend.options import TILES, KernelOptions, kernel_options, outside, tiles_outside
from pypto_dsl.frontend.rewrite import definition_of
from pypto_dsl.frontend.scalar import SymbolicScalar
from pypto_dsl.frontend.spans import here, node_span
from pypto_dsl.frontend.tensor import Declared, Tensor
from pypto_dsl.frontend.trace import CURRENT, NeedsValue, current
from pypto_dsl.frontend.verify import GOLDENS, pending
from pypto_dsl.frontend.vocabulary import Annotation, TileOpFormat

Key = tuple[tuple[str, Any], ...]


@dataclass(eq=False)
class Specialisation:
    """One captured form of a kernel: the key that selects it, why it was made, and what was compiled from it per target."""

    key: Key
    because: Callable[[], str]
    captured: Captured
    executors: dict[str, targets.Executor] = field(default_factory=dict)

    @functools.cached_property
    def reason(self) -> str:
        """Why it was made, worked out when somebody asks."""
        return self.because()

    @property
    def graph(self) -> Graph:
        """The recorded graph."""
        return self.captured.graph

    def describe(self) -> str:
        """The key in words: `x f32[*, 64], causal=True`."""
        return ", ".join(_entry(name, part) for name, part in self.key)

    def __repr__(self) -> str:
        return f"<{self.graph.name}({self.describe()}): {self.reason}>"


@dataclass(frozen=True)
class Shortcut:
    """What a call with these dtypes, shapes and plain values comes down to: everything about it that does not depend on contents.

    ``tensors`` and ``floats`` are (position, name) in the call, ``outputs`` the positions of arrays that are written, ``defaults`` floats
    that were not given. ``direct`` does the same without names, where the target has a launcher.
    """

    found: Specialisation
    executor: targets.Executor
    tensors: tuple[tuple[int, str], ...]
    outputs: tuple[tuple[int, str], ...]
    floats: tuple[tuple[int, str, np.dtype[Any]], ...]
    defaults: dict[str, Array]
    symbols: dict[str, int]
    direct: Direct | None


MOST_SHORTCUTS = 512


def _entry(name: str, part: Any) -> str:
    kind, *rest = part
    if kind == "tensor":
        dtype, extents = rest
        return f"{name} {dtype}[{', '.join('*' if e is None else str(e) for e in extents)}]"
    return f"{name}: {rest[0]}" if kind in ("float", "integer") else f"{name}={shown(rest[-1])}"


class Kernel:
    """A function in the tile language. Call it on arrays: outputs are written in place, or returned.

    A kernel is specialised on dtypes, static extents, bool, int, str, tuple and config arguments, on the plain data it reads from globals
    and closures, and on tile shapes set outside it. Floats and dynamic extents are run-time values. Thread-safe, and picklable by name.
    """

    __slots__ = ("__dict__", "__weakref__", "_entry")

    def __init__(self, function: FunctionType, options: KernelOptions) -> None:
        # the launcher that a call is tried with before any Python runs (`_entered`): that of `_last`, or None
        self._entry: Callable[..., bool] | None = None
        functools.update_wrapper(self, function)
        self.function = function
        self.options = options
        self.name = function.__name__ if function.__name__.isidentifier() else "kernel"
        self.signature = inspect.signature(function)
        # where a parameter lies in a call's arguments; those that are only given by name lie behind all of them
        self._position = {n: i if p.kind <= p.POSITIONAL_OR_KEYWORD else sys.maxsize
                          for i, (n, p) in enumerate(self.signature.parameters.items())}
        # (name, default) of every parameter where all can be given by position, else None
        plain = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in self.signature.parameters.values())
        self._plain_parameters = [(n, p.default) for n, p in self.signature.parameters.items()] if plain else None
        self._annotations: dict[str, Any] | None = None
        self._entries: dict[Key, list[Specialisation]] = {}
        self._made: list[Specialisation] = []  # oldest first; only ever appended to
        self._constant_floats: dict[str, str] = {}
        self._shortcuts: dict[Any, Shortcut] = {}
        self._lock = threading.RLock()
        self._last: Specialisation | None = None
        self._repeated: tuple[Direct, Specialisation] | None = None  # the last call, on the default target

    def __reduce__(self) -> str:
        return str(self.function.__qualname__)

    def __repr__(self) -> str:
        return f"<kernel {self.name}{self.signature}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    # ---- calls ---------------------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on arrays, on the default target; inside another kernel the body is inlined.

        Raises KernelError: PT7xx for arguments, before anything is written, and what reading the kernel raises.
        """
        if current() is not None:
            return HOOKS.call(self.function, *args, **kwargs)
        if kwargs:
            args, kwargs = self._by_position(args, kwargs)
        repeated = self._repeated
        if repeated is not None and not kwargs and tiles_outside() is None and pending() is None:
            form, found = repeated
            launch = form.launch
            result = form.run(args) if launch is None else None if launch(*args) else MISSED
            if result is not MISSED:
                self._last, self._entry = found, launch
                return result
        viewed = None if kwargs else as_numpy(args)
        if viewed is not None:
            return likewise(args, self(*viewed))
        return self._run(args, kwargs, self.options.target or targets.DEFAULT)

    def run(self, *args: Any, target: str | None = None, **kwargs: Any) -> Any:
        """Run on arrays on ``target``: "llvm-cpu", "interpreter", "ascend-a2-emu", "tt-wormhole-emu". Raises PT501 for another name."""
        return self._run(args, kwargs, target or self.options.target or targets.DEFAULT)

    def _by_position(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same call with every argument by position, defaults filled in; as it is when it cannot be made so, or is wrong."""
        parameters = self._plain_parameters
        if parameters is None or len(args) > len(parameters):
            return args, kwargs
        rest = parameters[len(args):]
        given = tuple([kwargs.get(name, default) for name, default in rest])
        if [v for v in given if v is inspect.Parameter.empty] or len([n for n, _ in rest if n in kwargs]) != len(kwargs):
            return args, kwargs
        return args + given, {}

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], target: str) -> Any:
        shape = None if kwargs or tiles_outside() is not None or pending() is not None else shape_of_call(args)
        shortcut = self._shortcuts.get((target, shape)) if shape is not None else None
        if shortcut is not None and all(read.holds() for read in shortcut.found.captured.reads):
            return self._again(shortcut, args, target)
        arguments = self._arguments(args, kwargs)
        arrays: dict[str, Array] = {n: t.array for n, t in arguments.tensors.items()}
        with profiled(f"{self.name} for {target}"):
            found = self._specialise(arguments)
            graph = found.graph
            symbols = symbol_values(graph, arrays, arguments.integers)
            check_extents(graph, symbols)
            check_outputs(graph.name, [(name, arrays[name]) for name in graph.outputs])
            executor = found.executors.get(target)
            if executor is None:
                with self._lock:
                    executor = found.executors.setdefault(target, targets.executor(target, graph))
        floats = [(p.name, p.type.dtype.numpy) for p in graph.parameters if p.name not in arrays]
        position = self._position
        verified = found.captured.probed and verify.is_on(self.options.groups)
        plain = not found.captured.probed and not arguments.integers and not self._constant_floats
        if shape is not None and plain and all(position[n] < len(args) for n in arrays):
            if len(self._shortcuts) >= MOST_SHORTCUTS:
                self._shortcuts.clear()
            defaults = {n: np.asarray(arguments.floats[n], d) for n, d in floats if position[n] >= len(args)}
            given = [n for n, _ in floats if n not in defaults]
            self._shortcuts[target, shape] = Shortcut(
                found, executor, tuple((position[n], n) for n in arrays), tuple((position[n], n) for n in graph.outputs),
                tuple((position[n], n, d) for n, d in floats if n in given), defaults, symbols,
                direct(executor, found.captured, args, position, arrays, given, defaults, symbols))
        for name, dtype in floats:
            arrays[name] = np.asarray(arguments.floats[name], dtype)
        before = verify.copies(arrays) if verified or pending() is not None else {}
        if verified:
            observed = capture(self.function, self.name, self.signature, arguments, self.options, observing=True).graph
            verify.interpreted(observed, before, symbols, verify.observer(self.options.groups))
        returned = executor(arrays, symbols)
        if pending() is not None:
            verify.compare(self.name, {n: t.array for n, t in arguments.tensors.items()},
                           lambda: verify.interpreted(graph, before, symbols))
        return self._result(found, returned, next((t.given for t in arguments.tensors.values()), None))

    def _again(self, shortcut: Shortcut, args: tuple[Any, ...], target: str) -> Any:
        """A call like an earlier one, with other arrays."""
        self._last, self._entry = shortcut.found, None
        if shortcut.direct is not None:
            result = shortcut.direct.run(args)
            if result is not MISSED:
                if target == (self.options.target or targets.DEFAULT):
                    self._repeated, self._entry = (shortcut.direct, shortcut.found), shortcut.direct.launch
                    if self._entry is not None and type(self) is Kernel:
                        self.__class__ = _entered()
                return result
        check_outputs(self.name, [(name, args[i]) for i, name in shortcut.outputs])
        arrays: dict[str, Array] = {name: args[i] for i, name in shortcut.tensors} | shortcut.defaults
        for i, name, dtype in shortcut.floats:
            arrays[name] = np.asarray(args[i], dtype)
        return self._result(shortcut.found, shortcut.executor(arrays, shortcut.symbols), None)

    @staticmethod
    def _result(found: Specialisation, returned: list[Array], sample: Any) -> Any:
        if found.captured.returns == "none":
            return None
        made = tuple(like(sample, r) for r in returned)
        return made[0] if found.captured.returns == "single" else made

    # ---- arguments -----------------------------------------------------------------------------------------------------------

    @property
    def annotations(self) -> dict[str, Any]:
        """The parameters' annotations, strings evaluated where the function was defined."""
        if self._annotations is None:
            try:
                self._annotations = _annotations_of(self.function)
            except _InAnnotation as wrong:
                place = self._declared_at(wrong.parameter)
                raise KernelError(wrong.found if place is None else replace(wrong.found, primary=Label(place))) from None
        return self._annotations

    @property
    def tensor_parameters(self) -> list[str]:
        """Names of the parameters that are annotated as tensors."""
        return [n for n, a in self.annotations.items() if isinstance(a, Annotation) or a is Tensor]

    def _declared_at(self, name: str) -> Span | None:
        node = definition_of(self.function)
        if node is None:
            return None
        every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        return next((node_span(a, self.function.__code__.co_filename) for a in every if a.arg == name), None)

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        tensors: dict[str, TensorArgument] = {}
        floats: dict[str, Any] = {}
        integers: dict[str, int] = {}
        fixed: dict[str, Any] = {}
        annotations = self.annotations
        for name, x in self._bound(args, kwargs):
            promise = annotations.get(name)
            if isinstance(promise, Annotation) or promise is Tensor or is_array(x):
                tensors[name] = self._tensor(name, x, promise if isinstance(promise, Annotation) else Annotation())
            elif promise is SymbolicScalar or isinstance(x, SymbolicScalar):
                integers[name] = int(x)
            elif isinstance(x, (float, np.floating)) and name not in self._constant_floats:
                floats[name] = x
            else:
                self._refuse_arrays(name, x)
                fixed[name] = x
        return Arguments(tensors, floats, integers, fixed)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterable[tuple[str, Any]]:
        """The value of every parameter, defaults included. Raises PT714 for arguments that do not fit the signature."""
        plain = self._plain_parameters
        if plain is not None and not kwargs and len(args) == len(plain):
            return [(name, x) for (name, _), x in zip(plain, args, strict=True)]
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as wrong:
            raise error("PT714", f"{self.name}: {wrong}", here(),
                        help=f"call {self.name}({', '.join(self.signature.parameters)})") from None
        bound.apply_defaults()
        return bound.arguments.items()

    def _tensor(self, name: str, x: Any, promise: Annotation) -> TensorArgument:
        if is_array(x):
            return checked(name, x, promise, lambda: self._declared_at(name), self.name)
        raise error("PT701", f"`{name}` of {self.name} is a tensor, and got {value_text(x)}", here(),
                    help="pass a NumPy array, np.ones((8, 8), np.float32), or a torch tensor on the CPU")

    def _refuse_arrays(self, name: str, x: Any) -> None:
        inside = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
        if any(is_array(v) for v in inside):
            raise error("PT711", f"`{name}` of {self.name} is a {type(x).__name__} with arrays in it", here(),
                        help="make every array a parameter of its own")

    # ---- specialisation --------------------------------------------------------------------------------------------------------

    def _key(self, arguments: Arguments) -> Key:
        tiles = outside()
        key: list[tuple[str, Any]] = [(n, ("tensor", *t.key())) for n, t in arguments.tensors.items()]
        key += [(n, ("float", type(v).__name__)) for n, v in arguments.floats.items()]
        key += [(n, ("integer", "int")) for n in arguments.integers]
        key += [(n, ("value", freeze(v), _Shown(v))) for n, v in arguments.fixed.items()]
        if tiles.vector is not None or tiles.cube is not None:
            key.append(("tile shapes set outside", ("value", (tiles.vector, tiles.cube), _Shown(tiles.vector or tiles.cube))))
        return tuple(key)

    def _specialise(self, arguments: Arguments) -> Specialisation:
        key = self._key(arguments)
        found = self._lookup(key)
        if found is not None:
            self._last, self._entry = found, None
            return found
        with self._lock:
            found = self._lookup(key)
            if found is None:
                found = self._capture(arguments, key)
            self._last, self._entry = found, None
            return found

    def _lookup(self, key: Key) -> Specialisation | None:
        for entry in self._entries.get(key, ()):
            if all(read.holds() for read in entry.captured.reads):
                return entry
        return None

    def _capture(self, arguments: Arguments, key: Key) -> Specialisation:
        why = ""
        while True:
            try:
                with stage("capture"):
                    captured = capture(self.function, self.name, self.signature, arguments, self.options)
                break
            except NeedsValue as needed:
                if needed.parameter not in arguments.floats:
                    raise error("PT103", f"Python needs the number in `{needed.parameter}`, which is only there when the kernel runs",
                                needed.span,
                                help=f"compute with the tensor `{needed.parameter}` itself, or pass it as a Python float") from None
                why = f"Python needs the value of `{needed.parameter}`"
                self._constant_floats[needed.parameter] = why
                floats = dict(arguments.floats)
                fixed = {**arguments.fixed, needed.parameter: floats.pop(needed.parameter)}
                arguments = Arguments(arguments.tensors, floats, arguments.integers, fixed)
                key = self._key(arguments)
        earlier = len(self._made)
        read = self._changed_read(key)
        because = (lambda: read or self._reason(key, earlier)) if not why else lambda: f"{read or self._reason(key, earlier)} ({why})"
        made = Specialisation(key, because, captured)
        self._made.append(made)
        self._entries.setdefault(key, []).append(made)
        return made

    def _changed_read(self, key: Key) -> str:
        """Which variable had another value when the kernel was captured for this key before; "" when it was not."""
        for entry in self._entries.get(key, ()):
            changed = next((r for r in entry.captured.reads if not r.holds()), None)
            if changed is not None:
                return f"{changed.kind} `{changed.name}` was {shown(changed.seen)} and is {shown(changed.now())}"
        return ""

    def _reason(self, key: Key, earlier: int) -> str:
        """Why a new specialisation was needed: what differs from the nearest of the ``earlier`` ones."""
        if not earlier:
            return "first call"
        return min((_differences(entry.key, key) for entry in self._made[:earlier]), key=len)[0]

    def specializations(self) -> list[Specialisation]:
        """Every captured form with the reason it was made, oldest first."""
        return list(self._made)

    specialisations = specializations

    # ---- what became of it -----------------------------------------------------------------------------------------------------

    def specialise(self, *args: Any, **kwargs: Any) -> Specialisation:
        """The captured form for these arguments, without running it; without arguments the last one used, else what annotations say.

        Raises PT712 when there is none and annotations leave a dtype, a static extent or a value open.
        """
        if args or kwargs:
            return self._specialise(self._arguments(args, kwargs))
        if self._last is not None:
            return self._last
        return self._specialise(self._arguments((), {name: self._stand_in(name) for name in self.signature.parameters
                                                     if name in self.tensor_parameters or not self._has_default(name)}))

    def _has_default(self, name: str) -> bool:
        parameter = self.signature.parameters[name]
        return parameter.default is not parameter.empty or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)

    def stands_alone(self) -> bool:
        """Whether annotations and defaults alone say enough for `specialise` without arguments."""
        tensors = self.tensor_parameters
        return all(self._says_enough(self.annotations.get(n)) if n in tensors else self._has_default(n) for n in self.signature.parameters)

    @staticmethod
    def _says_enough(promise: Any) -> bool:
        return isinstance(promise, Annotation) and promise.dtype is not None and promise.shape is not None and all(
            (isinstance(e, int) and e >= 0) or promise.is_dynamic(e) for e in promise.shape)

    def _stand_in(self, name: str) -> Array:
        """An array of the annotated dtype and shape, with extents of 1 on DYNAMIC axes: a specialisation does not depend on those."""
        promise: Any = self.annotations.get(name)
        if not self._says_enough(promise):
            raise error("PT712", f"{self.name} has not been called, and nothing says what `{name}` is", here(),
                        help=f"annotate it, pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32); or call {self.name} once, or pass arguments: "
                        f"{self.name}.graph({', '.join(self.signature.parameters)})")
        shape = [e if isinstance(e, int) and e >= 0 else 1 for e in promise.shape]
        return np.broadcast_to(np.zeros((), promise.dtype.numpy), shape)

    def graph(self, *args: Any, after: str | None = None, target: str | None = None, **kwargs: Any) -> Graph:
        """The recorded graph; ``after`` names a pass of ``target`` whose result is wanted instead. Raises PT713 for an unknown pass."""
        recorded = self.specialise(*args, **kwargs).graph
        return recorded if after is None else targets.graph_after(recorded, after, target or targets.DEFAULT)

    def text(self, *args: Any, after: str | None = None, target: str | None = None, **kwargs: Any) -> str:
        """What `graph` gives, in the text form that `ptc opt` reads and prints."""
        return targets.text(self.graph(*args, after=after, target=target, **kwargs))

    def source(self, target: str, *args: Any, **kwargs: Any) -> str:
        """The text that ``target`` compiles: LLVM IR, Ascend C or TT-Metal C++ (its files one after the other, headed by their names)."""
        return targets.source(target, self.specialise(*args, **kwargs).graph)

    def compile(self, target: str, out_dir: Any, *args: Any, **kwargs: Any) -> list[str]:
        """Write the files of ``target`` into ``out_dir``; returns their names."""
        return targets.write(target, self.specialise(*args, **kwargs).graph, out_dir)

    def explain(self, *args: Any, target: str | None = None, **kwargs: Any) -> Any:
        """Why each type, which groups, tiles and buffers, which specialisations there are and why; `print` it.

        Options and hints of PyPTO that have no meaning here are listed. Raises what compiling for ``target`` raises.
        """
        found = self.specialise(*args, **kwargs)
        return targets.explain(found.graph, target or targets.DEFAULT, *self.remarks(found))

    def remarks(self, found: Specialisation) -> tuple[list[str], list[str]]:
        """What `explain` adds to a graph: options and hints without effect here; specialisations with their reasons, and warnings."""
        hints = [f"{group}.{name} = {value!r}" for group, values in self.options.groups.items() for name, value in values.items()]
        hints += [f"format of {name}: {a.format.name}" for name, a in self.annotations.items()
                  if isinstance(a, Annotation) and a.format is not TileOpFormat.TILEOP_ND]
        hints += [f"{kind}: {text}" + (f" ({span})" if span else "") for kind, text, span in found.captured.hints]
        notes = [f"specialised for {s.describe()}: {s.reason}" for s in self.specializations()]
        return hints, notes + [warning.message for warning in found.captured.warnings]


@functools.cache
def _entered() -> type[Kernel]:
    """The class of kernels that have been called again: repeated calls enter their launcher without a step of Python, where that can be."""
    return targets.entered(Kernel, "_entry", Kernel.__call__, (CURRENT, TILES, GOLDENS)) or Kernel


class _Shown:
    """A value that takes part in a key only by how it is written in reasons."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shown)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return repr(self.value)


def _differences(old: Key, new: Key) -> list[str]:
    before, out = dict(old), []
    for name, part in new:
        was = before.pop(name, None)
        if was == part:
            continue
        if was is None:
            out.append(f"`{name}` is new")
        elif part[0] == was[0] == "tensor":
            out.append(_tensor_difference(name, was, part))
        else:
            out.append(f"`{name}` was {_entry('', was).lstrip(' :=')} and is {_entry('', part).lstrip(' :=')}")
    return out + [f"`{name}` is gone" for name in before] or ["a variable it reads changed"]


def _tensor_difference(name: str, was: Any, part: Any) -> str:
    if was[1] != part[1]:
        return f"`{name}` was {was[1]} and is {part[1]}"
    if len(was[2]) != len(part[2]):
        return f"`{name}` had rank {len(was[2])} and has {len(part[2])}"
    axis = next(i for i, (a, b) in enumerate(zip(was[2], part[2], strict=True)) if a != b)
    return f"`{name}` axis {axis} (static) was {was[2][axis]} and is {part[2][axis]}"


class _InAnnotation(Exception):
    """What is wrong with an annotation that is text, whose own place is not the user's."""

    def __init__(self, parameter: str, found: Diagnostic) -> None:
        super().__init__(parameter)
        self.parameter, self.found = parameter, found


def _annotations_of(function: FunctionType) -> dict[str, Any]:
    found: Mapping[str, Any] = inspect.get_annotations(function)
    if any(isinstance(a, str) for a in found.values()):
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        local = {}
        for name, cell in cells.items():
            try:
                local[name] = cell.cell_contents
            except ValueError:  # a cell that is filled after the decorator runs
                continue
        evaluated = {}
        for name, text in found.items():
            try:
                evaluated[name] = eval(text, function.__globals__, local) if isinstance(text, str) else text  # the user's own annotation
            except NameError:  # a type that exists only for type checkers
                continue
            except KernelError as wrong:
                raise _InAnnotation(name, wrong.diagnostic) from None
        found = evaluated
    return {n: a.annotation if isinstance(a, Declared) else a for n, a in found.items() if n != "return"}


def jit(function: Any = None, **options: Any) -> Any:
    """`@pypto.jit`, `@pypto.jit(...)`, `@pypto.frontend.jit(...)`: make a kernel of a function.

    ``promotion`` names the dtype rules, ``precision`` is "exact" or "fast", ``lint`` "on" or "off", ``target`` where calls run;
    PyPTO's option groups are accepted and checked by name. Raises PT114 for unknown options, PT119 for what is no function.
    """
    checked_options = kernel_options(options)
    if function is None:
        return lambda f: jit_function(f, checked_options)
    return jit_function(function, checked_options)


def jit_function(function: Any, options: KernelOptions) -> Kernel:
    """A Kernel of a Python function. Raises PT119 for what is none."""
    if isinstance(function, (staticmethod, classmethod)):
        function = function.__func__
    if not isinstance(function, FunctionType):
        raise error("PT119", f"@pypto.jit makes kernels of Python functions, and got {value_text(function)}", here(),
                    help="write a function, def k(x, out): ..., and decorate that")
    return Kernel(function, options)


def inlined(function: Any = None, **options: Any) -> Any:
    """`@pypto.frontend.function`: a helper that is inlined into the kernels that call it."""
    kernel_options(options)
    if function is None:
        return inlined

    @functools.wraps(function)
    def helper(*args: Any, **kwargs: Any) -> Any:
        call: Callable[..., Any] = HOOKS.call
        return call(function, *args, **kwargs)

    return helper
