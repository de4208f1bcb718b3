// Emulated compute API: comparison with zero, giving 1 or 0.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_UNARY(eqz_tile, eqz, NEAREST)
TTEMU_SFPU_UNARY(nez_tile, nez, NEAREST)
TTEMU_SFPU_UNARY(gtz_tile, gtz, NEAREST)
TTEMU_SFPU_UNARY(gez_tile, gez, NEAREST)
TTEMU_SFPU_UNARY(ltz_tile, ltz, NEAREST)
TTEMU_SFPU_UNARY(lez_tile, lez, NEAREST)
}  // namespace ckernel
