// Emulated compute API: shifts of one integer slot by another, one init for all; a count below 0 or above 31 gives 0, to the right too.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_INIT(binary_shift_tile_init)
TTEMU_SFPU_INTEGER_SHARED(binary_left_shift_tile, binary_shift_tile_init, left_shift_int)
TTEMU_SFPU_INTEGER_SHARED(binary_right_shift_tile, binary_shift_tile_init, right_shift_int)
}  // namespace ckernel
