"""Writes the generated pages of docs/: errors.md from the catalogue, operations.md from the op table, names.md from a list of names,
conformance.md from the record of what was measured, accuracy.md from the sweeps' records.

`python tools/documents.py` writes them; a test compares them with what it would write.
"""
from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pypto_dsl.codegen.llvm.math.double import LIBRARY
from pypto_dsl.compiler import accuracy, catalogue, conformance, targets
from pypto_dsl.compiler.dtypes import BY_NAME, F32
from pypto_dsl.compiler.ops import REGISTRY, OpDefinition
from pypto_dsl.compiler.ops.arguments import signature_text
from pypto_dsl.compiler.ops.refused import REFUSED
from pypto_dsl.frontend.spellings import TEXT_ONLY
from pypto_dsl.namespace import public_doc, public_signature

DOCS = Path(__file__).resolve().parents[1] / "docs"
NOTICE = "<!-- Written by tools/documents.py. Do not edit. -->"
FAMILIES = {
    "elementwise": "Element by element",
    "compare": "Comparisons",
    "reduce": "Reductions",
    "row": "Along the last axis",
    "matmul": "Matrix products",
    "cast": "Conversions",
    "layout": "Shape and place",
    "generator": "Tensors from nothing",
    "scalar": "Single elements",
}


def errors() -> str:
    """docs/errors.md."""
    lines = [NOTICE, "# Errors", "",
             "Every error has a code. `ptc explain CODE` prints its page. In the examples below, a body stands for a kernel over two",
             "8 x 8 FP32 tensors, `x` and `out`, that is called once; every one of them is run by the tests and raises the code that it",
             "stands under, and every mended one runs.", ""]
    for family in catalogue.families():
        lines += [f"- [{family.prefix}xx: {family.title}](#{_anchor(f'{family.prefix}xx: {family.title}')})"]
    for family in catalogue.families():
        lines += ["", f"## {family.prefix}xx: {family.title}"]
        for entry in family.entries:
            lines += ["", f"### {entry.code}: {entry.title}", "", *_paragraphs(entry.cause)]
            if entry.wrong:
                lines += ["", "```python", entry.wrong.strip("\n"), "```"]
            lines += ["", *_paragraphs(entry.fix)]
            if entry.right:
                lines += ["", "```python", entry.right.strip("\n"), "```"]
    return "\n".join(lines) + "\n"


def operations() -> str:
    """docs/operations.md."""
    lines = [NOTICE, "# Operations", "",
             "One entry per operation, from the op table. *Native on* lists targets that have the operation, with its operands' dtypes",
             "there; elsewhere it is built from simpler operations, or refused with [PT502](errors.md).",
             "A bound is the largest error against the exact result, in units of the last place of the dtype. The list of targets has the",
             "bound, or the code of the refusal, by dtype of the first operand; [conformance.md](conformance.md) has what was measured.",
             "Promotion of mixed dtypes is described in [promotion.md](promotion.md), and what is no operation, such as loops and writing",
             "into tensors, in [language.md](language.md).", ""]
    by_family: dict[str, list[OpDefinition]] = {}
    for definition in (d for d in REGISTRY.values() if d.name not in TEXT_ONLY):
        by_family.setdefault(definition.family, []).append(definition)
    ordered = [*FAMILIES, *sorted(set(by_family) - set(FAMILIES))]
    for family in (f for f in ordered if f in by_family):
        lines += ["", f"## {FAMILIES.get(family, family)}"]
        for definition in sorted(by_family[family], key=lambda d: d.name):
            lines += ["", *_operation(definition)]
    lines += ["", "## In the text form alone", "",
              "What the compiler records for the language's own spellings, by the names that [the text form](text.md) has for them."]
    for name, spelling in sorted(TEXT_ONLY.items()):
        lines += ["", f"### `{signature_text(REGISTRY[name])}`", "", *REGISTRY[name].doc.split("\n"), "",
                  f"In a kernel: `{spelling.format(x='x')}`."]
    return "\n".join(lines) + "\n"


