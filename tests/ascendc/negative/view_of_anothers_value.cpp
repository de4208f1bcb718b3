// expect trap: undefined: element 0 of src of `result`
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
    LocalTensor<float> first = b.GetWithOffset<float>(64, 0);
    LocalTensor<float> later = b.GetWithOffset<float>(64, 128);
    LocalTensor<float> result = b.GetWithOffset<float>(64, 1024);
    Duplicate(first, 1.0f, 64);
    PipeBarrier<PIPE_V>();
    Exp(result, later, 32);
    PipeBarrier<PIPE_ALL>();
    DataCopyPad(yGm, result, DataCopyExtParams(1, 32 * sizeof(float), 0, 0, 0));
}
