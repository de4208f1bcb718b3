"""One placed kernel as Ascend C: a template per statement kind, and no decision."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pypto_dsl.codegen.ascendc.intrinsics import CONTIGUOUS, REPEATED, STRUCTURED
from pypto_dsl.codegen.ascendc.spelling import argument, identifier, index, scalar_type, scaled, type_name
from pypto_dsl.compiler.dtypes import F32
from pypto_dsl.compiler.errors import CompilerBug
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.span import Span
from pypto_dsl.compiler.tile_ir.ascend import Arena, Call, Copy, CopyFractals, Drain, Queue, Repeat, View
from pypto_dsl.compiler.tile_ir.nodes import Buffer, For, If, Let, Param, Statement, TileKernel
from pypto_dsl.compiler.tile_ir.placed import Barrier, BufferRef, QueueAction

INDENT = "    "
COMMENT_COLUMN = 100
INCOMING = frozenset({"VECIN", "A1", "B1", "A2", "B2"})  # the producer's tensor is named apart; elsewhere the consumer's is


@dataclass(frozen=True)
class MapEntry:
    """A line of emitted text and the user's line that it comes from."""

    line: int
    file: str
    user_line: int
    note: str


@dataclass
class Writer:
    """Lines of one kernel with their comments and their place in the user's text."""

    lines: list[str] = field(default_factory=list)
    sources: list[MapEntry] = field(default_factory=list)
    depth: int = 0

    def put(self, text: str = "", note: str = "", span: Span | None = None) -> None:
        line = f"{INDENT * self.depth}{text}" if text else ""
        self.lines.append(f"{line:<{COMMENT_COLUMN - 2}}  // {note}" if note else line)
        if span is not None:
            self.sources.append(MapEntry(len(self.lines), span.basename, span.line, note))


def kernel_text(kernel: TileKernel) -> Writer:
    """The whole function of a placed kernel."""
    writer = Writer()
    emitter = _Emitter(writer, _positions(kernel.body))
    where = f", {kernel.span.basename}:{kernel.span.line}" if kernel.span else ""
    writer.put(f"// {kernel.title}{where}: runs on the {kernel.unit} unit", span=kernel.span)
    for requirement in kernel.requires:
        writer.put(f"// valid where {index(requirement)} >= 0")
    parameters = [f"GM_ADDR {identifier(p.name)}" for p in kernel.params]
    parameters += [f"{scalar_type(s.dtype)} {identifier(s.name)}" for s in kernel.scalars if s.value is None]
    writer.put(f'extern "C" __global__ __aicore__ void {kernel.name}({", ".join(parameters)})')
    writer.put("{")
    writer.depth = 1
    writer.put("TPipe pipe;")
    for scalar in kernel.scalars:
        if scalar.value is not None:
            writer.put(f"const int64_t {identifier(scalar.name)} = {index(scalar.value)};")
    for param in kernel.params:
        _global(writer, param)
    for statement in kernel.body:
        emitter.statement(statement)
    writer.depth = 0
    writer.put("}")
    return writer


def _positions(body: Iterable[Statement]) -> dict[str, str]:
    return {s.buffer.name: s.position for s in body if isinstance(s, Queue)}


def _global(writer: Writer, param: Param) -> None:
    name, kind = identifier(param.name), type_name(param.dtype)
    writer.put(f"GlobalTensor<{kind}> {name}Gm;")
    writer.put(f"{name}Gm.SetGlobalBuffer((__gm__ {kind}*){name}, {index(elements(param))});")


def elements(param: Param) -> Index:
    """How many elements of a parameter lie between its address and the end of its last one."""
    if param.strides is None:
        count = as_index(1)
        for extent in param.shape:
            count = count * extent
        return param.base + count
    last = param.base + 1
    for extent, stride in zip(param.shape, param.strides, strict=True):
        last = last + (extent - 1) * stride
    return last


