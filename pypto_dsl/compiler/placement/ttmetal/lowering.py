"""Block operations as tile operations: engines, conversions, scalar forms, rounding points, lane numbers."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pypto_dsl.compiler.dtypes import BF16, BOOL, F32, I32, DType
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.placement.ttmetal.geometry import Geometry
from pypto_dsl.compiler.targets import Target
from pypto_dsl.compiler.tile_ir.nodes import BlockOp, Buffer, Constant, IndexValue, LaneIndex, Operand, ReadBuffer, ScalarRead
from pypto_dsl.compiler.tile_ir.ttmetal import TileOp, TileRef, Word

NARROW = frozenset({"bf16", "bool", "bfp8_b", "bfp4_b"})  # what a 16-bit DST holds exactly
COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
# Operations on INT32 as calls; those of COMPARISONS give 1 or 0 as an integer.
INTEGER_CALLS = {"add": "add_int", "sub": "sub_int", "mul": "mul_int", "maximum": "max_int", "minimum": "min_int", "gcd": "gcd",
                 **{name: f"{name}_int" for name in sorted(COMPARISONS)},
                 **{name: name for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")}}
# Rounding of a conversion to INT32 that truncates, by mode.
ROUNDED_FIRST = {"CAST_NONE": "", "CAST_TRUNC": "", "CAST_RINT": "rint", "CAST_FLOOR": "floor", "CAST_CEIL": "ceil"}
# Integer arithmetic that index values go through in f32, exactly below the target's `limits.index`.
INDEX_ARITHMETIC = frozenset({"add", "sub", "mul", "maximum", "minimum", *COMPARISONS})


class Unique:
    """Names for values and buffers that no statement of the kernel has yet."""

    def __init__(self, taken: Sequence[str]) -> None:
        self.taken = set(taken)

    def fresh(self, wish: str) -> str:
        """``wish``, or wish_2, wish_3, ..."""
        name, n = wish, 1
        while name in self.taken:
            n += 1
            name = f"{wish}_{n}"
        self.taken.add(name)
        return name


@dataclass
class Helpers:
    """Tiles that the reader makes once: the scaler of reductions, masks of live lanes, lane numbers. Filled in as they are asked for."""

    unique: Unique
    made: dict[tuple[str, int, str, str], Buffer] = field(default_factory=dict)

    def tile(self, pattern: str, axis: int, dtype: DType, valid: str, make: Callable[[str], Buffer]) -> Buffer:
        """The one buffer of a pattern, axis, dtype and valid extent."""
        key = (pattern, axis, dtype.name, valid)
        if key not in self.made:
            self.made[key] = make(self.unique.fresh({"constant": "ones", "valid": ("live_rows", "live_cols")[axis],
                                                     "lane": ("row_number", "col_number")[axis]}[pattern]))
        return self.made[key]


@dataclass
class Lowering:
    """One Block's tile operations. ``row`` and ``col`` are the tile's coordinates inside the Block, ``across`` its tiles per row."""

    target: Target
    tile: Geometry
    unique: Unique
    lane_tile: Callable[[int], Buffer]
    fp32_dest: bool
    row: Index
    col: Index
    across: Index
    ops: list[TileOp] = field(default_factory=list)
    values: dict[str, Operand] = field(default_factory=dict)
    dtypes: dict[str, DType] = field(default_factory=dict)
    packed_only: frozenset[str] = frozenset()
    held: bool = False  # one acquire spans many tiles: the FPU's product would add to that of the tile before

    # ---- operands

    def resolve(self, operand: Operand) -> Operand:
        """What stands for an operand: a value of a tile op, or a leaf."""
        return self.values[operand] if isinstance(operand, str) and operand in self.values else operand

    def dtype(self, operand: Operand) -> DType:
        """The dtype of a resolved operand."""
        if isinstance(operand, str):
            return self.dtypes[operand]
        return operand.buffer.dtype if isinstance(operand, ReadBuffer) else operand.dtype

    def is_index(self, operand: Operand) -> bool:
        """Whether an i32 operand is index arithmetic, computed in f32."""
        if isinstance(operand, (LaneIndex, IndexValue, Constant)):
            return True
        return isinstance(operand, str) and self.dtypes[operand] is F32

    def reference(self, read: ReadBuffer) -> TileRef:
        """The tile of a buffer that this iteration reads."""
        index = {"full": self.row * self.across + self.col, "row": self.col, "col": self.row, "scalar": as_index(0)}[read.how]
        return TileRef(read.buffer, index, read.how)

    def add(self, call: str, engine: str, dtype: DType, *, values: tuple[str, ...] = (), tiles: tuple[TileRef, ...] = (),
            words: tuple[Word, ...] = (), wish: str = "", source: str = "") -> str:
        """Append a tile op and return its result."""
        result = self.unique.fresh(wish or call)
        self.ops.append(TileOp(result, call, engine, values, tiles, words, source=source))  # type: ignore[arg-type]
        self.dtypes[result] = dtype
        return result

    def slot(self, operand: Operand) -> str:
        """The operand as a value in DST: copied, filled or computed if it is a leaf."""
        if isinstance(operand, str):
            return operand
        if isinstance(operand, ReadBuffer):
            if operand.how != "full" and operand.buffer.dtype is I32:  # the device prints zeros (tt-metal#20582)
                raise error("PT502", f"`{operand.buffer.holds}` is {operand.buffer.dtype} and stands for a whole {operand.how}, which "
                            f"target {self.target.name} does for floats only", operand.buffer.span, help="cast it to f32 first",
                            target=self.target.name, op="broadcast")
            call = "copy" if operand.how == "full" else f"copy_{operand.how}"
            return self.add(call, "copy", operand.buffer.dtype, tiles=(self.reference(operand),), wish=operand.buffer.name)
        if isinstance(operand, LaneIndex):
            number = self.add("copy", "copy", F32, tiles=(TileRef(self.lane_tile(operand.axis), as_index(0)),), wish="lane")
            size = (self.tile.rows, self.tile.cols)[operand.axis]
            base = operand.base + (self.row, self.col)[operand.axis] * size
            return self.add("add_scalar", "sfpu", F32, values=(number,), words=(IndexValue(base, F32),), wish="lane")
        if isinstance(operand, ScalarRead) and operand.dtype in (I32, BOOL):  # the word is an integer
            number = self.add("fill_int", "sfpu", I32, words=(operand,), wish="number")
            return number if operand.dtype is I32 else self.add("int_to_float", "sfpu", BOOL, values=(number,), wish="truth")
        return self.add("fill", "sfpu", F32 if operand.dtype.is_integer else operand.dtype, words=(_float_word(operand),), wish="number")

    def stored(self, operand: Operand, dtype: DType) -> str:
        """The operand as a value in DST to be packed as ``dtype``: the packer does not convert numbers to integers."""
        if isinstance(operand, Constant) and dtype is I32:
            return self.add("fill_int", "sfpu", I32, words=(operand,), wish="number")
        return self.slot(operand)

    # ---- operations

    def lower(self, op: BlockOp) -> None:
        """Append what one Block operation becomes."""
        operands = tuple(self.resolve(o) for o in op.operands)
        self.values[op.result] = self._lower(op, operands)

    def _lower(self, op: BlockOp, operands: tuple[Operand, ...]) -> Operand:
        if op.name == "cast":
            return self._cast(op, operands[0])
        if op.name == "ldexp":
            return self._ldexp(op, operands)
        if any(self.dtype(o) is I32 for o in operands):
            if op.name in INDEX_ARITHMETIC and all(self.is_index(o) for o in operands):
                return self._sfpu(op, operands, BOOL if op.name in COMPARISONS else F32)
            return self._integer(op, operands)
        fpu = self._fpu(op, operands)
        return fpu if fpu is not None else self._sfpu(op, operands, op.dtype)

    def _row(self, op: BlockOp) -> Mapping[str, object]:
        row = self.target.table("select").get(op.name)
        if row is None:
            raise error("PT502", f"{op.name} on {op.dtype} is not supported on target {self.target.name}", op.span,
                        help="compute it before the kernel, or choose another target", target=self.target.name, op=op.name)
        found: Mapping[str, object] = row
        return found

    def _rounded(self, op: BlockOp, value: str) -> str:
        """A 16-bit result in a 32-bit DST is rounded where it is used, unless the packer does it."""
        exact = self._row(op)["rounds"] == "exact"
        if op.dtype is not BF16 or not self.fp32_dest or exact or op.result in self.packed_only:
            return value
        return self.add("round_bf16", "sfpu", BF16, values=(value,), wish=op.source or op.name)

    def _fpu(self, op: BlockOp, operands: tuple[Operand, ...]) -> str | None:
        """The operation on two rings, where SrcA and SrcB hold both exactly."""
        row = self._row(op)
        if not row.get("fpu") or len(operands) != 2 or (self.held and op.name == "mul"):
            return None
        first, second = operands
        if not isinstance(first, ReadBuffer) or not isinstance(second, ReadBuffer):
            return None
        if first.how != "full" and row.get("commutes"):
            first, second = second, first
        formats = self.target.table("formats")
        exact = all(formats[o.buffer.dtype.name]["fpu"] for o in (first, second))
        forms = ("full", *self.target.table("broadcast")["fpu"])
        if not exact or first.how != "full" or second.how not in forms:
            return None
        call = f"fpu_{op.name}" + ("" if second.how == "full" else f"_{second.how}")
        result = self.add(call, "fpu", op.dtype, tiles=(self.reference(first), self.reference(second)), wish=op.source or op.name)
        return self._rounded(op, result)

    def _sfpu(self, op: BlockOp, operands: tuple[Operand, ...], dtype: DType) -> str:
        row = self._row(op)
        wish = op.source or op.name
        number = operands[1] if len(operands) == 2 and isinstance(operands[1], (Constant, ScalarRead, IndexValue)) else None
        if number is None and row.get("commutes") and isinstance(operands[0], (Constant, ScalarRead, IndexValue)):
            number, operands = operands[0], (operands[1], operands[0])
        takes_number = row.get("scalar") and (self.fp32_dest or op.name == "pow")  # elsewhere the scalar forms cut to 16 bits
        if number is not None and takes_number:
            value = self.add(f"{op.name}_scalar", "sfpu", dtype, values=(self.slot(operands[0]),), words=(_float_word(number),), wish=wish)
            return self._rounded(op, value)
        if op.name == "where":
            return self.add("where", "sfpu", dtype, values=tuple(self.slot(o) for o in operands), wish=wish)
        if op.name == "gelu" and dict(op.attributes).get("approximate", "none") != "none":
            raise error("PT502", f"gelu in its tanh form is not supported on target {self.target.name}", op.span,
                        help='use approximate="none"', target=self.target.name, op=op.name)
        same = len(operands) == 2 and operands[0] == operands[1]
        first = self.slot(operands[0])
        rest = (first,) if same else tuple(self.slot(o) for o in operands[1:])
        value = self.add(op.name, "sfpu", dtype, values=(first, *rest), wish=wish)
        return self._rounded(op, value)

    def _integer(self, op: BlockOp, operands: tuple[Operand, ...]) -> str:
        """INT32 on the SFPU; index values beside it become integers."""
        count = operands[1] if op.name == "bitwise_right_shift" else None
        plain = op.name in INTEGER_CALLS and (count is None or isinstance(count, Constant))
        if not plain:
            dtypes = ", ".join(str(self.dtype(o)) for o in operands)
            notes = ("the device shifts negative numbers by 32 bits and more to 0, not to -1",) if count is not None else ()
            raise error("PT502", f"{op.name} on {dtypes} is not supported on target {self.target.name}", op.span, notes=notes,
                        help="shift by a number" if count is not None else "cast the operands to f32", target=self.target.name, op=op.name)
        slots = tuple(self._integer_slot(o) for o in operands)
        wish = op.source or op.name
        result = self.add(INTEGER_CALLS[op.name], "sfpu", I32, values=slots, wish=wish)
        return self.add("int_to_float", "sfpu", BOOL, values=(result,), wish=wish) if op.name in COMPARISONS else result

    def _integer_slot(self, operand: Operand) -> str:
        """An INT32 operand in DST: a number, a tensor, or an index value, which is an exact float until now."""
        if isinstance(operand, Constant):
            return self.add("fill_int", "sfpu", I32, words=(operand,), wish="number")
        value = self.slot(operand)
        return self.add("float_to_int", "sfpu", I32, values=(value,), wish="index") if self.is_index(operand) else value

    def _cast(self, op: BlockOp, operand: Operand) -> Operand:
        """Conversions that a DST slot holds already cost nothing; the others are typecasts."""
        source, result = self.dtype(operand), op.dtype
        if source is result:
            return operand
        if isinstance(operand, Constant):
            return Constant(operand.value if result.is_integer else float(operand.value), result)
        if isinstance(operand, (LaneIndex, IndexValue, ScalarRead)) or (self.is_index(operand) and op.dtype is F32):
            if result is F32:
                value = self.slot(operand)
                number = isinstance(operand, ScalarRead) and source is I32
                return self.add("int_to_float", "sfpu", F32, values=(value,), wish=op.source or "cast") if number else value
            raise self._no_cast(op, source)
        if source is I32:
            if result is F32:
                return self.add("int_to_float", "sfpu", F32, values=(self.slot(operand),), wish=op.source or "cast")
            raise self._no_cast(op, source)
        if result is I32:
            first = ROUNDED_FIRST.get(str(dict(op.attributes).get("mode", "CAST_NONE")))
            if source not in (F32, BOOL) or first is None:
                raise self._no_cast(op, source)
            value = self.slot(operand)
            if first and source is F32:
                value = self.add(first, "sfpu", F32, values=(value,), wish=op.source or "cast")
            return self.add("float_to_int", "sfpu", I32, values=(value,), wish=op.source or "cast")
        if result is BF16 and source is F32 and op.result not in self.packed_only and self.fp32_dest:
            return self.add("round_bf16", "sfpu", BF16, values=(self.slot(operand),), wish=op.source or "cast")
        if isinstance(operand, str) and result is not BOOL:
            return operand
        if isinstance(operand, ReadBuffer) and result is not BOOL:
            return operand
        raise self._no_cast(op, source)

    def _no_cast(self, op: BlockOp, source: DType) -> Exception:
        return error("PT502", f"cast on {source} to {op.dtype} is not supported on target {self.target.name}", op.span,
                     help="go through f32, or choose another target", target=self.target.name, op="cast")

    def _ldexp(self, op: BlockOp, operands: tuple[Operand, ...]) -> str:
        """ttnn's two steps: 2^b, rounded to the dtype of a, then the product."""
        x, exponent = operands
        if self.dtype(exponent) is I32:
            if isinstance(exponent, Constant):
                exponent = Constant(float(exponent.value), F32)
            elif isinstance(exponent, (ReadBuffer, str)) and not self.is_index(exponent):
                exponent = self.add("int_to_float", "sfpu", F32, values=(self.slot(exponent),), wish="exponent")
        power = self.add("exp2", "sfpu", op.dtype, values=(self.slot(exponent),), wish="power_of_two")
        if op.dtype is BF16 and self.fp32_dest:
            power = self.add("round_bf16", "sfpu", BF16, values=(power,), wish="power_of_two")
        value = self.add("mul", "sfpu", op.dtype, values=(self.slot(x), power), wish=op.source or "ldexp")
        return self._rounded(op, value)


def _float_word(operand: Constant | ScalarRead | IndexValue) -> Word:
    """A number as an f32 word; integers of index arithmetic become floats."""
    if isinstance(operand, Constant):
        return Constant(float(operand.value), F32)
    if isinstance(operand, IndexValue):
        return IndexValue(operand.value, F32)
    return operand
