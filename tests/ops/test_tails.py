"""Every operation on a tail computes what it computes on the live part alone: nothing outside is read, nothing outside is live."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machine import execute, graph_of, promote
from samples import accepted, elementwise_names

from pypto_dsl.compiler.dtypes import BF16, F32, I32, DType
from pypto_dsl.compiler.errors import KernelError
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.verify import verify

WHOLE, LIVE = (4, 6), (3, 5)
ALONG: dict[str, tuple[dict[str, Any], ...]] = {
    **{n: ({"dim": -1}, {"dim": 0, "keepdim": True}, {"dim": None}) for n in (
        "sum", "prod", "nansum", "nanprod", "amax", "amin", "nanmax", "nanmin", "mean", "nanmean", "var", "std", "nanvar",
        "nanstd", "euclidean_norm", "logsumexp", "any", "all", "argmax", "argmin", "nanargmax", "nanargmin")},
    **{n: ({"dim": -1}, {"dim": 0}) for n in ("softmax", "log_softmax", "cumsum", "cumprod", "sort", "argsort")},
    "layer_norm": ({},), "rms_norm": ({},), "topk": ({"k": 2, "dim": 0},), "flip": ({"dims": (0, 1)},), "clone": ({},),
    "unsqueeze": ({"dim": 1},),
    "transpose": ({},), "permute": ({"perm": (1, 0)},), "repeat_interleave": ({"repeats": 2, "dim": 1},), "pad": ({"pad": (1, 0)},),
    "tril": ({},), "triu": ({"diagonal": 1},), "cast": ({"dtype": BF16},), "zeros_like": ({},),
}


def tail_graph(name: str, arrays: list[np.ndarray], attributes: dict[str, Any]) -> Any:
    definition = REGISTRY[name]

    def call(*given: Any) -> Any:
        tails = [REGISTRY["view"](p, WHOLE, (0, 0), LIVE) for p in given]
        names = [p.name for p in definition.operands]
        return definition(**dict(zip(names, tails, strict=False)), **attributes)

    return graph_of(call, *arrays)


def check(name: str, dtype: DType, attributes: dict[str, Any]) -> None:
    definition = REGISTRY[name]
    rng = np.random.default_rng(7)
    count = sum(1 for p in definition.operands if not p.optional)
    arrays = [rng.integers(1, 5, WHOLE).astype(dtype.numpy) for _ in range(count)]
    poisoned = [a.copy() for a in arrays]
    for a in poisoned:
        outside = np.ones(WHOLE, bool)
        outside[: LIVE[0], : LIVE[1]] = False
        a[outside] = np.nan if dtype.is_float else dtype.range[1]
    g = tail_graph(name, poisoned, attributes)
    verify(g, "test")
    live = [np.ascontiguousarray(a[: LIVE[0], : LIVE[1]]) for a in arrays]
    names = [p.name for p in definition.operands]
    direct = graph_of(lambda *p: definition(**dict(zip(names, p, strict=False)), **attributes), *live)
    for got, want in zip(execute(g, *poisoned), execute(direct, *live), strict=True):
        np.testing.assert_array_equal(got, want)
    verify(promote(g), "promote")


@pytest.mark.parametrize("name", [n for n in elementwise_names() if n != "dropout"])
def test_elementwise(name: str) -> None:
    dtype = next(d for d in (F32, I32, *accepted(REGISTRY[name])) if d in accepted(REGISTRY[name]))
    check(name, dtype, {})


@pytest.mark.parametrize(("name", "attributes"), [(n, a) for n, sets in ALONG.items() for a in sets])
def test_along_axes(name: str, attributes: dict[str, Any]) -> None:
    check(name, F32, attributes)


@pytest.mark.parametrize("name", ["interleave", "deinterleave", "pack", "quant_mx", "attention", "dropout"])
def test_operations_without_a_meaning_on_tails_refuse_them(name: str) -> None:
    """PT317 names the live extents; it is the user who says what the rest should be."""
    definition = REGISTRY[name]
    count = sum(1 for p in definition.operands if not p.optional)
    with pytest.raises(KernelError) as caught:
        tail_graph(name, [np.ones(WHOLE, np.float32)] * count, {})
    assert caught.value.code in ("PT317", "PT304") and ("tail" in str(caught.value) or name == "attention")
