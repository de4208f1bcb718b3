// Emulated compute API: the angle of the point (second, first).
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_BINARY(atan2_binary_tile, atan2, NEAREST)
}  // namespace ckernel
