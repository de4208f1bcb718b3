// Emulated compute API: the exponential in its accurate form.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_UNARY(exp_tile, exp, NEAREST)
}  // namespace ckernel
