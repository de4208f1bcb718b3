"""How ttnn spells each call of placed Tile IR: one table per version, call -> (text, header under api/compute/).

In a text `{c0}` is the circular buffer of the first tile, `{t0}` its page in the window, `{s0}` a DST slot, `{w0}` a 32-bit word,
`{dst}` the DataFormat of DST, `{round}` how a result is rounded into a 16-bit DST. Names and signatures as in the headers of the
ttnn 0.81.1 wheel; the real-header gate checks every row.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class CallText:
    """The text of one call, and the header that declares it."""

    text: str
    header: str


TILE_MOVE, BINARY, BCAST, MATMUL, REDUCE = "tile_move_copy.h", "eltwise_binary.h", "bcast.h", "matmul.h", "reduce.h"
SFPU_BINARY, API, COMMON = "eltwise_binary_sfpu.h", "compute_kernel_api.h", "common.h"
SCALAR, FILL, COMP = "eltwise_unary/binop_with_scalar.h", "eltwise_unary/fill.h", "eltwise_unary/comp.h"
TRIGONOMETRY, ERROR, ROUNDING = "eltwise_unary/trigonometry.h", "eltwise_unary/erf_erfc.h", "eltwise_unary/rounding.h"
BITWISE, INTEGER = "binary_bitwise_sfpu.h", "<DataFormat::Int32>"
BROADCASTS = {"row": ("rows", "ROW"), "col": ("cols", "COL"), "scalar": ("scalar", "SCALAR")}
INT32, FLOAT32, BFLOAT16 = (f"(uint32_t)DataFormat::{n}" for n in ("Int32", "Float32", "Float16_b"))


def _unary(name: str, header: str, arguments: str = "") -> tuple[CallText, CallText]:
    """An SFPU routine on one slot and its init."""
    return CallText(f"{name}_tile{arguments}({{s0}})", header), CallText(f"{name}_tile_init{arguments}()", header)


def _binary(name: str, header: str = SFPU_BINARY, arguments: str = "") -> tuple[CallText, CallText]:
    """An SFPU routine on two slots and its init."""
    return CallText(f"{name}{arguments}({{s0}}, {{s1}}, {{s2}})", header), CallText(f"{name}_init()", header)


def _version_0_81_1() -> dict[str, CallText]:
    pairs: dict[str, tuple[CallText, CallText]] = {
        "exp": _unary("exp", "eltwise_unary/exp.h"), "exp2": _unary("exp2", API), "log": _unary("log", API), "tanh": _unary("tanh", API),
        "sqrt": _unary("sqrt", "eltwise_unary/sqrt.h"), "reciprocal": _unary("recip", "eltwise_unary/recip.h"), "silu": _unary("silu", API),
        "sigmoid": _unary("sigmoid", API), "gelu": _unary("gelu", "eltwise_unary/gelu.h", "<false>"),  # the default is the fast form
        "neg": _unary("negative", "eltwise_unary/negative.h"), "abs": _unary("abs", API),
        **{n: _unary(n, TRIGONOMETRY) for n in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")},
        "erf": _unary("erf", ERROR, "<false>"), "erfc": _unary("erfc", ERROR),  # erf's default is the fast form
        "expm1": _unary("expm1", API), "log1p": _unary("log1p", "eltwise_unary/log1p.h"), "cbrt": _unary("cbrt", "eltwise_unary/cbrt.h"),
        # the logarithm times the bits of 1 / ln(base)
        "log2": (CallText("log_with_base_tile<false, true>({s0}, 0x3fb8aa3bu)", API), CallText("log_with_base_tile_init()", API)),
        "log10": (CallText("log_with_base_tile({s0}, 0x3ede5bd9u)", API), CallText("log_with_base_tile_init()", API)),
        **{n: (CallText(f"{n}_tile({{s0}})", ROUNDING), CallText("rounding_op_tile_init()", ROUNDING)) for n in ("floor", "ceil", "trunc")},
        "rint": (CallText("round_tile({s0}, 0)", ROUNDING), CallText("rounding_op_tile_init()", ROUNDING)),
        "atan2": _binary("atan2_binary_tile", "atan2.h"),
        # add and sub cut to a 16-bit DST unless told otherwise; mul, div and power round by themselves
        "add": _binary("add_binary_tile", arguments="{round}"),
        "sub": _binary("sub_binary_tile", arguments="{round}"),
        "mul": _binary("mul_binary_tile"), "div": _binary("div_binary_tile"), "pow": _binary("power_binary_tile"),
        "maximum": _binary("binary_max_tile", "binary_max_min.h"), "minimum": _binary("binary_min_tile", "binary_max_min.h"),
        **{n: _binary(f"{n}_binary_tile") for n in ("eq", "ne", "lt", "le", "gt", "ge")},
        "add_int": _binary("add_int_tile", "add_int_sfpu.h", INTEGER),
        "sub_int": _binary("sub_int_tile", "sub_int_sfpu.h", INTEGER),
        "mul_int": (_binary("mul_int_tile", "mul_int_sfpu.h", INTEGER)[0],
                    CallText("mul_int_tile_init<DataFormat::Int32>()", "mul_int_sfpu.h")),
        "max_int": _binary("binary_max_int32_tile", "binary_max_min.h"), "min_int": _binary("binary_min_int32_tile", "binary_max_min.h"),
        **{f"{n}_int": (_binary(f"{n}_int_tile", "binary_comp.h", INTEGER)[0], CallText(f"{n}_int_tile_init{INTEGER}()", "binary_comp.h"))
           for n in ("eq", "ne", "lt", "le", "gt", "ge")},
        **{f"bitwise_{n}": (_binary(f"bitwise_{n}_binary_tile", BITWISE, INTEGER)[0], CallText("binary_bitwise_tile_init()", BITWISE))
           for n in ("and", "or", "xor")},
        **{f"bitwise_{n}_shift": (_binary(f"binary_{n}_shift_tile", "binary_shift.h", INTEGER)[0],
                                  CallText("binary_shift_tile_init()", "binary_shift.h")) for n in ("left", "right")},
        "gcd": _binary("gcd_tile", "gcd.h"),
        "add_scalar": (CallText("add_unary_tile({s0}, {w0})", SCALAR), CallText("binop_with_scalar_tile_init()", SCALAR)),
        "pow_scalar": (CallText("power_tile({s0}, {w0})", API), CallText("power_tile_init()", API)),
        "fill": (CallText("fill_tile_bitcast({s0}, {w0})", FILL), CallText("fill_tile_init()", FILL)),
        "where": (CallText("where_tile<DataFormat::{dst}>({s0}, {s1}, {s2}, {s3})", "eltwise_unary/where.h"),
                  CallText("where_tile_init()", "eltwise_unary/where.h")),
        "duplicate": (CallText("copy_dest_values<DataFormat::{dst}>({s0}, {s1})", "copy_dest_values.h"),
                      CallText("copy_dest_values_init()", "copy_dest_values.h")),
        "copy": (CallText("copy_tile({c0}, {t0}, {s0})", TILE_MOVE), CallText("copy_init({c0})", TILE_MOVE)),
        "matmul": (CallText("matmul_tiles({c0}, {c1}, {t0}, {t1}, {s0})", MATMUL), CallText("matmul_init({c0}, {c1})", MATMUL)),
        "matmul_transposed": (CallText("matmul_tiles({c0}, {c1}, {t0}, {t1}, {s0})", MATMUL),
                              CallText("matmul_init({c0}, {c1}, 1)", MATMUL)),
    }
    for name, source, result in (("int_to_float", INT32, FLOAT32), ("float_to_int", FLOAT32, INT32), ("round_bf16", FLOAT32, BFLOAT16)):
        header, form = "eltwise_unary/typecast.h", f"<{source}, {result}>"
        pairs[name] = (CallText(f"typecast_tile{form}({{s0}})", header), CallText(f"typecast_tile_init{form}()", header))
    for name in ("add", "sub", "mul"):
        pairs[f"fpu_{name}"] = (CallText(f"{name}_tiles({{c0}}, {{c1}}, {{t0}}, {{t1}}, {{s0}})", BINARY),
                                CallText(f"{name}_init({{c0}}, {{c1}})", BINARY))
        for how, (form, _) in BROADCASTS.items():
            pairs[f"fpu_{name}_{how}"] = (CallText(f"{name}_tiles_bcast_{form}({{c0}}, {{c1}}, {{t0}}, {{t1}}, {{s0}})", BCAST),
                                          CallText(f"{name}_bcast_{form}_init({{c0}}, {{c1}})", BCAST))
    for how, (_, kind) in BROADCASTS.items():
        pairs[f"copy_{how}"] = (CallText(f"unary_bcast<BroadcastType::{kind}>({{c0}}, {{t0}}, {{s0}})", BCAST),
                                CallText(f"unary_bcast_init<BroadcastType::{kind}>({{c0}})", BCAST))
    table = {k: v for name, (call, init) in pairs.items() for k, v in ((name, call), (f"{name}_init", init))}
    for name in ("sub", "mul"):
        table[f"{name}_scalar"] = CallText(f"{name}_unary_tile({{s0}}, {{w0}})", SCALAR)
    table["fill_int"] = CallText("fill_tile_int<DataFormat::Int32>({s0}, {w0})", FILL)
    # along columns: one result per row, which the vendor calls reducing a row
    for kind in ("sum", "max"):
        pool = f"PoolType::{kind.upper()}"
        table[f"sfpu_reduce_{kind}_init"] = CallText(f"sfpu_reduce_init<{pool}, DataFormat::Float32>()", API)
        for along, dim in (("cols", "ROW"), ("rows", "COL")):
            form = f"{pool}, ReduceDim::REDUCE_{dim}"
            whole = f"{pool}, DataFormat::Float32, ReduceDim::REDUCE_{dim}"
            table[f"sfpu_reduce_{kind}_{along}"] = CallText(f"sfpu_reduce<{whole}>({{s0}})", API)
            table[f"reduce_{kind}_{along}"] = CallText(f"reduce_tile<{form}>({{c0}}, {{c1}}, {{t0}}, {{t1}}, {{s0}})", REDUCE)
            table[f"reduce_{kind}_{along}_init"] = CallText(f"reduce_init<{form}>({{c0}}, {{c1}}, {{c2}})", REDUCE)
    table["reduce_uninit"] = CallText("reduce_uninit()", REDUCE)
    table["startup"] = CallText("compute_kernel_hw_startup({c0}, {c1}, {c2})", COMMON)
    table["startup_reverse"] = CallText("compute_kernel_hw_startup<SrcOrder::Reverse>({c0}, {c1}, {c2})", COMMON)
    table["format_a"] = CallText("reconfig_data_format_srca({c0})", COMMON)
    table["format_b"] = CallText("reconfig_data_format_srcb({c0})", COMMON)
    table["format_ab"] = CallText("reconfig_data_format({c0}, {c1})", COMMON)
    table["format_pack"] = CallText("pack_reconfig_data_format({c0})", COMMON)
    return table


INTRINSICS: Mapping[str, Mapping[str, CallText]] = MappingProxyType({"0.81.1": MappingProxyType(_version_0_81_1())})
