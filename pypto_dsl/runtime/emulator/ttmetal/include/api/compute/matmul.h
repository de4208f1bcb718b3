// Emulated compute API: the product of two tiles, accumulated in DST; `transpose` flips the tiles of the second operand.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
inline void matmul_init(uint32_t a, uint32_t b, uint32_t transpose = 0, TTEMU_HERE) {
    ttemu::fpu_init(transpose ? ttemu::MATMUL_TRANSPOSED : ttemu::MATMUL, "matmul_init", ttemu::FULL, b, a, where);
}
inline void matmul_tiles(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, TTEMU_HERE) {
    ttemu::fpu_matmul(a, b, tile_a, tile_b, dst, where);
}
}  // namespace ckernel
