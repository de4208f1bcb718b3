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
}  // namespace ckernel
