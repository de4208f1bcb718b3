// Emulated compute API: the square root.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_UNARY(sqrt_tile, sqrt, NEAREST)
}  // namespace ckernel
