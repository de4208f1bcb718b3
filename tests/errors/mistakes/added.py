import pypto_dsl as pypto


@pypto.jit
def accumulate(x: pypto.Tensor([64, 128], pypto.DT_FP32), out: pypto.Tensor([64, 128], pypto.DT_FP32)):
    out += x
