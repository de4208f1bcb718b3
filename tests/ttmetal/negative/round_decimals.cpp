// Rounding to decimals, which the emulator does not model.
// role: compute
// expect: trap[unmodelled] round_tile: only 0 decimals are modelled
#include "api/compute/common.h"
#include "api/compute/eltwise_binary.h"
#include "api/compute/tile_move_copy.h"
#include "api/compute/compute_kernel_api.h"
#include "api/compute/eltwise_unary/rounding.h"

void kernel_main() {
    const uint32_t count = get_arg_val<uint32_t>(1);
    compute_kernel_hw_startup(0, 1, 16);
    for (uint32_t i = 0; i < count; ++i) {
        cb_wait_front(0, 1);
        cb_wait_front(1, 1);
        cb_reserve_back(16, 1);
        tile_regs_acquire();
        copy_init(0);
        copy_tile(0, 0, 0);
        copy_tile(1, 0, 1);
        rounding_op_tile_init();
        round_tile(0, 2);  // <- here
        tile_regs_commit();
        tile_regs_wait();
        pack_tile(0, 16);
        tile_regs_release();
        cb_push_back(16, 1);
        cb_pop_front(0, 1);
        cb_pop_front(1, 1);
    }
}
