"""Words of emitted C++: lines with depth and the user's lines behind them, indexes, literals, names."""
from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from pypto_dsl.codegen.keywords import CPP_KEYWORDS
from pypto_dsl.compiler.dtypes import DType
from pypto_dsl.compiler.index import C, Index, Spelling
from pypto_dsl.compiler.index import text as index_text
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.tile_ir.placed import OWN

# What no name of a user's may be in a kernel: C++'s words, and ours.
KEYWORDS = CPP_KEYWORDS | {"item", "start", "count", "tile_row", "tile_col", "lane", "main", "kernel_main"}


def identifier(name: str) -> str:
    """A name as a variable: placement's own names plain, in users' dots become underscores, and reserved words get one at the end."""
    if name.startswith(OWN):
        return name.removeprefix(OWN)
    plain = name.replace(".", "_")
    return f"{plain}_" if plain in KEYWORDS else plain


# Page numbers, extents and offsets are 32-bit words that are never negative.
CPP = Spelling(C.floordiv, C.modulo, C.minimum, C.maximum, C.call_like, identifier)


@dataclass
class Lines:
    """A text under construction; ``origins`` are (line, file, line) of the user's source behind an emitted line."""

    lines: list[str] = field(default_factory=list)
    depth: int = 0
    origins: list[tuple[int, str, int]] = field(default_factory=list)

    def __call__(self, line: str = "", span: Span | None = None) -> None:
        """Append a line, with the user's line as a comment when there is one."""
        if span is not None:
            self.origins.append((len(self.lines) + 1, span.basename, span.line))
            line += f"  // {span.basename}:{span.line}"
        self.lines.append("    " * self.depth + line if line else "")

    def open(self, line: str) -> None:
        """Append a line that opens a brace."""
        self(line + " {")
        self.depth += 1

    def close(self) -> None:
        """Close the innermost brace."""
        self.depth -= 1
        self("}")

    def text(self) -> str:
        """Everything, ending in a newline."""
        return "\n".join(self.lines) + "\n"


def index(x: Index, bracket: bool = False) -> str:
    """An Index in C++."""
    return index_text(x, CPP, bracket).replace("*", " * ")


def bits(value: float, dtype: DType) -> str:
    """The bits of a number in its dtype, as a hexadecimal literal. The value is exact in the dtype; BOOL is stored as bf16."""
    if dtype.is_integer:
        return f"0x{int(value) & 0xFFFFFFFF:08x}"
    word: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return f"0x{word >> 16:04x}" if dtype.name in ("bf16", "bool") else f"0x{word:08x}"


def float_bits(value: float) -> str:
    """The f32 bits of a number."""
    word: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return f"0x{word:08x}u"


def comment(text: str) -> str:
    """A user's text as one line of comment."""
    return re.sub(r"\s+", " ", text).strip()
