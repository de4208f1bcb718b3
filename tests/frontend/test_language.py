"""The language's forms: annotations, scalars, slices, writes, views, returns, options, tile shapes, kernels without source."""
from __future__ import annotations

import dataclasses
import functools
import pickle
import threading
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_dsl as pypto

F = np.float32
D, T = pypto.DYNAMIC, pypto.Tensor
jit = functools.partial(pypto.jit, target="interpreter")


def rand(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(1).random(shape, dtype=F)


def refused(code: str, call: Any) -> str:
    with pytest.raises(pypto.KernelError) as caught:
        call()
    assert caught.value.code == code, str(caught.value)
    return str(caught.value)


# ---- annotations -------------------------------------------------------------------------------------------------------------

ANY = [T(), T, pypto.tensor(), T[...], T([]), T([...]), T([], pypto.DT_FP32), T([4, 8]), T((4, 8), pypto.DT_FP32),
       T[[4, 8], pypto.DT_FP32], T([D, 8]),
       T([pypto.DYN, ...], pypto.DT_FP32), T([pypto.STATIC, pypto.STATIC]), T([pypto.STATIC]), T([-1, 8]), T(dtype=pypto.DT_FP32),
       T([4, 8], pypto.DT_FP32, format=pypto.TileOpFormat.TILEOP_NZ)]


@pytest.mark.parametrize("form", ANY, ids=map(repr, ANY))
def test_every_annotation_form_is_taken(form: Any) -> None:
    def double(x, out):
        out[:] = x * 2

    double.__annotations__ = {"x": form, "out": form}
    x, out = rand(4, 8), np.zeros((4, 8), F)
    jit(double)(x, out)
    np.testing.assert_array_equal(out, x * 2)


@jit
def late(x: T([D, 8], pypto.DT_FP32), out: T([D, 8], pypto.DT_FP32)):
    """Annotations of this file are strings, and are evaluated when the kernel is first called."""
    out[:] = x + 1


def test_annotations_as_strings() -> None:
    x, out = rand(3, 8), np.zeros((3, 8), F)
    late(x, out)
    np.testing.assert_array_equal(out, x + 1)
    assert [str(p.type) for p in late.graph().parameters] == ["f32[x_d0, 8]", "f32[x_d0, 8]"]


@pytest.mark.parametrize(("make", "code"), [
    (lambda: T("ab"), "PT116"), (lambda: T([4, "n"]), "PT116"), (lambda: T([..., 4]), "PT116"), (lambda: T([True]), "PT116"),
    (lambda: T([4], "float32"), "PT117"), (lambda: T([4], np.float32), "PT117"),
    (lambda: T([4], pypto.DT_FP32, format="NZ"), "PT118"), (lambda: pypto.DT_HF8, "PT210"),
    (lambda: pypto.jit(3), "PT119"), (lambda: pypto.jit(pas_options={}), "PT114"), (lambda: pypto.jit(precision="best"), "PT114"),
    (lambda: pypto.jit(pass_options={"enable_slize": True}), "PT114"), (lambda: pypto.jit(pass_options=[1]), "PT114"),
    (lambda: pypto.jit(promotion="torch"), "PT207"), (lambda: pypto.options(pass_option={}), "PT114"),
    (lambda: pypto.set_pass_options(sg_scope=1), "PT114"), (lambda: pypto.exp, None), (lambda: pypto.sotfmax, "PT109"),
    (lambda: pypto.loop(3), "PT125"), (lambda: pypto.exp(1.0), "PT125"),
])
def test_declarations_are_checked(make: Any, code: str | None) -> None:
    if code is None:
        make()
    else:
        refused(code, make)


def test_an_unknown_name_is_an_attribute_error_that_names_the_nearest() -> None:
    assert not hasattr(pypto, "sotfmax")
    assert "did you mean `pypto.softmax`?" in refused("PT109", lambda: pypto.sotfmax)


# ---- scalars and configs -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Config:
    scale: float
    rows: tuple[int, ...]


def test_floats_are_run_time_scalars_and_everything_else_specialises() -> None:
    @jit
    def k(x: T([D, 4]), out: T([D, 4]), alpha: float, n: int = 2, *, config: Config, flag: bool = False):
        y = x * alpha + n
        if flag:
            y = y * config.scale
        out[:] = y * len(config.rows)

    x, out = rand(3, 4), np.zeros((3, 4), F)
    config = Config(2.0, (1, 2, 3))
    for alpha in (0.5, 0.25, -1.0):
        k(x, out, alpha, config=config)
        np.testing.assert_allclose(out, (x * F(alpha) + 2) * 3, rtol=1e-6)
    assert len(k.specializations()) == 1
    k(x, out, 0.5, 3, config=config)
    k(x, out, 0.5, config=config, flag=True)
    np.testing.assert_allclose(out, (x * F(0.5) + 2) * 2 * 3, rtol=1e-6)
    config.scale = 4.0
    k(x, out, 0.5, config=config, flag=True)
    np.testing.assert_allclose(out, (x * F(0.5) + 2) * 4 * 3, rtol=1e-6)
    assert len(k.specializations()) == 4


def test_a_float_that_python_needs_specialises_and_says_so() -> None:
    @jit
    def k(x: T(), out: T(), alpha: float):
        out[:] = x * round(float(alpha) * 2)

    x, out = rand(2, 2), np.zeros((2, 2), F)
    for alpha in (1.5, 2.5):
        k(x, out, alpha)
        np.testing.assert_array_equal(out, x * F(alpha * 2))
    assert len(k.specializations()) == 2
    assert "Python needs the value of `alpha`" in k.specializations()[0].reason


def test_a_run_time_float_decides_a_branch() -> None:
    @jit
    def k(x: T(), out: T(), alpha: float):
        if alpha > 0.5:
            out[:] = x
        else:
            out[:] = -x

    x, out = rand(2, 2), np.zeros((2, 2), F)
    for alpha, sign in ((0.75, 1), (0.25, -1)):
        k(x, out, alpha)
        np.testing.assert_array_equal(out, x * F(sign))
    assert len(k.specializations()) == 1


def test_symbolic_integers_are_parameters_too() -> None:
    @jit
    def k(x: T([D, 4]), out: T([1, 4]), row: pypto.SymbolicScalar):
        out[:] = x[row:row + 1, :] * row

    x, out = rand(5, 4), np.zeros((1, 4), F)
    for row in (0, 3, 4):
        k(x, out, row)
        np.testing.assert_array_equal(out, x[row:row + 1] * F(row))
    assert len(k.specializations()) == 1


def test_symbolic_integers_in_float_arithmetic() -> None:
    @jit
    def k(x: T([D, 4]), out: T([1, 4])):
        n = x.shape[0]
        out[:] = pypto.sum(x, 0, True) * (1.0 / n) + n / 2 - n * 0.5

    x, out = rand(5, 4), np.zeros((1, 4), F)
    k(x, out)
    np.testing.assert_allclose(out, x.mean(0, keepdims=True), rtol=1e-6)


def test_a_symbolic_integer_is_weak_beside_integers() -> None:
    @jit
    def k(x: T([D, 4], pypto.DT_INT16), out: T([D, 4], pypto.DT_INT16)):
        out[:] = x * x.shape[0] + 1

    x, out = np.arange(8, dtype=np.int16).reshape(2, 4), np.zeros((2, 4), np.int16)
    k(x, out)
    np.testing.assert_array_equal(out, x * 2 + 1)


def test_scalar_methods_and_elements() -> None:
    @jit
    def k(x: T([D, 4]), out: T([D, 4])):
        n = x.shape[0]
        n.as_variable()
        assert not n.is_concrete() and n.is_symbol() and (n + 1).is_expression() and f"{n}" == "x_d0"
        assert pypto.min(n, n + 1).index == n.index and min(n, n - 1).index == (n - 1).index and pypto.max(3, 4) == 4
        assert pypto.ceildiv(10, 4) == 3 and pypto.bytes_of(pypto.DT_BF16) == 2 and isinstance(x.dtype, pypto.DataType)
        assert pypto.DataType.DT_FP32 is pypto.DT_FP32 and len(x.shape) == x.dim == x.ndim == 2
        out[:] = x + pypto.Element(pypto.DT_FP32, 1.5)

    x, out = rand(2, 4), np.zeros((2, 4), F)
    k(x, out)
    np.testing.assert_array_equal(out, x + F(1.5))


# ---- slices, writes, views -------------------------------------------------------------------------------------------------------


def test_slices_and_writes() -> None:
    @jit
    def k(x: T([4, 6]), out: T([4, 6])):
        out[:] = 0.0
        out[0, 1:3] = x[-1, 0:2]
        out[1:3, ...] = x[1:3, :]
        out[3:, 4:] = x[..., -2:][:1, :]
        out[3, 0] = 7
        out[2, 0:1] = x[0, 0]

    x, out = rand(4, 6), np.full((4, 6), -1, F)
    k(x, out)
    want = np.zeros((4, 6), F)
    want[0, 1:3], want[1:3], want[3, 4:], want[3, 0], want[2, 0] = x[-1, :2], x[1:3], x[0, -2:], 7, x[0, 0]
    np.testing.assert_array_equal(out, want)


WRONG_SUBSCRIPTS = [("PT130", lambda x: x[0, 0, 0]), ("PT131", lambda x: x["a"]), ("PT131", lambda x: x[x]),
                    ("PT132", lambda x: x[9, :]),
                    ("PT133", lambda x: x[::2]), ("PT124", lambda x: list(x)), ("PT124", lambda x: 3 in x), ("PT101", lambda x: bool(x)),
                    ("PT311", lambda x: pypto.view(x, [4, 4], [9, 0])), ("PT310", lambda x: pypto.view(x, [4], [0])),
                    ("PT308", lambda x: pypto.reshape(x, [3, 3])), ("PT200", lambda x: pypto.exp("x")),
                    ("PT110", lambda x: pypto.exp()),
                    ("PT110", lambda x: pypto.exp(x, base=2)), ("PT117", lambda x: pypto.cast(x, "f32")),
                    ("PT126", lambda x: x + rand(4, 4))]


@pytest.mark.parametrize(("code", "use"), WRONG_SUBSCRIPTS)
def test_wrong_uses_of_tensors(code: str, use: Any) -> None:
    @jit
    def k(x: T(), out: T()):
        use(x)
        out[:] = x

    refused(code, lambda: k(rand(4, 4), rand(4, 4)))


WRONG_WRITES = [("PT314", "out[:] = x[0:2, :]"), ("PT314", "out[0:3, :] = x[0:2, :]"), ("PT314", "pypto.assemble(x, [2, 0], out)"),
                ("PT312", "pypto.assemble(x, [0], out)"), ("PT205", "out[:] = pypto.cast(x, pypto.DT_DOUBLE)"), ("PT204", "ints[:] = 300"),
                ("PT204", "ints[:] = 1.5"), ("PT200", "out[:] = 'a'"), ("PT205", "ints[:] = x")]


@pytest.mark.parametrize(("code", "line"), WRONG_WRITES)
def test_wrong_writes(code: str, line: str) -> None:
    scope: dict[str, Any] = {"pypto": pypto}
    exec(f"def k(x, out, ints):\n    {line}\n", scope)
    x, out, ints = rand(4, 4), np.full((4, 4), 5, F), np.zeros((4, 4), np.int8)
    refused(code, lambda: jit(scope["k"])(x, out, ints))
    assert (out == 5).all() and not ints.any()


def test_views_tails_and_assembly() -> None:
    @jit
    def k(x: T([D, 4]), out: T([D, 4])):
        n, t = x.shape[0], 4
        for b in pypto.loop(pypto.ceildiv(n, t)):
            tail = (n - b * t).min(t)
            tile = pypto.view(x, [t, 4], [b * t, 0], valid_shape=[tail, 4])
            assert tile.shape == [4, 4] and str(tile.valid_shape[0]) == str(tail)
            result = pypto.softmax(tile * 2.0, -1)
            pypto.assemble(result, [b * t, 0], out)

    for n in (1, 4, 6, 11):
        x, out = rand(n, 4), np.zeros((n, 4), F)
        k(x, out)
        e = np.exp(2 * x)
        np.testing.assert_allclose(out, e / e.sum(-1, keepdims=True), rtol=1e-5)
    assert len(k.specializations()) == 1


def test_layout_operations() -> None:
    @jit
    def k(x: T([4, 6]), out: T([2, 6, 4])):
        y = pypto.transpose(x, 0, 1)
        z = pypto.unsqueeze(y, 0)
        both = pypto.concat([z, pypto.full([1, 6, 4], 2.0, pypto.DT_FP32)], 0)
        wide = pypto.expand_clone(pypto.arange(4).reshape([1, 1, 4]).cast(pypto.DT_FP32), [2, 6, 4])
        pypto.assemble([(both + wide, [0, 0, 0])], out)
        assert pypto.zeros(2, 3).shape == pypto.ones([2, 3]).shape == [2, 3]

    x, out = rand(4, 6), np.zeros((2, 6, 4), F)
    k(x, out)
    np.testing.assert_array_equal(out, np.stack([x.T, np.full((6, 4), 2, F)]) + np.arange(4, dtype=F))


def test_results_are_returned() -> None:
    @jit
    def one(x):
        return x + 1

    @jit
    def several(x: T([D, 4]), out: T([D, 4])):
        out[:] = x
        return pypto.sum(x, 0), x.shape[0]

    x, out = rand(3, 4), np.zeros((3, 4), F)
    np.testing.assert_array_equal(one(x), x + 1)
    total, rows = several(x, out)
    np.testing.assert_allclose(total, x.sum(0), rtol=1e-6)
    assert rows == 3
    refused("PT148", lambda: jit(lambda x: "text")(x))


def test_kernels_call_kernels_and_helpers() -> None:
    @pypto.frontend.function
    def scaled(x, factor):
        return x * factor

    @jit
    def inner(x, out):
        out[:] = scaled(x, 3)

    @pypto.frontend.jit(target="interpreter")
    def outer(x: T(), out: T()):
        inner(x, out)
        out[:] = out + 1

    x, out = rand(2, 2), np.zeros((2, 2), F)
    outer(x, out)
    np.testing.assert_array_equal(out, x * 3 + 1)


class Layer:
    """Kernels and helpers as methods."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def apply(self, x: Any, i: Any) -> Any:
        if i == 0:
            y = x * self.scale
        else:
            y = x
        return y

    def __call__(self, x: Any, i: Any) -> Any:
        return self.apply(x, i)


def test_methods_partials_and_callable_objects_are_converted() -> None:
    layer = Layer(5.0)
    partial = functools.partial(layer.apply)

    @jit
    def k(x: T(), out: T()):
        for i in pypto.loop(2):
            out[i:i + 1, :] = layer(x[i:i + 1, :], i) + partial(x[i:i + 1, :], i)

    x, out = rand(2, 2), np.zeros((2, 2), F)
    k(x, out)
    np.testing.assert_allclose(out, np.stack([x[0] * 10, x[1] * 2]), rtol=1e-6)


# ---- without source, lambdas, notebooks -----------------------------------------------------------------------------------------


def test_without_source_a_kernel_is_traced_and_a_symbolic_if_is_refused() -> None:
    scope: dict[str, Any] = {"pypto": pypto, "T": T}
    exec("def k(x: T([pypto.DYNAMIC, 2]), out: T()):\n    out[:] = x + 1\n    if x.shape[0] > 2:\n        out[:] = x\n", scope)
    refused("PT101", lambda: jit(scope["k"])(rand(2, 2), rand(2, 2)))


def test_lambdas_are_rewritten() -> None:
    x = rand(3, 2)
    first, second = jit(lambda x: pypto.exp(x) if x.shape[0] > 2 else x), jit(lambda x: -x)
    np.testing.assert_allclose(first(x), np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(second(x), -x)

    def dynamic(x: T([D, 2])):
        return (lambda y: y + 1 if x.shape[0] > 2 else y * 2)(x)

    k = jit(dynamic)
    for n in (3, 2):
        x = rand(n, 2)
        np.testing.assert_array_equal(k(x), x + 1 if n > 2 else x * 2)


def test_notebook_cells_have_source(monkeypatch: pytest.MonkeyPatch) -> None:
    import linecache  # noqa: PLC0415

    text = ("def k(x: T([pypto.DYNAMIC, 2]), out: T([pypto.DYNAMIC, 2])):\n"
            "    for i in pypto.loop(x.shape[0]):\n        out[i:i+1, :] = x[i:i+1, :]\n")
    name = "<ipython-input-7-abc>"
    monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(True), name))
    scope: dict[str, Any] = {"pypto": pypto, "T": T}
    exec(compile(text, name, "exec"), scope)
    x, out = rand(3, 2), np.zeros((3, 2), F)
    jit(scope["k"])(x, out)
    np.testing.assert_array_equal(out, x)


# ---- options and tiles -----------------------------------------------------------------------------------------------------------


def test_every_option_group_is_taken_and_explained() -> None:
    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.SIM, "stitch_function_max_num": 128},
                        pass_options={"enable_slice": True}, debug_options={"compile_debug_mode": 1},
                        host_options={"compile_timeout": 9}, new_ir=True, target="interpreter")
    def k(x: T(), out: T()):
        pypto.set_semantic_label("first")
        pypto.set_pass_options(sg_set_scope=1)
        out[:] = x + 1

    x, out = rand(2, 2), np.zeros((2, 2), F)
    with pypto.options(pass_options={"enable_slice": False}):
        assert pypto.get_pass_options()["enable_slice"] is False
        k(x, out)
    assert "enable_slice" not in pypto.get_pass_options()
    text = str(k.explain(target="llvm-cpu"))
    for said in ("stitch_function_max_num = 128", "semantic_label: first", "sg_set_scope = 1", "first call"):
        assert said in text


def test_options_as_a_decorator() -> None:
    @pypto.options(pass_options={"enable_slice": True})
    def inside() -> Any:
        return pypto.get_pass_options()["enable_slice"]

    assert inside() is True and inside() is True


def test_tile_shapes_are_kept_checked_and_left() -> None:
    @jit
    def k(x: T(), out: T()):
        pypto.set_vec_tile_shapes(2, 4)
        assert pypto.get_vec_tile_shapes() == [2, 4]
        y = x + 1
        pypto.set_vec_tile_shapes([4, 8])
        out[:] = pypto.sum(y * 2, -1, True)

    k(rand(4, 8), np.zeros((4, 1), F))
    assert [op.tile for op in k.graph().body.ops if op.opcode in ("add", "mul", "sum")] == [(2, 4), (4, 8), (4, 8)]
    assert pypto.get_vec_tile_shapes() == [4, 8]


@pytest.mark.parametrize(("sizes", "code", "said"), [
    ((0, 8), "PT401", "size 1 is 0"), ((8, -4), "PT401", "size 2 is -4"), ((2.5,), "PT401", "size 1 is float 2.5"), ((), "PT403", "got 0"),
    ((1,) * 9, "PT403", "got 9"), (("n",), "PT401", "str 'n'"), ((8,), "PT402", "set_vec_tile_shapes(1, 8)"), ((True, 8), "PT401", "bool")])
def test_tile_shapes_are_refused_with_their_numbers(sizes: tuple[Any, ...], code: str, said: str) -> None:
    @jit
    def k(x: T(), out: T()):
        pypto.set_vec_tile_shapes(*sizes)
        out[:] = x + 1

    assert said in refused(code, lambda: k(rand(4, 8), rand(4, 8)))


def test_a_promotion_that_rounds_integers_is_a_warning_with_its_bound() -> None:
    def scale(x, n):
        return x * n

    x, n = rand(4).astype(ml_dtypes.bfloat16), np.arange(4, dtype=np.int32)
    with pytest.warns(pypto.KernelWarning, match="`n` is i32 and is promoted to bf16, which rounds integers beyond 256") as caught:
        jit(scale)(x, n)
    assert [Path(w.filename).name for w in caught] == ["test_language.py"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pypto.jit(scale, lint="off", target="interpreter")(x, n)
        jit(lambda x, n: x * pypto.cast(n, pypto.DT_FP32))(x, n)


def test_a_symbolic_tile_size_and_wrong_matrix_tiles() -> None:
    @jit
    def k(x: T([D, 8]), out: T([D, 8])):
        pypto.set_vec_tile_shapes(x.shape[0], 8)
        out[:] = x

    @jit
    def cube(x: T(), out: T()):
        pypto.set_cube_tile_shapes([64, 64, 64, 64], [64], [64])
        out[:] = x

    refused("PT401", lambda: k(rand(4, 8), rand(4, 8)))
    refused("PT404", lambda: cube(rand(4, 8), rand(4, 8)))


def test_a_tile_of_a_branch_holds_in_it() -> None:
    @jit
    def k(x: T([D, 8]), out: T([D, 8])):
        pypto.set_vec_tile_shapes(2, 8)
        if x.shape[0] > 2:
            pypto.set_vec_tile_shapes(4, 4)
            out[:] = x + 1
        else:
            out[:] = x + 2
        assert pypto.get_vec_tile_shapes() == [2, 8]

    x, out = rand(3, 8), np.zeros((3, 8), F)
    k(x, out)
    np.testing.assert_array_equal(out, x + 1)


# ---- the object ---------------------------------------------------------------------------------------------------------------------


def test_kernels_are_picklable_by_name() -> None:
    assert pickle.loads(pickle.dumps(late)) is late


def test_kernels_are_thread_safe() -> None:
    @jit
    def k(x: T([D, 64]), out: T([D, 64]), factor: int):
        acc = pypto.full([1, 64], 0.0, pypto.DT_FP32)
        for i in pypto.loop(x.shape[0]):
            acc = acc + x[i:i + 1, :]
            out[i:i + 1, :] = acc * factor

    failures: list[BaseException] = []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        try:
            start.wait()
            for turn in range(5):
                x, out = rand(number + 1, 64), np.zeros((number + 1, 64), F)
                k(x, out, turn % 3)
                np.testing.assert_allclose(out, np.cumsum(x, 0) * (turn % 3), rtol=1e-5)
        except BaseException as failed:
            failures.append(failed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(k.specializations()) == 3


def test_in_place_operations() -> None:
    @jit
    def k(x: T(), z: T(), index: T([], pypto.DT_INT32)):
        pypto.ldexp_(x, 1)
        pypto.axpy_(z, x, 2.0)
        assert pypto.scatter_(z, 0, index, x[0:1, :]) is z

    x, z, index = rand(2, 2), rand(2, 2), np.array([[1, 0]], np.int32)
    old, want = x.copy(), z + 4 * x
    k(x, z, index)
    np.testing.assert_array_equal(x, old * 2)
    want[[1, 0], [0, 1]] = x[0]
    np.testing.assert_allclose(z, want, rtol=1e-6)

    @jit
    def wide(x: T(), y: T()):
        pypto.ldexp_(x, y)

    refused("PT309", lambda: wide(rand(1, 4), rand(4, 4)))


def test_gather_and_scatter_by_subscript() -> None:
    @jit
    def k(x: T(), index: T([], pypto.DT_INT32), out: T()):
        picked = x[0:index]
        out[0:index] = picked * 2

    x, index, out = rand(3, 2), np.array([[2, 0]], np.int32), np.zeros((3, 2), F)
    k(x, index, out)
    want = np.zeros((3, 2), F)
    want[2, 0], want[0, 1] = 2 * x[2, 0], 2 * x[0, 1]
    np.testing.assert_array_equal(out, want)


def test_the_readme_kernel_runs_on_the_default_target() -> None:
    @pypto.jit
    def softmax(x: T([D, 16], pypto.DT_FP32), out: T([D, 16], pypto.DT_FP32)):
        out[:] = pypto.softmax(x, -1)

    x, out = rand(5, 16), np.zeros((5, 16), F)
    softmax(x, out)
    e = np.exp(x - x.max(-1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(-1, keepdims=True), rtol=1e-6)
