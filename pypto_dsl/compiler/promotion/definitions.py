"""The promotion lattices as plain data: edges, weak kinds, masks; `lattice` closes them, `tables` holds the closed form.

Sources: TensorFlow 2.21.0's tables for tf-all and tf-safe (the lattice of the TF-NumPy type promotion guide), JAX 0.10.2's for
jax and jax-strict (the lattice of JAX's type promotion page), the promotion table of PyPTO's published `pypto.pow` page for pypto. The
complex nodes ``c64`` and ``c128`` exist only here: no tensor of this compiler is complex.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pypto_dsl.compiler.dtypes import BY_NAME

Edges = Mapping[str, tuple[str, ...]]
Mask = Callable[[str, str, str], str]

INTEGERS = ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64")
FLOATS = ("bf16", "f16", "f32", "f64")
NARROW_FLOATS = ("f8e4m3", "f8e5m2", "f8e8m0", "bfp8_b", "bfp4_b")
COMPLEX_MANTISSA = {"c64": 24, "c128": 53}


@dataclass(frozen=True)
class LatticeDefinition:
    """One lattice: the join of two nodes is their unique least upper bound, unless the mask refuses it.

    ``storages`` lists, for a weak kind that does not fix its width (JAX's ``i*``), the weak nodes it stands for, the default last;
    ``keeps_storage`` says whether two weak operands keep the width they have. ``resolves`` gives the dtype that a weak node takes when it
    meets a strong operand of a lower kind (PyPTO: a float scalar on an integer tensor is FP32). ``total`` demands a join of every pair.
    """

    name: str
    edges: Edges
    total: bool = False
    mask: Mask | None = None
    storages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keeps_storage: bool = False
    resolves: Mapping[str, str] = field(default_factory=dict)


def mantissa(node: str) -> int:
    """Significand bits of a float or complex node, magnitude bits of an integer or bool node."""
    name = node.removesuffix("*")
    return COMPLEX_MANTISSA.get(name) or BY_NAME[name].mantissa


def kind(node: str) -> str:
    """"bool", "int", "float" or "complex"; signedness and weakness aside."""
    name = node.removesuffix("*")
    if name in COMPLEX_MANTISSA:
        return "complex"
    dtype = BY_NAME[name]
    return "float" if dtype.is_float else "int" if dtype.is_integer else "bool"


KIND_ORDER = ("bool", "int", "float", "complex")


def safe_refusal(lhs: str, rhs: str, joined: str) -> str:
    """Why TensorFlow's safe mode refuses ``lhs`` with ``rhs`` whose join is ``joined``; "" when it allows the pair.

    Allowed iff the join has the dtype of one operand, weakness aside, and no strong integer operand has more magnitude bits than the
    join's mantissa.
    """
    names = [node.removesuffix("*") for node in (lhs, rhs, joined)]
    if names[2] not in names[:2]:
        return f"the result type {joined} is neither operand's"
    if kind(joined) not in ("float", "complex"):
        return ""
    for node in (lhs, rhs):
        if not node.endswith("*") and kind(node) == "int" and mantissa(node) > mantissa(joined):
            return f"{node} has {mantissa(node)} magnitude bits, {joined} keeps {mantissa(joined)}"
    return ""


TF_EDGES: Edges = {
    "bool": ("i32*",),
    "i32*": ("i64*",), "i64*": ("u8", "i8", "f32*"),
    "u8": ("u16", "i16"), "u16": ("u32", "i32"), "u32": ("u64", "i64"), "u64": ("f64*",),
    "i8": ("i16",), "i16": ("i32",), "i32": ("i64",), "i64": ("f64*",),
    "f32*": ("f64*",), "f64*": ("bf16", "f16", "c128*"),
    "bf16": ("f32",), "f16": ("f32",), "f32": ("f64", "c64"), "f64": ("c128",),
    "c128*": ("c64",), "c64": ("c128",), "c128": (),
}

JAX_EDGES: Edges = {
    "bool": ("i*",),
    "i*": ("u8", "i8"),
    "u8": ("u16", "i16"), "u16": ("u32", "i32"), "u32": ("u64", "i64"), "u64": ("f*",),
    "i8": ("i16",), "i16": ("i32",), "i32": ("i64",), "i64": ("f*",),
    "f*": ("bf16", "f16", "c*"),
    "bf16": ("f32",), "f16": ("f32",), "f32": ("f64", "c64"), "f64": ("c128",),
    "c*": ("c64",), "c64": ("c128",), "c128": (),
}

JAX_X32_EDGES: Edges = {
    "bool": ("i*",),
    "i*": ("u8", "i8"),
    "u8": ("u16", "i16"), "u16": ("u32", "i32"), "u32": ("i32",),
    "i8": ("i16",), "i16": ("i32",), "i32": ("f*",),
    "f*": ("bf16", "f16", "c*"),
    "bf16": ("f32",), "f16": ("f32",), "f32": ("c64",),
    "c*": ("c64",), "c64": (),
}

JAX_STRICT_EDGES: Edges = {
    "bool": (),
    "i*": ("f*", *INTEGERS), "f*": ("c*", *FLOATS), "c*": ("c64", "c128"),
    **dict.fromkeys((*INTEGERS, *FLOATS, "c64", "c128"), ()),
}

JAX_STORAGES = {"i*": ("i32*", "i64*"), "f*": ("f32*", "f64*"), "c*": ("c64*", "c128*")}
JAX_X32_STORAGES = {"i*": ("i32*",), "f*": ("f32*",), "c*": ("c64*",)}

# The page's table has INT32 below BF16 and FP16, both below FP32. Every other integer stands where INT32 does: two different integers then
# have two minimal upper bounds (BF16 and FP16), so the page's "must have the same dtype" comes out of the graph. FP8 and block formats
# stand above weak scalars only: with any other dtype they have no join.
PYPTO_EDGES: Edges = {
    "bool": INTEGERS,
    **dict.fromkeys(INTEGERS, ("bf16", "f16")),
    "bf16": ("f32",), "f16": ("f32",), "f32": ("f64",), "f64": (),
    "i32*": (*INTEGERS, "f32*"), "f32*": ("bf16", "f16", *NARROW_FLOATS),
    **dict.fromkeys(NARROW_FLOATS, ()),
}

# PyPTO's own behaviour outside pow: equal dtypes, and a Python scalar takes the tensor's dtype when its kind allows.
PYPTO_STRICT_EDGES: Edges = {
    "bool": (),
    "i32*": ("f32*", *INTEGERS), "f32*": (*FLOATS, *NARROW_FLOATS),
    **dict.fromkeys((*INTEGERS, *FLOATS, *NARROW_FLOATS), ()),
}

LATTICES: dict[str, LatticeDefinition] = {
    definition.name: definition
    for definition in (
        LatticeDefinition("pypto", PYPTO_EDGES, resolves={"i32*": "i32", "f32*": "f32"}),
        LatticeDefinition("pypto-strict", PYPTO_STRICT_EDGES),
        LatticeDefinition("tf-all", TF_EDGES, total=True),
        LatticeDefinition("tf-safe", TF_EDGES, mask=safe_refusal),
        LatticeDefinition("jax", JAX_EDGES, total=True, storages=JAX_STORAGES, keeps_storage=True),
        LatticeDefinition("jax-x32", JAX_X32_EDGES, total=True, storages=JAX_X32_STORAGES, keeps_storage=True),
        LatticeDefinition("jax-strict", JAX_STRICT_EDGES, storages=JAX_STORAGES),
    )
}
