// Emulated compute API: a slot of one value; the float form is cut to the DST's width, the bitcast form is for f32 bits, the int form for integers.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_INIT(fill_tile_init)
inline void fill_tile_bitcast(uint32_t dst, uint32_t bits, TTEMU_HERE) {
    ttemu::sfpu_fill({"fill_tile_bitcast", "fill_tile_init", ttemu::TRUNCATE, ttemu::FLOATING, ttemu::FLOATING}, dst, bits, where);
}
inline void fill_tile(uint32_t dst, float value, TTEMU_HERE) {
    ttemu::sfpu_fill({"fill_tile", "fill_tile_init", ttemu::TRUNCATE, ttemu::FLOATING, ttemu::FLOATING}, dst, __builtin_bit_cast(uint32_t, value), where);
}
template <DataFormat format> void fill_tile_int(uint32_t dst, uint32_t value, TTEMU_HERE) {
    static_assert(format == DataFormat::Int32, "fill_tile_int: only Int32 is modelled");
    ttemu::sfpu_fill({"fill_tile_int", "fill_tile_init", ttemu::TRUNCATE, ttemu::INTEGER, ttemu::INTEGER}, dst, value, where);
}
}  // namespace ckernel
