"""What each rule set says about operations whose result is not the join: tables from a joined type to a result type.

The keys and values are table nodes (``i32``, ``f32*``). A missing integer key means that the rule set refuses the operation there.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pypto_dsl.compiler.promotion.definitions import INTEGERS

Nodes = Mapping[str, str]

SIXTY_FOUR = ("u64", "i64")
WEAK_INTEGERS = ("i32*", "i64*")
REFUSED = ""


@dataclass(frozen=True)
class ResultRules:
    """The result tables of one rule set; a float node that a table does not list stays as it is.

    ``divide``, ``float_unary`` and ``mean`` map integers to floats; ``total`` maps the operand of sum and prod to their result, ``scan``
    that of cumsum and cumprod; ``matmul`` maps the joined operands to the product's dtype. ``pow_scalar`` gives the result of a base and a
    Python scalar exponent where it is not the join, or REFUSED. ``mask_follows_lhs``: comparisons give 0 and 1 in the left operand's
    dtype (ttnn). ``ldexp_equal`` demands equal dtypes there. ``weak_lists``: an untyped Python list is weak.
    """

    divide: Nodes
    float_unary: Nodes
    mean: Nodes
    total: Nodes = field(default_factory=dict)
    scan: Nodes = field(default_factory=dict)
    matmul: Nodes = field(default_factory=dict)
    pow_scalar: Mapping[tuple[str, str], str] = field(default_factory=dict)
    mask_follows_lhs: bool = False
    ldexp_equal: bool = False
    weak_lists: bool = False


def _all(result: str, weak: str) -> dict[str, str]:
    """Every integer and bool to ``result``, every weak integer to ``weak``."""
    return {**dict.fromkeys(("bool", *INTEGERS), result), **dict.fromkeys(WEAK_INTEGERS, weak)}


_TO_F32 = _all("f32", "f32*")

# sum and prod of BOOL, INT8 and UINT8 widen to 32 bits, INT16 and INT32 keep their dtype; PyPTO's cumsum of integers is INT64; a
# matmul of small integers delivers its INT32 accumulator, one of FP8 its FP32 one. A float scalar exponent keeps INT8, UINT8 and INT16
# (the pow page).
PYPTO = ResultRules(
    divide=_TO_F32, float_unary=_TO_F32, mean=_TO_F32,
    total={"bool": "i32", "i8": "i32", "u8": "u32"},
    scan=dict.fromkeys(("bool", *INTEGERS), "i64"),
    matmul={**dict.fromkeys(("bool", "i8", "u8", "i16", "u16"), "i32"), **dict.fromkeys(("f8e4m3", "f8e5m2"), "f32")},
    pow_scalar={(node, "f32*"): node for node in ("i8", "u8", "i16")},
)

# PyPTO's own implementation refuses a float exponent on every integer but INT32.
PYPTO_STRICT = replace(PYPTO, pow_scalar={(node, "f32*"): REFUSED for node in INTEGERS if node != "i32"})

# ttnn delivers A's dtype; only the division of integers leaves it.
TTNN = ResultRules(
    divide=_TO_F32, float_unary=_TO_F32, mean=_TO_F32, mask_follows_lhs=True, ldexp_equal=True,
)

# TensorFlow 2.21.0, the tnp functions: division of 8 and 16 bit integers is f32, of wider ones f64, of bool refused; tnp.sum widens small
# integers to 32 bits (tf.reduce_sum would keep them); tnp.mean and tnp.sqrt give f32 (tf.reduce_mean of integers would stay integer).
TF = ResultRules(
    divide={**dict.fromkeys(("u8", "i8", "u16", "i16"), "f32"), **dict.fromkeys(("u32", "i32", "u64", "i64"), "f64"),
            **dict.fromkeys(WEAK_INTEGERS, "f64*")},
    float_unary=_TO_F32, mean=_TO_F32,
    total={"bool": "i32", "i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"},
    weak_lists=True,
)

# JAX 0.10.2 with x64: 64-bit integers go to f64, others to f32; sums of integers widen to 64 bits and are strong; cumsum widens bool alone.
_JAX_TO_FLOAT = {**_all("f32", "f64*"), **dict.fromkeys(SIXTY_FOUR, "f64")}
JAX = ResultRules(
    divide=_JAX_TO_FLOAT, float_unary=_JAX_TO_FLOAT, mean=_JAX_TO_FLOAT,
    total={**{node: "u64" if node[0] == "u" else "i64" for node in INTEGERS}, "bool": "i64", "i32*": "i64", "i64*": "i64"},
    scan={"bool": "i64"},
    pow_scalar={("bool", "i32*"): "i32", ("bool", "i64*"): "i32"},
)
JAX_X32 = ResultRules(
    divide=_TO_F32, float_unary=_TO_F32, mean=_TO_F32,
    total={**{node: "u32" if node[0] == "u" else "i32" for node in INTEGERS}, "bool": "i32", "i32*": "i32"},
    scan={"bool": "i32"},
    pow_scalar={("bool", "i32*"): "i32"},
)
