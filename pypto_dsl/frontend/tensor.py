"""The tensor that a kernel's code holds while it is read: a handle on a variable, with slicing, writing and scalar reads."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import BOOL, DType
from pypto_dsl.compiler.errors import Label, error, value_text
from pypto_dsl.compiler.graph import Graph, TensorType, Value
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.ops import REGISTRY, layout
from pypto_dsl.compiler.ops.bounds import require_within
from pypto_dsl.compiler.ops.core import cast, full, ne
from pypto_dsl.compiler.ops.core import reshape as reshape_op
from pypto_dsl.compiler.ops.definition import Call
from pypto_dsl.compiler.ops.shapes import KEEPDIM, WHOLE_AXIS, dropped_axis, element_count, require_equal, shape_text
from pypto_dsl.compiler.ops.typing import atype
from pypto_dsl.compiler.promotion import PromotionError, assign, rule_set
from pypto_dsl.compiler.span import Span
from pypto_dsl.frontend import fixes
from pypto_dsl.frontend.foreign import unknown
from pypto_dsl.frontend.scalar import IntLike, SymbolicBool, SymbolicScalar, index_of, is_symbolic, maximum, scalar
from pypto_dsl.frontend.spans import here
from pypto_dsl.frontend.trace import Cell, LocalWrite, NeedsValue, Trace, current, need, whole
from pypto_dsl.frontend.vocabulary import Annotation, Element, TileOpFormat, annotation

NOWHERE = Trace(Graph("nowhere"))  # owns what belongs to no kernel
_NO_NUMBER = "compute with operations of pypto, which work on tensors; Python, `math` and options of operations take numbers known now"


class _TensorMeta(type):
    """`pypto.Tensor[[shape], dtype]` and `pypto.Tensor(shape, dtype)`: annotations outside kernels, local tensors inside."""

    def __getitem__(cls, item: Any) -> Annotation:
        if isinstance(item, tuple) and item and isinstance(item[0], (list, tuple)):
            return annotation(*item)
        if isinstance(item, tuple):
            dtype = item[-1] if item and isinstance(item[-1], DType) else None
            return annotation(list(item[:-1] if dtype is not None else item), dtype)
        return annotation(item)

    def __call__(cls, shape: Any = None, dtype: Any = None, name: str = "", format: Any = None, **_: Any) -> Any:
        if cls is not Tensor:
            return type.__call__(cls, shape, dtype)
        if current() is not None and shape is not None:
            return local_tensor(shape, dtype, name)
        made = annotation(shape, dtype, format)
        return Declared(made, name) if made.shape is not None and made.dtype is not None else made


class Tensor(metaclass=_TensorMeta):
    """A handle on a variable of the kernel: its value is one SSA value per region. Operators and methods record operations."""

    __slots__ = ("__weakref__", "cell", "owner")
    cell: Cell
    owner: Trace
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in Tensor.__slots__:
            raise AttributeError(name)
        raise unknown("x.", "a tensor", name, (n for n in dir(Tensor) if not n.startswith("_")))

    @property
    def value(self) -> Value:
        """The value now. Raises PT123 outside the kernel that made the tensor."""
        if current() is not self.owner:
            raise error("PT123", "a tensor of one kernel is used outside it", here(),
                        help="pass it as an argument, or return it; a kernel's tensors exist only while it is read")
        return self.owner.read(self.cell)

    @property
    def name(self) -> str:
        """The name it was given or bound to."""
        return self.cell.name or self.value.name

    @name.setter
    def name(self, name: str) -> None:
        self.cell.name = name

    @property
    def type(self) -> TensorType:
        """dtype, shape and live extents."""
        return self.value.type

    @property
    def shape(self) -> list[IntLike]:
        """The extents: ints, and SymbolicScalars where they are only known at run time."""
        return [scalar(e) for e in self.type.shape]

    @property
    def valid_shape(self) -> list[IntLike]:
        """The live extents."""
        return [scalar(e) for e in self.type.live]

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype

    @property
    def dim(self) -> int:
        """The number of axes."""
        return self.type.rank

    ndim = dim

    @property
    def format(self) -> TileOpFormat:
        """Always ND."""
        return TileOpFormat.TILEOP_ND

    def size(self, axis: int | None = None) -> Any:
        """The shape, or one extent."""
        return self.shape if axis is None else self.shape[axis]

    @property
    def id(self) -> int:
        """A number that no other variable of the kernel has."""
        return id(self.cell)

    def set_cache_policy(self, policy: Any, value: bool = True) -> None:
        """A hint for the device's cache: recorded, and shown by `explain`."""
        trace = need("set_cache_policy")
        trace.policies[self.cell, policy] = bool(value)
        trace.hints.append(("cache_policy", f"{self.name}: {getattr(policy, 'name', policy)} {value}", here()))

    def get_cache_policy(self, policy: Any) -> bool:
        """What `set_cache_policy` was last given for ``policy``."""
        return need("get_cache_policy").policies.get((self.cell, policy), False)

    def __len__(self) -> int:
        if not self.dim:
            raise TypeError("a scalar has no length")
        return self.shape[0].__index__()

    def __iter__(self) -> Any:
        raise error("PT124", "a tensor cannot be iterated while a kernel is read", here(), help="slice it in a loop: x[i:i + 1]")

    def __contains__(self, item: object) -> bool:
        raise error("PT124", "`in` looks through a tensor's elements, which are not known while a kernel is read", here())

    def __pos__(self) -> Tensor:
        return self

    def _number(self, help: str) -> Any:
        """Python needs the number: of a run-time float it is had by specialising, of anything else not at all."""
        stack, seen = [self.value], set()
        while stack and not self.dim:
            value = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            if value.op is None and not value.type.rank:
                raise NeedsValue(value.name, here())
            stack += value.op.operands if value.op is not None else ()
        raise error("PT101", f"`{self!r}` has no single Python value while the kernel is read", here(), help=help)

    def __bool__(self) -> bool:
        return bool(self._number("use pypto.where(condition, a, b) element by element"))

    def __float__(self) -> float:
        return float(self._number(_NO_NUMBER))

    def __int__(self) -> int:
        return int(self._number(_NO_NUMBER))

    __index__ = __int__

    def __repr__(self) -> str:
        if current() is not self.owner:
            return "Tensor(of a kernel that has been read)"
        return f"Tensor({self.name or 'unnamed'}: {self.type})"

    # ---- slices --------------------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key == slice(None):
            return self
        trace = need("slicing a tensor")
        if isinstance(key, slice) and isinstance(key.stop, Tensor):  # x[dim:index] gathers
            index = key.stop.value
            return wrap(trace.emit(lambda: REGISTRY["gather"](self.value, key.start, index)))
        window = Window(self, key)
        value = self.value
        if all(window.dropped):
            return read_element(trace, self, window.offsets)
        if trace.builder.region is trace.graph.body:
            for offset, have, dropped in zip(window.offsets, value.type.live, window.dropped, strict=True):
                if dropped:
                    require_within(trace.graph, offset, as_index(1), have, here(), f"an index of `{self.name}`")
        made = trace.emit(lambda: layout.view(value, window.extents, window.offsets))
        return wrap(made if not any(window.dropped) else trace.emit(lambda: reshape_op(made, window.kept(made.type.shape))))

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, Tensor) and value.cell is self.cell:
            return  # the second half of `t[key] op= v`, or writing a tensor to itself
        if isinstance(key, slice) and key == slice(None):
            self.move(value)
            return
        if isinstance(key, slice) and isinstance(key.stop, Tensor):  # x[dim:index] = value scatters
            index, source = key.stop.value, value.value if isinstance(value, Tensor) else value
            trace = need("writing a tensor")
            trace.write(self.cell, trace.emit(lambda: REGISTRY["scatter"](self.value, key.start, index, source)))
            return
        window = Window(self, key)
        trace = need("writing a tensor")
        if not isinstance(value, Tensor):
            value = filled(trace, window.extents, value, self.dtype)
        elif value.dim == 0 and window.extents:
            value = expanded(trace, value, window.extents, self.dtype, self)
        source = value.value
        shape = window.restored(source)
        window.check_stops(shape, source)
        if shape != source.type.shape:
            source = trace.emit(lambda: reshape_op(source, shape))
        assemble_into(trace, self, source, window.offsets)

    def move(self, other: Any) -> None:
        """Write the live part of ``other`` at the start: the other spelling of ``self[:] = other``.

        A number fills the tensor; another rank with as many elements is reshaped. Raises PT205 for a dtype that does not join to
        this tensor's, PT314 for another shape.
        """
        trace = need("writing a tensor")
        target = self.value
        value = other
        if not isinstance(value, Tensor):
            value = filled(trace, target.type.shape, value, self.dtype)
        elif value.dim == 0 and target.type.rank:
            value = expanded(trace, value, target.type.shape, self.dtype, self)
        source: Value = value.value
        place = here()
        if source.type.rank != target.type.rank:
            wanted, given = element_count(target.type.shape), element_count(source.type.shape)
            if (given - wanted).constant in (0, None):
                require_equal(Call("out[:]", (target, source), {}, trace.graph, place), wanted, given)  # else it would speak of a reshape
                source = trace.emit(lambda: trace.reshaped(value.value, target.type.shape))
        call = Call("out[:]", (target, source), {}, trace.graph, place)
        if source.type.rank != target.type.rank or not all(
                require_equal(call, a, b) for a, b in zip(target.type.shape, source.type.shape, strict=True)):
            raise _wrong_shape(self, source)
        if not self.cell.parameter:
            trace.local_writes.append(LocalWrite(self.name, source, here()))
        renames = source.type.shape == target.type.shape or len(trace.frames) == 1  # regions merge by equal shapes; `settle` folds the rest
        if source.type.valid is not None or target.type.valid is not None or not renames:
            assemble_into(trace, self, source, whole(target.type.rank))
            return
        trace.write(self.cell, landed(trace, self, source))


