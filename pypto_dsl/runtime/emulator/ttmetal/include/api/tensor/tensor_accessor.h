// Emulated TensorAccessor: interleaved DRAM tensors, compile-time words [flags, aligned page size].
#pragma once
#include "api/compile_time_args.h"
template <uint32_t OFFSET> struct TensorAccessorArgs {
    static constexpr uint32_t flags = ttemu::compile_time_arg<OFFSET>();
    static_assert(flags == 2, "only interleaved DRAM tensors (flags 2) are modelled");
    static constexpr uint32_t AlignedPageSize = ttemu::compile_time_arg<OFFSET + 1>();
    static constexpr uint32_t next_compile_time_args_offset() { return OFFSET + 2; }
};
struct TensorAccessor {
    uint32_t base, page_bytes;
    template <uint32_t OFFSET>
    TensorAccessor(const TensorAccessorArgs<OFFSET>&, uint32_t address, uint32_t bytes = TensorAccessorArgs<OFFSET>::AlignedPageSize)
        : base(address), page_bytes(bytes) {}
};
