"""How a reference is called: operands by position, and those attributes that its signature names."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pypto_dsl.cli.ops import summary
from pypto_dsl.compiler.dtypes import F32
from pypto_dsl.compiler.graph import Op, TensorType
from pypto_dsl.compiler.ops import REGISTRY, shapes, typing
from pypto_dsl.compiler.ops.arguments import signature_text
from pypto_dsl.compiler.ops.definition import Tensor, call_naming, op

ATTRIBUTES = {"cap": 2.0, "dtype": F32, "dim": 1}


@pytest.mark.parametrize(("reference", "operands", "want"), [
    (lambda x: x, (1,), 1),
    (lambda x, cap: (x, cap), (1,), (1, 2.0)),
    (lambda x, dim, cap: (x, dim, cap), (1,), (1, 1, 2.0)),
    (lambda x, cap=0.0, **others: (x, cap, sorted(others)), (1,), (1, 2.0, ["dim", "dtype"])),
    (lambda x, *, cap: (x, cap), (1,), (1, 2.0)),
    (lambda *x, cap: (x, cap), (1, 3), ((1, 3), 2.0)),
    (lambda x, cap: (x, cap), (1, None), (1, None)),  # an operand may be called what an attribute is called
    (lambda x, other=5: (x, other), (1,), (1, 5)),
    (np.add, (1, 2), 3), (np.where, (True, 1, 2), 1), (np.sum, ([1, 2],), 3),  # NumPy's `dtype` is not the operation's
])
def test_a_reference_gets_what_it_names(reference: Callable[..., Any], operands: tuple[Any, ...], want: Any) -> None:
    assert call_naming(reference, operands, ATTRIBUTES) == want


def test_a_bound_needs_a_derivation() -> None:
    with pytest.raises(ValueError, match="twice_as_much: say in `derivation`"):
        @op(types=typing.float_unary, shape=shapes.same, reference=lambda x: 2 * x, family="elementwise", bound={"f32": 1})
        def twice_as_much(input: Tensor) -> Tensor:
            """Twice ``input``."""
            ...
    assert "twice_as_much" not in REGISTRY


def test_attributes_with_changes_are_new() -> None:
    made = Op("sum", (), (TensorType(F32, ()),), {"dim": 0, "keepdim": True})
    assert made.attributes_with(dim=1) == {"dim": 1, "keepdim": True} and made.attributes["dim"] == 0


@pytest.mark.parametrize("name", REGISTRY)
def test_texts_of_an_operation_are_whole(name: str) -> None:
    """A signature shows names of the language, and the list's summary is a sentence: code in it is closed, and it ends no word early."""
    assert "DType(" not in signature_text(REGISTRY[name])
    words = summary(REGISTRY[name].doc)
    assert words and words.count("``") % 2 == 0
    rest = " ".join(REGISTRY[name].doc.split())[len(words):]
    assert rest == "" or rest.startswith("."), (words, rest)
