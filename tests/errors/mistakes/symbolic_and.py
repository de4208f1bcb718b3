import pypto_dsl as pypto


@pypto.jit
def clamp(x: pypto.Tensor([64, 128], pypto.DT_FP32), out: pypto.Tensor([64, 128], pypto.DT_FP32)):
    inside = x > 0.0 and x < 1.0
    out[:] = pypto.where(inside, x, 0.0)
