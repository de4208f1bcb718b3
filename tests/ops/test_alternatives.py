"""Primitives built of other primitives: bit for bit what the operation means, on every dtype they are written for, and acyclic."""
from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from machine import bits_apart, evaluate, execute, expanded, primitives_target
from samples import values

from pypto_dsl.compiler.dtypes import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Builder, Graph, Op, Region, Value, tensor_type
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.alternatives import ALTERNATIVES, EXACT_TERMS
from pypto_dsl.compiler.ops.definition import build, building, expand
from pypto_dsl.compiler.targets import load, names
from pypto_dsl.compiler.targets.target import from_data

# Every dtype of the alternatives and of the conversions that they are built of.
WIDE_DTYPES = (F16, BF16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64)
CASES = [(name, i, dtype) for name, ways in ALTERNATIVES.items() for i, way in enumerate(ways) for dtype in way.dtypes]
REDUCING = ("amin", "amax", "sum")


def arrays_of(name: str, dtype: DType) -> list[np.ndarray]:
    """Operands with special values beside each other."""
    rng = np.random.default_rng(len(name))
    x = np.resize(values(dtype, rng), (12, 60)).astype(dtype.numpy)
    if name == "where":
        return [rng.integers(0, 2, x.shape).astype(bool), x, np.roll(x, 7, axis=1)]
    return [x] if name in (*REDUCING, "neg", "abs", "tan", "cast") else [x, np.roll(x, 7, axis=1)]


def attributes_of(name: str, i: int) -> list[dict[str, Any]]:
    if name in REDUCING:
        return [{"dim": dim, "keepdim": keepdim} for dim in (0, 1, None) for keepdim in (False, True)]
    if name == "cast":
        results = ALTERNATIVES[name][i].results
        assert results is not None
        modes = ("CAST_NONE",) if results == (BOOL,) else ("CAST_NONE", "CAST_RINT", "CAST_ROUND", "CAST_FLOOR", "CAST_CEIL", "CAST_TRUNC")
        return [{"dtype": result, "mode": mode} for result in results for mode in modes]
    return [{}]


def lacking(name: str, dtype: DType, attributes: dict[str, Any]) -> Any:
    """A target with every primitive but this use of one; what the alternative requires is native there."""
    whole = primitives_target()
    ops = {k: set(v) for k, v in whole.ops.items()}
    if name == "cast":
        pairs = [f"{a.name}->{b.name}" for a in (BOOL, *WIDE_DTYPES) for b in (BOOL, *WIDE_DTYPES)]
        ops["cast"] = set(pairs) - {f"{dtype.name}->{attributes['dtype'].name}"}
    elif name == "where":
        ops["where"] = {f"bool,{d.name},{d.name}" for d in WIDE_DTYPES if d is not dtype}
    else:
        ops[name] = ops.get(name, set()) - {dtype.name}
    for required, operand, _ in ALTERNATIVES[name][0].requires:
        ops.setdefault(required, set()).add(operand.name)
    data = {"name": "lacking", "title": "lacking", "family": "none", "tile": dict(whole.data["tile"]), "limits": {},
            "ops": {k: sorted(v) for k, v in ops.items()}}
    return from_data(data)


@pytest.mark.parametrize(("name", "i", "dtype"), CASES, ids=[f"{n}-{i}-{d}" for n, i, d in CASES])
def test_an_alternative_means_the_operation(name: str, i: int, dtype: DType) -> None:
    arrays = arrays_of(name, dtype)
    for attributes in attributes_of(name, i):
        want = evaluate(name, *arrays, **attributes)
        g = expanded(lambda *p, a=attributes: REGISTRY[name](*p, **a), *arrays, target=lacking(name, dtype, attributes))
        assert not any(op.opcode == name and tuple(o.type.dtype for o in op.operands)[-1] is dtype
                       and op.results[0].type.dtype == want.dtype for op in g.body.ops if name != "cast")
        got = execute(g, *arrays)[0]
        assert got.dtype == want.dtype
        if name == "tan":
            bound = REGISTRY["tan"].bound(dtype)
            finite = np.isfinite(want)
            assert bound is not None and (bits_apart(got[finite], want[finite]) <= bound).all()
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
            continue
        np.testing.assert_array_equal(got, want)
        if dtype.is_float and want.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(got) & ~np.isnan(want), np.signbit(want) & ~np.isnan(want))


def test_sums_beyond_the_exact_terms_are_refused() -> None:
    for count, accepted in ((EXACT_TERMS, True), (EXACT_TERMS + 1, False)):
        x = np.full((1, count), -(2**31), np.int32)
        x[0, ::3] = 2**31 - 1
        call = lambda p: REGISTRY["sum"](p, 1)  # noqa: E731
        if accepted:
            np.testing.assert_array_equal(execute(expanded(call, x, target=lacking("sum", I32, {})), x)[0], evaluate("sum", x, dim=1))
            continue
        with pytest.raises(KernelError) as caught:
            expanded(call, x, target=lacking("sum", I32, {}))
        assert caught.value.code == "PT502"


def test_alternatives_and_expansions_are_acyclic() -> None:
    """(operation, dtype of its last operand) -> the same of what it is built of, whatever a target lacks."""
    graph = nx.DiGraph()
    pending = [(name, dtype) for name, _, dtype in CASES]
    seen = set(pending)
    while pending:
        name, dtype = pending.pop()
        definition = REGISTRY[name]
        for attributes in attributes_of(name, 0) if name in ALTERNATIVES else [{}]:
            scratch = Builder(Graph("one"), Region())
            operands = [Value(tensor_type(BOOL if name == "where" and k == 0 else dtype, (4, 4)), f"p{k}")
                        for k in range(sum(1 for p in definition.operands if not p.optional))]
            try:
                with building(Builder(Graph("one"))):
                    made = definition(*operands, **attributes).op
            except KernelError:
                continue
            assert isinstance(made, Op)
            for way in ALTERNATIVES.get(name, ()):
                if dtype in way.dtypes:
                    build(way.build, made, made.operands, scratch)
            if definition.expansion is not None and (definition.expands is None or dtype in definition.expands):
                expand(made, made.operands, scratch)
        for op in scratch.region.ops:
            if op.opcode in ("constant", "full", "iota", "reshape", "extent", "expand_clone", "cast") or not op.operands:
                continue
            other = (op.opcode, op.operands[-1].type.dtype)
            graph.add_edge((name, dtype), other)
            if other not in seen:
                seen.add(other)
                pending.append(other)
    cycle = next(iter(nx.simple_cycles(graph)), None)
    assert cycle is None, cycle


@pytest.mark.parametrize("target", [n for n in names() if load(n).family in ("ascend", "ttmetal")])
@pytest.mark.parametrize("name", ["amin", "bitwise_and", "eq", "logical_or", "any", "all", "argmin", "isclose", "xlogy", "where"])
def test_devices_take_them(name: str, target: str) -> None:
    """Masks and minima are built on both families."""
    dtype = BOOL if name in ("bitwise_and", "eq", "where") else F32
    arrays = [np.ones((4, 4), bool)] * (name == "where") + [np.ones((4, 4), dtype.numpy)] * (
        2 if name == "where" else sum(1 for p in REGISTRY[name].operands if not p.optional))
    expanded(lambda *p: REGISTRY[name](*p), *arrays, target=load(target))
