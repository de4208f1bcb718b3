// Emulated compute API: between the meanings of a DST slot; formats are the vendor's DataFormat numbers.
#pragma once
#include "api/compute/common.h"
namespace ttemu {
// One row per modelled pair: the init's name, what it computes, and the kinds on both sides.
template <uint32_t in, uint32_t out> struct Typecast { static constexpr bool modelled = false; };
#define TTEMU_TYPECAST(in_format, out_format, from, to, function)                                        \
    template <> struct Typecast<(uint32_t)DataFormat::in_format, (uint32_t)DataFormat::out_format> {      \
        static constexpr bool modelled = true;                                                           \
        static constexpr Sfpu op = {"typecast_tile", "typecast_tile_init<" #in_format ", " #out_format ">", NEAREST, from, to}; \
        static uint32_t lane(uint32_t x, uint32_t p) { return lanes::function(x, p); }                    \
    };
TTEMU_TYPECAST(Int32, Float32, INTEGER, FLOATING, int_to_float)
TTEMU_TYPECAST(Int32, Float16_b, INTEGER, FLOATING, int_to_bf16)
TTEMU_TYPECAST(Float32, Int32, FLOATING, INTEGER, float_to_int)
TTEMU_TYPECAST(Float16_b, Int32, FLOATING, INTEGER, float_to_int)
TTEMU_TYPECAST(Float32, Float16_b, FLOATING, FLOATING, round_bf16)
#undef TTEMU_TYPECAST
}  // namespace ttemu
namespace ckernel {
template <uint32_t in, uint32_t out> void typecast_tile_init(TTEMU_HERE) {
    static_assert(ttemu::Typecast<in, out>::modelled, "typecast_tile_init: this pair is not modelled");
    ttemu::sfpu_init(ttemu::Typecast<in, out>::op.init, where);
}
template <uint32_t in, uint32_t out> void typecast_tile(uint32_t dst, TTEMU_HERE) {
    static_assert(ttemu::Typecast<in, out>::modelled, "typecast_tile: this pair is not modelled");
    ttemu::sfpu_unary(ttemu::Typecast<in, out>::op, ttemu::Typecast<in, out>::lane, dst, 0, where);
}
}  // namespace ckernel