def _operation(definition: OpDefinition) -> Iterator[str]:
    yield f"### `{public_signature(definition.name)}`"
    yield ""
    yield from public_doc(definition.name).split("\n")
    if definition.dtypes is not None:
        yield ""
        yield f"Dtypes: {', '.join(d.name for d in definition.dtypes)}."
    facts = [f"{dtype}: {bound:g} ulp" for dtype, bound in definition.bounds.items()]
    if facts:
        yield ""
        yield f"Bound: {', '.join(facts)}{f' ({definition.derivation})' if definition.derivation else ''}."
    if definition.effects:
        yield ""
        yield f"Writes `{definition.effects}`."
    on = {name: sorted(dtypes) for name in targets.names() if (dtypes := targets.load(name).ops.get(definition.name))}
    if on:
        yield ""
        yield f"Native on {'; '.join(f'`{name}` ({_shown(dtypes)})' for name, dtypes in on.items())}."
    said: dict[tuple[str, ...], list[str]] = {}
    for name in targets.names():
        if found := conformance.support(definition, targets.load(name), measured=False):
            said.setdefault(tuple(conformance.grouped(found)), []).append(f"`{name}`")
    if said:
        yield ""
    for words, names in said.items():
        yield f"- {', '.join(names)}: {'; '.join(words)}."
    if not definition.is_primitive:
        yield ""
        yield "Built from simpler operations where a target does not have it."


def tensorflow() -> str:
    """docs/tensorflow.md."""
    names = tomllib.loads((DOCS / "tensorflow_names.toml").read_text(encoding="utf-8"))
    head = ["| TensorFlow | here |", "|---|---|"]
    lines = [NOTICE, "# Coming from TensorFlow", "",
             "The functions that TensorFlow's type promotion lists for weak tensors (`tnp` is `tf.experimental.numpy`), and what they",
             "are here. Weakness goes through unary operations, layout operations and reductions alike; [promotion.md](promotion.md)",
             "has the rules. `x` and `y` are matrices of floats, `n` one of integers; axes and numbers stand for any.", "", *head]
    lines += [f"| `{name}` | `pypto.{call}` |" for name, call in names["operations"].items()]
    for title, key in (("Composed, or not on every target", "composed"), ("Outside the language", "outside")):
        lines += ["", f"## {title}", "", *head, *(f"| `{name}` | {why} |" for name, why in names[key].items())]
    return "\n".join(lines) + "\n"


def names() -> str:
    """docs/names.md."""
    table = tomllib.loads((DOCS / "operation_names.toml").read_text(encoding="utf-8"))
    lines = [NOTICE, "# Names of PyPTO's and ttnn's operations", "",
             "Every operation of PyPTO's pages, the operations that PyPTO lacks and kernels want, and every binary and unary operation",
             "of ttnn 0.81.1 with the ternary ones of its compute API, as the call that each is here. The tests run every call. `x`, `y`,",
             "`a` and `b` are matrices of floats, `n` and `m` of integers, `v` is a row of floats, `i` and `k` are indices, `p` and `q`",
             "block scales; [operations.md](operations.md) says what each means."]
    for key, title in (("pypto", "PyPTO"), ("wanted", "What PyPTO lacks"), ("ttnn", "ttnn")):
        lines += ["", f"## {title}", "", "| name | here |", "|---|---|", *(f"| `{n}` | `pypto.{c}` |" for n, c in table[key].items())]
    lines += ["", "## Refused", "", "These names raise [PT127](errors.md#pt127-an-operation-of-pypto-that-does-not-exist-here).", "",
              "| name | why | instead |", "|---|---|---|"]
    lines += [f"| `{name}` | {REFUSED[name][0]} | {REFUSED[name][1]} |" for name in table["refused"]["pypto"]]
    return "\n".join(lines) + "\n"


