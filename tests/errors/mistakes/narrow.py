import pypto_dsl as pypto


@pypto.jit
def scale(x: pypto.Tensor([64, 128], pypto.DT_FP32), out: pypto.Tensor([64, 128], pypto.DT_BF16)):
    y = pypto.exp(x)
    out[:] = y * 2.0
