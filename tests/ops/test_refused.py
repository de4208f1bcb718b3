"""Operations of PyPTO that this language lacks say why, and are no operations of the table."""
from __future__ import annotations

import pytest

import pypto_dsl
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.refused import REFUSED


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_operation_says_why(name: str) -> None:
    """PT127 with the reason and what to do instead; `hasattr` still works."""
    assert name not in REGISTRY and not hasattr(pypto_dsl, name)
    with pytest.raises(AttributeError) as caught:
        getattr(pypto_dsl, name)
    reason, instead = REFUSED[name]
    assert getattr(caught.value, "code", "") == "PT127" and reason in str(caught.value) and instead in str(caught.value)
