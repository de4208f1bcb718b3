// Emulated compute API: log(1 + x) in its accurate form.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_UNARY(log1p_tile, log1p, NEAREST)
}  // namespace ckernel
