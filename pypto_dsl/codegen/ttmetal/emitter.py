"""Placed Tile IR -> reader.cpp, compute.cpp, writer.cpp. Every statement has one spelling; nothing is chosen here."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pypto_dsl.codegen.ttmetal.intrinsics import INTRINSICS, CallText
from pypto_dsl.codegen.ttmetal.text import Lines, bits, comment, float_bits, identifier, index
from pypto_dsl.compiler.dtypes import F32
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.tile_ir.nodes import Buffer, Constant, For, If, IndexValue, Let, Scalar, Statement, TileKernel
from pypto_dsl.compiler.tile_ir.ttmetal import (
    Comment,
    Compute,
    Dst,
    Land,
    PackPage,
    PadTile,
    Ring,
    RoleBody,
    Setup,
    Transfer,
    When,
    Word,
    WriteTile,
)

RINGS = {"reserve": "cb_reserve_back", "push": "cb_push_back", "wait": "cb_wait_front", "pop": "cb_pop_front"}
ELEMENTS = {"bf16": "uint16_t", "bool": "uint16_t", "f32": "uint32_t", "i32": "uint32_t"}
DATAFLOW = ("api/dataflow/dataflow_api.h", "api/tensor/tensor_accessor.h")

LANE = """\
// Offset of a lane in a tile: four 16 x 16 faces, each row-major.
inline uint32_t lane(uint32_t row, uint32_t col) {
    return (row / 16) * 512 + (col / 16) * 256 + (row % 16) * 16 + col % 16;
}"""
FLOAT_BITS = """\
// The f32 bits of an integer below 2^24, without a floating-point unit.
inline uint32_t float_bits(uint32_t n) {
    if (n == 0) return 0;
    uint32_t exponent = 127 + 23;
    while (n < 0x00800000u) { n <<= 1; --exponent; }
    return (exponent << 23) | (n & 0x007fffffu);
}"""
# Functions of the reader by the statements that call them: (name, text).
PAD = {
    0: ("pad_rows", "Rows of a tile from `valid` on are set to `bits`.",
        "for (uint32_t row = valid; row < 32; ++row) for (uint32_t col = 0; col < 32; ++col)"),
    1: ("pad_cols", "Columns of a tile from `valid` on are set to `bits`.",
        "for (uint32_t row = 0; row < 32; ++row) for (uint32_t col = valid; col < 32; ++col)"),
}
LIVE = {0: ("fill_live_rows", "row"), 1: ("fill_live_cols", "col")}
NUMBER = {0: ("fill_row_numbers", "row"), 1: ("fill_col_numbers", "col")}
EVERY = "for (uint32_t row = 0; row < 32; ++row) for (uint32_t col = 0; col < 32; ++col)"
TILE = "    volatile tt_l1_ptr Element* tile = reinterpret_cast<volatile tt_l1_ptr Element*>(tile_address);"


BASE = ("float_bits", "lane")


@dataclass(frozen=True)
class EmittedRole:
    """One kernel file: its text, and (line, user's file, user's line) for lines that come from one."""

    text: str
    origins: tuple[tuple[int, str, int], ...]


def emit_kernel(kernel: TileKernel, version: str = "0.81.1") -> dict[str, EmittedRole]:
    """The three files of a placed kernel, by role. CompilerBug for a statement or call that has no spelling."""
    return {s.role: _Emitter(kernel, s, version).run() for s in kernel.body if isinstance(s, RoleBody)}


class _Emitter:
    """Spells one role."""

    def __init__(self, kernel: TileKernel, role: RoleBody, version: str) -> None:
        self.kernel, self.role, self.version = kernel, role, version
        self.table: Mapping[str, CallText] = INTRINSICS[version]
        self.fp32_dest = bool(dict(kernel.properties).get("fp32_dest"))
        self.scalars: dict[str, Scalar] = {s.name: s for s in kernel.scalars}
        self.headers: set[str] = set()
        self.functions: dict[str, str] = {}
        self.rings: dict[str, Buffer] = {}
        self.out = Lines()

    def run(self) -> EmittedRole:
        """The whole file: head, functions, kernel_main with its arguments, rings and accessors, then the body."""
        self.out.depth = 1
        self.body(self.role.body)
        head = Lines()
        span = f" from {self.kernel.span.basename}:{self.kernel.span.line}" if self.kernel.span else ""
        head(f"// {self.kernel.title}: {self.role.role} of {self.kernel.name}. Generated{span} for ttnn {self.version}.")
        for header in self._includes():
            head(f'#include "{header}"')
        head()
        for name in sorted(self.functions, key=lambda n: (n not in BASE, n)):  # what the others call comes first
            for line in self.functions[name].splitlines():
                head(line)
        if self.functions:
            head()
        head.open("void kernel_main()")
        self._declarations(head)
        shift = len(head.lines)
        head.lines += self.out.lines
        head.close()
        return EmittedRole(head.text(), tuple((line + shift, file, user) for line, file, user in self.out.origins))

    def _includes(self) -> Iterable[str]:
        if self.role.role != "compute":
            return DATAFLOW
        return [f"api/compute/{h}" for h in ("common.h", *sorted(self.headers - {"common.h"}))]

    def _declarations(self, head: Lines) -> None:
        for i, name in enumerate(self.role.arguments):
            scalar = self.scalars.get(name)
            note = f"  // bits of {scalar.dtype}" if scalar is not None and scalar.dtype.is_float else ""
            head(f"const uint32_t {identifier(name)} = get_arg_val<uint32_t>({i});{note}")
        for buffer in sorted(self.rings.values(), key=lambda b: b.ring):
            note = f", {comment(buffer.note)}" if buffer.note else ""
            head(f"constexpr uint32_t {self.ring(buffer)} = {buffer.ring};  // {buffer.dtype}{note}")
        offset = "0"
        for p in self.role.accessors:
            name = identifier(p.name)
            head(f"constexpr auto {name}_args = TensorAccessorArgs<{offset}>();")
            head(f"const auto {name} = TensorAccessor({name}_args, {identifier(f'{p.name}.address')});")
            offset = f"{name}_args.next_compile_time_args_offset()"

    # ---- names

    def ring(self, buffer: Buffer) -> str:
        """The constant that holds a ring's number."""
        self.rings.setdefault(buffer.name, buffer)
        return f"cb_{buffer.name}"

    def word(self, word: Word) -> tuple[str, str]:
        """A 32-bit word, and its value for a comment."""
        if isinstance(word, Constant):
            return (f"{int(word.value) & 0xFFFFFFFF}u" if word.dtype.is_integer else float_bits(float(word.value))), f"{word.value:g}"
        if isinstance(word, IndexValue):
            if word.value.constant is not None:
                return float_bits(float(word.value.constant)), str(word.value.constant)
            if word.dtype is not F32:
                raise CompilerBug("codegen.ttmetal", f"an index as {word.dtype} has no spelling")
            self.functions["float_bits"] = FLOAT_BITS
            return f"float_bits({index(word.value)})", ""
        return identifier(word.name), ""

    # ---- statements

    def body(self, statements: Iterable[Statement]) -> None:
        """Spell statements in order."""
        for s in statements:
            spell: Callable[[_Emitter, Statement], None] | None = _SPELLINGS.get(type(s))
            if spell is None:
                raise CompilerBug("codegen.ttmetal", f"{type(s).__name__} has no spelling")
            spell(self, s)

    def _for(self, s: For) -> None:
        name = identifier(s.var)
        step = f"++{name}" if s.step.constant == 1 else f"{name} += {index(s.step)}"
        stop = index(s.stop, bracket="?" in index(s.stop))  # a conditional binds less tightly than the comparison
        self.out.open(f"for (uint32_t {name} = {index(s.start)}; {name} < {stop}; {step})")
        self.body(s.body)
        self.out.close()

    def _let(self, s: Let) -> None:
        self.out(f"const uint32_t {identifier(s.name)} = {index(s.value)};")

    def _if(self, s: If) -> None:
        self.out.open(f"if ({index(s.condition)})")
        self.body(s.body)
        if s.orelse:
            self.out.depth -= 1
            self.out.open("} else")
            self.body(s.orelse)
        self.out.close()

    def _when(self, s: When) -> None:
        self.out.open(f"if ({index(s.left)} == {index(s.right)})")
        self.body(s.body)
        self.out.close()

    def _comment(self, s: Comment) -> None:
        if s.span is not None:
            self.out.origins.append((len(self.out.lines) + 1, s.span.basename, s.span.line))
        where = f"{s.span.basename}:{s.span.line}" if s.span is not None else ""
        self.out(f"// {': '.join(filter(None, (where, comment(s.text))))}")

    def _ring(self, s: Ring) -> None:
        self.out(f"{RINGS[s.action]}({self.ring(s.buffer)}, {index(s.pages)});", s.span)

    def _address(self, buffer: Buffer, tile: str, side: str) -> str:
        ring = self.ring(buffer)
        base = f"get_{side}_ptr({ring})"
        return base if tile == "0" else f"{base} + {tile} * get_tile_size({ring})"

    def _transfer(self, s: Transfer) -> None:
        address = self._address(s.buffer, index(s.tile, bracket=True), "write" if s.direction == "read" else "read")
        self.out(f"noc_async_{s.direction}_page({index(s.page)}, {identifier(s.param.name)}, {address});")

    def _land(self, s: Land) -> None:
        self.out(f"noc_async_{s.direction}_barrier();")

    def _element(self, buffer: Buffer) -> str:
        if buffer.dtype.name not in ELEMENTS:
            raise CompilerBug("codegen.ttmetal", f"lanes of {buffer.dtype} cannot be written one by one")
        return ELEMENTS[buffer.dtype.name]

    def _function(self, name: str, what: str, parameters: str, loop: str, value: str) -> None:
        self.functions["lane"] = LANE
        every = ", ".join(filter(None, ("uint32_t tile_address", parameters)))
        self.functions[name] = "\n".join((
            f"// {what}", "template <typename Element>", f"void {name}({every}) {{", TILE,
            f"    {loop} tile[lane(row, col)] = {value};", "}"))

    def _pad(self, s: PadTile) -> None:
        name, what, loop = PAD[s.axis]
        self._function(name, what, "uint32_t valid, Element bits", loop, "bits")
        address = self._address(s.buffer, index(s.tile, bracket=True), "write")
        self.out(f"{name}<{self._element(s.buffer)}>({address}, {index(s.valid)}, {bits(s.value, s.buffer.dtype)});  // {s.value:g}")

    def _write(self, s: WriteTile) -> None:
        fill, element = s.fill, self._element(s.fill.buffer)
        address = self._address(fill.buffer, "0", "write")
        one = bits(1.0, fill.buffer.dtype)
        if fill.pattern == "constant":
            self._function("fill_tile", "Every lane of a tile is set to `bits`.", "Element bits", EVERY, "bits")
            self.out(f"fill_tile<{element}>({address}, {bits(fill.value, fill.buffer.dtype)});  // {fill.value:g}")
        elif fill.pattern == "valid" and fill.valid is not None:
            name, axis = LIVE[fill.axis]
            what = f"1 in the first `valid` {axis}s of a tile, 0 beyond."
            self._function(name, what, "uint32_t valid, Element one", EVERY, f"{axis} < valid ? one : 0")
            self.out(f"{name}<{element}>({address}, {index(fill.valid)}, {one});")
        elif fill.pattern == "lane" and fill.buffer.dtype is F32:
            name, axis = NUMBER[fill.axis]
            self.functions["float_bits"] = FLOAT_BITS
            self._function(name, f"Every lane holds the number of its {axis}, as f32.", "", EVERY, f"float_bits({axis})")
            self.out(f"{name}<{element}>({address});")
        else:
            raise CompilerBug("codegen.ttmetal", f"a tile of pattern {fill.pattern} in {fill.buffer.dtype} has no spelling")

    def _dst(self, s: Dst) -> None:
        self.out(f"tile_regs_{s.action}();")

    def _spelled(self, call: str) -> str:
        if call not in self.table:
            raise CompilerBug("codegen.ttmetal", f"the call {call} is not in the table of ttnn {self.version}")
        self.headers.add(self.table[call].header)
        return self.table[call].text

    def _setup(self, s: Setup) -> None:
        names = {f"c{i}": self.ring(b) for i, b in enumerate(s.buffers)}
        self.out(f"{self._spelled(s.call).format(**names)};")

    def _compute(self, s: Compute) -> None:
        text = self._spelled(s.call)
        values = {f"c{i}": self.ring(t.buffer) for i, t in enumerate(s.tiles)}
        values |= {f"t{i}": index(t.tile) for i, t in enumerate(s.tiles)}
        values |= {f"s{i}": index(x) for i, x in enumerate(s.slots)}
        words = [self.word(w) for w in s.words]
        values |= {f"w{i}": w for i, (w, _) in enumerate(words)}
        values["dst"], values["round"] = ("Float32", "") if self.fp32_dest else ("Float16_b", "<DstRoundingMode::NearestEven>")
        note = ", ".join(filter(None, (comment(s.result), *(shown for _, shown in words))))
        self.out(f"{text.format(**values)};" + (f"  // {note}" if note else ""))

    def _pack(self, s: PackPage) -> None:
        self.out(f"pack_tile({index(s.slot)}, {self.ring(s.buffer)});")


_SPELLINGS: dict[type, Callable[..., None]] = {
    For: _Emitter._for, Let: _Emitter._let, If: _Emitter._if, When: _Emitter._when, Comment: _Emitter._comment, Ring: _Emitter._ring,
    Transfer: _Emitter._transfer, Land: _Emitter._land, PadTile: _Emitter._pad, WriteTile: _Emitter._write, Dst: _Emitter._dst,
    Setup: _Emitter._setup, Compute: _Emitter._compute, PackPage: _Emitter._pack}
