// Emulated compute API: element-wise FPU operations on two tiles.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
#define TTEMU_FPU_BINARY(name, NAME)                                                                                    \
    inline void name##_init(uint32_t a, uint32_t b, TTEMU_HERE) { ttemu::fpu_init(ttemu::NAME, #name "_init", ttemu::FULL, a, b, where); } \
    inline void name##_tiles(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, TTEMU_HERE) {      \
        ttemu::fpu_binary(ttemu::NAME, #name "_tiles", ttemu::FULL, a, b, tile_a, tile_b, dst, where);                  \
    }
TTEMU_FPU_BINARY(add, ADD)
TTEMU_FPU_BINARY(sub, SUB)
TTEMU_FPU_BINARY(mul, MUL)
#undef TTEMU_FPU_BINARY
}  // namespace ckernel
