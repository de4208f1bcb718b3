// Emulated compute API: between the meanings of a DST slot; formats are the vendor's DataFormat numbers.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
template <uint32_t in, uint32_t out> void typecast_tile_init(TTEMU_HERE) {
    static_assert((in == 8 && (out == 0 || out == 5)) || ((in == 0 || in == 5) && out == 8), "typecast_tile_init: this pair is not modelled");
    ttemu::sfpu_init(in == 8 ? (out == 0 ? "typecast_tile_init<Int32, Float32>" : "typecast_tile_init<Int32, Float16_b>") : "typecast_tile_init<Float32, Int32>", where);
}
template <uint32_t in, uint32_t out> void typecast_tile(uint32_t dst, TTEMU_HERE) {
    static_assert((in == 8 && (out == 0 || out == 5)) || ((in == 0 || in == 5) && out == 8), "typecast_tile: this pair is not modelled");
    if constexpr (in == 8)
        ttemu::sfpu_unary({"typecast_tile", out == 0 ? "typecast_tile_init<Int32, Float32>" : "typecast_tile_init<Int32, Float16_b>", ttemu::NEAREST, ttemu::INTEGER, ttemu::FLOATING},
                          out == 0 ? ttemu::lanes::int_to_float : ttemu::lanes::int_to_bf16, dst, 0, where);
    else
        ttemu::sfpu_unary({"typecast_tile", "typecast_tile_init<Float32, Int32>", ttemu::NEAREST, ttemu::FLOATING, ttemu::INTEGER}, ttemu::lanes::float_to_int, dst, 0, where);
}
}  // namespace ckernel
