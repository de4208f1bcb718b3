// Emulated compute API: the rectifier.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_UNARY(relu_tile, relu, TRUNCATE)
}  // namespace ckernel
