"""PyPTO's helpers for comparing a kernel with golden data."""
from __future__ import annotations

import contextvars
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pypto_dsl.compiler.errors import Diagnostic, Label
from pypto_dsl.frontend.arguments import Array, as_array
from pypto_dsl.frontend.capture import KernelWarning
from pypto_dsl.frontend.spans import here
from pypto_dsl.frontend.trace import current

_GOLDENS: contextvars.ContextVar[Sequence[Any] | None] = contextvars.ContextVar("goldens", default=None)
# The golden data that waits for the next call, or None. Every call of a kernel asks, so it is no function in Python.
pending: Callable[[], Sequence[Any] | None] = _GOLDENS.get
RELATIVE = ABSOLUTE = 1e-3  # PyPTO's pass_verify_error_tol


def set_verify_golden_data(in_out_tensors: Sequence[Any] | None = None, goldens: Sequence[Any] | None = None) -> None:
    """Compare the tensors of the next call with ``goldens``, one for each in the order of the parameters, None where there is none.

    A difference beyond 1e-3 is a `KernelWarning` (PT719) that names the worst element.
    """
    _GOLDENS.set(goldens)


def compare(kernel: str, arrays: Mapping[str, Array]) -> None:
    """Compare a call's arrays, outputs written, with the golden data that waits for it, once."""
    goldens = _GOLDENS.get() or ()
    _GOLDENS.set(None)
    for (name, array), golden in zip(arrays.items(), goldens, strict=False):
        if golden is None:
            continue
        got, want = array.astype(np.float64), as_array(golden, f"golden data of {name}").astype(np.float64)
        if got.shape != want.shape:
            _differs(kernel, name, f"has shape {list(got.shape)}, and its golden data {list(want.shape)}")
        elif not np.allclose(got, want, RELATIVE, ABSOLUTE, equal_nan=True):
            error = np.nan_to_num(np.abs(got - want), nan=np.inf)
            worst = np.unravel_index(int(np.argmax(error)), error.shape)
            place = ", ".join(str(int(i)) for i in worst)
            _differs(kernel, name, f"is {got[worst]:.6g} at [{place}], and its golden data {want[worst]:.6g}")


def _differs(kernel: str, name: str, what: str) -> None:
    span = here()
    note = Diagnostic("PT719", f"`{name}` of {kernel} {what}", Label(span) if span is not None else None, severity="warning",
                      help="the kernel or the golden data is wrong; `ptc run` compares with the kernel itself in float64")
    warnings.warn_explicit(KernelWarning(note), None, span.file if span is not None else kernel, span.line if span is not None else 1)


def _note(kind: str, text: str) -> None:
    trace = current()
    if trace is not None:
        trace.hints.append((kind, text, here()))


def pass_verify_print(*values: Any, cond: Any = None) -> None:
    """Note values to look at; shown by `explain`."""
    _note("verify_print", ", ".join(map(repr, values)))


def pass_verify_save(tensor: Any, fname: str = "", cond: Any = None, **_: Any) -> None:
    """Note a tensor to keep; shown by `explain`."""
    _note("verify_save", f"{tensor!r} -> {fname}")
