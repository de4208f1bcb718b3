// Emulated compute API: sub_int_tile on two integer slots of DST.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_INTEGER(sub_int_tile, sub_int)
}  // namespace ckernel
