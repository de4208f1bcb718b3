"""Every broken kernel of `negative/` is one edit away from `negative/base/`; the emulator must answer as the file says.

`// expect:` holds the answer (parts separated by |), `// <- here` marks the line the trap must name, `// role:` the kernel
that the file replaces, `// cbs:`, `// a:`, `// b:`, `// out:`, `// fp32:`, `// direct:` how the launch differs from bf16.
"""
import re
from pathlib import Path

import numpy as np
import pytest

from pypto_dsl.runtime import formats
from pypto_dsl.runtime.emulator.ttmetal.machine import HERE, ROLES, DramTensor, Launch, Ring, Trap, build, launch
from pypto_dsl.runtime.toolchain import BuildFailed

FOLDER = Path(__file__).resolve().parent / "negative"
KERNELS = sorted(FOLDER.glob("*.cpp"))
BASE = {role: (FOLDER / "base" / f"{role}.cpp").read_text() for role in ROLES}
SHAPE, PAGES, ADDRESS = (64, 64), 4, 1_048_640


def truncated(values, keep):
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(keep)).view(np.float32)


def execute(files, directives):
    """Run out = a + b on one core and say what came of it."""
    dtype = {name: directives.get(name, "bf16").replace("ones", "bf16") for name in ("a", "b", "out")}
    rng = np.random.default_rng(0)
    a, b = (formats.stored(rng.standard_normal(SHAPE).astype(np.float32), dtype[n]).astype(np.float32) for n in "ab")
    if directives.get("b") == "ones":
        b = np.ones(SHAPE, np.float32)
    rings = []
    for text in directives.get("cbs", "0=bf16:2 1=bf16:2 16=bf16:2").split():
        index, form, pages, *size = re.split("[=:]", text)
        rings.append(Ring(int(index), form, int(pages), int(size[0]) if size else 0))
    bytes_of = {n: formats.tile_format(d).bytes for n, d in dtype.items()}
    out = np.resize(np.array(formats.POISON, np.uint8), (PAGES, bytes_of["out"]))
    pages = (formats.tilize(a, dtype["a"]), formats.tilize(b, dtype["b"]), out)
    tensors = [DramTensor(ADDRESS + 65536 * i, p, n == "out") for i, (n, p) in enumerate(zip(dtype, pages, strict=True))]
    words = {n: (2, size) for n, size in bytes_of.items()}
    fp32 = directives.get("fp32") == "true"
    objects = build(files, {"reader": words["a"] + words["b"], "writer": words["out"]}, fp32)
    first, second, third = (t.address for t in tensors)
    arguments = {"reader": [[first, second, 0, PAGES]], "compute": [[0, PAGES]], "writer": [[third, 0, PAGES]]}
    direct = 1 << int(directives["direct"]) if "direct" in directives else 0
    launch(objects, Launch(rings, tensors, arguments, 1, 4 if fp32 else 8, 1_200_000, fp32, direct))
    got, exact = formats.untilize(out, SHAPE, dtype["out"]).astype(np.float32), a + b
    answers = {
        "right result": exact if dtype["out"] == "f32" else formats.round_bfloat16(exact),
        "wrong result: truncated": truncated(exact, 0xFFFF0000),
        "wrong result: tf32": truncated(a, 0xFFFFE000) + truncated(b, 0xFFFFE000),
    }
    return next((said for said, values in answers.items() if np.array_equal(got, values)), "wrong result")


def test_the_base_program_is_right():
    assert execute(BASE, {}) == "right result"


@pytest.mark.parametrize("path", KERNELS, ids=[p.stem for p in KERNELS])
def test_trap(path):
    text = path.read_text()
    directives = dict(re.findall(r"^// (\w+): (.*)$", text, re.M))
    try:
        said = execute({**BASE, directives["role"]: text}, directives)
    except Trap as trap:
        said = str(trap)
    except BuildFailed as refused:
        said = "does not compile: " + refused.output
    head, *parts = directives["expect"].split("|")
    code = re.match(r"(trap\[[\w-]+\]|does not compile:)\s*(.*)", head)
    parts += code.groups() if code else []
    assert all(part in said for part in parts), said
    assert code or said == head
    marked = [n for n, line in enumerate(text.splitlines(), 1) if "<- here" in line]
    if marked:
        assert re.search(rf"{directives['role']}\.cpp:{marked[0]}\b", said), said


def test_every_trap_code_has_a_negative_kernel():
    """The codes written in the emulator's sources against those the negative kernels expect."""
    sources = "".join(p.read_text() for p in sorted((HERE / "source").glob("*.cpp")))
    spellings = (r'trap\("([\w-]+)"', r"trap\[([\w-]+)\]", r'change\("([\w-]+)"')
    written = {code for pattern in spellings for code in re.findall(pattern, sources)}
    expected = set(re.findall(r"expect: trap\[([\w-]+)\]", "".join(p.read_text() for p in KERNELS)))
    assert written - expected == {"emulator"}, "traps without a negative kernel"
    assert expected <= written
