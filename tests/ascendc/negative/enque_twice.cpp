// expect trap: is dequeued, not allocated
// arch 2201, blocks 1
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void negative(GM_ADDR x, GM_ADDR y, int64_t n)  // 1024 floats each, n = 1024
{
    TPipe pipe;
    GlobalTensor<float> xGm, yGm;
    xGm.SetGlobalBuffer((__gm__ float*)x, n);
    yGm.SetGlobalBuffer((__gm__ float*)y, n);
    TQue<TPosition::VECIN, 1> in;
    pipe.InitBuffer(in, 2, 1024 * sizeof(float));
    LocalTensor<float> fresh = in.AllocTensor<float>();
    DataCopyPad(fresh, xGm, DataCopyExtParams(1, 64, 0, 0, 0), DataCopyPadExtParams<float>(false, 0, 0, 0.0f));
    in.EnQue(fresh);
    LocalTensor<float> t = in.DeQue<float>();
    in.EnQue(t);
}
