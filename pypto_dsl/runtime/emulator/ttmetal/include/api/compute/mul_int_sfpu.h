// Emulated compute API: mul_int_tile on two integer slots of DST; its init names the format too.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
template <DataFormat format> void mul_int_tile_init(TTEMU_HERE) {
    static_assert(format == DataFormat::Int32, "mul_int_tile_init: only Int32 is modelled");
    ttemu::sfpu_init("mul_int_tile_init", where);
}
template <DataFormat format> void mul_int_tile(uint32_t left, uint32_t right, uint32_t out, TTEMU_HERE) {
    static_assert(format == DataFormat::Int32, "mul_int_tile: only Int32 is modelled");
    ttemu::sfpu_binary({"mul_int_tile", "mul_int_tile_init", ttemu::NEAREST, ttemu::INTEGER, ttemu::INTEGER}, ttemu::lanes::mul_int, left, right, out, where);
}
}  // namespace ckernel
