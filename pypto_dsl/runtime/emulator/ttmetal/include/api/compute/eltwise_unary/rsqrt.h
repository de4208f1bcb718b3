// Emulated compute API: one over the square root.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_UNARY(rsqrt_tile, rsqrt, NEAREST)
}  // namespace ckernel
