"""The real-header gate itself: it accepts a right program and refuses each kind of mistake a header can see."""
from __future__ import annotations

from pathlib import Path

import pytest
from ttcheck.real_headers import ARCHITECTURES, Kernel, check

pytestmark = pytest.mark.vendor
BASE = Path(__file__).resolve().parent.parent / "ttmetal/negative/base"
WORDS = {"reader": (2, 2048, 2, 2048), "compute": (), "writer": (2, 2048)}
FORMATS = {0: "bf16", 1: "bf16", 16: "bf16"}


def answers(root, role, text, architecture="wormhole", words=None):
    return check(root, Kernel(role, text, WORDS[role] if words is None else words, FORMATS), architecture)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("role", WORDS)
def test_accepts_the_base_program(ttnn_root, role, architecture):
    for answer in answers(ttnn_root, role, (BASE / f"{role}.cpp").read_text(), architecture):
        assert answer.accepted, answer.output


# name -> (role, what is replaced, by what)
REFUSED = {
    "missing argument": ("compute", "add_tiles(0, 1, 0, 0, 0)", "add_tiles(0, 1, 0, 0)"),
    "misspelt init": ("compute", "add_init(0, 1)", "add_tiles_init(0, 1)"),
    "missing include": ("compute", '#include "api/compute/eltwise_binary.h"', ""),
    "legacy entry": ("compute", "void kernel_main()", "namespace NAMESPACE { void MAIN { kernel_mainn(); } } void kernel_mainn()"),
    "swapped arguments": ("reader", "noc_async_read_page(i, a, get_write_ptr(0))", "noc_async_read_page(a, i, get_write_ptr(0))"),
    "push without count": ("reader", "cb_push_back(0, 1)", "cb_push_back(0)"),
    "accessor of the wrong type": ("writer", "TensorAccessor(out_args, out_address)", "TensorAccessor(out_address, out_args)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(ttnn_root, name):
    role, old, new = REFUSED[name]
    text = (BASE / f"{role}.cpp").read_text()
    assert text.count(old) == 1
    assert not all(a.accepted for a in answers(ttnn_root, role, text.replace(old, new)))


def test_refuses_too_few_accessor_words(ttnn_root):
    assert not all(a.accepted for a in answers(ttnn_root, "reader", (BASE / "reader.cpp").read_text(), words=(2, 2048)))


def test_cannot_see_the_protocol(ttnn_root):
    """Why the emulator exists: the headers accept a kernel without its commit."""
    text = (BASE / "compute.cpp").read_text().replace("        tile_regs_commit();\n", "")
    assert all(a.accepted for a in answers(ttnn_root, "compute", text))
