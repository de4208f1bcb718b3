"""sqrt and rsqrt on f32 vectors."""

from __future__ import annotations

from pypto_dsl.codegen.llvm.builder import Builder, Value
from pypto_dsl.codegen.llvm.math.tables import INFINITY, magnitude


def sqrt(b: Builder, x: Value) -> Value:
    """The correctly rounded square root; -0 stays, negatives give NaN."""
    return b.intrinsic("llvm.sqrt", x)


def rsqrt(b: Builder, x: Value) -> Value:
    """1/sqrt(x), at most 1 ulp: the quotient's error is measured by q^2 x - 1 and taken back once."""
    q = 1.0 / sqrt(b, x)
    product = x * q
    low = b.fma(x, q, -product)
    residue = b.fma(-product, q, 1.0) - low * q
    corrected = b.fma(q * 0.5, residue, q)
    return b.select(b.compare("olt", magnitude(b, residue), INFINITY), corrected, q)
