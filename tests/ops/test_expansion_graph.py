"""The graph of expansions: acyclic, ending in primitives, of the declared types, and legal or refused with a code on every target."""
from __future__ import annotations

import inspect
from typing import Any

import networkx as nx
import numpy as np
import pytest
from machine import TILE, graph_of
from samples import accepted

from pypto_dsl.compiler.dtypes import BOOL, F32, I8, I32, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.graph import Builder, Graph, Region, Value
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.recording import building, expand
from pypto_dsl.compiler.passes.legalize import legalize
from pypto_dsl.compiler.passes.promote import promote
from pypto_dsl.compiler.targets import load, names
from pypto_dsl.compiler.targets.target import from_data
from pypto_dsl.compiler.text.printer import print_graph
from pypto_dsl.compiler.text.reader import read_graph
from pypto_dsl.compiler.verify import verify

# Attributes that operations cannot do without, and those that choose between expansions.
ATTRIBUTES: dict[str, tuple[dict[str, Any], ...]] = {
    "gelu": ({}, {"approximate": "tanh"}), "bias_gelu": ({}, {"approximate": "tanh"}), "round": ({}, {"decimals": 2}, {"decimals": -1}),
    "softplus": ({}, {"beta": 2.0}), "logit": ({}, {"eps": 0.1}), "isclose": ({}, {"equal_nan": True}), "elu": ({}, {"alpha": 0.5}),
    "attention": ({}, {"is_causal": True}, {"scale": 0.5}), "argmax": ({}, {"dim": None}), "argmin": ({}, {"dim": None}),
    "euclidean_norm": ({}, {"keepdim": True}), "logsumexp": ({}, {"keepdim": True}), "pad": ({"pad": (1, 2)},),
    "one_hot": ({"num_classes": 4},),
    "topk": ({"k": 2},), "gather": ({"dim": 1},), "index_select": ({"dim": 1},), "scatter": ({"dim": 1},), "scatter_": ({"dim": 1},),
    "index_add": ({"dim": 1},), "index_add_": ({"dim": 1},), "scatter_update": ({"dim": 0},), "atomic_add": ({"offsets": (0, 0)},),
    "expand_clone": ({"shape": (3, 4, 4)},), "view": ({"shape": (2, 2), "offsets": (1, 1)},), "insert": ({"offsets": (0, 0)},),
    "reshape": ({"shape": (2, 8)},), "permute": ({"perm": (1, 0)},), "load_scalar": ({"offsets": (0, 0)},), "cast": ({"dtype": F32},),
    "bitcast": ({"dtype": F32},), "quantize": ({"otype": I8},), "unpack": ({"dtype": F32},), "gathermask": ({"pattern_mode": 1},),
}
NO_OPERANDS = [n for n, d in REGISTRY.items() if not d.operands]
ALL_DTYPES = {n: [d for d in accepted(REGISTRY[n]) if d is not BOOL] for n in REGISTRY}


def operand_arrays(name: str, dtype: DType) -> list[np.ndarray]:
    """Arrays of a shape and dtype that the operation takes."""
    definition = REGISTRY[name]
    square = np.ones((4, 4), dtype.numpy)
    row, index = np.ones(4, dtype.numpy), np.zeros((4, 4), np.int32)
    special: dict[str, list[np.ndarray]] = {
        "where": [np.ones((4, 4), bool), square, square],
        "layer_norm": [square, row, row], "rms_norm": [square, row], "prelu": [square, row],
        "gather": [square, index], "index_select": [square, index[0]],
        "scatter": [square, index, square], "scatter_": [square, index, square],
        "index_add": [square, index[0], square], "index_add_": [square, index[0], square], "index_put": [square, row, index[0], index[0]],
        "index_put_": [square, row, index[0], index[0]], "scatter_update": [square, index[:1], square], "ldexp": [square, square],
        "quantize": [square, row.astype(np.float32)], "dequantize": [square, row.astype(np.float32)], "attention": [square] * 3,
        "quant_mx": [np.ones((2, 32), dtype.numpy)], "unpack": [np.ones(8, np.uint8)], "squeeze": [square[:1]], "expand_clone": [square],
        "scaled_mm": [np.ones((4, 32), dtype.numpy), np.ones((32, 4), dtype.numpy),
                      np.ones((4, 1), np.float32), np.ones((1, 4), np.float32)],
        "concat": [square, square], "stack": [square, square], "clip": [square, square, square],
        "fclip": [square, square, square],
    }
    if name in special:
        return special[name]
    return [square] * sum(1 for p in definition.operands if not p.optional)


def recorded(name: str, dtype: DType, attributes: dict[str, Any]) -> Graph:
    """A graph of one use of the operation. Raises KernelError where the dtype is none of its own."""
    definition = REGISTRY[name]
    arrays = operand_arrays(name, dtype)

    def call(*given: Value) -> Any:
        if any(p.variadic for p in definition.parameters):
            return definition(*given, **attributes)
        named = dict(zip((p.name for p in definition.operands), given, strict=False))
        return definition(**named, **attributes)

    return graph_of(call, *arrays)


def cases(dtypes: dict[str, list[DType]]) -> list[tuple[str, dict[str, Any]]]:
    return [(n, a) for n in dtypes if n not in NO_OPERANDS for a in ATTRIBUTES.get(n, ({},))]


