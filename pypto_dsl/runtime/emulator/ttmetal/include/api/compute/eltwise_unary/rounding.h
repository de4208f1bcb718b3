// Emulated compute API: rounding to integers, one init for all.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_INIT(rounding_op_tile_init)
#define TTEMU_ROUNDING(name, lane)                                                                                               \
    inline void name(uint32_t dst, TTEMU_HERE) {                                                                                 \
        ttemu::sfpu_unary({#name, "rounding_op_tile_init", ttemu::NEAREST, ttemu::FLOATING, ttemu::FLOATING}, ttemu::lanes::lane, dst, 0, where); \
    }
TTEMU_ROUNDING(floor_tile, floor)
TTEMU_ROUNDING(ceil_tile, ceil)
TTEMU_ROUNDING(trunc_tile, trunc)
#undef TTEMU_ROUNDING
// Halves to even; other numbers of decimals are not modelled.
inline void round_tile(uint32_t dst, int32_t decimals, TTEMU_HERE) {
    if (decimals != 0) ttemu::unmodelled("round_tile: only 0 decimals are modelled", where);
    ttemu::sfpu_unary({"round_tile", "rounding_op_tile_init", ttemu::NEAREST, ttemu::FLOATING, ttemu::FLOATING}, ttemu::lanes::rint, dst, 0, where);
}
}  // namespace ckernel
