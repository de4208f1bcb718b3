import pypto_dsl as pypto


@pypto.jit
def shift(x: pypto.Tensor([64, 128], pypto.DT_FP32), bias: pypto.Tensor([64], pypto.DT_FP32), out: pypto.Tensor([64, 128], pypto.DT_FP32)):
    out[:] = x + bias
