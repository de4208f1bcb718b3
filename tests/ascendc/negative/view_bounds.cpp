// expect trap: 64 elements (256 B) asked, but the tensor of `part`[0] (128 B at UB+64, line 13)
// arch 2201, blocks 1
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void negative(GM_ADDR x, GM_ADDR y, int64_t n)  // 1024 floats each, n = 1024
{
    TPipe pipe;
    GlobalTensor<float> xGm, yGm;
    xGm.SetGlobalBuffer((__gm__ float*)x, n);
    yGm.SetGlobalBuffer((__gm__ float*)y, n);
    TBuf<TPosition::VECCALC> b;
    pipe.InitBuffer(b, 4096);
    LocalTensor<float> part = b.GetWithOffset<float>(32, 64);
    Duplicate(part, 1.0f, 64);
}
