// expect trap: WholeReduceMax: only ORDER_ONLY_VALUE is modelled
// arch 2201, blocks 1
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void negative(GM_ADDR x, GM_ADDR y, int64_t n)  // 1024 floats each, n = 1024
{
    TPipe pipe;
    GlobalTensor<float> xGm, yGm;
    xGm.SetGlobalBuffer((__gm__ float*)x, n);
    yGm.SetGlobalBuffer((__gm__ float*)y, n);
    TBuf<TPosition::VECCALC> workBuf;
    pipe.InitBuffer(workBuf, 1024 * sizeof(float));
    LocalTensor<float> work = workBuf.Get<float>();
    TBuf<TPosition::VECCALC> otherBuf;
    pipe.InitBuffer(otherBuf, 1024 * sizeof(float));
    LocalTensor<float> other = otherBuf.Get<float>();
    Duplicate(work, 1.0f, 1024);
    PipeBarrier<PIPE_V>();
    WholeReduceMax(other, work, 64, 4, 1, 1, 8, ReduceOrder::ORDER_VALUE_INDEX);
}
