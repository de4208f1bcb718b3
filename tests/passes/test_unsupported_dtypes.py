"""A dtype that a device lacks is refused in the user's words: the value or the operation of the kernel, at its line, and a way out."""
from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

import pypto_dsl as pypto
from pypto_dsl.compiler import targets
from pypto_dsl.compiler.dtypes import BY_NAME, DType
from pypto_dsl.compiler.errors import Diagnostic, KernelError

DTYPES = [d for d in BY_NAME.values() if d.kind != "block"]
DEVICES = [t.name for t in targets.available() if t.family != "llvm"]
# what a kernel writes -> the operations that stand in it
BODIES = {"x + y": {"add"}, "pypto.exp(x)": {"exp"}, "pypto.sum(x, -1, keepdim=True)": {"sum"}, "x": set(), "x.softmax(-1)": {"softmax"},
          "pypto.where(x > y, x, y)": {"gt", "where"}, "pypto.cast(x, pypto.DT_FP32) * 2.0": {"cast", "mul"},
          "pypto.matmul(x, y)": {"matmul"}, "pypto.full([64, 64], 1, pypto.LEFT) + y": {"full", "add"}}


def refusal(folder: Path, body: str, x: DType, y: DType, target: str) -> Diagnostic | None:
    """The PT502 of a kernel of two dtypes on a target; None where it compiles, or is refused for another reason."""
    text = (f"import pypto_dsl as pypto\n\n\n@pypto.jit\ndef kernel(x: pypto.Tensor([64, 64], pypto.{x.pypto}),\n"
            f"           y: pypto.Tensor([64, 64], pypto.{y.pypto})):\n    return {body.replace('LEFT', x.pypto)}\n")
    path = folder / "kernel.py"
    path.write_text(text, encoding="utf-8")
    scope: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, str(path), "exec", dont_inherit=True), scope)
            scope["kernel"].source(target)
        except KernelError as error:
            return error.diagnostic if error.code == "PT502" else None
    return None


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("body", BODIES)
def test_the_refusal_names_what_the_user_wrote(body: str, target: str, tmp_path: Path) -> None:
    found = 0
    for x in DTYPES:
        for y in {x, pypto.DT_FP32, pypto.DT_INT32}:
            told = refusal(tmp_path, body, x, y, target)
            if told is None:
                continue
            found += 1
            subject = re.match(rf"`(\w+)`|the result of (\w+)|{target} fills no number|(\w+)", told.message)
            assert subject is not None, told.message
            value, result, operation = subject.groups()
            whole = re.search(r"a part of (\w+)", told.message)
            assert value in ("x", "y", None) and (whole[1] if whole else result or operation) in {None, *BODIES[body]}, told.message
            assert x.name in told.message or y.name in told.message, told.message
            assert told.primary is not None and told.primary.span.line in (5, 7) and told.notes and told.help, told.render()
    assert found
