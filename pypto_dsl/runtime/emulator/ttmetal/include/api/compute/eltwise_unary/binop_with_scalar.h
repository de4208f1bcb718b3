// Emulated compute API: arithmetic with a scalar given as f32 bits, one init for all; stores truncate.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_INIT(binop_with_scalar_tile_init)
TTEMU_SFPU_SCALAR(add_unary_tile, binop_with_scalar_tile_init, add_scalar, TRUNCATE)
TTEMU_SFPU_SCALAR(sub_unary_tile, binop_with_scalar_tile_init, sub_scalar, TRUNCATE)
TTEMU_SFPU_SCALAR(mul_unary_tile, binop_with_scalar_tile_init, mul_scalar, TRUNCATE)
TTEMU_SFPU_SCALAR(div_unary_tile, binop_with_scalar_tile_init, div_scalar, TRUNCATE)
TTEMU_SFPU_SCALAR(rsub_unary_tile, binop_with_scalar_tile_init, rsub_scalar, TRUNCATE)
}  // namespace ckernel
