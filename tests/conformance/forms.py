"""Shape classes: the extents, broadcasts and memory layouts over which every operation is tried."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
from cells import Array

# Shapes of a matrix operation whose extents are symbols: one compiled kernel takes them all.
MATRICES = ((1, 1), (1, 67), (37, 1), (9, 37), (2, 129), (0, 5), (5, 0))
# Operand shapes of other ranks, and pairs that broadcast; operands beyond the second take the first's shape.
RANKS = {"0-d": ((),), "1-d": ((67,),), "one": ((1,),), "empty inside": ((2, 0, 3),), "3-d": ((2, 3, 33),),
         "8-d": ((1, 2, 1, 3, 1, 2, 1, 5),)}
BROADCASTS = {"column x row": ((9, 1), (1, 37)), "matrix x row": ((9, 37), (37,)), "matrix x scalar": ((9, 37), ()),
              "ranks 3 and 2": ((2, 1, 5), (3, 1)), "nothing x row": ((0, 5), (1, 5))}

# Memory layouts of an input with the elements of a dense one.
LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "every other": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "reversed": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "off by one": lambda x: np.concatenate([x.ravel()[:1], x.ravel()])[1:].reshape(x.shape) if x.size else x,
    "read only": lambda x: read_only(x),
}


def read_only(x: Array) -> Array:
    made = x.copy()
    made.flags.writeable = False
    return made


def cut(given: list[Array], shape: tuple[int, ...]) -> list[Array]:
    """The operands resized to a shape, special values first; extents of 1 stay 1 where the rank is that of the shape."""
    return [np.resize(a, shape) if np.prod(shape) else np.zeros(shape, a.dtype) for a in given]


def formed(given: list[Array], shapes: tuple[tuple[int, ...], ...]) -> list[Array]:
    """The operands in the shapes of a class."""
    return [cut([a], shapes[i] if i < len(shapes) else shapes[0])[0] for i, a in enumerate(given)]