class _Emitter:
    def __init__(self, writer: Writer, positions: Mapping[str, str]) -> None:
        self.writer, self.positions = writer, positions
        self.templates: Mapping[type[Any], Callable[[Any], None]] = {
            Let: self.let, For: self.loop, If: self.branch, Queue: self.queue, Arena: self.arena, View: self.view,
            QueueAction: self.action, Copy: self.copy, Barrier: self.barrier, Call: self.call, CopyFractals: self.copy_fractals,
            Drain: self.drain}

    def statement(self, s: Statement) -> None:
        template = self.templates.get(type(s))
        if template is None:
            raise CompilerBug("codegen.ascendc", f"{type(s).__name__} is not placed")
        template(s)

    def nested(self, body: Iterable[Statement]) -> None:
        self.writer.depth += 1
        for s in body:
            self.statement(s)
        self.writer.depth -= 1

    # ---- structure -------------------------------------------------------------------------------------------------------

    def let(self, s: Let) -> None:
        self.writer.put(f"const int64_t {identifier(s.name)} = {index(s.value)};")

    def loop(self, s: For) -> None:
        v = identifier(s.var)
        step = f"++{v}" if s.step.constant == 1 else f"{v} += {index(s.step)}"
        stop = index(s.stop, bracket=True)
        self.writer.put(f"for (int64_t {v} = {index(s.start)}; {v} < {stop}; {step}) {{", s.note)
        self.nested(s.body)
        self.writer.put("}")

    def branch(self, s: If) -> None:
        self.writer.put(f"if ({index(s.condition, bracket=True)} != 0) {{")
        self.nested(s.body)
        if s.orelse:
            self.writer.put("} else {")
            self.nested(s.orelse)
        self.writer.put("}")

    # ---- storage ---------------------------------------------------------------------------------------------------------

    def queue(self, s: Queue) -> None:
        name, size = identifier(s.buffer.name), s.buffer.dtype.itemsize
        self.writer.put(f"TQue<TPosition::{s.position}, 1> {name}Queue;")
        amount = f"{s.bytes // size} * sizeof({type_name(s.buffer.dtype)})"
        self.writer.put(f"pipe.InitBuffer({name}Queue, {s.buffer.slots}, {amount});", _about(s.buffer), s.buffer.span)

    def arena(self, s: Arena) -> None:
        self.writer.put(f"TBuf<TPosition::VECCALC> {s.name};")
        self.writer.put(f"pipe.InitBuffer({s.name}, {s.bytes});", "shared by the tensors below")

    def view(self, s: View) -> None:
        kind, name = type_name(s.buffer.dtype), identifier(s.buffer.name)
        text = f"LocalTensor<{kind}> {name} = {s.arena}.GetWithOffset<{kind}>({s.elements}, {s.offset});"
        self.writer.put(text, _about(s.buffer), s.buffer.span)

    def producer(self, b: Buffer) -> str:
        """The tensor between AllocTensor and EnQue."""
        return identifier(b.name) + ("In" if self.positions.get(b.name) in INCOMING else "")

    def consumer(self, b: Buffer) -> str:
        """The tensor between DeQue and FreeTensor."""
        position = self.positions.get(b.name)
        return identifier(b.name) + ("" if position is None or position in INCOMING else "Out")

    def action(self, s: QueueAction) -> None:
        kind, name = type_name(s.buffer.dtype), identifier(s.buffer.name)
        text = {
            "alloc": f"LocalTensor<{kind}> {self.producer(s.buffer)} = {name}Queue.AllocTensor<{kind}>();",
            "enque": f"{name}Queue.EnQue({self.producer(s.buffer)});",
            "deque": f"LocalTensor<{kind}> {self.consumer(s.buffer)} = {name}Queue.DeQue<{kind}>();",
            "free": f"{name}Queue.FreeTensor({self.consumer(s.buffer)});",
        }[s.action]
        self.writer.put(text, span=s.span)

    # ---- copies ----------------------------------------------------------------------------------------------------------

    def copy(self, s: Copy) -> None:
        kind = type_name(s.buffer.dtype)
        between = scaled(s.pitch - s.cols, s.buffer.dtype) if s.rows.constant != 1 else "0"
        gap = index(s.gap) if s.rows.constant != 1 else "0"
        size = f"{index(s.rows)}, {scaled(s.cols, s.buffer.dtype)}"
        here = _address(s.param, s.offset)
        if s.direction == "in":
            shape = f"DataCopyExtParams({size}, {between}, {gap}, 0)"
            pad = f"DataCopyPadExtParams<{kind}>(false, 0, 0, {kind}())"
            self.writer.put(f"DataCopyPad({self.producer(s.buffer)}, {here}, {shape}, {pad});", span=s.span)
        else:
            shape = f"DataCopyExtParams({size}, {gap}, {between}, 0)"
            self.writer.put(f"DataCopyPad({here}, {self.consumer(s.buffer)}, {shape});", span=s.span)

    def struct(self, kind: str, name: str, fields: Iterable[tuple[str, str]]) -> None:
        self.writer.put(f"{kind} {name};")
        for key, value in fields:
            self.writer.put(f"{name}.{key} = {value};")

    def copy_fractals(self, s: CopyFractals) -> None:
        name = f"{identifier(s.buffer.name)}Shape"
        self.struct("Nd2NzParams", name, (("nValue", index(s.rows)), ("dValue", index(s.cols)), ("srcDValue", index(s.pitch)),
                                          ("dstNzC0Stride", index(s.fractal_rows)), ("dstNzNStride", "1")))
        self.writer.put(f"DataCopy({self.producer(s.buffer)}, {_address(s.param, s.offset)}, {name});", span=s.span)

    def drain(self, s: Drain) -> None:
        name = f"{identifier(s.buffer.name)}Shape"
        self.struct("FixpipeParamsV220", name, (("nSize", index(s.cols)), ("mSize", index(s.rows)), ("srcStride", index(s.fractal_rows)),
                                                ("dstStride", index(s.pitch))))
        kinds = f"{type_name(s.param.dtype)}, {type_name(s.buffer.dtype)}"
        text = f"Fixpipe<{kinds}, CFG_ROW_MAJOR>({_address(s.param, s.offset)}, {self.consumer(s.buffer)}, {name});"
        self.writer.put(text, span=s.span)

    # ---- calls -----------------------------------------------------------------------------------------------------------

    def barrier(self, s: Barrier) -> None:
        self.writer.put(f"PipeBarrier<PIPE_{s.pipe}>();")

    def reference(self, ref: BufferRef, writes: bool) -> str:
        position = self.positions.get(ref.buffer.name)
        loads_operands = writes and position in ("A2", "B2")
        name = self.producer(ref.buffer) if loads_operands else identifier(ref.buffer.name)
        text = name if ref.offset.constant == 0 else f"{name}[{index(ref.offset)}]"
        return text if ref.dtype in (None, ref.buffer.dtype) else f"{text}.ReinterpretCast<{type_name(ref.dtype or F32)}>()"

    def call(self, s: Call) -> None:
        operands = dict(zip("abc", (self.reference(r, False) for r in s.reads), strict=False))
        names = {**operands, "out": self.reference(s.writes[0], True), "type": type_name(s.writes[0].dtype or s.writes[0].buffer.dtype)}
        if s.scratch:
            names["scratch"] = self.reference(s.scratch[0], True)
        if s.name in STRUCTURED:
            kind, variable, fields, text = STRUCTURED[s.name]
            self.struct(kind, variable, zip(fields, map(argument, s.arguments), strict=True))
            self.writer.put(text.format(**names) + ";", s.note, s.span)
            return
        if s.repeat is not None:
            text = REPEATED[s.name].format(*map(argument, s.arguments), **names, **_form(s.repeat))
        else:
            count = index(s.count if s.count is not None else 0)
            text = CONTIGUOUS[s.name].format(*map(argument, s.arguments), **names, count=count)
        self.writer.put(f"{text};", s.note, s.span)


def _form(repeat: Repeat) -> dict[str, str]:
    strides = {f"{name}_block": str(stride) for name, stride in zip(("out", "a", "b"), repeat.blocks, strict=False)}
    strides |= {f"{name}_step": str(stride) for name, stride in zip(("out", "a", "b"), repeat.steps, strict=False)}
    return {"lanes": index(repeat.lanes), "repeats": index(repeat.repeats), **strides}


def _address(param: Param, offset: Index) -> str:
    name = f"{identifier(param.name)}Gm"
    return name if offset.constant == 0 else f"{name}[{index(offset)}]"


def _about(buffer: Buffer) -> str:
    where = f", {buffer.span.basename}:{buffer.span.line}" if buffer.span else ""
    return f"{buffer.note or buffer.layout}{where}"
