"""`with pypto.function(name, a, b, out):`, PyPTO's older style: a block of ordinary code that records a graph, and what runs it.

The block's code is not rewritten. A loop's body runs once per path through its conditions, each path from its top, so that an `if` is
recorded as a branch whose arms go on to the end of the body; what a turn binds to a name stays in that turn.
"""
from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.graph import Graph, Symbol, TensorType, Value
from pypto_dsl.compiler.index import as_index, var
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.frontend import scalar, targets, verify
from pypto_dsl.frontend.arguments import TensorArgument, as_array, check_extents, check_outputs, checked, symbol_values
from pypto_dsl.frontend.loops import LoopRange
from pypto_dsl.frontend.options import outside
from pypto_dsl.frontend.scalar import IntLike, SymbolicBool, SymbolicScalar, index_of
from pypto_dsl.frontend.settle import settle
from pypto_dsl.frontend.spans import here, is_own
from pypto_dsl.frontend.tensor import Declared, Tensor
from pypto_dsl.frontend.trace import Cell, Frame, Trace, current, tracing

CARRIED = "write into the tensor, acc[:] = acc + x; or make the block a function under @pypto.jit, whose loops carry names"


@dataclass
class _Decision:
    """One condition of the path that is being recorded."""

    test: Value
    then: Frame
    otherwise: Frame | None = None


@dataclass
class _Body:
    """A loop's body while it is recorded: the decisions of this path, and how many of them it has passed."""

    frame: Frame
    decisions: list[_Decision] = field(default_factory=list)
    passed: int = 0


class _Factor(int):
    """The second index of `pypto.loop_unroll`, which the loop itself binds anew."""


class Recording:
    """The bodies that are open in a block, innermost last."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.bodies: list[_Body] = []

    def decide(self, condition: SymbolicBool) -> bool:
        """Which arm this path takes. Raises PT101 outside loops, where a path cannot be taken again."""
        if not self.bodies:
            raise error("PT101", f"`{condition}` is only known when the block runs, and an `if` outside loops has no second path", here(),
                        help="put it into a loop of one turn: for _ in pypto.loop(1): ...")
        body = self.bodies[-1]
        number, body.passed = body.passed, body.passed + 1
        if number < len(body.decisions):
            return body.decisions[number].otherwise is None
        test: Value = self.trace.emit(lambda: self.trace.condition(condition))
        body.decisions.append(_Decision(test, self.trace.open("if")))
        return True

    def another_path(self, body: _Body) -> bool:
        """Whether the body has another path, which is begun then."""
        trace = self.trace
        while body.decisions:
            last = body.decisions[-1]
            if last.otherwise is None:
                trace.close(last.then)
                last.otherwise = trace.open("if")
                last.otherwise.values.update({cell: argument for cell, (argument, _) in body.frame.arguments.items()})
                body.passed = 0
                return True
            trace.close(last.otherwise)
            trace.finish_if(last.test, last.then, last.otherwise, [], here())
            body.decisions.pop()
        return False

    def turns(self, loop: LoopRange) -> Iterator[Any]:
        """What `for i in pypto.loop(...)` goes through: one recorded turn per path and unroll factor."""
        trace, bounds, user = self.trace, loop.bounds, _user()
        lower: IntLike = bounds.start
        for factor in loop.factors:
            stride = bounds.step * factor
            upper = bounds.stop - (bounds.stop - bounds.start) % stride if len(loop.factors) > 1 else bounds.stop
            if isinstance(lower, int) and isinstance(upper, int) and lower >= upper:
                continue
            symbol = trace.unique(loop.label or "i")
            trace.graph.symbols[symbol] = Symbol(symbol, "loop", minimum=lower if isinstance(lower, int) else None,
                                                 maximum=index_of(upper) - 1)
            trace.loops[symbol] = bounds
            index = SymbolicScalar(var(symbol))
            body = _Body(trace.open("loop"))
            self.bodies.append(body)
            before, span = _bound(user), here()
            going = True
            while going:
                yield (index, _Factor(factor)) if loop.pair else index
                _refuse_carried(before, _bound(user), body.frame)
                going = self.another_path(body)
            self.bodies.pop()
            trace.close(body.frame)
            attributes = {**loop.attributes, **({"unroll": factor} if factor != 1 else {})}
            trace.finish_loop(body.frame, symbol, (index_of(lower), index_of(upper), index_of(stride)), [], attributes, span)
            lower = upper


def _user() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_own(frame.f_code):
        frame = frame.f_back
    return frame


def _bound(user: FrameType | None) -> dict[str, Any]:
    """The names of the user's function that hold tensors and numbers."""
    names = user.f_locals if user is not None else {}
    return {n: v for n, v in names.items() if isinstance(v, (Tensor, int, float)) and not isinstance(v, _Factor)}


def _refuse_carried(before: Mapping[str, Any], after: Mapping[str, Any], frame: Frame) -> None:
    """A name that was read and bound anew would have to be carried to the next turn, which unrewritten code cannot show. PT143."""
    for name, old in before.items():
        new = after.get(name)
        if isinstance(old, Tensor):
            changed = old.cell in frame.arguments and isinstance(new, Tensor) and new.cell is not old.cell
        else:
            changed = type(new) is type(old) and new != old
        if changed:
            raise error("PT143", f"`{name}` is bound anew in a pypto.loop of a pypto.function block", here(), help=CARRIED)


def _decide(condition: SymbolicBool) -> bool | None:
    trace = current()
    return trace.block.decide(condition) if trace is not None and trace.block is not None else None


