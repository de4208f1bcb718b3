// Emulated compute API: circular and hyperbolic functions and their inverses; each rounds to nearest into a 16-bit DST.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_UNARY(sin_tile, sin, NEAREST)
TTEMU_SFPU_UNARY(cos_tile, cos, NEAREST)
TTEMU_SFPU_UNARY(tan_tile, tan, NEAREST)
TTEMU_SFPU_UNARY(asin_tile, asin, NEAREST)
TTEMU_SFPU_UNARY(acos_tile, acos, NEAREST)
TTEMU_SFPU_UNARY(atan_tile, atan, NEAREST)
TTEMU_SFPU_UNARY(sinh_tile, sinh, NEAREST)
TTEMU_SFPU_UNARY(cosh_tile, cosh, NEAREST)
TTEMU_SFPU_UNARY(asinh_tile, asinh, NEAREST)
TTEMU_SFPU_UNARY(acosh_tile, acosh, NEAREST)
TTEMU_SFPU_UNARY(atanh_tile, atanh, NEAREST)
}  // namespace ckernel
