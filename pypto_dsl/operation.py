"""PyPTO's module of operations, of which public programs import `op_wrapper`."""
from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])


def op_wrapper(function: Function) -> Function:
    """A decorator for functions that call operations; here they need none, and it gives the function back."""
    return function


__all__ = ["op_wrapper"]
