// Emulated compute API: a tile of a circular buffer into DST.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
inline void copy_init(uint32_t cb, TTEMU_HERE) { ttemu::fpu_init(ttemu::COPY, "copy_init", ttemu::FULL, cb, cb, where); }
inline void copy_tile(uint32_t cb, uint32_t tile, uint32_t dst, TTEMU_HERE) { ttemu::fpu_copy(cb, tile, dst, where); }
}  // namespace ckernel
