// DST is given back before the packer waited for it.
// role: compute
// expect: trap[dst-no-wait] tile_regs_release while DST is committed
#include "api/compute/common.h"
#include "api/compute/eltwise_binary.h"

void kernel_main() {
    const uint32_t count = get_arg_val<uint32_t>(1);
    compute_kernel_hw_startup(0, 1, 16);
    for (uint32_t i = 0; i < count; ++i) {
        cb_wait_front(0, 1);
        cb_wait_front(1, 1);
        cb_reserve_back(16, 1);
        tile_regs_acquire();
        add_init(0, 1);
        add_tiles(0, 1, 0, 0, 0);
        tile_regs_commit();
        tile_regs_release();  // <- here
        cb_push_back(16, 1);
        cb_pop_front(0, 1);
        cb_pop_front(1, 1);
    }
}
