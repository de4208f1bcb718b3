// Emulated compute API: add_int_tile on two integer slots of DST.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_INTEGER(add_int_tile, add_int)
}  // namespace ckernel