def _wrong_shape(target: Tensor, source: Value) -> Exception:
    made = source.op.span if source.op is not None else None
    others = (Label(made, f"{source.type} is made here"),) if made is not None else ()
    fix = fixes.corner(target.name, target.type.shape, source.type.shape)
    dropped = dropped_axis(Call("out[:]", (target.value, source), {}, target.owner.graph, None))
    help = KEEPDIM.format(dropped) if dropped else ("write a part with pypto.assemble(value, offsets, out) or out[a:b, ...] = value; "
                                                    "pypto.expand_clone repeats axes of extent 1")
    return error("PT314", f"`{target.name}` has shape {shape_text(target.type.shape)}, and the value written has "
                 f"{shape_text(source.type.shape)}", here(), others=others, help=help, fix=fix)


class Declared(Tensor):
    """`pypto.tensor(shape, dtype, name)` outside kernels: an annotation, and in a `pypto.function` block that names it a tensor."""

    __slots__ = ("annotation", "declared")

    def __init__(self, promise: Annotation, name: str) -> None:
        self.annotation = promise
        self.declared = name if isinstance(name, str) else ""
        self.release()

    def release(self) -> None:
        """Outside every block."""
        self.owner, self.cell = NOWHERE, Cell(self.declared)

    @property
    def shape(self) -> list[IntLike]:
        """The extents; outside a block as they were declared, DYNAMIC ones as -1."""
        if self.owner is NOWHERE:
            return [e if isinstance(e, int) else -1 for e in self.annotation.shape or ()]
        return [scalar(e) for e in self.type.shape]

    @property
    def dtype(self) -> DType:
        """The element type."""
        assert self.annotation.dtype is not None
        return self.annotation.dtype

    @property
    def dim(self) -> int:
        """The number of axes."""
        return len(self.annotation.shape or ())

    @property
    def name(self) -> str:
        """The name it was declared with."""
        return self.cell.name or self.declared

    @name.setter
    def name(self, name: str) -> None:
        self.declared = self.cell.name = name

    def __repr__(self) -> str:
        return f"Tensor({self.declared or 'unnamed'}: {self.annotation.shape} {self.annotation.dtype})"


