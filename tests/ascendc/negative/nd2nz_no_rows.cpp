// expect trap: nValue 0, dValue 16
// arch 2201, blocks 1
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void negative(GM_ADDR x, GM_ADDR y, int64_t n)  // 1024 floats each, n = 1024
{
    TPipe pipe;
    GlobalTensor<float> xGm, yGm;
    xGm.SetGlobalBuffer((__gm__ float*)x, n);
    yGm.SetGlobalBuffer((__gm__ float*)y, n);
    TQue<TPosition::A1, 1> l1;
    pipe.InitBuffer(l1, 1, 4096);
    TQue<TPosition::A2, 1> l0a;
    pipe.InitBuffer(l0a, 1, 4096);
    TQue<TPosition::B2, 1> l0b;
    pipe.InitBuffer(l0b, 1, 4096);
    TQue<TPosition::CO1, 1> l0c;
    pipe.InitBuffer(l0c, 1, 4096);
    GlobalTensor<half> h;
    h.SetGlobalBuffer((__gm__ half*)x, 512);
    LocalTensor<half> t = l1.AllocTensor<half>();
    Nd2NzParams nz;
    nz.nValue = 0;
    nz.dValue = 16;
    nz.srcDValue = 16;
    nz.dstNzC0Stride = 16;
    nz.dstNzNStride = 1;
    DataCopy(t, h, nz);
}
