// Emulated compute API: the cube root.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_UNARY(cbrt_tile, cbrt, NEAREST)
}  // namespace ckernel
