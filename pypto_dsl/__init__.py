"""A tile-kernel compiler: `import pypto_dsl as pypto`, decorate a function with `@pypto.jit`, call it on arrays.

Names are loaded when they are first used, so that importing the package costs nothing.
"""
from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"
_MODULES = frozenset({"compiler", "codegen", "runtime", "frontend", "driver", "cli", "measure", "explain", "experimental", "operation",
                      "pypto_impl"})


def __getattr__(name: str) -> Any:
    if name == "runtime":  # the language enters PyPTO's names into it
        importlib.import_module("pypto_dsl.namespace")
    if name in _MODULES:
        return importlib.import_module(f"pypto_dsl.{name}")
    if name == "__all__":
        return importlib.import_module("pypto_dsl.namespace").names()
    if name.startswith("__"):
        raise AttributeError(f"module 'pypto_dsl' has no attribute {name!r}")
    found = importlib.import_module("pypto_dsl.namespace").lookup(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    names: list[str] = importlib.import_module("pypto_dsl.namespace").names()
    return sorted({*globals(), *names})
