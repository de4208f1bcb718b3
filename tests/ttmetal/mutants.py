"""Emitted kernels broken one token at a time: every statement dropped, every number, count, ring, bound and form changed."""
from __future__ import annotations

import os
import pickle
import re
import signal
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import kernels

from pypto_dsl.runtime.emulator.ttmetal.machine import Trap
from pypto_dsl.runtime.toolchain import BuildFailed

SHORT, LONG = ((7, 33), (65, 100), (40, 170), (64, 64)), ((5, 2118), (40, 2049))
# What is mutated: one kernel per form of statement; every other case differs from one of these in a name of the intrinsics table.
# Label -> (case, which kernel of its program, shapes that run it).
KERNELS: dict[str, tuple[str, str, tuple[tuple[int, int], ...]]] = {
    **{c: (c, "_0", SHORT) for c in (
        "add_bf16", "add_f32", "chain_bf16", "softmax_f32", "layernorm_bf16", "powscalar_f32", "ldexp_bf16", "ldexp_i32", "silu_mul_bf16",
        "rowcol_f32", "addrow_bf16", "colsum_bf16", "colsquares_f32", "rowmax_bf16")},
    "tril_f32": ("tril_f32", "_0", ((7, 33), (65, 100), (170, 130))),
    **{c: (c, "_0", kernels.BLOCKS) for c in ("matmul_transposed", "ffn_bf16")},
    "softmax_f32 split": ("softmax_f32", "_0_split", LONG),
}
CORES, SEEDS, SECONDS = (1, 7), (0, 1), 20

SWAPS = {
    "_rows": "_cols", "_cols": "_rows", "BroadcastType::ROW": "BroadcastType::COL", "BroadcastType::COL": "BroadcastType::ROW",
    "REDUCE_ROW": "REDUCE_COL", "REDUCE_COL": "REDUCE_ROW",
    "PoolType::SUM": "PoolType::MAX", "PoolType::MAX": "PoolType::SUM", "<DstRoundingMode::NearestEven>": "",
    "<SrcOrder::Reverse>": "", " == ": " != ", "get_write_ptr": "get_read_ptr", "get_read_ptr": "get_write_ptr", "add_": "sub_",
    "mul_": "add_",
    "max_tile": "min_tile", "_read_page": "_write_page", "_write_page": "_read_page",
}
DECLARATION = re.compile(r"\s*(const|constexpr|volatile|inline|template|#|//|\}|void|return|if \(n == 0\))")


@dataclass(frozen=True)
class Mutant:
    """One change: what kind, in which case's file, at which line, and the whole new text."""

    kind: str
    label: str
    path: str
    line: int
    before: str
    after: str
    text: str


def mutants(label: str) -> Iterator[Mutant]:
    """Every mutant of the three files of a kernel."""
    case, suffix, _ = KERNELS[label]
    made = kernels.emitted(case)
    for path in sorted(p for p in made.files if p.startswith(f"{case}{suffix}/") and p.endswith(".cpp")):
        lines = made.files[path].splitlines()
        rings = list(dict.fromkeys(re.findall(r"constexpr uint32_t (cb_\w+)", made.files[path])))
        numbers = dict.fromkeys(re.findall(r"(?:const uint32_t|for \(uint32_t|, uint32_t|\(uint32_t) (\w+)(?= =|,|\))", made.files[path]))
        for n, line in enumerate(lines):
            code, _, comment = line.partition("  //")
            if code.startswith(("#include", "//")) or not code.strip():
                continue
            for kind, changed in _changes(code, rings, list(numbers)):
                if changed != code:
                    text = "\n".join([*lines[:n], changed + (f"  //{comment}" if comment else ""), *lines[n + 1:]]) + "\n"
                    yield Mutant(kind, label, path, n + 1, code.strip(), changed.strip(), text)


def _changes(code: str, rings: list[str], numbers: list[str]) -> Iterator[tuple[str, str]]:
    """(kind, new code) for every change of one line."""
    if code.rstrip().endswith(";") and not DECLARATION.match(code):
        yield f"drop {_kind(code)}", ""
    declared = re.match(r"\s*(?:const|constexpr) uint32_t \w+ = |\s*for \(uint32_t \w+ = ", code)
    start = declared.end() if declared else 0
    for m in re.finditer(r"(?<![\w.])\d+(?![\w.])", code):
        if m.start() < start and declared is None:
            continue
        value = int(m.group())
        for new in {value + 1, max(value - 1, 0)} - {value}:
            yield "number", code[: m.start()] + str(new) + code[m.end():]
    for m in re.finditer(r"0x[0-9a-f]+u?", code):
        digits = len(m.group().removeprefix("0x").removesuffix("u"))
        one, zero = ("0x3f80", "0x0000") if digits == 4 else ("0x3f800000", "0x00000000")
        suffix = "u" if m.group().endswith("u") else ""
        yield "bits", code[: m.start()] + (one if m.group().removesuffix("u") == zero else zero) + suffix + code[m.end():]
    for name in numbers:
        for m in re.finditer(rf"(?<![\w.]){name}(?![\w(])", code):
            if m.start() < start or code[: m.start()].rstrip().endswith("uint32_t") or code[m.start() - 2: m.start()] == "++":
                continue
            yield "variable", f"{code[:m.start()]}({name} + 1){code[m.end():]}"
    for ring in rings:
        for m in re.finditer(rf"\b{ring}\b", code):
            if "constexpr" not in code and len(rings) > 1:
                yield "ring", code[: m.start()] + rings[(rings.index(ring) + 1) % len(rings)] + code[m.end():]
    for old, new in SWAPS.items():
        for m in re.finditer(re.escape(old), code):
            if "uint32_t" not in code or "for (" in code:
                yield "form", code[: m.start()] + new + code[m.end():]


