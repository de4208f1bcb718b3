// Emulated compute API: the larger and the smaller of two slots.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_BINARY(binary_max_tile, max, TRUNCATE)
TTEMU_SFPU_BINARY(binary_min_tile, min, TRUNCATE)
#define TTEMU_SFPU_INT32(name, lane)                                                                                              \
    TTEMU_SFPU_INIT(name##_init)                                                                                                  \
    inline void name(uint32_t left, uint32_t right, uint32_t out, TTEMU_HERE) {                                                   \
        ttemu::sfpu_binary({#name, #name "_init", ttemu::NEAREST, ttemu::INTEGER, ttemu::INTEGER}, ttemu::lanes::lane, left, right, out, where); \
    }
TTEMU_SFPU_INT32(binary_max_int32_tile, max_int)
TTEMU_SFPU_INT32(binary_min_int32_tile, min_int)
#undef TTEMU_SFPU_INT32
}  // namespace ckernel
