// Compile-time arguments: the words of -DKERNEL_COMPILE_TIME_ARGS, as tt-metal passes them.
#pragma once
#include <cstdint>
#ifndef KERNEL_COMPILE_TIME_ARGS
#define KERNEL_COMPILE_TIME_ARGS
#endif
namespace ttemu {
template <uint32_t... W> struct Words {
    static constexpr uint32_t count = sizeof...(W);
    static constexpr uint32_t at(uint32_t i) {
        const uint32_t words[sizeof...(W) + 1] = {W..., 0};
        return words[i];
    }
};
using CompileTimeArgs = Words<KERNEL_COMPILE_TIME_ARGS>;
template <uint32_t I> constexpr uint32_t compile_time_arg() {
    static_assert(I < CompileTimeArgs::count, "compile-time argument index out of range");
    return CompileTimeArgs::at(I);
}
}  // namespace ttemu
#define get_compile_time_arg_val(index) (::ttemu::compile_time_arg<(index)>())