def _kind(code: str) -> str:
    """What a dropped statement was."""
    kinds = {"init": r"_init|uninit", "startup": "hw_startup", "dst": "tile_regs_", "barrier": "_barrier", "ring": r"cb_\w+_(back|front)",
             "format": "reconfig_",
             "transfer": r"noc_async_\w+_page", "pack": "pack_tile", "pad": r"pad_(rows|cols)<", "fill": r"fill_\w+<"}
    return next((k for k, pattern in kinds.items() if re.search(pattern, code)), "compute" if "_tile" in code or "tile" in code else "line")


def verdict(mutant: Mutant) -> tuple[str, str]:
    """(who noticed, detail): a trap, the compiler, a wrong result, or nobody ("survived")."""
    files = {mutant.path: mutant.text}
    case, _, shapes = KERNELS[mutant.label]
    try:
        for shape in shapes:
            for cores in CORES:
                for seed in SEEDS:
                    got, reference = kernels.execute(case, shape, cores, seed, files)
                    if not kernels.error(case, got, reference) <= 1:
                        return "wrong result", ""
    except Trap as trap:
        return "trap", trap.code
    except BuildFailed:
        return "compiler", ""
    return "survived", ""


def judge(mutant: Mutant) -> tuple[str, str]:
    """The verdict in a forked child: a mutant may crash the emulator or never end."""
    with tempfile.TemporaryFile() as channel:
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(SECONDS)
                pickle.dump(verdict(mutant), channel)
                channel.flush()
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            return ("no end" if os.WTERMSIG(status) == signal.SIGALRM else "crash"), f"signal {os.WTERMSIG(status)}"
        channel.seek(0)
        said: tuple[str, str] = pickle.load(channel)
        return said


# Why a survivor changes nothing that the device or a reader of the result could see: (kind, pattern of the line, pattern of the
# change, reason). The first that fits is given.
REASONS = (
    ("ring", r"_init|hw_startup|reconfig_", "", "names another circular buffer of the same format: the hardware is set up alike"),
    ("ring", "get_tile_size", "", "asks another circular buffer of the same format for its page size"),
    ("form", "hw_startup", "", "both sources have the same format, so their order does not matter"),
    ("number", "matmul_init", "", "any number but 0 transposes"),
    ("variable", r"return \(row / 16\)", "", "permutes lanes that all get the same value: whole columns or rows of a pad or mask"),
    ("number", r"tile\[lane\(row, col\)\] = \w+ < valid", "= 1; ",
     "row or column 0 of a mask is always live, and what is there instead is not 0"),
    ("number", "where_tile", "", "takes the mask's own zeros for the identity of a sum, which is 0"),
    ("drop init", "reduce_uninit", "", "every pack of the kernel is of the same reduction, so the packer's mask may stay"),
    ("number", r"cb_wait_front\(\w+, 1\)", "", "waits for the next page too, which a later pass of the reader sends anyway"),
    ("variable", "N_f32", "", "one unit in the last place of N: a hundred times below the bound of a 16-bit result"),
    ("bits", r"pad_(cols|rows).*0x0000\)", "", "one operand of a product is padded with 1 where the other is padded with 0"),
    ("number", r"tile_(cols|rows) = ", r"< 5 \?", "where as many tiles are left as a block has, both sides of the choice are that number"),
    ("number", r"if \(n == 0\) return 0", "", "a subnormal instead of 0, lost in the sum with a lane's number"),
    ("variable", r"exponent << 23|n < 0x00800000u", "",
     "one unit in the last place of a tile's offset, lost in the sum with a lane's number"),
    ("", r"pad_cols.*0xff800000|_step == N_tiles", "", "a pass that reduces nothing needs no pad; the buffer's loads are padded alike"),
)


def reason(mutant: Mutant) -> str:
    """Why a surviving mutant is harmless; empty when nobody has said."""
    for kind, before, after, why in REASONS:
        if kind in mutant.kind and re.search(before, mutant.before) and re.search(after, mutant.after):
            return why
    return ""


def report(results: Mapping[Mutant, tuple[str, str]]) -> str:
    """A table of verdicts by kind, the traps, and every survivor."""
    columns = ("trap", "wrong result", "compiler", "crash", "no end", "survived")
    kinds = sorted({m.kind for m in results})
    lines = [f"| mutation | {' | '.join(columns)} |", f"| --- |{' ---: |' * len(columns)}"]
    for kind in [*kinds, "all"]:
        mine = [v for m, (v, _) in results.items() if kind in ("all", m.kind)]
        lines.append(f"| {kind} | {' | '.join(str(mine.count(c)) for c in columns)} |")
    codes = [d for v, d in results.values() if v == "trap"]
    counts = sorted(((codes.count(c), c) for c in set(codes)), reverse=True)
    lines += ["", "Traps: " + ", ".join(f"{c} {n}" for n, c in counts) + "."]
    survivors = [m for m, (v, _) in results.items() if v == "survived"]
    for why in dict.fromkeys([*(w for *_, w in REASONS), ""]):
        mine = [m for m in survivors if reason(m) == why]
        if mine:
            lines += ["", f"{len(mine)} survive: {why or 'nobody has said why'}.", ""]
            lines += [f"- {m.path}:{m.line} `{m.before}` -> `{m.after or 'nothing'}`" for m in mine]
    return "\n".join(lines) + "\n"
