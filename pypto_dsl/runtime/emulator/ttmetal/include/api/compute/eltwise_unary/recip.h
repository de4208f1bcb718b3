// Emulated compute API: the reciprocal.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_UNARY(recip_tile, recip, NEAREST)
}  // namespace ckernel