scalar.DECIDERS.append(_decide)


# ---- blocks ------------------------------------------------------------------------------------------------------------------


class function:
    """`with pypto.function("name", a, b, out):` over tensors that `pypto.tensor(shape, dtype, name)` declared.

    Afterwards the block is called on arrays in the order of its tensors: ``with pypto.function(...) as block: ...`` and
    ``block(x, y, out)``; `pypto.runtime._device_run_once_data_from_host(x, y, out)` calls the last one. Raises PT125 inside a kernel,
    PT200 for what is no declared tensor.
    """

    last: function | None = None

    def __init__(self, name: str, *tensors: Any, **options: Any) -> None:
        if current() is not None:
            raise error("PT125", "pypto.function inside a kernel", here(), help="a helper is an ordinary function, called by its name")
        self.name = name if isinstance(name, str) and name.isidentifier() else "block"
        self.tensors: dict[str, Declared] = {}
        for t in (t for group in tensors for t in (group if isinstance(group, (list, tuple)) else (group,))):
            if not isinstance(t, Declared):
                raise error("PT200", f"pypto.function takes declared tensors, and got {type(t).__name__}", here(),
                            help='declare them outside: a = pypto.tensor([64, 64], pypto.DT_FP32, "a")')
            self.tensors[self._free(t.declared)] = t
        self.graph = Graph(self.name, span=here())
        self.executors: dict[str, targets.Executor] = {}
        self.stack = ExitStack()

    def _free(self, name: str) -> str:
        base = name if name.isidentifier() else f"tensor{len(self.tensors)}"
        candidate, number = base, 1
        while candidate in self.tensors:
            number += 1
            candidate = f"{base}_{number}"
        return candidate

    def __enter__(self) -> function:
        self.trace = trace = Trace(self.graph)
        trace.block = Recording(trace)
        trace.tiles = type(trace.tiles)(**vars(outside()))
        self.stack.enter_context(tracing(trace))
        self.stack.enter_context(building(trace.builder))
        self.parameters: dict[str, Value] = {}
        for name, tensor in self.tensors.items():
            promise = tensor.annotation
            shape = []
            for axis, extent in enumerate(promise.shape or ()):
                if isinstance(extent, int) and extent >= 0:
                    shape.append(as_index(extent))
                    continue
                symbol = trace.unique(f"{name}_d{axis}")
                self.graph.symbols[symbol] = Symbol(symbol, "dim", name, axis)
                shape.append(var(symbol))
            assert promise.dtype is not None
            value = self.parameters[name] = Value(TensorType(promise.dtype, tuple(shape)), name)
            self.graph.parameters.append(value)
            tensor.owner, tensor.cell = trace, Cell(name, parameter=True)
            trace.declare(tensor.cell, value)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        trace = self.trace
        try:
            if kind is not None:
                return
            if len(trace.frames) != 1:
                raise error("PT141", "`break` or `return` inside a pypto.loop", here(), help="put the rest of the body under an `if`")
            for name, tensor in self.tensors.items():
                value = trace.read(tensor.cell)
                if value is not self.parameters[name]:
                    self.graph.outputs[name] = value
        finally:
            self.stack.close()
            for tensor in self.tensors.values():
                tensor.release()
        settle(self.graph, trace.forwards)
        function.last = self
        golden = verify.pending()
        if golden is not None and golden.inputs is not None:
            self.run(*(np.array(as_array(x)) for x in golden.inputs), target=targets.INTERPRETER)

    def __call__(self, *arrays: Any) -> None:
        """Run on arrays, on the CPU; see `run`."""
        self.run(*arrays)

    def run(self, *arrays: Any, target: str = targets.DEFAULT) -> None:
        """Run on arrays in the order of the block's tensors; outputs are written in place. Raises PT7xx before anything is written."""
        if len(arrays) != len(self.tensors):
            raise error("PT714", f"{self.name} takes {len(self.tensors)} arrays, and got {len(arrays)}", here(),
                        help=f"call it with {', '.join(self.tensors)}")
        given: dict[str, TensorArgument] = {}
        for (name, tensor), x in zip(self.tensors.items(), arrays, strict=True):
            given[name] = checked(name, x, tensor.annotation, lambda: None, self.name)
        views = {n: t.array for n, t in given.items()}
        symbols = symbol_values(self.graph, views, {})
        check_extents(self.graph, symbols)
        check_outputs(self.name, [(n, views[n]) for n in self.graph.outputs])
        executor = self.executors.get(target)
        if executor is None:
            executor = self.executors[target] = targets.executor(target, self.graph)
        golden = verify.pending()
        before = verify.copies(views) if golden is not None else {}
        executor(views, symbols)
        if golden is not None:
            verify.compare(self.name, views, lambda: verify.interpreted(self.graph, before, symbols))


def run_last(*arrays: Any) -> None:
    """Run the last block on arrays, as PyPTO's `runtime._device_run_once_data_from_host` does. Raises PT125 when there is none."""
    if function.last is None:
        raise error("PT125", "no pypto.function block has been recorded", here(), help="with pypto.function(name, a, b, out): ...")
    function.last(*arrays)


def nothing(*_: Any, **__: Any) -> None:
    """What PyPTO's `runtime._device_init`, `_device_fini` and `_device_synchronize` have to do here."""


# Entered into `pypto.runtime`, where PyPTO's older programs look for them.
RUNTIME = {"_device_init": nothing, "_device_fini": nothing, "_device_synchronize": nothing, "_device_run_once_data_from_host": run_last}

__all__ = ["RUNTIME", "Recording", "function", "run_last"]
