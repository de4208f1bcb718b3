// Emulated compute API: one slot of DST into another.
#pragma once
#include "api/compute/common.h"
namespace ckernel {
TTEMU_SFPU_INIT(copy_dest_values_init)
template <DataFormat format> void copy_dest_values(uint32_t from, uint32_t to, TTEMU_HERE) {
    static_assert((format == DataFormat::Float32) == DST_ACCUM_MODE || format == DataFormat::Int32, "copy_dest_values: the format must be that of the DST");
    ttemu::sfpu_copy("copy_dest_values", "copy_dest_values_init", from, to, where);
}
}  // namespace ckernel
