"""`pypto.experimental`: PyPTO's names without a promise of stability."""
from __future__ import annotations

from typing import Any

from pypto_dsl.compiler.ops.refused import REFUSED
from pypto_dsl.frontend.experimental import (
    gather_in_l1,
    gather_in_ub,
    online_softmax,
    online_softmax_update,
    transposed_batchmatmul,
)
from pypto_dsl.frontend.options import get_operation_options, set_operation_options

__all__ = ["gather_in_l1", "gather_in_ub", "get_operation_options", "online_softmax", "online_softmax_update", "set_operation_options",
           "transposed_batchmatmul"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    reason = f": {REFUSED[name][0]}" if name in REFUSED else ""
    raise AttributeError(f"pypto.experimental has no `{name}`{reason}; it has {', '.join(__all__)}")
