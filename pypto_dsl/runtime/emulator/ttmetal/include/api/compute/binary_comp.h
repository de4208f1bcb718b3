// Emulated compute API: comparisons of two integer slots, giving the integer 1 or 0. The inits carry the format too.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
#define TTEMU_COMPARE_INT(name, lane)                                                                                             \
    template <DataFormat format> void name##_init(TTEMU_HERE) { ttemu::sfpu_init(#name "_init", where); }                          \
    template <DataFormat format> void name(uint32_t left, uint32_t right, uint32_t out, TTEMU_HERE) {                             \
        static_assert(format == DataFormat::Int32, #name ": only Int32 is modelled");                                             \
        ttemu::sfpu_binary({#name, #name "_init", ttemu::NEAREST, ttemu::INTEGER, ttemu::INTEGER}, ttemu::lanes::lane, left, right, out, where); \
    }
TTEMU_COMPARE_INT(eq_int_tile, eq_int)
TTEMU_COMPARE_INT(ne_int_tile, ne_int)
TTEMU_COMPARE_INT(lt_int_tile, lt_int)
TTEMU_COMPARE_INT(le_int_tile, le_int)
TTEMU_COMPARE_INT(gt_int_tile, gt_int)
TTEMU_COMPARE_INT(ge_int_tile, ge_int)
#undef TTEMU_COMPARE_INT
}  // namespace ckernel
