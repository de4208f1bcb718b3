// Emulated compute API: SFPU operations on two slots of DST.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
// mul, div and power round to nearest inside the routine; add, sub and rsub truncate into a 16-bit DST unless told otherwise.
TTEMU_SFPU_BINARY(mul_binary_tile, mul, NEAREST)
TTEMU_SFPU_BINARY(div_binary_tile, div, NEAREST)
TTEMU_SFPU_BINARY(power_binary_tile, pow, NEAREST)
TTEMU_SFPU_BINARY(eq_binary_tile, eq, NEAREST)
TTEMU_SFPU_BINARY(ne_binary_tile, ne, NEAREST)
TTEMU_SFPU_BINARY(lt_binary_tile, lt, NEAREST)
TTEMU_SFPU_BINARY(le_binary_tile, le, NEAREST)
TTEMU_SFPU_BINARY(gt_binary_tile, gt, NEAREST)
TTEMU_SFPU_BINARY(ge_binary_tile, ge, NEAREST)
#define TTEMU_SFPU_BINARY_ROUND(name, lane)                                                                                       \
    TTEMU_SFPU_INIT(name##_init)                                                                                                  \
    template <DstRoundingMode mode = DstRoundingMode::Default> void name(uint32_t left, uint32_t right, uint32_t out, TTEMU_HERE) { \
        ttemu::sfpu_binary({#name, #name "_init", (ttemu::Round)mode, ttemu::FLOATING, ttemu::FLOATING}, ttemu::lanes::lane, left, right, out, where); \
    }
TTEMU_SFPU_BINARY_ROUND(add_binary_tile, add)
TTEMU_SFPU_BINARY_ROUND(sub_binary_tile, sub)
TTEMU_SFPU_BINARY_ROUND(rsub_binary_tile, rsub)
#undef TTEMU_SFPU_BINARY_ROUND
}  // namespace ckernel
