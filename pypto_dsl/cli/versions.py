"""The version of this package and of what it stands on, as reports and reproducers state them."""
from __future__ import annotations

import platform
from importlib import metadata

import pypto_dsl

VERSION: str = pypto_dsl.__version__
REQUIREMENTS = ("numpy", "lark", "llvmlite", "networkx", "ml_dtypes", "click", "platformdirs", "filelock")


def installed(package: str) -> str | None:
    """The version of an installed package, None when there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def versions() -> dict[str, str | None]:
    """This package, Python, the platform and every requirement."""
    found: dict[str, str | None] = {"pypto_dsl": VERSION, "python": platform.python_version(), "platform": platform.platform()}
    return found | {name: installed(name) for name in REQUIREMENTS}
