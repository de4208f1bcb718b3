"""PyPTO's helpers for verification: golden data for a call, and values that the interpreter prints or keeps in files while it runs."""
from __future__ import annotations

import contextvars
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import BOOL, of_numpy
from pypto_dsl.compiler.errors import Diagnostic, Label, error, value_text
from pypto_dsl.compiler.graph import Graph, Op, Value
from pypto_dsl.compiler.ops.core import ne
from pypto_dsl.frontend.arguments import Array, as_array
from pypto_dsl.frontend.capture import KernelWarning
from pypto_dsl.frontend.options import get_group
from pypto_dsl.frontend.scalar import SymbolicBool, SymbolicScalar, is_symbolic
from pypto_dsl.frontend.spans import here
from pypto_dsl.frontend.tensor import Tensor
from pypto_dsl.frontend.trace import PROBE, Trace, need
from pypto_dsl.runtime import interpreter


@dataclass(frozen=True)
class Golden:
    """What the next call is compared with; ``inputs`` are the tensors of a block that is run for it."""

    goldens: Sequence[Any]
    inputs: Sequence[Any] | None = None


GOLDENS: contextvars.ContextVar[Golden | None] = contextvars.ContextVar("goldens", default=None)
# The golden data that waits for the next call, or None. Every call of a kernel asks, so it is no function in Python.
pending: Callable[[], Golden | None] = GOLDENS.get
TOLERANCE = (1e-3, 1e-3)  # PyPTO's pass_verify_error_tol: relative, absolute


# ---- golden data ---------------------------------------------------------------------------------------------------------------


def set_verify_golden_data(in_out_tensors: Sequence[Any] | None = None, goldens: Sequence[Any] | None = None) -> None:
    """Compare the tensors of the next call with ``goldens``, one for each in the order of the parameters, None where there is none.

    A difference beyond 1e-3, or the option `pass_verify_error_tol`, is a `KernelWarning` (PT719) that names the worst element and says
    what the interpreter makes of it. With ``in_out_tensors`` the next `pypto.function` block is run on copies of them when it ends.
    Raises PT111 for what is no list.
    """
    for what, given in (("in_out_tensors", in_out_tensors), ("goldens", goldens)):
        if given is not None and not isinstance(given, (list, tuple)):
            raise error("PT111", f"`{what}` is a list of arrays, and got {value_text(given)}", here(), help="goldens=[None, expected]")
    GOLDENS.set(Golden(tuple(goldens or ()), in_out_tensors) if goldens is not None else None)


