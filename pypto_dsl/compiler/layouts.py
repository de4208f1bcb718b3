"""How the arrays of a call lie: what a program that reads them in place has to know, and the graph with that knowledge.

A layout has one letter per axis of a tensor: ``1`` neighbours in memory, ``0`` one element for all (a broadcast), ``m`` the axis goes on
where the next one ends, so that both are one run, ``s`` any stride, a number of each call. A dense tensor has the empty layout.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pypto_dsl.compiler.graph import Graph, Symbol
from pypto_dsl.compiler.index import Index, as_index, var
from pypto_dsl.compiler.tile_ir.nodes import Param

Layouts = Mapping[str, str]  # by parameter, dense ones left out
ANY = "s"


def layout_of(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> str:
    """The layout of an array with strides in bytes. An axis of one element may have any stride, and says nothing."""
    letters: list[str] = []
    run = itemsize  # what continues the axes so far
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 1 or stride == run:
            letters.append("m" if letters else "1")
            stride = run
        else:
            letters.append("0" if stride == 0 else "1" if stride == itemsize else ANY)
        run = stride * size
    found = "".join(reversed(letters))
    return "" if 0 in shape or found == dense(len(found)) else found


def apart(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether every element has memory of its own, as far as strides (in bytes) tell: each axis steps over all that shorter steps reach."""
    reach = itemsize
    for stride, size in sorted((abs(stride), size) for size, stride in zip(shape, strides, strict=True) if size > 1):
        if stride < reach:
            return False
        reach += stride * (size - 1)
    return True


def dense(rank: int) -> str:
    """The letters of a dense tensor."""
    return "m" * (rank - 1) + "1" if rank else ""


def lying(graph: Graph, layouts: Layouts) -> Graph:
    """The graph whose parameters lie as ``layouts`` says; their free strides, in elements, are symbols of it."""
    symbols, strides = dict(graph.symbols), dict(graph.strides)
    taken = {*symbols, *(p.name for p in graph.parameters)}
    for parameter in graph.parameters:
        layout = layouts.get(parameter.name, "")
        if not layout:
            continue
        found: list[Index] = []
        for axis in reversed(range(len(layout))):
            letter = layout[axis]
            if letter == "m":
                found.append(found[-1] * parameter.type.shape[axis + 1])
            elif letter in "01":
                found.append(as_index(int(letter)))
            else:
                name = f"{parameter.name}_stride{axis}"
                while name in taken:
                    name += "_"
                taken.add(name)
                symbols[name] = Symbol(name, "stride", parameter.name, axis, None)
                found.append(var(name))
        strides[parameter.name] = tuple(reversed(found))
    return replace(graph, symbols=symbols, strides=strides)


def free_strides(arguments: Sequence[Param]) -> dict[str, tuple[str, int]]:
    """The argument and axis behind every stride that is a number of the call. A stride may also be an extent, where rows are dense."""
    extents = {name for a in arguments for e in a.shape for name in e.variables()}
    return {stride.name: (a.name, axis) for a in arguments for axis, stride in enumerate(a.strides or ())
            if stride.name is not None and stride.name not in extents}
