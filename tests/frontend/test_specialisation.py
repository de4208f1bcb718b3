"""What makes a kernel compile again, what does not, and the reason it gives."""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

import pypto_dsl as pypto

F = np.float32
D, T = pypto.DYNAMIC, pypto.Tensor
jit = functools.partial(pypto.jit, target="interpreter")
SCALE = 2.0
TABLE = {"shift": [1, 2]}
FLAG = True


def reasons(kernel: Any) -> list[str]:
    return [s.reason for s in kernel.specializations()]


def zeros(*shape: int, dtype: Any = F) -> Any:
    return np.zeros(shape, dtype)


def test_reasons_name_what_changed() -> None:
    @jit
    def k(x, out, n=1):
        out[:] = x * n

    k(zeros(2, 4), zeros(2, 4))
    k(zeros(2, 4), zeros(2, 4))
    k(zeros(2, 8), zeros(2, 8))
    k(zeros(2, 4, dtype=np.float16), zeros(2, 4, dtype=np.float16))
    k(zeros(2, 4), zeros(2, 4), 2)
    k(zeros(2, 1, 4), zeros(2, 1, 4))
    assert reasons(k) == ["first call", "`x` axis 1 (static) was 4 and is 8", "`x` was f32 and is f16", "`n` was 1 and is 2",
                          "`x` had rank 2 and has 3"]


def test_dynamic_extents_never_compile_again() -> None:
    @jit
    def k(x: T([D, 4]), out: T([D, 4])):
        out[:] = x + 1

    for n in (0, 1, 2, 7, 100):
        x, out = np.full((n, 4), n, F), zeros(n, 4)
        k(x, out)
        assert (out == n + 1).all()
    assert reasons(k) == ["first call"]


def test_one_and_true_and_one_point_zero_are_different(monkeypatch: Any) -> None:
    @jit
    def k(x, n):
        return x + n

    x = zeros(2, dtype=np.int32)
    assert [k(x, n).dtype for n in (1, True)] == [np.int32, np.int32]
    assert len(reasons(k)) == 2
    assert k(x, 1.0).dtype == np.float32
    assert k(x, (1,)[0]) is not None
    assert len(reasons(k)) == 3


def test_globals_are_part_of_the_key(monkeypatch: Any) -> None:
    @jit
    def k(x: T(), out: T()):
        out[:] = x * SCALE

    x, out = np.ones((2, 2), F), zeros(2, 2)
    for scale in (2.0, 3.0, 3.0, 2.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        k(x, out)
        assert (out == scale).all()
    assert reasons(k) == ["first call", "global `SCALE` was 2.0 and is 3.0"]


def test_a_container_that_is_changed_in_place_is_seen() -> None:
    @jit
    def k(x: T(), out: T()):
        out[:] = x + TABLE["shift"][0]

    x, out = zeros(2, 2), zeros(2, 2)
    try:
        for shift in (1, 5):
            TABLE["shift"][0] = shift
            k(x, out)
            assert (out == shift).all()
    finally:
        TABLE["shift"][0] = 1
    assert len(reasons(k)) == 2


def helper(x: Any) -> Any:
    return x * SCALE if FLAG else x


def test_globals_of_helpers_count_too(monkeypatch: Any) -> None:
    @jit
    def k(x: T(), out: T()):
        out[:] = helper(x)

    x, out = np.ones((2, 2), F), zeros(2, 2)
    for flag, want in ((True, 2.0), (False, 1.0)):
        monkeypatch.setitem(globals(), "FLAG", flag)
        k(x, out)
        assert (out == want).all()


def test_a_factory_closes_over_numbers_and_functions() -> None:
    def build(n: int, activation: Any) -> Any:
        @jit
        def k(x: T(), out: T()):
            out[:] = activation(x) * n
        return k

    x, out = np.full((2, 2), 4, F), zeros(2, 2)
    for n, activation, want in ((2, pypto.sqrt, 4), (3, pypto.sqrt, 6), (3, lambda x: x + 1, 15)):
        build(n, activation)(x, out)
        np.testing.assert_allclose(out, want)


def test_a_closure_variable_that_changes() -> None:
    def make() -> Any:
        activation = pypto.sqrt

        @jit
        def k(x: T(), out: T()):
            out[:] = activation(x)

        def change(f: Any) -> None:
            nonlocal activation
            activation = f
        return k, change

    k, change = make()
    x, out = np.full((2, 2), 4, F), zeros(2, 2)
    k(x, out)
    change(lambda x: x + 1)
    k(x, out)
    assert (out == 5).all()
    assert "closure variable `activation`" in reasons(k)[1]


def test_tile_shapes_set_outside_are_part_of_the_key() -> None:
    @jit
    def k(x: T(), out: T()):
        out[:] = x + 1

    def call(*sizes: int) -> Any:
        pypto.set_vec_tile_shapes(*sizes)
        k(zeros(4, 8), zeros(4, 8))
        return k.graph().body.ops[-1].tile

    import contextvars  # noqa: PLC0415
    context = contextvars.copy_context()
    assert context.run(call, 2, 8) == (2, 8)
    assert context.run(call, 4, 8) == (4, 8)
    assert len(reasons(k)) == 2


def test_the_graph_of_a_dynamic_kernel_has_one_name_per_extent_and_checks() -> None:
    @jit
    def k(x: T([D, D]), y: T([D, 1]), out: T([D, D])):
        out[:] = x + y

    k(zeros(2, 3), zeros(2, 1), zeros(2, 3))
    graph = k.graph()
    assert [str(p.type) for p in graph.parameters] == ["f32[x_d0, x_d1]", "f32[x_d0, 1]", "f32[x_d0, x_d1]"]
    assert sorted({n for c in graph.checks for n in (c.left.name, c.right.name)} - {None}) == ["out_d0", "out_d1", "x_d0", "x_d1", "y_d0"]
    assert {s.parameter for s in graph.symbols.values()} == {"x", "y", "out"}
