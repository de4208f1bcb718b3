"""What both emulators read from an emitted program's manifest: extents of the arguments, and which variant of a kernel takes them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.index import Index, parse


@lru_cache(maxsize=4096)
def index(text: str) -> Index:
    """An index expression of a manifest."""
    return parse(text)


def evaluate(expressions: Sequence[str], values: Mapping[str, int]) -> tuple[int, ...]:
    """Index expressions of a manifest as numbers."""
    return tuple(index(e).evaluate(values) for e in expressions)


def bind_extents(manifest: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, int]:
    """The symbols of the arguments' shapes, from the arrays. Raises PT707 where two arrays disagree."""
    values: dict[str, int] = {}
    for row in manifest["arguments"]:
        if row["name"] not in arrays:
            continue
        for text, extent in zip(row["shape"], np.shape(arrays[row["name"]]), strict=True):
            name = index(text).name
            if name is not None and values.setdefault(name, extent) != extent:
                raise error("PT707", f"`{row['name']}` has extent {extent} where `{name}` is {values[name]}")
    return values


def choose(variants: Sequence[Mapping[str, Any]], values: Mapping[str, int], title: str, naming: str) -> Mapping[str, Any]:
    """The first variant whose requirements hold; ``naming`` is the key of its name. Raises PT520 where none takes these extents."""
    for kernel in variants:
        if all(e >= 0 for e in evaluate(kernel["requires"], values)):
            return kernel
    extents = ", ".join(f"{k} = {v}" for k, v in sorted(values.items()))
    raise error("PT520", f"no schedule of `{title}` takes tensors of these extents: {extents}",
                notes=tuple(f"{k[naming]} needs {c} >= 0" for k in variants for c in k["requires"]))