RESULTS = DOCS.parent / "benchmarks" / "results" / "accuracy.json"
FAST_RESULTS = RESULTS.with_name("accuracy-fast.json")
ACCURACY = """\
# Accuracy on the CPU

The largest errors that were found, in units of the last place (ulp) of the exact result, with the input; subnormal results count in the
smallest subnormal. *Not nearest* says how many results are not the float next to the exact one.

```sh
python -m benchmarks.sweep [NAMES]                  # f32: all 2^32 inputs of an operation of one number, 2^27 pairs of one of two
python -m benchmarks.sweep --dtype bf16 [NAMES]     # all 65,536 inputs; f16 too
python -m benchmarks.sweep --dtype f64 [NAMES]      # a sample against mpmath
python -m benchmarks.sweep --precision fast [NAMES] # f32 functions that precision="fast" has a form of its own for
python -m pytest tests/cpu/test_accuracy.py         # the worst cases below, all 16-bit inputs, the exact functions against mpmath
```

A sweep compiles the operation as a kernel of its own, for the best feature level of the processor (all levels give the same bits), and
compares on one thread, 1 to 15 ns per input (lgamma and digamma: 100); it can be interrupted and goes on where it was. Of odd and even
functions the results for negative numbers are compared with those for positive ones, and these with the exact values. Those are the
C library's for doubles (`benchmarks/sweep/exact.cpp`), which the tests hold against mpmath: they are off by less than 2^-20 ulp of an f32.
The pairs are special values crossed with each other and with random bits, random bits, normal numbers, neighbours, and for each operation
the pairs that are hard for it: powers whose result is anywhere in the range, of bases near 1 and of subnormals, whole and negative ones;
quotients up to 2^24 and exact multiples; sums of exponentials close to 1.

A bound is the operation's in `pypto_dsl/compiler/targets/llvm-cpu.toml` or, where it is composed of others, the op table's. The tests
recompute every worst case and hold the bounds.
"""


AFTER_SINGLE = """\
logaddexp: errors of results below 2^-24 count in ulp of 2^-24, because its terms cancel there.

## f16 and bf16

All 65,536 inputs. Results are computed in f32 and rounded once, so their bound is half an ulp and what the f32 bound is of theirs.
Operations that are not listed give the nearest number for every input.

| operation | f16: worst ulp | at | not nearest | bf16: worst ulp | at | not nearest |
|---|---:|---|---:|---:|---|---:|"""
FAST = """
## precision fast

The forms that kernels with `precision="fast"` take of f32 functions. NaN, infinities and signs of zeros are the exact forms'; the bounds
are `[fast.bounds.f32]` of `llvm-cpu.toml`, each derived at its function in `pypto_dsl/codegen/llvm/math/fast.py`.

| operation | bound | worst ulp | at | inputs | not nearest | exact form: worst ulp | revision |
|---|---:|---:|---|---:|---:|---:|---|"""
BEFORE_DOUBLE = """
## f64

Samples of 4,096 inputs against mpmath: normal, uniform, up to where results overflow, and of all magnitudes. Where the C library is
called lane by lane, f64 is not vectorised yet.

| operation | bound | worst ulp | at | not nearest | by |
|---|---:|---:|---|---:|---|"""
AFTER_DOUBLE = """
logaddexp: errors of results below 1 count in ulp of 1, because its terms cancel beside its zeros. digamma: those of negative numbers count
in ulp of the larger of its two terms there, psi(1 - x) and pi cot(pi x). lgamma is the C library's function of x87's long double; on arm64
it is that of doubles, within 4 ulp."""


