"""The target's tables against the emulator's own: what an instruction takes, how a pair converts, what is never emitted."""
from __future__ import annotations

import re
import tomllib
from importlib import resources

import pytest

from pypto_dsl.codegen.ascendc.intrinsics import CONTIGUOUS, REPEATED, STRUCTURED, api_names
from pypto_dsl.compiler.dtypes import BY_NAME
from pypto_dsl.compiler.placement.ascend.instructions import RULES
from pypto_dsl.compiler.placement.ascend.machine import machine
from pypto_dsl.compiler.targets import load
from pypto_dsl.runtime.emulator.ascendc.kernel_library import INCLUDE
from tests.ascendc.kernels import KERNELS, TARGET, emitted

DATA = tomllib.loads((resources.files("pypto_dsl.compiler.targets") / f"{TARGET}.toml").read_text())
HEADERS = "\n".join(path.read_text() for path in sorted((INCLUDE / "emu").glob("*.h")))
LETTERS = {"H": "f16", "F": "f32", "B": "bf16"} | {f"{sign}{bits}": f"{sign.lower()}{bits}" for sign in "IU" for bits in (8, 16, 32, 64)}


def emulated(api: str) -> set[str]:
    """Element types that the emulator's call takes on 2201."""
    macros = rf"EMU_(?:BINARY|BINARY_COUNT|BITWISE|SCALAR|UNARY)\({api},([^,]*),"
    direct = rf"EMU_DTYPE\({api}, T,([^,]*),"
    found = re.search(macros, HEADERS) or re.search(direct, HEADERS)
    if found:
        return {LETTERS[part.strip()] for part in found[1].split("|") if part.strip() in LETTERS}
    if re.search(rf"EMU_HIGH_LEVEL\({api},", HEADERS):
        return {"f16", "f32"}
    return set()


def api_of(instruction: str) -> str:
    text = CONTIGUOUS.get(instruction) or REPEATED.get(instruction) or STRUCTURED[instruction][3]
    return re.split(r"[(<]", text)[0]


@pytest.mark.parametrize("instruction", DATA["instructions"])
def test_instruction_takes_what_the_emulator_takes(instruction: str) -> None:
    api = api_of(instruction)
    if api in ("Brcb", "DataCopy", "LoadData", "Mmad"):  # they take elements by size or by a static_assert of their own
        assert set(DATA["instructions"][instruction]) <= BY_NAME.keys()
        return
    assert set(DATA["instructions"][instruction]) <= emulated(api), api


def test_every_instruction_can_be_spelled_and_every_spelling_is_an_instruction() -> None:
    spelled = CONTIGUOUS.keys() | REPEATED.keys() | STRUCTURED.keys()
    assert spelled - {"cast"} == DATA["instructions"].keys()


def test_every_operation_of_the_target_is_selected_or_structural() -> None:
    structural = {"constant", "extent", "full", "iota", "bitcast", "view", "sum", "amax", "amin", "matmul"}
    assert RULES.keys() | structural == DATA["ops"].keys()


def test_every_cast_that_is_offered_has_an_instruction_or_a_rule() -> None:
    for pair in DATA["ops"]["cast"]:
        source, result = pair.split("->")
        assert source == result or "bool" in (source, result) or pair in DATA["casts"], pair


def test_casts_have_the_emulators_modes() -> None:
    chip = machine(load(TARGET))
    names = {"NONE": "none", "RINT": "rint", "FLOOR": "floor", "CEIL": "ceil", "ROUND": "round", "TRUNC": "trunc", "ODD": "odd"}
    assert chip.cast_modes(BY_NAME["f32"], BY_NAME["bf16"]) == tuple(names[m] for m in ("RINT", "FLOOR", "CEIL", "ROUND", "TRUNC"))
    assert chip.cast_modes(BY_NAME["bf16"], BY_NAME["f16"]) == ()


def test_what_is_denied_is_never_spelled() -> None:
    denied = set(DATA["deny"]["calls"])
    assert not denied & api_names()
    for name in KERNELS:
        text = emitted(name).files[f"{name}.cpp"]
        assert not denied & set(re.findall(r"\b(\w+)(?:<\w+>)?\(", text))


def test_every_call_of_the_emitted_kernels_is_in_the_table() -> None:
    """A dump of the calls used, compared with the table: nothing else is spelled."""
    glue = set(re.findall(r"\w+", """
        InitBuffer SetGlobalBuffer AllocTensor EnQue DeQue FreeTensor GetWithOffset ReinterpretCast DataCopyPad DataCopyExtParams
        DataCopyPadExtParams BinaryRepeatParams BrcbRepeatParams GetBlockIdx GetBlockNum PipeBarrier Fixpipe GM_ADDR ToBfloat16
        static_cast sizeof for float half bfloat16_t int32_t int64_t uint8_t __builtin_inff"""))
    for name in KERNELS:
        code = re.sub(r"//.*", "", emitted(name).files[f"{name}.cpp"])
        used = set(re.findall(r"(\w+)(?:<[\w:, ]+>)?\(", code)) - {k["entry"] for v in emitted(name).manifest["steps"] for k in v}
        assert used <= api_names() | glue, used - api_names() - glue


def test_ascend_950_differs_in_memory_and_denied_calls_alone() -> None:
    """Why the record of conformance has no cells of it: nothing that decides a result is its own."""
    a2, other = load("ascend-a2").data, load("ascend-950").data
    assert {key for key in other if other[key] != a2.get(key)} == {"name", "title", "base", "architecture", "memory", "vector", "deny"}
    assert {key for key in other["vector"] if other["vector"][key] != a2["vector"][key]} == {"select_room"}
    assert set(other["deny"]["calls"]) < set(a2["deny"]["calls"])
