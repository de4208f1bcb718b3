// Emulated compute API: FPU operations whose second operand is a row, column or single value, and unary_bcast.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
#define TTEMU_BCAST(name, NAME, kind, KIND)                                                                              \
    inline void name##_bcast_##kind##_init(uint32_t a, uint32_t b, TTEMU_HERE) {                                         \
        ttemu::fpu_init(ttemu::NAME, #name "_bcast_" #kind "_init", ttemu::KIND, a, b, where);                           \
    }                                                                                                                    \
    inline void name##_tiles_bcast_##kind(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, TTEMU_HERE) { \
        ttemu::fpu_binary(ttemu::NAME, #name "_tiles_bcast_" #kind, ttemu::KIND, a, b, tile_a, tile_b, dst, where);      \
    }
TTEMU_BCAST(add, ADD, rows, ROW)
TTEMU_BCAST(add, ADD, cols, COL)
TTEMU_BCAST(add, ADD, scalar, SCALAR)
TTEMU_BCAST(sub, SUB, rows, ROW)
TTEMU_BCAST(sub, SUB, cols, COL)
TTEMU_BCAST(sub, SUB, scalar, SCALAR)
TTEMU_BCAST(mul, MUL, rows, ROW)
TTEMU_BCAST(mul, MUL, cols, COL)
TTEMU_BCAST(mul, MUL, scalar, SCALAR)
#undef TTEMU_BCAST
template <BroadcastType kind> void unary_bcast_init(uint32_t cb, TTEMU_HERE) {
    ttemu::fpu_init(ttemu::UNARY_BCAST, "unary_bcast_init", (int)kind, cb, cb, where);
}
template <BroadcastType kind> void unary_bcast(uint32_t cb, uint32_t tile, uint32_t dst, TTEMU_HERE) {
    ttemu::fpu_unary_bcast((int)kind, cb, tile, dst, where);
}
}  // namespace ckernel
