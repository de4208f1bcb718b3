"""PyPTO's binding to its C++ core, of which public programs use a division by a scalar, `Element` and the compiler's clock."""
from __future__ import annotations

import time
from typing import Any

from pypto_dsl.frontend.operations import called_outside_too
from pypto_dsl.frontend.operations import function_named as operation
from pypto_dsl.frontend.scalar import SymbolicScalar
from pypto_dsl.frontend.tensor import Tensor
from pypto_dsl.frontend.vocabulary import Element


@called_outside_too
def ScalarDivS(operand: Any, value: Any, reverse_operand: bool = False) -> Any:
    """``operand / value``, or with ``reverse_operand`` ``value / operand``."""
    return operation("div")(value, operand) if reverse_operand else operation("div")(operand, value)


def GetCompilerMonitorTotalElapsed() -> float:
    """Seconds of processor time of this process: what PyPTO's monitor counts is done in it."""
    return time.process_time()


__all__ = ["Element", "GetCompilerMonitorTotalElapsed", "ScalarDivS", "SymbolicScalar", "Tensor"]
