// A broadcast copy of f32 goes straight to DST and leaves SrcB alone; the one of bf16 behind it reads SrcB, still set for f32.
// role: compute
// cbs: 0=f32:2 1=bf16:2 16=bf16:2
// a: f32
// fp32: true
// direct: 0
// expect: trap[format] unary_bcast: SrcB is set for f32, CB 1 holds bf16
#include "api/compute/common.h"
#include "api/compute/bcast.h"

void kernel_main() {
    const uint32_t count = get_arg_val<uint32_t>(1);
    compute_kernel_hw_startup(0, 0, 16);
    for (uint32_t i = 0; i < count; ++i) {
        cb_wait_front(0, 1);
        cb_wait_front(1, 1);
        cb_reserve_back(16, 1);
        tile_regs_acquire();
        unary_bcast_init<BroadcastType::COL>(0);
        unary_bcast<BroadcastType::COL>(0, 0, 1);
        unary_bcast_init<BroadcastType::ROW>(1);
        unary_bcast<BroadcastType::ROW>(1, 0, 0);  // <- here
        tile_regs_commit();
        tile_regs_wait();
        pack_tile(0, 16);
        tile_regs_release();
        cb_push_back(16, 1);
        cb_pop_front(0, 1);
        cb_pop_front(1, 1);
    }
}
