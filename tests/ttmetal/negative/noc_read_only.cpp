// The result is written over an input tensor.
// role: writer
// expect: trap[noc-read-only] write to page 0 of an input tensor
#include "api/dataflow/dataflow_api.h"
#include "api/tensor/tensor_accessor.h"

void kernel_main() {
    const uint32_t out_address = get_arg_val<uint32_t>(0);
    const uint32_t start = get_arg_val<uint32_t>(1);
    const uint32_t count = get_arg_val<uint32_t>(2);
    constexpr auto out_args = TensorAccessorArgs<0>();
    const auto out = TensorAccessor(out_args, 1048640);
    for (uint32_t i = start; i < start + count; ++i) {
        cb_wait_front(16, 1);
        noc_async_write_page(i, out, get_read_ptr(16));  // <- here
        noc_async_write_barrier();
        cb_pop_front(16, 1);
    }
}
