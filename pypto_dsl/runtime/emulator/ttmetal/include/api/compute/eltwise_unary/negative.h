// Emulated compute API: the negated value.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_UNARY(negative_tile, negative, TRUNCATE)
}  // namespace ckernel
