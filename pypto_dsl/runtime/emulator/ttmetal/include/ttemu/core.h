// The emulated Tensix core as the runtime's own files see it: L1, circular buffers, DST, three fibers, and the trap.
#pragma once
#include <ucontext.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "ttemu/runtime.h"

namespace ttemu {

enum Format : int { F32 = 0, BF16 = 5, BFP8 = 6, BFP4 = 7, I32 = 8, U32 = 24 };  // the vendor's DataFormat numbers
constexpr int kTile = 1024, kCbs = 32, kRoles = 3, kMaxDst = 8;
constexpr uint32_t kGuardBytes = 64;  // after each circular buffer, checked at the end
constexpr uint8_t kPoison[2] = {0xa5, 0xff};  // memory nobody wrote: a NaN as f32 and as bf16, a page of it traps when read

struct CbConfig { int32_t format; uint32_t page_bytes, pages; };
struct Tensor { uint32_t base, page_bytes, pages, writable; uint8_t* data; };
struct Program {  // mirrored by machine.py
    uint32_t cores, fp32_dest, unpack_to_dest, l1_budget, seed, tensors, dst_tiles;
    CbConfig cb[kCbs];
    const Tensor* tensor;
    void (*kernel[kRoles])();
    uint32_t args[kRoles];
    const uint32_t* arg_words[kRoles];  // [core][args]
};

enum Role : int { READER, COMPUTE, WRITER };
constexpr const char* kRole[kRoles] = {"reader", "compute", "writer"};

struct Cb {
    uint32_t address, page, capacity, read = 0, write = 0, count = 0, reserved = 0, waited = 0, packed = 0;
    int format = -1, producer = -1, consumer = -1;
    Where last_push;
};
struct Slot {
    float lane[kTile];
    bool written = false, reduced = false;
    Kind kind = FLOATING;
};
struct Transfer { uint32_t l1, bytes; uint8_t* dram; Where where; };
enum DstState { IDLE, ACQUIRED, COMMITTED, WAITED };
constexpr const char* kDst[4] = {"released", "acquired", "committed", "being packed"};

struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    bool done = false, blocked = false, for_space = false;
    uint32_t cb = 0, pages = 0;  // what a blocked fiber waits for
    Where where;
    std::vector<Transfer> reads, writes;  // in flight until the barrier
};

struct Core {
    const Program* program;
    uint32_t id, random;
    std::map<uint32_t, Cb> cb;
    Fiber fiber[kRoles];
    int role = READER;
    ucontext_t scheduler;
    std::string trap;
    // compute
    Slot dst[kMaxDst];
    DstState state = IDLE;
    Where dst_where;
    bool started = false;
    int format_a = -1, format_b = -1, format_pack = -1;
    Fpu fpu = NO_FPU;
    const char *fpu_name = "nothing", *sfpu_name = "nothing";
    int fpu_bcast = FULL, fpu_format_a = -1, fpu_format_b = -1, reduce_pool = -1, reduce_dim = -1, mask = -1;
    Where mask_where;
};

extern Core* core;  // the one that runs; cores take turns, no core talks to another in the modelled subset

// Ends the run: the text reaches the caller of ttemu_run, the fiber is never resumed.
[[noreturn]] __attribute__((format(printf, 3, 4))) void trap(const char* code, Where, const char* format, ...);
const char* base_name(const char* path);

// formats.cpp
const char* format_name(int format);
uint32_t format_bytes(int format);
void decode(int format, const uint8_t* page, float* lane);  // page in face order -> row-major lanes
void encode(int format, const float* lane, uint8_t* page);
float bf16_nearest(float);
float bf16_truncate(float);
float tf32_truncate(float);
// The empty asm keeps the word in an integer register: g++ 12.2 -O1 drops `& 0xffff0000` on a float's bits otherwise.
inline uint32_t to_bits(float f) { uint32_t u; memcpy(&u, &f, 4); asm("" : "+r"(u)); return u; }
inline float from_bits(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }

// circular_buffers.cpp
Cb& get_cb(uint32_t cb, Where);
bool ready(const Fiber&);
const uint8_t* page_to_read(const char* call, uint32_t cb, uint32_t tile, Where);
bool is_poison(const uint8_t*, uint32_t bytes);
void poison(uint8_t*, uint32_t bytes);
inline uint8_t* l1_at(uint32_t address) { return (uint8_t*)(uintptr_t)address; }

// noc.cpp
void forget_written_pages();

// destination.cpp
Slot& dst_slot(const char* call, uint32_t index, Where);
Slot& dst_filled(const char* call, uint32_t index, Kind, Where);
void need_startup(const char* call, Where);
void need_math(const char* call, Where);
void put(Slot&, const float* lanes, Round, Kind);
float stored(float, Round);

}  // namespace ttemu