class Window:
    """A subscript as offsets and extents, with the axes that integer subscripts drop."""

    def __init__(self, tensor: Tensor, key: Any) -> None:
        self.tensor = tensor
        shape = tensor.shape
        keys = list(key) if isinstance(key, tuple) else [key]
        at = next((i for i, k in enumerate(keys) if k is ...), None)
        if at is not None:
            keys[at:at + 1] = [slice(None)] * (len(shape) - len(keys) + 1)
        keys += [slice(None)] * (len(shape) - len(keys))
        if len(keys) != len(shape):
            raise error("PT130", f"{len(keys)} indices for `{tensor.name}` of rank {len(shape)}", here(), help="give at most one per axis")
        self.offsets: tuple[Index, ...] = ()
        self.extents: tuple[Index, ...] = ()
        self.dropped: list[bool] = []
        self.stops: list[bool] = []
        self.whole: list[bool] = []
        for axis, (k, n) in enumerate(zip(keys, shape, strict=True)):
            self._axis(axis, k, n)
            self.whole.append(isinstance(k, slice) and k.start is None and k.stop is None)

    def _axis(self, axis: int, key: Any, extent: IntLike) -> None:
        if isinstance(key, Tensor):
            raise error("PT131", "a tensor cannot be an index of a tensor", here(), help="use pypto.gather or pypto.index_select")
        if not isinstance(key, slice):
            if not isinstance(key, (int, np.integer, SymbolicScalar)) or isinstance(key, bool):
                raise error("PT131", f"`{key!r}` cannot be an index of a tensor", here(),
                            help="indices are integers and slices, x[0:4]; pypto.index_select chooses rows by a tensor, pypto.where "
                            "elements by a mask")
            start: Any = key + extent if isinstance(key, int) and key < 0 else key
            if isinstance(start, int) and isinstance(extent, int) and not 0 <= start < extent:
                raise error("PT132", f"index {key} is outside axis {axis} of extent {extent}", here(),
                            help=f"axis {axis} of `{self.tensor.name}` takes -{extent} to {extent - 1}")
            self._add(start, 1, dropped=True, stop=False)
            return
        if key.step not in (None, 1):
            raise error("PT133", f"a slice with step {key.step} is not a window", here(),
                        help="slices have step 1; reshape to split the axis, or use pypto.gather")
        start = 0 if key.start is None else key.start
        stop = extent if key.stop is None else key.stop
        start = maximum(start + extent, 0) if isinstance(start, int) and start < 0 else start
        stop = stop + extent if isinstance(stop, int) and stop < 0 else stop
        if isinstance(stop, int) and isinstance(extent, int):
            stop = min(stop, extent)
        self._add(start, stop - start, dropped=False, stop=key.stop is not None)

    def _add(self, offset: Any, extent: Any, dropped: bool, stop: bool) -> None:
        self.offsets += (index_of(offset),)
        self.extents += (index_of(extent),)
        self.dropped.append(dropped)
        self.stops.append(stop)

    def kept(self, shape: Sequence[Index]) -> tuple[Index, ...]:
        """``shape`` without the dropped axes."""
        return tuple(e for e, d in zip(shape, self.dropped, strict=True) if not d)

    def restored(self, value: Value) -> tuple[Index, ...]:
        """The shape of a value that is written here, with the dropped axes as 1; a value may have them itself. PT312 for another rank."""
        given = list(value.type.shape)
        axes = self.dropped.count(False)
        if len(given) == len(self.dropped) and all(e.constant == 1 for e, d in zip(given, self.dropped, strict=True) if d):
            return tuple(given)
        if len(given) != axes:
            count = "one element" if axes == 0 else f"{axes} {'axis' if axes == 1 else 'axes'}"
            raise error(
                "PT312",
                f"a value of rank {len(given)}, {shape_text(given)}, cannot be written to {count} of `{self.tensor.name}`, "
                f"whose shape is {shape_text(self.tensor.type.shape)}",
                here(),
                help=f"an integer subscript drops its axis: write a value of rank {axes}, or subscript with slices"
                if any(self.dropped)
                else KEEPDIM.format(value.op.opcode)
                if value.op is not None and value.op.attributes.get("keepdim") is False
                else "reshape the value first",
            )
        return tuple(as_index(1) if d else given.pop(0) for d in self.dropped)

    def check_stops(self, shape: tuple[Index, ...], source: Value) -> None:
        """A stop that is known and disagrees with the value's extent is an error: writing goes by the start offset.

        So is a whole axis, `:`, that disagrees; of one that only the call knows, a value of extent 1, which NumPy would repeat, is no part.
        """
        graph = self.tensor.owner.graph
        for axis, extent in enumerate(shape):
            have = self.extents[axis]
            difference = (extent - have).constant
            if self.whole[axis] and extent.constant == 1 and all(graph.symbols[name].kind == "dim" for name in have.variables()):
                require_equal(Call(WHOLE_AXIS, (self.tensor.value, source), {}, graph, here()), have, extent)
            if difference and (self.stops[axis] or self.whole[axis]):
                raise error("PT314", f"axis {axis}: the slice has extent {self.extents[axis]}, and the value written has {extent}", here(),
                            help="make them equal; pypto.expand_clone repeats axes of extent 1")


