"""What both emulators read from an emitted program's manifest: extents of the arguments, and which variant of a kernel takes them."""
from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, MutableMapping, Sequence
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


def integers(scalars: Mapping[str, Any]) -> dict[str, int]:
    """The run-time numbers that index expressions may name."""
    return {name: int(number) for name, number in scalars.items() if isinstance(number, (int, np.integer))}


def choose(variants: Sequence[Mapping[str, Any]], values: Mapping[str, int], title: str) -> Mapping[str, Any]:
    """The first variant whose requirements hold. Raises PT520 where none takes these extents."""
    for kernel in variants:
        if all(e >= 0 for e in evaluate(kernel["requires"], values)):
            return kernel
    extents = ", ".join(f"{k} = {v}" for k, v in sorted(values.items()))
    raise error("PT520", f"no schedule of `{title}` takes tensors of these extents: {extents}",
                notes=tuple(dict.fromkeys(f"it is compiled for {c} >= 0" for k in variants for c in k["requires"])))


COMPARISONS: dict[str, Callable[..., bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "logical_and": lambda a, b: bool(a) and bool(b), "logical_or": lambda a, b: bool(a) or bool(b), "logical_not": operator.not_,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "bitwise_not": operator.not_}


def run_steps(steps: Sequence[Any], values: dict[str, int], numbers: dict[str, Any], tensors: MutableMapping[str, Any],
              launch: Callable[[Sequence[Mapping[str, Any]], Mapping[str, int]], None]) -> None:
    """Run a manifest's steps as its host program does: ``launch`` gets the variants of each kernel and the numbers known by then.

    Raises PT710 where a guard does not hold.
    """
    for step in steps:
        if isinstance(step, list):
            launch(step, values)
        elif "loop" in step:
            for i in range(*evaluate((step["start"], step["stop"], step["step"]), values)):
                run_steps(step["steps"], {**values, step["loop"]: i}, numbers, tensors, launch)
        elif "branch" in step:
            run_steps(step["steps" if _value(step["branch"], values, numbers) else "orelse"], values, numbers, tensors, launch)
        elif "number" in step:
            tensors[step["number"]] = np.asarray(_value(step["value"], values, numbers))
        elif "read" in step:
            element = np.reshape(tensors[step["tensor"]], -1)[index(step["element"]).evaluate(values)].item()
            numbers[step["read"]] = element
            if step["symbol"]:
                values[step["symbol"]] = int(element)
        else:
            needed, available = evaluate((step["needed"], step["available"]), values)
            if needed > available:
                raise error("PT710", f"{step['guard']} reaches {needed} where `{step['available']}` is {available}")


def _value(row: Sequence[Any], values: Mapping[str, int], numbers: Mapping[str, Any]) -> Any:
    head, *operands = row
    if head == "index":
        return index(operands[0]).evaluate(values)
    if head == "number":
        return numbers[operands[0]] if operands[0] in numbers else values[operands[0]]
    if head == "constant":
        return operands[0]
    return COMPARISONS[head](*(_value(o, values, numbers) for o in operands))
