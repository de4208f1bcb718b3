import pypto_dsl as pypto


@pypto.jit
def scale(x: pypto.Tensor([64, 128], pypto.DT_FP32), out: pypto.Tensor([64, 128], pypto.DT_FP32)):
    pypto.set_vec_tile_shapes(64)
    out[:] = x * 2.0