# ---- making handles ----------------------------------------------------------------------------------------------------------


def wrap(made: Any, name: str = "") -> Any:
    """A handle on a new value; on several results a tuple of handles."""
    if isinstance(made, tuple):
        return tuple(wrap(v) for v in made)
    trace = need("a tensor")
    handle: Tensor = object.__new__(Tensor)
    handle.owner = trace
    handle.cell = Cell(name or made.name)
    if name and not made.name:
        made.name = name
    trace.declare(handle.cell, made)
    return handle


def handle_of(trace: Trace, cell: Cell) -> Tensor:
    """A further handle on a variable."""
    handle: Tensor = object.__new__(Tensor)
    handle.owner = trace
    handle.cell = cell
    return handle


def local_tensor(shape: Any, dtype: Any, name: str = "") -> Tensor:
    """`pypto.tensor(shape, dtype)` in a kernel: a local tensor without contents. Raises PT117 for what is no dtype."""
    if not isinstance(dtype, DType):
        raise error("PT117", f"a local tensor needs a dtype, and got {dtype!r}", here(), help="pypto.tensor([64, 64], pypto.DT_FP32)")
    extents = tuple(index_of(e) for e in (shape if isinstance(shape, (list, tuple)) else (shape,)))
    made = need("pypto.tensor").emit(lambda: layout.empty(extents, dtype))
    handle: Tensor = wrap(made, name if isinstance(name, str) else "")
    return handle


