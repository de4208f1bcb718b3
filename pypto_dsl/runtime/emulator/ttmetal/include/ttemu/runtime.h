// What the emulated kernel headers call: one Tensix core at a time, its three kernels as fibers, every rule a trap.
//
// Kernels include nothing heavier than <source_location>, so that one of them compiles in a tenth of a second.
#pragma once
#include <cstdint>
#include <source_location>

namespace ttemu {

using Where = std::source_location;  // filled in at the call site, so that a trap names the kernel's line
#define TTEMU_HERE ::ttemu::Where where = ::ttemu::Where::current()

// Unpack + FPU operations; each needs its own init to be the last one of that domain.
enum Fpu : int { NO_FPU, COPY, ADD, SUB, MUL, REDUCE, MATMUL, MATMUL_TRANSPOSED, UNARY_BCAST };
enum Bcast : int { FULL, ROW, COL, SCALAR };
enum Pool : int { POOL_SUM, POOL_AVG, POOL_MAX };
enum Dim : int { DIM_ROW, DIM_COL, DIM_SCALAR };

// SFPU operations are described where they are declared: nothing in the runtime lists them.
enum Round : int { TRUNCATE, NEAREST };  // what a 16-bit DST keeps of a result
enum Kind : int { FLOATING, INTEGER };   // what the 32 bits of a DST lane mean
struct Sfpu {
    const char* call;
    const char* init;  // the init function it needs; several calls may share one
    Round round;
    Kind in, out;
};
using UnaryLane = uint32_t (*)(uint32_t lane, uint32_t parameter);
using BinaryLane = uint32_t (*)(uint32_t left, uint32_t right);

// Circular buffers (all three kernels)
void cb_reserve(uint32_t cb, uint32_t n, Where);
void cb_push(uint32_t cb, uint32_t n, Where);
void cb_wait(uint32_t cb, uint32_t n, Where);
void cb_pop(uint32_t cb, uint32_t n, Where);
uint32_t write_ptr(uint32_t cb, Where);
uint32_t read_ptr(uint32_t cb, Where);
uint32_t tile_size(uint32_t cb, Where);
uint32_t runtime_arg(int index, Where);
// NoC (data movement kernels)
void noc_read(uint32_t page, uint32_t base, uint32_t page_bytes, uint32_t l1, Where);
void noc_write(uint32_t page, uint32_t base, uint32_t page_bytes, uint32_t l1, Where);
void noc_read_barrier(Where);
void noc_write_barrier(Where);
// Compute: configuration and DST
void startup(uint32_t srca, uint32_t srcb, uint32_t out, Where);
void dst_acquire(Where);
void dst_commit(Where);
void dst_wait(Where);
void dst_release(Where);
void reconfig_a(uint32_t cb, Where);
void reconfig_b(uint32_t cb, Where);
void reconfig_pack(uint32_t cb, Where);
bool same_format(uint32_t cb, uint32_t other, Where);
void pack(uint32_t dst, uint32_t cb, bool at_index, uint32_t index, Where);
// Compute: unpack + FPU
void fpu_init(Fpu, const char* name, int bcast, uint32_t cb_a, uint32_t cb_b, Where);
void fpu_copy(uint32_t cb, uint32_t tile, uint32_t dst, Where);
void fpu_unary_bcast(int bcast, uint32_t cb, uint32_t tile, uint32_t dst, Where);
void fpu_binary(Fpu, const char* call, int bcast, uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, Where);
void fpu_matmul(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, Where);
void reduce_init(int pool, int dim, uint32_t cb, uint32_t scaler, uint32_t out, Where);
void reduce_uninit(Where);
void fpu_reduce(int pool, int dim, uint32_t cb, uint32_t scaler, uint32_t tile, uint32_t scaler_tile, uint32_t dst, Where);
// Compute: SFPU
void sfpu_init(const char* init, Where);
void sfpu_fill(const Sfpu&, uint32_t dst, uint32_t bits, Where);
void sfpu_unary(const Sfpu&, UnaryLane, uint32_t dst, uint32_t parameter, Where);
void sfpu_binary(const Sfpu&, BinaryLane, uint32_t left, uint32_t right, uint32_t out, Where);
void sfpu_copy(const char* call, const char* init, uint32_t from, uint32_t to, Where);
[[noreturn]] void unmodelled(const char* what, Where);
void sfpu_where(const Sfpu&, uint32_t condition, uint32_t yes, uint32_t no, uint32_t out, Where);
void sfpu_reduce(int pool, int dim, const char* init, uint32_t dst, Where);

}  // namespace ttemu
