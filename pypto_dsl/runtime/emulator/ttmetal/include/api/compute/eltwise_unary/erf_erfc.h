// Emulated compute API: the error functions, cut to a 16-bit DST; erf's default is the fast form, only the exact one is modelled.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
template <bool fast = true> void erf_tile_init(TTEMU_HERE) {
    static_assert(!fast, "erf_tile_init<true> (fast form) is not modelled: say <false>");
    ttemu::sfpu_init("erf_tile_init", where);
}
template <bool fast = true> void erf_tile(uint32_t dst, TTEMU_HERE) {
    static_assert(!fast, "erf_tile<true> (fast form) is not modelled: say <false>");
    ttemu::sfpu_unary({"erf_tile", "erf_tile_init", ttemu::TRUNCATE, ttemu::FLOATING, ttemu::FLOATING}, ttemu::lanes::erf, dst, 0, where);
}
TTEMU_SFPU_UNARY(erfc_tile, erfc, TRUNCATE)
}  // namespace ckernel
