import pypto_dsl as pypto


@pypto.jit
def half(x: pypto.Tensor([64, 128], pypto.DT_FP32), out: pypto.Tensor([64, 128], pypto.DT_BF16)):
    out[:] = x.astype(pypto.DT_BF16)
