// Emulated compute API: gelu; the vendor's default is the fast form, only the exact one is modelled.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
template <bool fast = true> void gelu_tile_init(TTEMU_HERE) {
    static_assert(!fast, "gelu_tile_init<true> (fast form) is not modelled: say <false>");
    ttemu::sfpu_init("gelu_tile_init", where);
}
template <bool fast = true> void gelu_tile(uint32_t dst, TTEMU_HERE) {
    static_assert(!fast, "gelu_tile<true> (fast form) is not modelled: say <false>");
    ttemu::sfpu_unary({"gelu_tile", "gelu_tile_init", ttemu::NEAREST, ttemu::FLOATING, ttemu::FLOATING}, ttemu::lanes::gelu, dst, 0, where);
}
}  // namespace ckernel
