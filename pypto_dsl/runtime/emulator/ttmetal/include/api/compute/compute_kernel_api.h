// Emulated compute API: the SFPU routines that the vendor keeps in compute_kernel_api.h.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_UNARY(exp2_tile, exp2, NEAREST)
TTEMU_SFPU_UNARY(expm1_tile, expm1, NEAREST)
TTEMU_SFPU_UNARY(silu_tile, silu, NEAREST)
TTEMU_SFPU_UNARY(abs_tile, abs, TRUNCATE)
TTEMU_SFPU_UNARY(sign_tile, sign, NEAREST)
TTEMU_SFPU_UNARY(square_tile, square, TRUNCATE)
// The template argument of these selects a fast form, which is not modelled.
#define TTEMU_SFPU_ACCURATE(name, lane)                                                        \
    template <bool fast = false> void name##_init(TTEMU_HERE) {                                \
        static_assert(!fast, #name "_init: the fast form is not modelled");                    \
        ttemu::sfpu_init(#name "_init", where);                                                \
    }                                                                                          \
    template <bool fast = false> void name(uint32_t dst, TTEMU_HERE) {                         \
        static_assert(!fast, #name ": the fast form is not modelled");                         \
        ttemu::sfpu_unary({#name, #name "_init", ttemu::NEAREST, ttemu::FLOATING, ttemu::FLOATING}, ttemu::lanes::lane, dst, 0, where); \
    }
TTEMU_SFPU_ACCURATE(log_tile, log)
TTEMU_SFPU_ACCURATE(tanh_tile, tanh)
#undef TTEMU_SFPU_ACCURATE
TTEMU_SFPU_INIT(log_with_base_tile_init)
// `scale` is the bits of 1 / ln(base); the base 2 has a form of its own.
template <bool fast = false, bool base_is_two = false> void log_with_base_tile(uint32_t dst, uint32_t scale, TTEMU_HERE) {
    static_assert(!fast, "log_with_base_tile: the fast form is not modelled");
    ttemu::sfpu_unary({"log_with_base_tile", "log_with_base_tile_init", ttemu::NEAREST, ttemu::FLOATING, ttemu::FLOATING},
                      base_is_two ? ttemu::lanes::log2 : ttemu::lanes::log_scaled, dst, scale, where);
}
TTEMU_SFPU_UNARY(sigmoid_tile, sigmoid, NEAREST)
TTEMU_SFPU_INIT(power_tile_init)
TTEMU_SFPU_SCALAR(power_tile, power_tile_init, power, NEAREST)
TTEMU_SFPU_INIT(power_iterative_tile_init)
TTEMU_SFPU_SCALAR(power_iterative_tile, power_iterative_tile_init, power_iterative, NEAREST)
TTEMU_SFPU_INIT(unary_max_tile_init)
TTEMU_SFPU_SCALAR(unary_max_tile, unary_max_tile_init, max_scalar, TRUNCATE)
TTEMU_SFPU_INIT(unary_min_tile_init)
TTEMU_SFPU_SCALAR(unary_min_tile, unary_min_tile_init, min_scalar, TRUNCATE)
// One f32 tile: along rows the result is in column 0, along columns in row 0; the other lanes are undefined.
template <PoolType pool, DataFormat format> void sfpu_reduce_init(TTEMU_HERE) {
    static_assert(format == DataFormat::Float32 && pool != PoolType::AVG, "sfpu_reduce_init: this form is not modelled");
    ttemu::sfpu_init(pool == PoolType::MAX ? "sfpu_reduce_init<MAX>" : "sfpu_reduce_init<SUM>", where);
}
template <PoolType pool, DataFormat format, ReduceDim dim = ReduceDim::REDUCE_COL> void sfpu_reduce(uint32_t dst, TTEMU_HERE) {
    static_assert(format == DataFormat::Float32 && dim != ReduceDim::REDUCE_SCALAR && pool != PoolType::AVG, "sfpu_reduce: this form is not modelled");
    ttemu::sfpu_reduce((int)pool, (int)dim, pool == PoolType::MAX ? "sfpu_reduce_init<MAX>" : "sfpu_reduce_init<SUM>", dst, where);
}
}  // namespace ckernel
