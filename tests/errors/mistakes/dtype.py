import pypto_dsl as pypto


@pypto.jit
def decay(x: pypto.Tensor([64, 128], pypto.DT_FP32), out: pypto.Tensor([64, 128], pypto.DT_FP32)):
    mask = x > 0
    out[:] = pypto.ldexp(x, mask)
