// Emulated data movement API: circular buffers, kernel arguments, NoC transfers that land at the barrier.
#pragma once
#include "api/compile_time_args.h"
#include "ttemu/runtime.h"
#define tt_l1_ptr
#define FORCE_INLINE inline

template <typename T> T get_arg_val(int index, TTEMU_HERE) {
    static_assert(sizeof(T) == 4, "only 4-byte arguments are supported");
    return (T)ttemu::runtime_arg(index, where);
}
inline void cb_reserve_back(int32_t cb, int32_t n, TTEMU_HERE) { ttemu::cb_reserve(cb, n, where); }
inline void cb_push_back(int32_t cb, int32_t n, TTEMU_HERE) { ttemu::cb_push(cb, n, where); }
inline void cb_wait_front(int32_t cb, int32_t n, TTEMU_HERE) { ttemu::cb_wait(cb, n, where); }
inline void cb_pop_front(int32_t cb, int32_t n, TTEMU_HERE) { ttemu::cb_pop(cb, n, where); }
inline uint32_t get_write_ptr(uint32_t cb, TTEMU_HERE) { return ttemu::write_ptr(cb, where); }
inline uint32_t get_read_ptr(uint32_t cb, TTEMU_HERE) { return ttemu::read_ptr(cb, where); }
inline uint32_t get_tile_size(int32_t cb, TTEMU_HERE) { return ttemu::tile_size(cb, where); }

// The accessor is any type with these two members, as in the vendor's header.
template <typename Accessor> void noc_async_read_page(uint32_t page, const Accessor& a, uint32_t l1, TTEMU_HERE) {
    ttemu::noc_read(page, a.base, a.page_bytes, l1, where);
}
template <typename Accessor> void noc_async_write_page(uint32_t page, const Accessor& a, uint32_t l1, TTEMU_HERE) {
    ttemu::noc_write(page, a.base, a.page_bytes, l1, where);
}
inline void noc_async_read_barrier(TTEMU_HERE) { ttemu::noc_read_barrier(where); }
inline void noc_async_write_barrier(TTEMU_HERE) { ttemu::noc_write_barrier(where); }
