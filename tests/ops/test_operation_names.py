"""The table of PyPTO's and ttnn's operations: complete by its own count, every call in it is taken, every other name is refused."""
from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.refused import REFUSED
from pypto_dsl.frontend import eager
from pypto_dsl.frontend.tensor import Tensor

NAMES = tomllib.loads((Path(__file__).parents[2] / "docs" / "operation_names.toml").read_text(encoding="utf-8"))
TABLES = ("pypto", "wanted", "ttnn")
# Operations of PyPTO's pages, those it lacks, ttnn's binary, unary and ternary ones, and PyPTO's that are refused.
COUNTS = {"pypto": 126, "wanted": 33, "ttnn": 133, "refused": 17}
ROWS = [(table, name) for table in TABLES for name in NAMES[table]]
# Entries of the op table that are no spelling of a name of these lists: variants, parts and conveniences of this language, TensorFlow's.
OWN = {
    "bitcast", "constant", "empty", "extent", "insert", "iota", "load_scalar",  # what other spellings record
    "divide_no_nan", "multiply_no_nan", "reciprocal_no_nan", "euclidean_norm", "flip", "positive", "repeat_interleave", "squeeze", "stack",
    # nan="ignore"
    "fmax", "fmin", "fclip", "fmax_zero", "nanmax", "nanmin", "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanargmax", "nanargmin",
    "zeros_like", "ones_like", "index_put",
}


def arrays() -> dict[str, Any]:
    """The operands that the calls name."""
    x = np.linspace(0.1, 0.9, 16, dtype=np.float32).reshape(4, 4)
    n = np.arange(1, 17, dtype=np.int32).reshape(4, 4)
    rng = np.random.default_rng(0)
    return {"x": x, "y": x.T.copy(), "n": n, "m": n.T.copy(), "v": x[0].copy(), "i": np.array([2, 0, 3, 1], np.int32),
            "k": (n % 4).astype(np.int32), "a": rng.normal(size=(4, 32)).astype(np.float32),
            "b": rng.normal(size=(32, 4)).astype(np.float32), "p": np.full((4, 1), 2, np.float32), "q": np.full((1, 4), 0.5, np.float32)}


def evaluated(call: str) -> tuple[np.ndarray, ...]:
    """The results of a call, recorded as a kernel records it and run on the interpreter."""
    given = arrays()
    used = [name for name in given if name in compile(call, call, "eval").co_names]
    scope = {**{name: getattr(pypto, name) for name in pypto.__dir__()}, "__builtins__": {}}
    last: list[Any] = []

    def function(*operands: Any) -> Any:
        named = dict(zip(used, operands, strict=True))
        made = eval(call, {**scope, **named})
        last.append(made)
        return named["y"] if made is None else made  # assemble writes its last operand

    if used:
        made = eager.evaluate("call", function, [given[name] for name in used], {})
    else:
        made = eager.evaluate("call", lambda _: function(), [given["x"]], {})
    assert last and all(isinstance(r, Tensor) for r in (last[0] if isinstance(last[0], tuple) else (last[0],)) if r is not None)
    return made if isinstance(made, tuple) else (made,)


def called(call: str) -> set[str]:
    """The names of the language that a call uses."""
    return {name for name in compile(call, call, "eval").co_names if name not in arrays() and not name.startswith(("DT_", "CAST_"))}


def test_every_name_has_a_row() -> None:
    assert {key: len(NAMES[key]) for key in TABLES} | {"refused": len(NAMES["refused"]["pypto"])} == COUNTS


@pytest.mark.parametrize(("table", "name"), ROWS, ids=[f"{t}-{n}" for t, n in ROWS])
def test_the_call_is_taken(table: str, name: str) -> None:
    """It records, and gives numbers."""
    for result in evaluated(NAMES[table][name]):
        assert result.size and np.isfinite(result.astype(np.float64)).all()


@pytest.mark.parametrize("name", NAMES["refused"]["pypto"])
def test_the_name_is_refused_with_a_reason(name: str) -> None:
    assert name in REFUSED and not hasattr(pypto, name) and name not in REGISTRY
    with pytest.raises(AttributeError, match="PT127"):
        getattr(pypto, name)


def test_no_name_is_missing_from_the_lists() -> None:
    """Every entry of the op table is a name of these lists, or named above as this language's own."""
    listed = set().union(*(called(NAMES[table][name]) for table, name in ROWS))
    assert set(REGISTRY) - listed == OWN
    assert listed <= set(dir(pypto))
