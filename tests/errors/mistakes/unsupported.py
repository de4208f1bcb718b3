import pypto_dsl as pypto


@pypto.jit
def project(x: pypto.Tensor([64, 128], pypto.DT_FP32), w: pypto.Tensor([128, 64], pypto.DT_FP32), out: pypto.Tensor([64, 64], pypto.DT_FP32)):
    out[:] = pypto.matmul(x, w)