def accuracy_page() -> str:
    """docs/accuracy.md, from the records of the sweeps."""
    records = {(r["dtype"], r["operation"]): r for r in json.loads(RESULTS.read_text(encoding="utf-8"))}
    names = list(dict.fromkeys(name for _, name in records))
    lines = [NOTICE, ACCURACY, "## f32", "", "| operation | bound | worst ulp | at | inputs | not nearest | revision |",
             "|---|---:|---:|---|---:|---:|---|"]
    for name in names:
        if found := records.get(("f32", name)):
            revision = f"{found['revision']}, {found['date']}"
            lines.append(_swept(name, f"{_limit(name, 'f32'):g}", *_found(found, 9, _inputs(found)), revision))
    lines += ["", *AFTER_SINGLE.split("\n")]
    for name in names:
        pair = [records[dtype, name] for dtype in ("f16", "bf16") if (dtype, name) in records]
        if any(r["misrounded"] for r in pair):
            lines.append(_swept(name, *(cell for r in pair for cell in _found(r, 5))))
    lines += BEFORE_DOUBLE.split("\n")
    native = targets.load("llvm-cpu").ops
    for name in names:
        if found := records.get(("f64", name)):
            own = any("f64" in dtypes.split(",") for dtypes in native.get(name.removesuffix("_tanh"), ()))
            by = "C library, lane by lane" if name in LIBRARY else "its own code" if own else "composed of others"
            lines.append(_swept(name, f"{_limit(name, 'f64'):g}", *_found(found, 17), by))
    lines += AFTER_DOUBLE.split("\n")
    lines += FAST.split("\n")
    bounds = targets.load("llvm-cpu").table("fast")["bounds"]["f32"]
    for found in json.loads(FAST_RESULTS.read_text(encoding="utf-8")):
        name = found["operation"]
        lines.append(_swept(name, f"{bounds[name.removesuffix('_tanh')]:g}", *_found(found, 9, _inputs(found)),
                            f"{records['f32', name]['worst']:g}", f"{found['revision']}, {found['date']}"))
    return "\n".join(lines) + "\n"