def copies(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of a call as they are before it."""
    return {name: array.copy() for name, array in arrays.items()}


def interpreted(graph: Graph, arrays: Mapping[str, Array], symbols: Mapping[str, int], observe: Any = None) -> dict[str, Array]:
    """What the interpreter makes of a call's arrays: the outputs by name. ``observe`` sees the graph's probes."""
    native = {n: a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("=")) for n, a in arrays.items()}
    return interpreter.run(graph, native, dict(symbols), observe)


def compare(kernel: str, arrays: Mapping[str, Array], again: Callable[[], Mapping[str, Array]]) -> None:
    """Compare a call's arrays, outputs written, with the golden data that waits for it, once.

    ``again`` gives what the interpreter makes of the same call, to tell a wrong kernel from a wrong compiler.
    """
    golden = GOLDENS.get()
    GOLDENS.set(None)
    relative, absolute = get_group("verify_options").get("pass_verify_error_tol") or TOLERANCE
    reference: Mapping[str, Array] | None = None
    for (name, array), wanted in zip(arrays.items(), golden.goldens if golden is not None else (), strict=False):
        if wanted is None:
            continue
        got, want = array.astype(np.float64), as_array(wanted, f"golden data of {name}").astype(np.float64)
        if got.shape != want.shape:
            _differs(kernel, name, f"has shape {list(got.shape)}, and its golden data {list(want.shape)}", "pass golden data of its shape")
        elif not np.allclose(got, want, relative, absolute, equal_nan=True):
            distance = np.nan_to_num(np.abs(got - want), nan=np.inf)
            worst = np.unravel_index(int(np.argmax(distance)), distance.shape)
            place = ", ".join(str(int(i)) for i in worst)
            reference = again() if reference is None else reference
            there = float(reference.get(name, array).astype(np.float64)[worst])
            agrees = np.isclose(there, got[worst], relative, absolute, equal_nan=True)
            help = (f"the interpreter gives {there:.6g} too: the kernel or the golden data is wrong" if agrees else
                    f"the interpreter gives {there:.6g}: the compiled kernel is wrong; `ptc report` makes an archive of it")
            _differs(kernel, name, f"is {got[worst]:.6g} at [{place}], and its golden data {want[worst]:.6g}", help)


def _differs(kernel: str, name: str, what: str, help: str) -> None:
    span = here()
    note = Diagnostic("PT719", f"`{name}` of {kernel} {what}", Label(span) if span is not None else None, severity="warning", help=help)
    warnings.warn_explicit(KernelWarning(note), None, span.file if span is not None else kernel, span.line if span is not None else 1)


# ---- probes --------------------------------------------------------------------------------------------------------------------


def is_on(groups: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether `enable_pass_verify` is set: among a kernel's options, or by `set_verify_options` and `pypto.options`."""
    return bool({**get_group("verify_options"), **groups.get("verify_options", {})}.get("enable_pass_verify"))


def pass_verify_print(*values: Any, cond: Any = 1) -> None:
    """Print tensors, integers and text where this stands, in every turn, while the interpreter runs the kernel once more.

    It does so under `verify_options={"enable_pass_verify": True}`. ``cond`` chooses turns. Raises PT125 outside a kernel.
    """
    _probe(need("pypto.pass_verify_print"), "print", values, cond, "", {})


def pass_verify_save(tensor: Any, fname: Any, cond: Any = 1, **fields: Any) -> None:
    """As `pass_verify_print`, into files: the live elements to ``fname.data``, shape and dtype to ``fname.csv``.

    ``$NAME`` in ``fname`` is replaced by the keyword NAME. The folder is `pass_verify_save_tensor_dir`, or output/output_*/tensor.
    Raises PT125 outside a kernel, PT200 for what is no tensor.
    """
    if not isinstance(tensor, Tensor):
        raise error("PT200", f"pass_verify_save keeps a tensor, and got {type(tensor).__name__}", here())
    _probe(need("pypto.pass_verify_save"), "save", (tensor,), cond, "$FNAME", {"FNAME": fname, **fields})


def _probe(trace: Trace, kind: str, values: Sequence[Any], cond: Any, template: str, fields: Mapping[str, Any]) -> None:
    """Note what is asked for; while the kernel is read for the interpreter, record it."""
    trace.hints.append((f"verify_{kind}", ", ".join(map(str, (*values, *(fields and [fields["FNAME"]])))), here()))
    trace.probed = True
    if not trace.observing or (not is_symbolic(cond) and not isinstance(cond, Tensor) and not cond):
        return
    operands: list[Value] = []

    def part(x: Any) -> str | None:
        """A text that is known, or None for the next operand."""
        if isinstance(x, Tensor):
            operands.append(x.value)
        elif is_symbolic(x):
            operands.append(trace.number(x))
        else:
            return str(x)
        return None

    def record() -> tuple[()]:
        if isinstance(cond, Tensor):
            operands.append(cond.value if cond.dtype is BOOL else ne(cond.value, 0))
        else:
            operands.append(trace.condition(cond if isinstance(cond, SymbolicBool) else cond != 0 if isinstance(cond, SymbolicScalar)
                                            else True))
        labels = tuple(v.name if isinstance(v, Tensor) else "" for v in values)
        attributes: dict[str, Any] = {"kind": kind, "parts": tuple(map(part, values)), "labels": labels, "template": template,
                      "fields": tuple((name, part(x)) for name, x in fields.items())}
        trace.builder.add(PROBE, tuple(operands), (), attributes, span=here())
        return ()

    trace.emit(record)


def observer(groups: Mapping[str, Mapping[str, Any]]) -> Callable[[Op, Sequence[Array]], None]:
    """What prints or keeps the values of a probe."""
    folder = {**get_group("verify_options"), **groups.get("verify_options", {})}.get("pass_verify_save_tensor_dir")

    def observe(op: Op, operands: Sequence[Array]) -> None:
        if not bool(operands[0]):
            return
        left = iter(operands[1:])
        parts: Any = op.attributes["parts"]
        labels: Any = op.attributes["labels"]
        shown = [next(left) if text is None else text for text in parts]
        if op.attributes["kind"] == "print":
            print(" ".join(_written(x, label) for x, label in zip(shown, labels, strict=True)))
            return
        name = str(op.attributes["template"])
        fields: Any = op.attributes["fields"]
        texts = {field: str(next(left)) if text is None else text for field, text in fields}
        name = name.replace("$FNAME", texts.pop("FNAME"))
        for field in sorted(texts, key=len, reverse=True):
            name = name.replace(f"${field}", texts[field])
        _keep(Path(folder) if folder else _folder(), name, shown[0])

    return observe


def _written(x: Any, label: str) -> str:
    if not isinstance(x, np.ndarray) or x.ndim == 0:
        return str(x)
    return f"{label or 'tensor'} {list(x.shape)} {_dtype_name(x)}\n{x}"


def _dtype_name(x: Array) -> str:
    dtype = of_numpy(x.dtype)
    return dtype.pypto if dtype is not None else str(x.dtype)


@cache
def _folder() -> Path:
    """One folder per process, as PyPTO names them."""
    return Path("output") / f"output_{time.strftime('%Y%m%d_%H%M%S')}_{os.getpid()}" / "tensor"


def _keep(folder: Path, name: str, array: Array) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.data").write_bytes(np.ascontiguousarray(array).tobytes())
    (folder / f"{name}.csv").write_text(f"shape,dtype\n\"{list(array.shape)}\",{_dtype_name(array)}\n", encoding="utf-8")
