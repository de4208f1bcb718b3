// Emulated compute API: the greatest common divisor of two integer slots.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_INIT(gcd_tile_init)
inline void gcd_tile(uint32_t left, uint32_t right, uint32_t out, TTEMU_HERE) {
    ttemu::sfpu_binary({"gcd_tile", "gcd_tile_init", ttemu::NEAREST, ttemu::INTEGER, ttemu::INTEGER}, ttemu::lanes::gcd_int, left, right, out, where);
}
}  // namespace ckernel
