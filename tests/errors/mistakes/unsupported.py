import pypto_dsl as pypto


@pypto.jit
def quantize(x: pypto.Tensor([64, 64], pypto.DT_FP32), out: pypto.Tensor([64, 64], pypto.DT_FP32)):
    steps = pypto.cast(x, pypto.DT_INT8)
    out[:] = pypto.cast(steps, pypto.DT_FP32) / 16.0
