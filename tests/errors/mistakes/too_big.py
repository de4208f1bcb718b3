import pypto_dsl as pypto


@pypto.jit
def swish(x: pypto.Tensor([512, 4096], pypto.DT_FP32), out: pypto.Tensor([512, 4096], pypto.DT_FP32)):
    pypto.set_vec_tile_shapes(128, 1024)
    out[:] = x / (1.0 + pypto.exp(-x))
