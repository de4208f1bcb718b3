// Emulated compute API, common part: startup, DST, circular buffers, pack, formats, and how an SFPU call is declared.
#pragma once
#include <cstdint>

#include "ttemu/lanes.h"
#include "ttemu/runtime.h"
#ifndef DST_ACCUM_MODE
#define DST_ACCUM_MODE false
#endif

// `store` says what the routine leaves in a 16-bit DST: the value rounded to nearest, or the f32 bits cut off.
#define TTEMU_SFPU_INIT(name) \
    inline void name(TTEMU_HERE) { ttemu::sfpu_init(#name, where); }
#define TTEMU_SFPU_UNARY(name, lane, store)                                                                                       \
    TTEMU_SFPU_INIT(name##_init)                                                                                                  \
    inline void name(uint32_t dst, TTEMU_HERE) {                                                                                  \
        ttemu::sfpu_unary({#name, #name "_init", ttemu::store, ttemu::FLOATING, ttemu::FLOATING}, ttemu::lanes::lane, dst, 0, where); \
    }
#define TTEMU_SFPU_SCALAR(name, init, lane, store)                                                                                \
    inline void name(uint32_t dst, uint32_t bits, TTEMU_HERE) {                                                                   \
        ttemu::sfpu_unary({#name, #init, ttemu::store, ttemu::FLOATING, ttemu::FLOATING}, ttemu::lanes::lane, dst, bits, where);   \
    }
#define TTEMU_SFPU_BINARY(name, lane, store)                                                                                      \
    TTEMU_SFPU_INIT(name##_init)                                                                                                  \
    inline void name(uint32_t left, uint32_t right, uint32_t out, TTEMU_HERE) {                                                   \
        ttemu::sfpu_binary({#name, #name "_init", ttemu::store, ttemu::FLOATING, ttemu::FLOATING}, ttemu::lanes::lane, left, right, out, where); \
    }
// Integer forms carry the format as a template argument; only Int32 is modelled.
#define TTEMU_SFPU_INTEGER(name, lane)                                                                                            \
    TTEMU_SFPU_INIT(name##_init)                                                                                                  \
    template <DataFormat format> void name(uint32_t left, uint32_t right, uint32_t out, TTEMU_HERE) {                             \
        static_assert(format == DataFormat::Int32, #name ": only Int32 is modelled");                                             \
        ttemu::sfpu_binary({#name, #name "_init", ttemu::NEAREST, ttemu::INTEGER, ttemu::INTEGER}, ttemu::lanes::lane, left, right, out, where); \
    }
#define TTEMU_SFPU_INTEGER_SHARED(name, init, lane)                                                                               \
    template <DataFormat format> void name(uint32_t left, uint32_t right, uint32_t out, TTEMU_HERE) {                             \
        static_assert(format == DataFormat::Int32, #name ": only Int32 is modelled");                                             \
        ttemu::sfpu_binary({#name, #init, ttemu::NEAREST, ttemu::INTEGER, ttemu::INTEGER}, ttemu::lanes::lane, left, right, out, where); \
    }

template <typename T> T get_arg_val(int index, TTEMU_HERE) { return (T)ttemu::runtime_arg(index, where); }
enum class DataFormat : uint8_t { Float32 = 0, Float16 = 1, Tf32 = 4, Float16_b = 5, Bfp8_b = 6, Bfp4_b = 7, Int32 = 8, UInt16 = 9, UInt32 = 24 };

namespace ckernel {
enum class SrcOrder { Regular, Reverse };
enum class BroadcastType { NONE = ttemu::FULL, ROW = ttemu::ROW, COL = ttemu::COL, SCALAR = ttemu::SCALAR };
enum class PoolType { SUM = ttemu::POOL_SUM, AVG = ttemu::POOL_AVG, MAX = ttemu::POOL_MAX };
enum class ReduceDim { REDUCE_ROW = ttemu::DIM_ROW, REDUCE_COL = ttemu::DIM_COL, REDUCE_SCALAR = ttemu::DIM_SCALAR };
enum class DstRoundingMode { Default = ttemu::TRUNCATE, NearestEven = ttemu::NEAREST };

template <SrcOrder order = SrcOrder::Regular> void compute_kernel_hw_startup(uint32_t cb0, uint32_t cb1, uint32_t out, TTEMU_HERE) {
    const bool reverse = order == SrcOrder::Reverse;
    ttemu::startup(reverse ? cb1 : cb0, reverse ? cb0 : cb1, out, where);
}
inline void compute_kernel_hw_startup(uint32_t cb0, uint32_t out, TTEMU_HERE) { ttemu::startup(cb0, cb0, out, where); }

inline void tile_regs_acquire(TTEMU_HERE) { ttemu::dst_acquire(where); }
inline void tile_regs_commit(TTEMU_HERE) { ttemu::dst_commit(where); }
inline void tile_regs_wait(TTEMU_HERE) { ttemu::dst_wait(where); }
inline void tile_regs_release(TTEMU_HERE) { ttemu::dst_release(where); }

inline void cb_reserve_back(uint32_t cb, uint32_t n, TTEMU_HERE) { ttemu::cb_reserve(cb, n, where); }
inline void cb_push_back(uint32_t cb, uint32_t n, TTEMU_HERE) { ttemu::cb_push(cb, n, where); }
inline void cb_wait_front(uint32_t cb, uint32_t n, TTEMU_HERE) { ttemu::cb_wait(cb, n, where); }
inline void cb_pop_front(uint32_t cb, uint32_t n, TTEMU_HERE) { ttemu::cb_pop(cb, n, where); }

// In-order packs fill the reserved pages one after the other; <true> packs to page `index` of the reservation.
template <bool out_of_order = false> void pack_tile(uint32_t dst, uint32_t cb, uint32_t index = 0, TTEMU_HERE) {
    ttemu::pack(dst, cb, out_of_order, index, where);
}
inline void pack_reconfig_data_format(uint32_t cb, TTEMU_HERE) { ttemu::reconfig_pack(cb, where); }
inline void pack_reconfig_data_format(uint32_t old_cb, uint32_t cb, TTEMU_HERE) {
    if (!ttemu::same_format(old_cb, cb, where)) ttemu::reconfig_pack(cb, where);
}
inline void reconfig_data_format_srca(uint32_t cb, TTEMU_HERE) { ttemu::reconfig_a(cb, where); }
inline void reconfig_data_format_srcb(uint32_t cb, TTEMU_HERE) { ttemu::reconfig_b(cb, where); }
inline void reconfig_data_format_srca(uint32_t old_cb, uint32_t cb, TTEMU_HERE) {
    if (!ttemu::same_format(old_cb, cb, where)) ttemu::reconfig_a(cb, where);
}
inline void reconfig_data_format_srcb(uint32_t old_cb, uint32_t cb, TTEMU_HERE) {
    if (!ttemu::same_format(old_cb, cb, where)) ttemu::reconfig_b(cb, where);
}
template <SrcOrder order = SrcOrder::Regular> void reconfig_data_format(uint32_t cb0, uint32_t cb1, TTEMU_HERE) {
    const bool reverse = order == SrcOrder::Reverse;
    ttemu::reconfig_a(reverse ? cb1 : cb0, where);
    ttemu::reconfig_b(reverse ? cb0 : cb1, where);
}
}  // namespace ckernel
using namespace ckernel;
