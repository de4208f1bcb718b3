"""The table of Ascend C calls: each instruction of placed Tile IR and the text that spells it.

A text names what it takes: `out`, `a`, `b` are the operands, `mask` a selection's mask, `scratch` the scratch buffer, `0`, `1` the
arguments in the instruction's own order, `count` the lanes of the contiguous form, `lanes`, `repeats` and the strides those of the
repeat form, `type` the element type of the destination. Source: the vendor's Ascend C API documentation for Atlas A2/A3.
"""
from __future__ import annotations

from collections.abc import Mapping

BINARY_REPEAT = "{lanes}, {repeats}, BinaryRepeatParams({out_block}, {a_block}, {b_block}, {out_step}, {a_step}, {b_step})"

CONTIGUOUS: Mapping[str, str] = {
    "add": "Add({out}, {a}, {b}, {count})",
    "sub": "Sub({out}, {a}, {b}, {count})",
    "mul": "Mul({out}, {a}, {b}, {count})",
    "div": "Div({out}, {a}, {b}, {count})",
    "maximum": "Max({out}, {a}, {b}, {count})",
    "minimum": "Min({out}, {a}, {b}, {count})",
    "and": "And({out}, {a}, {b}, {count})",
    "or": "Or({out}, {a}, {b}, {count})",
    "not": "Not({out}, {a}, {count})",
    "add_scalar": "Adds({out}, {a}, {0}, {count})",
    "mul_scalar": "Muls({out}, {a}, {0}, {count})",
    "maximum_scalar": "Maxs({out}, {a}, {0}, {count})",
    "minimum_scalar": "Mins({out}, {a}, {0}, {count})",
    "shift_left": "ShiftLeft({out}, {a}, {0}, {count})",
    "shift_right": "ShiftRight({out}, {a}, {0}, {count})",
    "exp": "Exp({out}, {a}, {count})",
    "log": "Ln({out}, {a}, {count})",
    "sqrt": "Sqrt({out}, {a}, {count})",
    "abs": "Abs({out}, {a}, {count})",
    "erf": "Erf({out}, {a}, {scratch}, {count})",
    "tanh": "Tanh({out}, {a}, {scratch}, {count})",
    **{name.lower(): f"{name}({{out}}, {{a}}, {{scratch}}, {{count}})" for name in ("Sin", "Cos", "Floor", "Ceil", "Trunc")},
    "pow": "Power<{type}>({out}, {a}, {b}, {scratch}, {count})",
    "pow_scalar": "Power<{type}>({out}, {a}, {0}, {scratch}, {count})",
    "fill": "Duplicate({out}, {0}, {count})",
    "iota": "CreateVecIndex({out}, {0}, {count})",
    "cast": "Cast({out}, {a}, {0}, {count})",
    "compare": "Compare({out}, {a}, {b}, {0}, {count})",
    "compare_scalar": "CompareScalar({out}, {a}, {0}, {1}, {count})",
    "select": "Select({out}, {a}, {b}, {c}, {0}, {count})",
    "select_scalar": "Select({out}, {a}, {b}, {0}, {1}, {count})",
    "copy": "DataCopy({out}, {a}, {count})",
}

REPEATED: Mapping[str, str] = {
    "add": f"Add({{out}}, {{a}}, {{b}}, {BINARY_REPEAT})",
    "sub": f"Sub({{out}}, {{a}}, {{b}}, {BINARY_REPEAT})",
    "mul": f"Mul({{out}}, {{a}}, {{b}}, {BINARY_REPEAT})",
    "div": f"Div({{out}}, {{a}}, {{b}}, {BINARY_REPEAT})",
    "maximum": f"Max({{out}}, {{a}}, {{b}}, {BINARY_REPEAT})",
    "minimum": f"Min({{out}}, {{a}}, {{b}}, {BINARY_REPEAT})",
    "row_sum": "WholeReduceSum({out}, {a}, {lanes}, {repeats}, {out_step}, {a_block}, {a_step})",
    "row_max": "WholeReduceMax({out}, {a}, {lanes}, {repeats}, {out_step}, {a_block}, {a_step}, ReduceOrder::ORDER_ONLY_VALUE)",
    "row_min": "WholeReduceMin({out}, {a}, {lanes}, {repeats}, {out_step}, {a_block}, {a_step}, ReduceOrder::ORDER_ONLY_VALUE)",
    "spread": "Brcb({out}, {a}, {repeats}, BrcbRepeatParams({out_block}, {out_step}))",
}

# Calls that take a parameter struct: its type, its variable, and the fields in the order of the instruction's arguments.
STRUCTURED: Mapping[str, tuple[str, str, tuple[str, ...], str]] = {
    "load_fractals": ("LoadData2DParams", "load", ("repeatTimes", "srcStride", "ifTranspose"), "LoadData({out}, {a}, load)"),
    "mmad": ("MmadParams", "product", ("m", "n", "k", "cmatrixInitVal"), "Mmad({out}, {a}, {b}, product)"),
}

MODES: Mapping[str, Mapping[str, str]] = {
    "round": {name: f"RoundMode::CAST_{name}" for name in ("NONE", "RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD")},
    "compare": {name: f"CMPMODE::{name}" for name in ("LT", "LE", "GT", "GE", "EQ", "NE")},
    "select": {"TENSOR": "SELMODE::VSEL_TENSOR_TENSOR_MODE", "SCALAR": "SELMODE::VSEL_TENSOR_SCALAR_MODE"},
}


def api_names() -> frozenset[str]:
    """Every call that the tables can spell, by its own name."""
    texts = [*CONTIGUOUS.values(), *REPEATED.values(), *(row[3] for row in STRUCTURED.values())]
    return frozenset(text.split("(")[0].split("<")[0] for text in texts)
