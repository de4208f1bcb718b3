"""The refusal of tensors that are read where they may have no value: one arm of an `if` binds the name, and it is used behind the `if`."""
from __future__ import annotations

from collections.abc import Set

from pypto_dsl.compiler.errors import KernelError, Label, error
from pypto_dsl.compiler.graph import Graph, Op, Region, Value


def undefined_read(graph: Graph, poison: Set[Value]) -> KernelError | None:
    """PT140 for the first operation, or result of the kernel, that reads what an `if` beside it may have left without a value.

    ``poison`` are the values that stand for an unbound name in an arm. A use in another `if` may have the same condition, and what a loop
    only carries need not be read: nothing is said of them.
    """
    missing: dict[Value, tuple[Op, str]] = {}
    found = _in_region(graph.body, poison, missing, set()) if poison else None
    if found is None and missing:
        found = next(((None, v) for v in graph.results() if v in missing), None)
    if found is None:
        return None
    reader, value = found
    branch, name = missing[value]
    what = f"`{name}`" if name else "a tensor"
    bound = (Label(branch.span, "it is bound in one branch of this `if`"),) if branch.span is not None else ()
    place = reader.span if reader is not None else branch.span
    return error("PT140", f"{what} is bound in one branch of an `if` only, and is read behind it", place,
                 others=bound if reader is not None else (),
                 help="bind it before the `if` (before the loop, if a loop carries it) or in both branches, "
                 "or read it under the same condition")


def _in_region(region: Region, poison: Set[Value], missing: dict[Value, tuple[Op, str]],
               here: set[Value]) -> tuple[Op | None, Value] | None:
    """The first certain read in ``region``. Fills ``here`` with its own values that may be missing: only uses beside the `if` are certain
    to meet them, and an arm that hands one on as the value of another name has used it."""
    for op in region.ops:
        if op.opcode in ("if", "loop"):
            inside: list[set[Value]] = [set() for _ in op.regions]
            for inner, own in zip(op.regions, inside, strict=True):
                found = _in_region(inner, poison, missing, own)
                if found is not None:
                    return found
            if op.opcode == "if":
                for result, sides in zip(op.results, zip(*(r.yields for r in op.regions), strict=True), strict=True):
                    handed_on = next((side for side, own in zip(sides, inside, strict=True) if side in own), None)
                    if handed_on is not None or any(side in poison for side in sides):
                        missing[result] = (op, result.name.split(".")[0]) if handed_on is None else missing[handed_on]
                        here.add(result)
            continue
        read = next((v for v in op.operands if v in here), None)
        if read is None:
            continue
        if op.span is not None:
            return op, read
        for result in op.results:  # what the compiler itself makes of the value, such as its live part
            missing[result] = missing[read]
            here.add(result)
    return None
