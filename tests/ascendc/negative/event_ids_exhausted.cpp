// expect trap: all 8 ids of the event are taken
// arch 2201, blocks 1
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void negative(GM_ADDR x, GM_ADDR y, int64_t n)  // 1024 floats each, n = 1024
{
    TPipe pipe;
    GlobalTensor<float> xGm, yGm;
    xGm.SetGlobalBuffer((__gm__ float*)x, n);
    yGm.SetGlobalBuffer((__gm__ float*)y, n);
    for (int i = 0; i < 9; ++i) pipe.AllocEventID<HardEvent::V_S>();
}