# ---- reading and writing -----------------------------------------------------------------------------------------------------


def read_element(trace: Trace, tensor: Tensor, offsets: tuple[Index, ...]) -> Any:
    """An element: of integers a symbolic integer, of BOOL a symbolic truth value, of floats a scalar tensor."""
    value = tensor.value
    if tensor.dtype.is_integer:
        signed = None if tensor.dtype.signed else 0
        return trace.emit_symbol(value, offsets, signed, f"{tensor.name}_{'_'.join(map(str, offsets))}")
    made = trace.emit(lambda: layout.load_scalar(value, offsets))
    return SymbolicBool("value", made) if tensor.dtype is BOOL else wrap(made)


def truth_of(tensor: Tensor, fix: Callable[[Span | None], str | None] = lambda _: None) -> SymbolicBool:
    """A scalar tensor as a condition. Raises PT101 for a tensor of several elements; ``fix`` gives what to write at the place."""
    if tensor.dim:
        span = here()
        raise error("PT101", f"a tensor of shape {shape_text(tensor.type.shape)} has no single truth value", span, fix=fix(span),
                    help="use pypto.where(condition, a, b), and & and | between conditions, element by element")
    value = tensor.value
    return SymbolicBool("value", value if tensor.dtype is BOOL else tensor.owner.emit(lambda: ne(value, 0)))


