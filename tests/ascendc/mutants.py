"""Mutants of emitted kernels: each breaks one thing in one line, the way a slip in the compiler would.

Every call, barrier, queue action, count, stride, offset, size and constant is dropped or off by one, one at a time.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A changed kernel text; ``line`` is where (from 1), ``what`` the changed code."""

    kind: str
    line: int
    what: str
    text: str

    @property
    def key(self) -> str:
        return f"{self.kind}: {self.what}"


Edit = tuple[str, str, list[str]]  # kind, what, new lines
Rule = Callable[[list[str], int, str], Iterator[Edit]]


def mutants(text: str) -> Iterator[Mutant]:
    """Every mutant of a source, in order of lines."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        code = line.split("//")[0].rstrip()
        if not code:
            continue
        for rule in RULES:
            for kind, what, changed in rule(lines, i, code):
                yield Mutant(kind, i + 1, what, "\n".join(changed))


def changed(lines: list[str], i: int, new: str | None) -> list[str]:
    return lines[:i] + ([] if new is None else [new]) + lines[i + 1:]


def arguments(code: str, start: int) -> list[str]:
    """The arguments of a call whose bracket opens before ``start``."""
    depth, found, current = 0, [], ""
    for i, ch in enumerate(code[start:], start):
        comparison = ch in "<>" and (current.endswith(" ") or code[i - 1:i] == "-")
        if ch in "([{" or (ch == "<" and not comparison):
            depth += 1
        if ch in ")]}" or (ch == ">" and not comparison):
            if depth == 0:
                break
            depth -= 1
        if ch == "," and depth == 0:
            found.append(current.strip())
            current = ""
        else:
            current += ch
    return [*found, current.strip()]


def replaced(code: str, start: int, given: list[str], position: int, new: str) -> str:
    """The code with one argument replaced."""
    listed = ", ".join(given)
    assert code[start:start + len(listed)] == listed, (code, listed)
    return code[:start] + ", ".join([*given[:position], new, *given[position + 1:]]) + code[start + len(listed):]


# ---- synchronisation -------------------------------------------------------------------------------------------------------


def barriers(lines: list[str], i: int, code: str) -> Iterator[Edit]:
    if "PipeBarrier" in code:
        yield "drop barrier", f"before {next_code(lines, i)}", changed(lines, i, None)


def next_code(lines: list[str], i: int) -> str:
    return lines[i + 1].split("//")[0].strip()


def enqueues(lines: list[str], i: int, code: str) -> Iterator[Edit]:
    m = re.search(r"(\w+)Queue\.EnQue\((\w+)\);", code)
    if not m:
        return
    yield "drop EnQue", code.strip(), changed(lines, i, None)
    for j in range(i + 1, len(lines)):  # the pair: the consumer goes on with the producer's handle
        d = re.match(rf"(\s*LocalTensor<\w+> (\w+) = ){m[1]}Queue\.DeQue<\w+>\(\);", lines[j])
        if d:
            out = lines[:]
            out[i], out[j] = "", f"{d[1]}{m[2]};"
            yield "drop EnQue and DeQue", code.strip(), out
            return


def frees(lines: list[str], i: int, code: str) -> Iterator[Edit]:
    if ".FreeTensor(" not in code:
        return
    yield "drop FreeTensor", code.strip(), changed(lines, i, None)
    j = i - 1
    while j > 0 and ("FreeTensor" in lines[j] or lines[j].strip() == "}"):
        j -= 1
    out = changed(lines, i, None)
    out.insert(j - (lines[j - 1].lstrip().startswith("for")), lines[i])
    yield "early FreeTensor", code.strip(), out


# ---- copies and addresses ----------------------------------------------------------------------------------------------------


def tails(lines: list[str], i: int, code: str) -> Iterator[Edit]:
    m = re.match(r"(\s*const int64_t \w+ = )\(.+\) < (\d+) \? \(.+\) : \d+;", code)
    if m:
        yield "drop tail", code.strip(), changed(lines, i, f"{m[1]}{m[2]};")


def copies(lines: list[str], i: int, code: str) -> Iterator[Edit]:
    m = re.search(r"DataCopyExtParams\(", code)
    if not m:
        return
    given = arguments(code, m.end())
    for k, name in enumerate(("rows", "length", "source gap", "destination gap")):
        if k >= 2 and given[0] == "1":  # one row has no gap: nothing changes
            continue
        unit = re.search(r"sizeof\(\w+\)", given[k])
        for sign in "+-":
            if sign == "-" and given[k] == "0":
                continue
            new = f"{given[k]} {sign} {unit[0] if unit else '1'}"
            yield f"copy {name}", f"{new} in {code.strip()}", changed(lines, i, replaced(code, m.end(), given, k, new))


def global_offsets(lines: list[str], i: int, code: str) -> Iterator[Edit]:
    if "SetGlobal" in code:
        return
    for m in re.finditer(r"\b(\w+Gm)(\[([^\]]+)\])?(?=[,)])", code):
        new = f"{code[:m.start()]}{m[1]}[{m[3] or '0'} + 1]{code[m.end():]}"
        yield "global offset", code.strip(), changed(lines, i, new)


# ---- calls -------------------------------------------------------------------------------------------------------------------

_CALL = re.compile(
    r"(\s*)(Add|Sub|Mul|Div|Max|Min|And|Or|Not|Adds|Muls|Maxs|Mins|ShiftLeft|ShiftRight|Exp|Ln|Sqrt|Abs|Erf|Tanh|Power<\w+>|Cast|Duplicate|"
    r"CreateVecIndex|Compare|CompareScalar|Select|WholeReduce\w+|Brcb|DataCopy|LoadData|Mmad|Fixpipe<.+>)\(")


def calls(lines: list[str], i: int, code: str) -> Iterator[Edit]:
    m = _CALL.match(code)
    if not m:
        return
    yield "drop call", code.strip(), changed(lines, i, None)
    given = arguments(code, m.end())
    for k in count_positions(m[2], given):
        for sign in "+-":
            new = f"({given[k]}) {sign} 1"
            yield "call count", f"{new} in {code.strip()}", changed(lines, i, replaced(code, m.end(), given, k, new))
    for k, a in enumerate(given[:3]):
        t = re.fullmatch(r"(\w+)\[(.+)\]", a)
        for step in (8, 1) if t else ():
            new = f"{t[1]}[{t[2]} + {step}]" if t else a
            yield "operand offset", f"{new} in {code.strip()}", changed(lines, i, replaced(code, m.end(), given, k, new))


def count_positions(name: str, given: list[str]) -> list[int]:
    """Which arguments say how many lanes, repeats or blocks a call covers."""
    if name in ("LoadData", "Mmad") or name.startswith("Fixpipe") or "Gm" in given[0] or any("Gm" in a for a in given[:2]):
        return []
    if "BinaryRepeat" in given[-1]:
        return [len(given) - 3, len(given) - 2]
    if name == "Brcb":
        return [2]
    return [2, 3, 4, 5, 6] if name.startswith("WholeReduce") else [len(given) - 1]


def strides(lines: list[str], i: int, code: str) -> Iterator[Edit]:
    m = re.search(r"(BinaryRepeatParams|BrcbRepeatParams)\(", code)
    if not m:
        return
    given = arguments(code, m.end())
    source = re.search(r"Brcb\(\w+, (\w+),", code)
    declared = next((line for line in reversed(lines[:i]) if source and f" {source[1]} = " in line), "")
    for k, a in enumerate(given):
        if k == 1 and re.search(r"GetWithOffset<\w+>\(8, ", declared):  # a source of eight lanes is one repeat: no stride between repeats
            continue
        yield "repeat stride", f"argument {k} of {code.strip()}", changed(lines, i, replaced(code, m.end(), given, k, str(int(a) + 1)))


def constants(lines: list[str], i: int, code: str) -> Iterator[Edit]:
    swaps = {"-__builtin_inff()": "0.0f", "RoundMode::CAST_RINT": "RoundMode::CAST_TRUNC", "CMPMODE::LT": "CMPMODE::LE",
             "CMPMODE::GT": "CMPMODE::GE", "CMPMODE::EQ": "CMPMODE::NE", "CMPMODE::NE": "CMPMODE::EQ"}
    for old, new in swaps.items():
        if old in code:
            yield "constant", f"{new} in {code.strip()}", changed(lines, i, code.replace(old, new))
    m = re.search(r"(?<=, )(-?\d+\.\d+)f(?=, )", code)
    if m and _CALL.match(code):
        yield "constant", f"+ 1 in {code.strip()}", changed(lines, i, f"{code[:m.start()]}({m[1]}f + 1.0f){code[m.end():]}")


# ---- storage -------------------------------------------------------------------------------------------------------------------


def buffers(lines: list[str], i: int, code: str) -> Iterator[Edit]:
    m = re.search(r"InitBuffer\((\w+), 2, ", code)
    if m:
        yield "slots 2 to 1", code.strip(), changed(lines, i, code.replace(f"({m[1]}, 2, ", f"({m[1]}, 1, "))
    m = re.search(r"InitBuffer\((.+), (\d+) \* sizeof", code)
    if m:
        yield "buffer half as long", code.strip(), changed(lines, i, code.replace(f" {m[2]} * sizeof", f" {int(m[2]) // 2} * sizeof"))
    m = re.search(r"InitBuffer\(arena, (\d+)\)", code)
    if m:
        yield "arena shorter", code.strip(), changed(lines, i, code.replace(m[1], str(int(m[1]) - 32)))
    if "TPosition::VECIN" in code or "TPosition::VECOUT" in code:
        swap = code.replace("VECIN", "VEC#").replace("VECOUT", "VECIN").replace("VEC#", "VECOUT")
        yield "queue position", code.strip(), changed(lines, i, swap)


def views(lines: list[str], i: int, code: str) -> Iterator[Edit]:
    m = re.search(r"GetWithOffset<\w+>\((\d+), (\d+)\)", code)
    if not m:
        return
    size, offset = int(m[1]), int(m[2])
    yield "view half as long", code.strip(), changed(lines, i, f"{code[:m.start(1)]}{size // 2}{code[m.end(1):]}")
    if offset >= 32:
        yield "view offset", code.strip(), changed(lines, i, f"{code[:m.start(2)]}{offset - 32}{code[m.end(2):]}")


def cube_parameters(lines: list[str], i: int, code: str) -> Iterator[Edit]:
    names = "nValue|dValue|srcDValue|dstNzC0Stride|repeatTimes|srcStride|m|n|k|nSize|mSize|dstStride"
    m = re.match(rf"\s*(\w+)\.({names}) = (.+);", code)
    if m:
        step = 16 if m[2] == "dstNzC0Stride" or (m[2] == "srcStride" and m[1] != "load") else 1
        for sign in "+-":
            new = code.replace(f"= {m[3]};", f"= ({m[3]}) {sign} {step};")
            yield "cube parameter", f"{m[1]}.{m[2]} {sign} {step}", changed(lines, i, new)
    m = re.match(r"\s*(\w+\.(?:ifTranspose|cmatrixInitVal)) = (.+);", code)
    if m:
        yield "cube parameter", f"{m[1]} negated", changed(lines, i, code.replace(f"= {m[2]};", f"= !({m[2]});"))


RULES: tuple[Rule, ...] = (
    barriers, enqueues, frees, tails, copies, global_offsets, calls, strides, constants, buffers, views, cube_parameters)
