"""The front end: reads a kernel's source, runs it once with symbolic tensors, and records a graph."""
from __future__ import annotations

import importlib
from typing import Any

_NAMES = {"jit": ("pypto_dsl.driver", "jit"), "function": ("pypto_dsl.driver", "inlined")}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        module, attribute = _NAMES[name]
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module 'pypto_dsl.frontend' has no attribute {name!r}")