def filled(trace: Trace, shape: tuple[Index, ...], value: Any, dtype: DType) -> Tensor:
    """A number as a tensor of ``shape``; run-time numbers are expanded. Raises PT200, PT204 for what does not fit."""
    number = value.value if isinstance(value, Element) else value
    if is_symbolic(number):
        return expanded(trace, wrap(trace.emit(lambda: trace.number(number))), shape, dtype)
    if isinstance(number, np.generic):
        number = number.item()
    if not isinstance(number, (bool, int, float)):
        raise error("PT200", f"a tensor or a number is written to a tensor, and got {value_text(value)}", here(),
                    help="write a number, or a tensor: out[:] = 1.0")
    if isinstance(number, int) and dtype.is_integer and not dtype.range[0] <= number <= dtype.range[1]:
        raise error("PT204", f"{number} does not fit {dtype.name}, which holds {dtype.range[0]} to {dtype.range[1]}", here())
    if isinstance(number, float) and not dtype.is_float:
        raise error("PT204", f"the float {number!r} does not land on {dtype.name}", here(), help="write an int, or cast the tensor")
    handle: Tensor = wrap(trace.emit(lambda: full(shape, number, dtype)))
    return handle


def expanded(trace: Trace, value: Tensor, shape: tuple[Index, ...], dtype: DType, target: Tensor | None = None) -> Tensor:
    """A scalar tensor repeated to ``shape`` in ``dtype``; to be written to ``target``, whose dtype it must join to (PT205)."""
    source = value.value if target is None else landed(trace, target, value.value)
    handle: Tensor = wrap(trace.emit(lambda: layout.expand_clone(source if source.type.dtype == dtype and not source.type.weak
                                                                 else cast(source, dtype), shape)))
    return handle


def landed(trace: Trace, target: Tensor, source: Value) -> Value:
    """``source`` in the destination's dtype, which stays. Raises PT205 when the two do not join to it."""
    dtype = target.dtype
    if source.type.dtype == dtype and not source.type.weak:
        return source
    try:
        assign(rule_set(trace.graph.rules), atype(target.value), atype(source), op=f"{target.name}[:]")
    except PromotionError as refused:
        raise _kept(refused, target) from None
    converted: Value = trace.emit(lambda: cast(source, dtype))
    return converted


def _kept(refused: PromotionError, target: Tensor) -> PromotionError:
    """PT205 in the user's words: the value and the destination by their text, the caret on the value, the write with the cast in it."""
    found, span = refused.diagnostic, here()
    write = fixes.write_at(span)
    value = write.value if write is not None else "value"
    narrowed = f"pypto.cast({value}, pypto.{target.dtype.pypto})"
    lines = [f"`{value}` is {refused.rhs}", f"`{target.name}` is {target.dtype}, and a write does not change that"]
    help = narrowed if write is None or "\n" in value else f"say that the narrowing is meant: {write.before}{narrowed}{write.after}"
    place = write.place if write is not None and write.place is not None else span
    refused.diagnostic = replace(found, primary=Label(place) if place is not None else None, notes=tuple(lines), help=help,
                                 fix=narrowed if write is not None and write.place is not None else None)
    refused.args = (refused.diagnostic.render(),)
    return refused


def assemble_into(trace: Trace, target: Tensor, source: Value, offsets: tuple[Index, ...]) -> None:
    """Write the live part of ``source`` into ``target`` at ``offsets``."""
    into = target.value
    try:
        made = trace.emit(lambda: layout.insert(into, source, offsets))
    except PromotionError as refused:
        raise _kept(refused, target) from None
    made.name = target.name
    trace.write(target.cell, made)
