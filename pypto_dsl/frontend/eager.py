"""Operations called outside kernels, on arrays: recorded as a graph of one operation and evaluated by the reference interpreter."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import of_numpy
from pypto_dsl.compiler.errors import KernelError, error
from pypto_dsl.compiler.graph import Graph, Value, tensor_type
from pypto_dsl.compiler.ops.recording import building
from pypto_dsl.frontend.arguments import Array, as_array, is_array
from pypto_dsl.frontend.spans import here
from pypto_dsl.frontend.tensor import Tensor, wrap
from pypto_dsl.frontend.trace import NeedsValue, Trace, tracing
from pypto_dsl.runtime import interpreter


def evaluate(name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result of an operation on arrays: NumPy arrays; an in-place operation writes its first argument and returns it.

    Raises PT125 when no argument is an array, PT708 for a dtype that does not exist here, PT103 for an array where a Python number is
    needed, PT111 for arguments that its reference cannot work on, and what the operation itself raises.
    """
    trace = Trace(Graph(name))
    graph = trace.graph
    arrays: dict[str, Array] = {}

    def convert(x: Any) -> Any:
        if isinstance(x, (list, tuple)) and any(is_array(v) for v in x):
            return [convert(v) for v in x]
        if not is_array(x):
            return x
        array = as_array(x, f"argument {len(arrays) + 1}")
        dtype = of_numpy(array.dtype)
        if dtype is None:
            raise error("PT708", f"{name}: an array of dtype {array.dtype} has no twin here", here())
        label = f"a{len(arrays)}"
        arrays[label] = array
        value = Value(tensor_type(dtype, array.shape), label)
        graph.parameters.append(value)
        handle = wrap(value, label)
        handle.cell.parameter = True
        return handle

    try:
        return _evaluated(name, function, args, kwargs, trace, convert, arrays)
    except KernelError:
        raise
    except NeedsValue:
        raise error("PT103", f"{name}: an array without dimensions stands where a Python number is needed", here(),
                    help="pass the number itself: float(value) or int(value)") from None
    except (ValueError, OverflowError, TypeError, IndexError, MemoryError) as refused:  # NumPy's, of arguments that no rule looks at
        raise error("PT111", f"{name} cannot be evaluated with these arguments: {refused}", here()) from refused


def _evaluated(name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], trace: Trace,
               convert: Callable[[Any], Any], arrays: dict[str, Array]) -> Any:
    graph = trace.graph
    with tracing(trace), building(trace.builder):
        given = [convert(a) for a in args]
        named = {k: convert(v) for k, v in kwargs.items()}
        if not arrays and not _makes_tensors(name):
            raise error("PT125", f"pypto.{name} is called outside a kernel without an array", here(),
                        help="call it in a function decorated with @pypto.jit, or pass NumPy arrays to evaluate it")
        made = function(*given, **named)
        if made is None and isinstance(given[-1], Tensor):
            made = given[-1]  # assemble writes its last argument
        results = made if isinstance(made, tuple) else (made,)
        graph.returns = [r.value for r in results]
    outcome = interpreter.run(graph, arrays, {})
    found = [np.asarray(outcome[key]) for key in interpreter.return_names(graph)]
    if (name.endswith("_") or name == "assemble") and isinstance(args[0 if name != "assemble" else -1], np.ndarray):
        target = args[0 if name != "assemble" else -1]
        target[...] = found[0]
        return target
    return tuple(found) if len(found) > 1 else found[0]


def _makes_tensors(name: str) -> bool:
    return name in ("full", "zeros", "ones", "arange", "constant")
