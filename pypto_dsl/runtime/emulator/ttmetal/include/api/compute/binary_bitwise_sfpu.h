// Emulated compute API: bits of two integer slots, one init for all.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_INIT(binary_bitwise_tile_init)
TTEMU_SFPU_INTEGER_SHARED(bitwise_and_binary_tile, binary_bitwise_tile_init, and_int)
TTEMU_SFPU_INTEGER_SHARED(bitwise_or_binary_tile, binary_bitwise_tile_init, or_int)
TTEMU_SFPU_INTEGER_SHARED(bitwise_xor_binary_tile, binary_bitwise_tile_init, xor_int)
}  // namespace ckernel
