import pypto_dsl as pypto


@pypto.jit
def swish(x: pypto.Tensor([64, 65536], pypto.DT_FP32), out: pypto.Tensor([64, 65536], pypto.DT_FP32)):
    pypto.set_vec_tile_shapes(1, 65536)
    weight = 1.0 / (1.0 + pypto.exp(-x))
    out[:] = x * weight
