"""What any host computes itself, because it only decides a branch: comparisons, and what joins them."""
from __future__ import annotations

from pypto_dsl.compiler.dtypes import DType

# Host languages spell each of them (`pypto_dsl/codegen/*/host.py`).
CONDITIONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or",
                        "bitwise_xor", "bitwise_not"})


def is_condition(operation: str, result: DType) -> bool:
    """Whether an operation on numbers, with a result of this dtype, may be part of a host's condition."""
    return operation in CONDITIONS and result.kind == "bool"
