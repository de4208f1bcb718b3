"""README and docs say what is so: generated pages are current, commands print what is shown, excerpts are emitted, links lead somewhere."""
from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner
from tree import ROOT

from pypto_dsl.cli import main
from pypto_dsl.codegen.llvm.features import feature_levels
from pypto_dsl.codegen.llvm.kernel import emit
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.frontend import targets

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXCERPTS = re.findall(r"<!-- (\S+) (\S+) -->\n```\w+\n(.*?)\n```", README, re.S)
CONSOLE = re.findall(r"```console\n\$ ptc ([^\n]+)\n(.*?)\n```", README, re.S)
LOST = """\
import pypto_dsl as pypto


@pypto.jit
def lost(x: pypto.Tensor([4, 4], pypto.DT_FP32), out: pypto.Tensor([4, 4], pypto.DT_FP32)):
    out = x * 2.0
"""


@cache
def documents():
    spec = importlib.util.spec_from_file_location("documents", ROOT / "tools" / "documents.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.documents()


GENERATED = ("accuracy.md", "conformance.md", "errors.md", "names.md", "operations.md", "tensorflow.md")


@pytest.mark.parametrize("name", GENERATED)
def test_generated_pages_are_current(name):
    made = {path.name: (path, text) for path, text in documents().items()}
    assert tuple(sorted(made)) == GENERATED
    path, text = made[name]
    assert path.read_text(encoding="utf-8") == text, "run `python tools/documents.py`"


@pytest.fixture
def readme_kernel(tmp_path):
    """The README's kernel as a file, and as a module."""
    (code,) = re.findall(r"```python\n(.*?)\n```", README, re.S)
    path = tmp_path / "decay.py"
    path.write_text(code + "\n")
    spec = importlib.util.spec_from_file_location("decay", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return path, module


def test_the_readme_kernel_runs(readme_kernel):
    path, _ = readme_kernel
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=environment, cwd=path.parent)
    assert done.returncode == 0 and done.stdout.startswith("[["), done.stderr


def numberless(text: str) -> str:
    """LLVM's registers and blocks without their numbers, which every change of an emitter moves."""
    return re.sub(r"%v\d+", "%v", re.sub(r"\b(item|vector|tail)(\.end)?\d+", r"\1\2", text))


@pytest.mark.parametrize("target, file, excerpt", EXCERPTS, ids=[e[0] for e in EXCERPTS])
def test_readme_excerpts_are_emitted(readme_kernel, target, file, excerpt):
    _, module = readme_kernel
    graph = module.decay.specialise(*module.inputs(np.random.default_rng(0))).graph
    if target == "llvm-cpu":  # at the level that the README shows, whatever this machine has
        program = lower(graph, target)
        text = str(emit([kernel for step in program.steps for kernel in step], feature_levels()["avx512"]))
    else:
        text = targets.files(target, graph)[file]
    for part in excerpt.split("\n  ...\n"):
        assert numberless(part) in numberless(text), part


def test_there_is_an_excerpt_for_each_family():
    assert [e[0] for e in EXCERPTS] == ["llvm-cpu", "ascend-a2", "tt-wormhole"]


def masked(text: str) -> str:
    """Numbers, units and what stands between aligned columns are not compared."""
    return re.sub(r" +", " ", re.sub(r"-?\d[\d.e+-]*( (us|ms|s)\b)?", "N", text)).strip()


@pytest.mark.parametrize("command, printed", CONSOLE, ids=[c[0] for c in CONSOLE])
def test_readme_commands_print_what_is_shown(command, printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "lost.py").write_text(LOST)
    done = CliRunner().invoke(main, command.split(), prog_name="ptc")
    assert masked(done.output) == masked(printed)


def test_the_readme_has_the_two_commands():
    assert "python -m pip install . && ptc run examples/softmax.py" in README
    assert "python -m pip install -e '.[test]' && python -m pytest" in README


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_paths_and_commands_in_texts_exist(page):
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:pypto_dsl|tests|examples|docs|tools|benchmarks)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path
    for command in re.findall(r"`ptc (\w+)", text):
        assert command in main.list_commands(None), command


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_no_page_claims_a_device(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(?i)\b(runs|ran|tested|verified) on (an? )?(ascend|atlas|tenstorrent|wormhole|blackhole)", text)


# ---- architecture.md: what it tells to write works as it stands ---------------------------------------------------------------

ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"<!-- run: (\w+) -->\n```\w+\n(.*?)\n```", ARCHITECTURE, re.S))
# What is done with each recipe, in a process of its own.
USES = {
    "operation": """
import numpy as np
import pypto_dsl as pypto

@pypto.jit
def kernel(x: pypto.Tensor([4, 64], pypto.DT_FP32), out: pypto.Tensor([4, 64], pypto.DT_FP32)):
    out[:] = pypto.soft_clip(x, 4.0) + x.soft_clip(cap=2.0) + x.soft_clip()

x = np.linspace(-8, 8, 256, dtype=np.float32).reshape(4, 64)
for target in ("interpreter", "llvm-cpu"):
    out = np.empty_like(x)
    kernel.run(x, out, target=target)
    assert np.abs(out - sum(x.astype(np.float64) / (1 + np.abs(x) / cap) for cap in (1.0, 2.0, 4.0))).max() < 1e-5
from pypto_dsl.compiler.ops import REGISTRY
formula, samples = eval("(" + re.search(r'`"soft_clip": \\((.*)\\)`', PAGE)[1] + ")", {"WIDE": x})
assert np.allclose(REGISTRY["soft_clip"].meaning(samples, cap=1.0), formula(samples))
for target in ("ascend-a2", "tt-wormhole"):
    assert kernel.source(target, x, x)
""",
    "pass": """
from pypto_dsl.compiler import pipeline
from pypto_dsl.cli.opt import results
pipeline.GRAPH_PASSES["double_by_add"] = lambda graph, target: double_by_add(graph)
text = "kernel k(%x: f32[4]) { %two = constant(value = 2.0)  %a = mul(%x, %two)  %c = exp(%a)  return %c }"
printed = results(text, "k.ptir", ("promote", "canonicalize", "double_by_add", "canonicalize"), "llvm-cpu", spans=False)
assert "mul(%x" in printed[2][1], "another pass does already what the page's example does"
assert "%a = add(%x, %x)" in printed[3][1] and "mul" not in printed[4][1] and "constant" not in printed[4][1], printed
""",
    "table": """
from pypto_dsl.compiler import pipeline
globals().update({name: value for name, value in vars(pipeline).items() if not name.startswith("__")})  # the passes, new ones too
exec(RECIPES["pass"])
exec(RECIPE)
names = [name for name in GRAPH_PASSES if name != "double_by_add"]
assert len(names) == len(GRAPH_PASSES) - 1, "the page's table has lost its example, double_by_add"
assert names == [name for name in pipeline.GRAPH_PASSES if name != "double_by_add"], (
    "the table of passes in docs/architecture.md, 'Add a pass', must equal GRAPH_PASSES of pypto_dsl/compiler/pipeline.py"
    f" and have double_by_add besides: the page has {names}, the code {list(pipeline.GRAPH_PASSES)}")
pipeline.GRAPH_PASSES = GRAPH_PASSES
pipeline.lower(read_graph("kernel k(%x: f32[4]) { %a = add(%x, %x)  %b = mul(%a, %a)  return %b }", "k.ptir"), "llvm-cpu")
""",
    "check": """
import sys
sys.path.insert(0, "tests/ir")
import filecheck
from pypto_dsl.cli.opt import results
from pypto_dsl.compiler import pipeline
exec(RECIPES["pass"])
pipeline.GRAPH_PASSES["double_by_add"] = lambda graph, target: double_by_add(graph)
script = filecheck.script(RECIPE)
printed = dict(results(RECIPE, "k.ptir", script.passes, script.target, spans=False))
assert script.passes[-1] == "double_by_add", "tests/ir/test_ptir.py asks for a file that ends with the pass"
wrong = filecheck.check(script.checks, printed["double_by_add"])
assert not wrong, wrong
promoted = results(RECIPE, "k.ptir", ("promote",), script.target, spans=False)[-1][1]
joined = results(RECIPE, "k.ptir", ("promote", "canonicalize"), script.target, spans=False)[-1][1]
assert promoted.count("dtype = bf16") == 2 and joined.count("constant(") == 1, promoted
""",
    "target": """
import tomllib
from pypto_dsl.compiler.pipeline import lower
from pypto_dsl.compiler.targets.target import from_data
from pypto_dsl.compiler.text.reader import read_graph
target = from_data(tomllib.loads(RECIPE))
graph = read_graph("kernel k(%x: f32[40, 64], %y: f32[40, 64]) { %a = add(%x, %y)  %b = mul(%a, %a)  return %b }", "k.ptir")
program = lower(graph, target)
assert program.steps[0][0].grid.extents[0].constant == 40 * 64 // 256, program
""",
}


@pytest.mark.parametrize("recipe", USES)
def test_recipes_of_the_architecture_page_work(recipe):
    text = RECIPES[recipe]
    head = "import re\nfrom pypto_dsl.compiler.text.reader import read_graph\n"
    head += f"RECIPE = {text!r}\nRECIPES = {RECIPES!r}\nPAGE = {ARCHITECTURE!r}\n"
    if recipe == "operation":  # whoever tries the recipe has the operation already
        head += 'from pypto_dsl.compiler.ops import REGISTRY\nREGISTRY.pop("soft_clip", None)\n'
    script = head + (text if recipe in ("operation", "pass") else "") + "\n" + USES[recipe]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_every_recipe_is_used():
    assert set(RECIPES) == set(USES)
