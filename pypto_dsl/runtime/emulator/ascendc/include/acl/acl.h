// Host emulation of the subset of AscendCL that an emitted main.cpp uses: device memory is host memory, with its bounds
// kept.
//
// A copy beyond an allocation, a free of what was not allocated, memory that is never freed and a launch that traps end
// the program with a message, as the emulated device would.
#pragma once
#include "../kernel_operator.h"
#include <tuple>

typedef int aclError;
typedef void* aclrtStream;
constexpr aclError ACL_SUCCESS = 0;
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST };
enum aclrtMemcpyKind { ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST };
enum aclDeviceInfo { ACL_DEVICE_INFO_AI_CORE_NUM, ACL_DEVICE_INFO_VECTOR_CORE_NUM };

namespace emu {
struct Allocation {
    uint8_t* base;
    size_t bytes;
};
inline Allocation allocations[64];
inline int allocation_count = 0;
inline bool initialised = false, device_set = false, stream_alive = false;

[[noreturn]] inline void host_error(const char* call, const char* what) {
    fprintf(stderr, "emulated AscendCL: %s: %s\n", call, what);
    exit(70);
}
inline Allocation& allocation_of(const void* p, const char* call) {
    for (int i = 0; i < allocation_count; ++i)
        if (allocations[i].base == p) return allocations[i];
    host_error(call, "the address is no start of device memory");
}
inline size_t bytes_from(const void* p, const char* call) {  // how much device memory there is from an address on
    const uint8_t* at = static_cast<const uint8_t*>(p);
    for (int i = 0; i < allocation_count; ++i)
        if (at >= allocations[i].base && at < allocations[i].base + allocations[i].bytes) return allocations[i].base + allocations[i].bytes - at;
    host_error(call, "the address is not in device memory");
}
template <class... P, class... A>
uint32_t host_launch(const char* name, void (*kernel)(P...), uint32_t blocks, A... given) {
    static_assert(sizeof...(P) == sizeof...(A), "the launch passes another number of arguments than the kernel takes");
    if (!stream_alive) host_error(name, "launched without a stream");
    std::tuple<P...> arguments(static_cast<P>(given)...);
    void* pointers[sizeof...(P)];
    std::apply(
        [&](P&... p) {
            int i = 0;
            ((pointers[i++] = &p), ...);
        },
        arguments);
    for (int i = 0; i < allocation_count; ++i)
        ascendc_emu_tensor("device memory", allocations[i].base, allocations[i].bytes, 1);
    char message[2048];
    const int failed = launch(name, kernel, blocks, pointers, message, sizeof message, nullptr);
    ascendc_emu_forget();
    if (failed) host_error(name, message);
    return ACL_SUCCESS;
}
}  // namespace emu

inline aclError aclInit(const char*) {
    if (emu::initialised) emu::host_error("aclInit", "called twice");
    emu::initialised = true;
    return ACL_SUCCESS;
}
inline aclError aclrtSetDevice(int32_t) {
    if (!emu::initialised) emu::host_error("aclrtSetDevice", "before aclInit");
    emu::device_set = true;
    return ACL_SUCCESS;
}
inline aclError aclrtCreateStream(aclrtStream* stream) {
    if (!emu::device_set) emu::host_error("aclrtCreateStream", "before aclrtSetDevice");
    *stream = &emu::stream_alive, emu::stream_alive = true;
    return ACL_SUCCESS;
}
inline aclError aclGetDeviceCapability(uint32_t, aclDeviceInfo info, int64_t* value) {
    *value = info == ACL_DEVICE_INFO_VECTOR_CORE_NUM ? 4 : 2;  // few, so that a core has several items
    return ACL_SUCCESS;
}
inline aclError aclrtMalloc(void** p, size_t bytes, aclrtMemMallocPolicy) {
    if (!emu::device_set) emu::host_error("aclrtMalloc", "before aclrtSetDevice");
    if (emu::allocation_count == 32) emu::host_error("aclrtMalloc", "more tensors than the emulator follows");
    *p = malloc(bytes);
    memset(*p, 0xFF, bytes);
    emu::allocations[emu::allocation_count++] = {static_cast<uint8_t*>(*p), bytes};
    return ACL_SUCCESS;
}
inline aclError aclrtFree(void* p) {
    emu::Allocation& a = emu::allocation_of(p, "aclrtFree");
    free(p);
    a = emu::allocations[--emu::allocation_count];
    return ACL_SUCCESS;
}
inline aclError aclrtMemcpy(void* dst, size_t room, const void* src, size_t bytes, aclrtMemcpyKind kind) {
    const size_t there = emu::bytes_from(kind == ACL_MEMCPY_HOST_TO_DEVICE ? dst : src, "aclrtMemcpy");
    if (bytes > room || bytes > there) emu::host_error("aclrtMemcpy", "beyond the end of device memory");
    memcpy(dst, src, bytes);
    return ACL_SUCCESS;
}
inline aclError aclrtSynchronizeStream(aclrtStream) { return ACL_SUCCESS; }
inline aclError aclrtDestroyStream(aclrtStream) {
    emu::stream_alive = false;
    return ACL_SUCCESS;
}
inline aclError aclrtResetDevice(int32_t) {
    if (emu::stream_alive) emu::host_error("aclrtResetDevice", "a stream is still alive");
    if (emu::allocation_count) emu::host_error("aclrtResetDevice", "device memory was not freed");
    emu::device_set = false;
    return ACL_SUCCESS;
}
inline aclError aclFinalize() {
    if (emu::device_set) emu::host_error("aclFinalize", "before aclrtResetDevice");
    return ACL_SUCCESS;
}
