"""Abstract types: a dtype plus the weak mark that Python scalars carry until a tensor decides for them."""
from __future__ import annotations

from dataclasses import dataclass, field

from pypto_dsl.compiler.dtypes import BY_NAME, DType

WEAK_MARK = "*"


@dataclass(frozen=True)
class AType:
    """What the promotion pass attaches to each value.

    A weak type comes from a Python scalar and never widens a tensor of its own kind. ``origin`` says where the type came from
    ("Python float 1.5"); it is carried for messages and takes no part in equality.
    """

    dtype: DType
    weak: bool = False
    origin: str = field(default="", compare=False)

    @property
    def node(self) -> str:
        """The name under which the join tables know this type: ``f32``, or ``f32*`` when weak."""
        return self.dtype.name + WEAK_MARK * self.weak

    def described(self) -> str:
        """The type with its weak mark and origin, as messages print it."""
        return f"{self.node} from {self.origin}" if self.origin else self.node

    def __str__(self) -> str:
        return self.node


def strong(dtype: DType, origin: str = "") -> AType:
    """The type of a tensor, a NumPy value or a cast."""
    return AType(dtype, False, origin)


def weak(dtype: DType, origin: str = "") -> AType:
    """The type of a Python scalar."""
    return AType(dtype, True, origin)


def of_node(node: str, origin: str = "") -> AType:
    """The AType of a table node. Complex nodes have none: they raise KeyError."""
    return AType(BY_NAME[node.removesuffix(WEAK_MARK)], node.endswith(WEAK_MARK), origin)
