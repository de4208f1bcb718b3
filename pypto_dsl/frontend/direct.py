"""What a call like the last one comes down to: the compiled program's launcher, applied to the caller's own arguments."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from pypto_dsl.frontend.arguments import Array
from pypto_dsl.frontend.capture import Captured
from pypto_dsl.frontend.targets import Compiled, Executor

_PLAIN = (int, bool, str, type(None))
MISSED = object()  # what a direct call gives that must take the long way; nothing has been written


class Direct:
    """The launcher of a kernel's last call, and where in a call its arguments lie.

    The launcher itself decides whether a call is one of its own: types, dtypes, ranks, extents that are static or must agree, layout,
    writeable outputs, overlap, exact floats. What is left to compare here are plain values and the variables that the kernel read.
    """

    __slots__ = ("_constants", "_count", "_fixed", "_launch", "_pick", "_reads", "_returned", "_single", "launch")

    def __init__(self, launch: Callable[..., bool], order: Sequence[int], count: int, constants: tuple[float, ...],
                 fixed: Sequence[tuple[int, Any]], made: Sequence[tuple[tuple[int, ...], np.dtype[Any]]], captured: Captured) -> None:
        """``order`` has the positions of the launcher's arguments in a call's ``count`` arguments, the returned arrays (``made``, by
        shape and dtype), and ``constants``, one after the other. ``fixed`` are the (position, value) of plain values."""
        self._launch = launch
        self._pick = None if list(order) == list(range(count)) else _picker(order)
        self._count = count
        self._constants = constants
        self._fixed = tuple((i, type(value), value) for i, value in fixed)
        self._returned = tuple(made)
        self._single = captured.returns == "single"
        self._reads = tuple(captured.reads)
        # the launcher where it takes a call's arguments as they are and nothing else is to be looked at
        self.launch = launch if self._pick is None and not self._reads else None

    def run(self, args: tuple[Any, ...]) -> Any:
        """Run on these arguments and give what the kernel returns, or MISSED."""
        for read in self._reads:
            if not read.holds():
                return MISSED
        if self._pick is None:
            return None if self._launch(*args) else MISSED
        if len(args) != self._count:
            return MISSED
        for i, kind, value in self._fixed:
            if type(args[i]) is not kind or args[i] != value:
                return MISSED
        if not self._returned:
            return None if self._launch(*self._pick(args + self._constants)) else MISSED
        made = tuple([np.empty(shape, dtype) for shape, dtype in self._returned])
        if not self._launch(*self._pick(args + made + self._constants)):
            return MISSED
        return made[0] if self._single else made


def _picker(order: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    if len(order) == 1:
        only = order[0]
        return lambda every: (every[only],)
    return itemgetter(*order)


def direct(executor: Executor, captured: Captured, args: tuple[Any, ...], positions: Mapping[str, int], given: Mapping[str, Array],
           floats: Sequence[str], defaults: Mapping[str, Array], symbols: Mapping[str, int]) -> Direct | None:
    """The direct form of a call that has just run; None where there is no launcher, or it does not see every argument.

    ``given`` are the tensors by name, ``floats`` the floats among ``args``, ``defaults`` those that were left to their defaults.
    """
    if not isinstance(executor, Compiled) or executor.launch is None or captured.returns not in _MADE[bool(executor.returns)]:
        return None
    written = {p.name for p in executor.tensors if p.role != "in"}
    if not written.issuperset(captured.graph.outputs) or {p.name for p in executor.tensors} != given.keys():
        return None
    made = [(tuple(e.evaluate(symbols) for e in p.shape), p.dtype.numpy) for p in executor.returned]
    place = {name: positions[name] for name in (*given, *floats)}
    seen = set(place.values())
    if max(seen, default=0) >= len(args):
        return None
    place |= {p.name: len(args) + i for i, p in enumerate(executor.returned)}
    place |= {name: len(args) + len(made) + i for i, name in enumerate(defaults)}
    names = [p.name for p in (*executor.tensors, *executor.returned)] + list(executor.numbers)
    if not set(floats) <= set(executor.numbers) or not place.keys() >= set(names) or len(set(names)) < len(names):
        return None
    fixed = [(i, value) for i, value in enumerate(args) if i not in seen]
    if any(isinstance(value, np.generic) and value == 0 for _, value in fixed):  # two zeros of a float are equal, and two values
        return None
    return Direct(executor.launch, [place[n] for n in names], len(args), tuple(d.item() for d in defaults.values()), fixed, made, captured)


# Whether arrays are made in a call -> what the kernel may return.
_MADE = {False: ("none",), True: ("single", "tuple")}


def shape_of_call(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """A hashable form of what a call's shortcut depends on; None when an argument needs a closer look."""
    key: list[Any] = []
    for a in args:
        kind = type(a)
        if kind is np.ndarray:
            key.append(a.dtype)
            key.append(a.shape)
        elif kind is float or issubclass(kind, np.floating):
            key.append(kind)
        elif kind in _PLAIN:
            key.append(kind)
            key.append(a)
        elif issubclass(kind, np.generic) and kind is not np.void:  # an integer, or a float that only ml_dtypes has: a plain value
            key.append(kind)
            key.append(a.tobytes())
        else:
            return None
    return tuple(key)
