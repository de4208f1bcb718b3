"""Writes the generated pages of docs/: errors.md from the catalogue, operations.md from the op table, names.md from a list of names.

`python tools/documents.py` writes them; a test compares them with what it would write.
"""
from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from pypto_dsl.compiler import catalogue, targets
from pypto_dsl.compiler.ops import REGISTRY, OpDefinition
from pypto_dsl.compiler.ops.definition import signature_text
from pypto_dsl.compiler.ops.refused import REFUSED

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
             "A bound is the largest error against the exact result, in units of the last place of the dtype. Promotion of mixed dtypes is",
             "described in [promotion.md](promotion.md).", ""]
    by_family: dict[str, list[OpDefinition]] = {}
    for definition in REGISTRY.values():
        by_family.setdefault(definition.family, []).append(definition)
    ordered = [*FAMILIES, *sorted(set(by_family) - set(FAMILIES))]
    for family in (f for f in ordered if f in by_family):
        lines += ["", f"## {FAMILIES.get(family, family)}"]
        for definition in sorted(by_family[family], key=lambda d: d.name):
            lines += ["", *_operation(definition)]
    return "\n".join(lines) + "\n"


def _operation(definition: OpDefinition) -> Iterator[str]:
    yield f"### `{signature_text(definition)}`"
    yield ""
    yield from definition.doc.split("\n")
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


MOST_SHOWN = 16


def _shown(dtypes: list[str]) -> str:
    return ", ".join(dtypes) if len(dtypes) <= MOST_SHOWN else f"{len(dtypes)} combinations of dtypes"


def _anchor(title: str) -> str:
    return "".join(c if c.isalnum() or c == "-" else "-" if c == " " else "" for c in title.lower())


def _paragraphs(text: str) -> list[str]:
    return text.strip().split("\n")


def documents() -> dict[Path, str]:
    """Every generated page: path and text."""
    return {DOCS / "errors.md": errors(), DOCS / "operations.md": operations(),
            DOCS / "tensorflow.md": tensorflow(), DOCS / "names.md": names()}


def main() -> int:
    """Write the pages; says which ones changed."""
    for path, text in documents().items():
        changed = not path.exists() or path.read_text(encoding="utf-8") != text
        path.write_text(text, encoding="utf-8", newline="\n")
        print(f"{path.relative_to(DOCS.parent)}: {'written' if changed else 'unchanged'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
