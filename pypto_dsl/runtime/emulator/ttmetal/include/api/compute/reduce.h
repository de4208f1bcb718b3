// Emulated compute API: FPU reductions of a tile against a scaler tile; the packer's mask holds until reduce_uninit.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
template <PoolType pool, ReduceDim dim> void reduce_init(uint32_t cb, uint32_t scaler, uint32_t out, TTEMU_HERE) {
    static_assert(pool != PoolType::AVG, "AVG is not modelled");
    ttemu::reduce_init((int)pool, (int)dim, cb, scaler, out, where);
}
template <PoolType pool, ReduceDim dim>
void reduce_tile(uint32_t cb, uint32_t scaler, uint32_t tile, uint32_t scaler_tile, uint32_t dst, TTEMU_HERE) {
    ttemu::fpu_reduce((int)pool, (int)dim, cb, scaler, tile, scaler_tile, dst, where);
}
inline void reduce_uninit(TTEMU_HERE) { ttemu::reduce_uninit(where); }
}  // namespace ckernel