def _swept(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _inputs(found: Mapping[str, Any]) -> str:
    """How much was swept."""
    return f"{found['count']:,} pairs" if found["inputs"] == "grid" else str(found["inputs"])


def _found(found: Mapping[str, Any], digits: int, *between: str) -> tuple[str, ...]:
    """The largest error of a record, its input in decimals that tell it from its neighbours, and how many results are not nearest."""
    at = ", ".join(f"{float.fromhex(x):.{digits}g}" for x in found["at"])
    return f"{found['worst']:g}", at if found["worst"] else "", *between, f"{found['misrounded']:,}"


def _limit(case: str, dtype: str) -> float:
    """The CPU's bound of a case of the sweeps."""
    name = case.removesuffix("_tanh").removesuffix("_significand").removesuffix("_exponent")
    bounds = REGISTRY[name].bounds
    return float(targets.load("llvm-cpu").data["bounds"].get(dtype, {}).get(name, bounds.get(dtype, bounds.get("f32", 0))))


MOST_SHOWN = 16


def conformance_page() -> str:
    """docs/conformance.md."""
    record = conformance.load()
    uses = {use for found in record.cells.values() for use in found}
    dtypes = {dtype for found in record.cells.values() for cells in found.values() for dtype in cells}
    lines = [NOTICE, "# Conformance", "",
             f"Every operation of the table ({len(record.operations())}), in {len(uses)} uses (an operation with the attributes",
             f"that it needs; a cast is one use per dtype that it gives), on each of {len(dtypes)} dtypes that it takes: a cell. A cell",
             "of a target is *passed*, its results within the bound of the data files ([operations.md](operations.md)), or *refused*",
             "with a code; there is nothing else. The CPU runs machine code, the devices run in their emulators: nothing here was",
             "measured on a device. `ascend-950` is not here: it has the operations, instructions and bounds of `ascend-a2`, in other",
             "memory, and the emulator computes both alike, so that its cells would be the same; kernels of the tests run on it too.", "",
             "`python tools/conformance.py` measures all cells again, `python tools/documents.py` writes this page from the record",
             "`pypto_dsl/compiler/conformance.json`. The default tests hold every cell against the record (of functions that turn",
             "integers into floats one integer dtype each, in turn); `python -m pytest -m exhaustive tests/conformance` holds all.", "",
             "## Cells", "", "| target | cells | passed | refused | by code |", "|---|---|---|---|---|"]
    for target, found in record.cells.items():
        outcomes = [o for cells in found.values() for o in cells.values()]
        codes = sorted({o.refused for o in outcomes if o.refused})
        by_code = ", ".join(f"{code} {sum(o.refused == code for o in outcomes)}" for code in codes)
        passed = sum(o.passed for o in outcomes)
        lines.append(f"| `{target}` | {len(outcomes)} | {passed} | {len(outcomes) - passed} | {by_code} |")
    lines += ["", "## Operations by target", "",
              "How many operations have a use that is passed, by dtype of the first operand (without operands: of the result).", "",
              f"| dtype | {' | '.join(f'`{t}`' for t in record.cells)} |", f"|---|{'---|' * len(record.cells)}"]
    for dtype in (d for d in BY_NAME if d in dtypes):
        counts = [len({use.split(" ")[0] for use, cells in found.items() if dtype in cells and cells[dtype].passed})
                  for found in record.cells.values()]
        lines.append(f"| {dtype} | {' | '.join(map(str, counts))} |")
    if record.suite:
        lines += ["", "## The default tests", "", f"{record.suite['passed']:g} passed in {record.suite['seconds']:g} s on "
                  f"{record.suite['processors']:g} processors (`python tools/conformance.py --suite`)."]
    lines += ["", "## The worst errors", "",
              "In units in the last place of the result's dtype against the exact result; where results cancel, of the magnitude that the",
              "operation's documentation names. Left out: what is exact or rounded once (at most half a unit). The bound is that of the",
              "result on the operand's dtype, of integers that of FP32.", "",
              "| use | dtype | target | worst | bound | where |", "|---|---|---|---|---|---|"]
    return "\n".join([*lines, *_worst(record)]) + "\n"


def _worst(record: conformance.Conformance) -> Iterator[str]:
    """A row per use, dtype and worst error; targets with the same share one."""
    loaded = {name: targets.load(name) for name in record.cells}
    for use in dict.fromkeys(use for found in record.cells.values() for use in found):
        rows: dict[tuple[str, float, str, str], list[str]] = {}
        for target, found in record.cells.items():
            for dtype, outcome in found.get(use, {}).items():
                if outcome.ulp > accuracy.ROUNDED_ONCE:
                    operand = BY_NAME[dtype]
                    limit = accuracy.bound(REGISTRY[use.split(" ")[0]], operand if operand.is_float else F32, loaded[target])
                    bound = f"{limit.ulp:.4g}" if limit is not None else ""
                    rows.setdefault((dtype, outcome.ulp, bound, outcome.where), []).append(f"`{target}`")
        for (dtype, worst, bound, where), names in rows.items():
            yield f"| {use} | {dtype} | {', '.join(names)} | {worst:g} | {bound} | {where} |"


def _shown(dtypes: list[str]) -> str:
    return ", ".join(dtypes) if len(dtypes) <= MOST_SHOWN else f"{len(dtypes)} combinations of dtypes"


def _anchor(title: str) -> str:
    return "".join(c if c.isalnum() or c == "-" else "-" if c == " " else "" for c in title.lower())


def _paragraphs(text: str) -> list[str]:
    return text.strip().split("\n")


def documents() -> dict[Path, str]:
    """Every generated page: path and text."""
    return {DOCS / "errors.md": errors(), DOCS / "operations.md": operations(),
            DOCS / "tensorflow.md": tensorflow(), DOCS / "names.md": names(), DOCS / "conformance.md": conformance_page(),
            DOCS / "accuracy.md": accuracy_page()}


def main() -> int:
    """Write the pages; says which ones changed."""
    for path, text in documents().items():
        changed = not path.exists() or path.read_text(encoding="utf-8") != text
        path.write_text(text, encoding="utf-8", newline="\n")
        print(f"{path.relative_to(DOCS.parent)}: {'written' if changed else 'unchanged'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
