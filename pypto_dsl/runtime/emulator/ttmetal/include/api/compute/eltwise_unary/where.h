// Emulated compute API: the choice between two slots; the condition is nonzero or zero.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_INIT(where_tile_init)
template <DataFormat format> void where_tile(uint32_t condition, uint32_t yes, uint32_t no, uint32_t out, TTEMU_HERE) {
    static_assert(format == DataFormat::Float16_b || format == DataFormat::Float32, "where_tile: only Float16_b and Float32 are modelled");
    static_assert((format == DataFormat::Float32) == DST_ACCUM_MODE, "where_tile: the format must be that of the DST");
    ttemu::sfpu_where({"where_tile", "where_tile_init", ttemu::TRUNCATE, ttemu::FLOATING, ttemu::FLOATING}, condition, yes, no, out, where);
}
}  // namespace ckernel