CASES = cases(ALL_DTYPES)
IDS = [f"{n}-{'-'.join(map(str, a.values()))}" if a else n for n, a in CASES]


def uses(name: str, dtype: DType, attributes: dict[str, Any]) -> set[str]:
    """Opcodes in the operation's own expansion on ``dtype``, empty when the operation does not take it."""
    try:
        g = recorded(name, dtype, attributes)
    except KernelError:
        return set()
    made = next(op for op in reversed(promote(g).body.ops) if op.opcode == name)
    scratch = Builder(Graph("scratch"), Region())
    with building(scratch):
        expand(made, made.operands, scratch)
    return {op.opcode for op in scratch.region.ops}


def test_the_graph_of_expansions_is_acyclic() -> None:
    """Whatever subset of it a target has natively is then acyclic too, and every expansion ends in primitives."""
    graph = nx.DiGraph()
    for name, attributes in CASES:
        definition = REGISTRY[name]
        if definition.is_primitive:
            continue
        computes = [d for d in ALL_DTYPES[name] if d.bits >= 32 or not d.is_float]
        found = set().union(*(uses(name, d, attributes) for d in computes if definition.expands is None or d in definition.expands))
        assert found or name in ("positive", "rint", "concat"), f"{name} has an expansion that no dtype reaches"
        graph.add_edges_from((name, other) for other in found)
    cycle = next(iter(nx.simple_cycles(graph)), None)
    assert cycle is None, cycle
    ends = {n for n in graph if not graph.out_degree(n)}
    assert all(REGISTRY[n].is_primitive or n in ("positive", "rint", "concat") for n in ends), ends


@pytest.mark.parametrize(("name", "attributes"), CASES, ids=IDS)
def test_text_form_of_every_operation(name: str, attributes: dict[str, Any]) -> None:
    """read(print(graph)) prints the same, attributes and all."""
    dtype = next(d for d in (*ALL_DTYPES[name], F32) if taken(name, d, attributes))
    g = recorded(name, dtype, attributes)
    verify(g, "test")
    text = print_graph(g)
    assert print_graph(read_graph(text)) == text


def taken(name: str, dtype: DType, attributes: dict[str, Any]) -> bool:
    try:
        recorded(name, dtype, attributes)
    except KernelError:
        return False
    return True


@pytest.mark.parametrize("target", names())
def test_every_target_has_expands_or_refuses(target: str) -> None:
    """Legalization ends: a verified graph of operations the target has, or PT502 with the operation's name; nothing else."""
    machine = load(target)
    legal = refused = 0
    for name, attributes in CASES:
        for dtype in (F32, I32, ALL_DTYPES[name][0], ALL_DTYPES[name][2 if len(ALL_DTYPES[name]) > 2 else 0]):
            if not taken(name, dtype, attributes):
                continue
            g = promote(recorded(name, dtype, attributes))
            try:
                lowered = legalize(g, machine)
            except KernelError as no:
                assert no.code in ("PT502", "PT203", "PT111"), f"{name} on {target}: {no}"
                refused += 1
                continue
            verify(lowered, "legalize")
            legal += 1
            if not machine.limit("host"):
                missing = {op.opcode for op in lowered.body.ops if op.opcode in REGISTRY and not REGISTRY[op.opcode].is_primitive}
                assert all(machine.ops.get(m) for m in missing), (name, missing)
    assert legal > 150, (legal, refused)


def test_primitives_are_bodies_of_an_ellipsis() -> None:
    """`return input` is an expansion; `...` is none."""
    assert not REGISTRY["positive"].is_primitive and not REGISTRY["rint"].is_primitive
    assert all(REGISTRY[n].is_primitive for n in ("add", "exp", "constant", "concat", "topk", "uniform", "where"))


def test_a_target_without_anything_refuses_by_name() -> None:
    bare = from_data({"name": "bare", "title": "bare", "family": "none", "tile": TILE, "ops": {}, "limits": {}})
    with pytest.raises(KernelError) as caught:
        legalize(promote(recorded("sin", F32, {})), bare)
    assert caught.value.code == "PT502" and "bare" in str(caught.value)


@pytest.mark.parametrize("name", [n for n in REGISTRY if n not in NO_OPERANDS])
def test_definitions_are_complete(name: str) -> None:
    """A docstring that says what it is; a derivation beside every bound; defaults behind operands; float results have a bound."""
    definition = REGISTRY[name]
    assert definition.doc and definition.doc[0] in "0`ABCDEFGHIJKLMNOPQRSTUVWXYZ(e2-I", name
    assert not definition.bounds or definition.derivation or name in ("matmul",), f"{name}: where does the bound come from?"
    computes_floats = definition.family in ("elementwise", "reduce", "row") and (definition.dtypes is None or F32 in definition.dtypes)
    if computes_floats and name not in ("quantize", "argmax", "argmin", "nanargmax", "nanargmin", "any", "all"):
        assert definition.bound(F32) is not None, name
    optional = [p for p in definition.parameters if p.default is not inspect.Parameter.empty]
    assert all(p.variadic or p.kind == "attribute" or p.optional for p in optional), name
    for (attribute, _), other in definition.variants.items():
        assert attribute in {p.name for p in definition.attributes} and other in REGISTRY
