"""Arguments of a call: arrays of any maker as NumPy views on the caller's memory, checked before anything is written."""
from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from pypto_dsl.compiler.dtypes import ALL, BY_NUMPY, DType, of_numpy
from pypto_dsl.compiler.errors import KernelError, Label, error, value_text
from pypto_dsl.compiler.graph import Check, Graph
from pypto_dsl.compiler.index import Index, Spelling, text
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.shapes import KEEPDIM, WHOLE_AXIS, broadcast, shape_text
from pypto_dsl.compiler.span import Span
from pypto_dsl.frontend.spans import here
from pypto_dsl.frontend.vocabulary import Annotation, TileOpFormat, dtype_meant

Array = np.ndarray[Any, np.dtype[Any]]

# Dtypes that torch has and NumPy lacks, by the name that both give them: the integer dtype that their bits cross as.
_TORCH_BITS = {d.numpy_name: "int16" if d.bits == 16 else "uint8" for d in ALL if d.beyond_numpy}


def _torch() -> Any:
    """torch if the caller has loaded it; it is never imported here."""
    return sys.modules.get("torch")


def is_array(x: object) -> bool:
    """Whether ``x`` is an array of some maker. NumPy scalars are numbers, not arrays."""
    if isinstance(x, (np.ndarray, HostTensor)):
        return True
    if isinstance(x, (np.generic, type)):
        return False
    return hasattr(x, "__dlpack__") or hasattr(x, "__array_interface__") or (
        getattr(_torch(), "Tensor", None) is not None and isinstance(x, _torch().Tensor))


# DLPack's numbers of kinds of devices.
_DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 12: "Ascend", 14: "oneAPI"}
_HOST_MEMORY = frozenset({1, 3, 11, 13})  # those whose memory the CPU reads: its own, pinned by CUDA or ROCm, managed


def as_array(x: Any, name: str = "") -> Array:
    """A NumPy view on the memory of an array of any maker; writable when the maker allows.

    Raises PT705 for memory that is not on the CPU, PT708 for an array that no NumPy dtype describes.
    """
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, HostTensor):
        return x.array
    torch = _torch()
    if torch is not None and isinstance(x, getattr(torch, "Tensor", ())):
        return _torch_array(torch, x, name)
    try:
        if hasattr(x, "__array_interface__"):
            return np.asarray(x)
        if not is_array(x):
            raise TypeError("it is no array")
        device = x.__dlpack_device__()[0]
        if device not in _HOST_MEMORY:
            where = _DEVICES.get(int(device), f"device kind {int(device)}")
            raise error("PT705", f"`{name}` ({type(x).__name__}) is on {where}, and kernels run on the CPU here", here(),
                        help=f"copy it to the CPU's memory first: {name or 'x'}.cpu()")
        return np.from_dlpack(x)
    except (BufferError, TypeError, ValueError, RuntimeError) as failed:
        raise error("PT708", f"`{name}` ({type(x).__name__}) cannot be read as an array: {failed}", here(),
                    help="pass a NumPy array, or an array in CPU memory with __dlpack__") from None


def _torch_array(torch: Any, x: Any, name: str) -> Array:
    if x.device.type != "cpu":
        raise error("PT705", f"`{name}` is on {x.device}, and kernels run on the CPU here", here(), help=f"pass {name or 'x'}.cpu()")
    x = x.detach()
    if x.is_conj() or x.is_neg():
        x = x.resolve_conj().resolve_neg()
    name = str(x.dtype).removeprefix("torch.")
    bits = _TORCH_BITS.get(name)
    array: Array = x.numpy() if bits is None else x.view(getattr(torch, bits)).numpy().view(BY_NUMPY[name].numpy)
    return array


@dataclass(frozen=True, eq=False)
class HostTensor:
    """An array under a name, as `pypto.from_torch` gives it: an argument of kernels whose ``dynamic_axis`` stay symbols."""

    given: Any
    array: Array
    dtype: DType
    name: str = ""
    dynamic_axis: tuple[int, ...] = ()
    format: TileOpFormat = TileOpFormat.TILEOP_ND

    @property
    def shape(self) -> list[int]:
        """The extents."""
        return list(self.array.shape)

    @property
    def dim(self) -> int:
        """The number of axes."""
        return self.array.ndim


def from_torch(tensor: Any, name: str = "", *, dynamic_axis: Sequence[int] | None = None, tensor_format: TileOpFormat | None = None,
               dtype: DType | None = None) -> HostTensor:
    """A torch tensor on the CPU, or any other array, as an argument: its elements are not copied. A scalar has one axis.

    ``dynamic_axis`` names axes over which a kernel is not compiled again, where its annotation says nothing; ``dtype`` reads the bits as
    another dtype of the same width. Raises PT702 for one of another width, PT705 and PT708 as calls do, PT309 for an axis that is none,
    PT111 for a name that is no text, PT117 for what is no dtype.
    """
    if not isinstance(name, str):
        raise error("PT111", f"from_torch names an array by text, and got {value_text(name)}", here(), help='from_torch(tensor, "x")')
    if dtype is not None and not isinstance(dtype, DType):
        raise error("PT117", f"from_torch takes a dtype, and got {value_text(dtype)}", here(), help=dtype_meant(dtype))
    array = as_array(tensor, name or "tensor")
    array = array.reshape(1) if array.ndim == 0 else array
    if dtype is not None and dtype.numpy != array.dtype:
        if dtype.itemsize != array.dtype.itemsize:
            raise error("PT702", f"`{name or 'tensor'}` has elements of {array.dtype.itemsize} bytes, and {dtype.pypto} of "
                        f"{dtype.itemsize}", here(), help="convert the tensor first")
        array = array.view(dtype.numpy)
    found = of_numpy(array.dtype)
    if found is None:
        raise error("PT708", f"from_torch: an array of dtype {array.dtype} has no twin here", here())
    axes = tuple(a + array.ndim if a < 0 else a for a in dynamic_axis or ())
    wrong = [a for a in axes if not 0 <= a < array.ndim]
    if wrong:
        raise error("PT309", f"from_torch: `dynamic_axis` names axis {wrong[0]} of a tensor with {array.ndim}", here())
    return HostTensor(tensor, array, found, name, axes, tensor_format or TileOpFormat.TILEOP_ND)


@dataclass(frozen=True)
class TensorArgument:
    """One array of a call: its name, view, dtype, and which axes stay symbols."""

    name: str
    array: Array
    dtype: DType
    dynamic: tuple[bool, ...]
    given: Any = None

    def key(self) -> tuple[Any, ...]:
        """What a specialisation depends on: dtype, rank and static extents."""
        return self.dtype, tuple(None if d else n for d, n in zip(self.dynamic, self.array.shape, strict=True))


def checked(name: str, given: Any, promise: Annotation, declared_at: Callable[[], Span | None], kernel: str) -> TensorArgument:
    """An array argument against its annotation.

    Raises PT702 for another dtype than annotated, PT703 another rank, PT704 another extent, PT708 a dtype that does not exist here.
    """
    array = as_array(given, name)
    dtype = of_numpy(array.dtype)

    def others() -> tuple[Label, ...]:
        span = declared_at()
        return (Label(span, "annotated here"),) if span is not None else ()

    if dtype is None:
        raise error("PT708", f"`{name}` of {kernel} has dtype {array.dtype}, which does not exist here", here(), others=others(),
                    help="pass float32, float16, bfloat16 (ml_dtypes), float64, bool or an integer of 8 to 64 bits")
    if promise.dtype is not None and promise.dtype != dtype:
        raise error("PT702", f"`{name}` of {kernel} does not match the dtype: annotated {promise.dtype.pypto}, "
                    f"the array is {dtype.pypto}", here(), others=others(),
                    help=f"pass {name}.astype({promise.dtype.numpy_name!r}), or annotate pypto.{dtype.pypto}")
    pattern = promise.pattern(array.ndim)
    if pattern is None:
        raise error("PT703", f"`{name}` of {kernel} is annotated with {len(promise.shape or ())} dimensions, and the array has "
                    f"{array.ndim}: {list(array.shape)}", here(), others=others(), help="reshape the array, or change the annotation")
    for axis, (entry, extent) in enumerate(zip(pattern, array.shape, strict=True)):
        if isinstance(entry, int) and entry not in (-1, extent):
            wanted = [e if isinstance(e, int) and e != -1 else n for e, n in zip(pattern, array.shape, strict=True)]
            raise error("PT704", f"`{name}` of {kernel} does not match the shape: axis {axis} is annotated {entry}, "
                        f"the array has {extent}", here(), others=others(),
                        help=f"pass an array of shape {wanted}, or annotate the axis pypto.DYNAMIC")
    open_ = given.dynamic_axis if isinstance(given, HostTensor) else ()
    dynamic = tuple(promise.is_dynamic(e) or (axis in open_ and not isinstance(e, int)) for axis, e in enumerate(pattern))
    return TensorArgument(name, array, dtype, dynamic, given.given if isinstance(given, HostTensor) else given)


def symbol_values(graph: Graph, arrays: Mapping[str, Array], scalars: Mapping[str, int]) -> dict[str, int]:
    """The value of every dimension and scalar symbol of a call."""
    values = {}
    for symbol in graph.symbols.values():
        if symbol.kind == "dim":
            values[symbol.name] = int(arrays[symbol.parameter].shape[symbol.axis])
        elif symbol.kind == "scalar":
            values[symbol.name] = scalars[symbol.parameter or symbol.name]
    return values


_ACCESSES = {"load_scalar": "an element that is read", "insert": "what is written"}  # operations, in the words of a message


def check_extents(graph: Graph, values: Mapping[str, int]) -> None:
    """Every extent that must agree agrees (PT707), no access leaves its tensor (PT710), and what has no value of nothing gets something
    (PT306), before anything is written."""
    for check in graph.checks:
        left, right = check.left.evaluate(values), check.right.evaluate(values)
        if (left, right) == (1, 0) and check.is_bound and check.what in REGISTRY and REGISTRY[check.what].family == "reduce":
            of = text(check.right, Spelling(names=lambda name: _spelled(graph, name)))
            raise error("PT306", f"{check.what} over an axis of extent `{of}` = 0 has no value", check.span, others=_called(),
                        help=f"{check.what} needs at least one element; sum and prod of nothing are 0 and 1")
        if left != right and check.is_bound:
            limit = text(check.right, Spelling(names=lambda name: _spelled(graph, name)))
            what = _ACCESSES.get(check.what, check.what or "the kernel")
            raise error(
                "PT710",
                f"{what} begins at {-left}, before its tensor" if check.right.constant == 0 else
                f"{what} reaches {left} where `{limit}` is {right}",
                check.span,
                others=_called(),
                help="guard the access, or clamp its offset: pypto.max(offset, 0), pypto.min(offset, x.shape[0] - 1)",
                left=left,
                right=right,
            )
        if left != right:
            raise _disagreement(graph, check, values, left, right)


def _disagreement(graph: Graph, check: Check, values: Mapping[str, int], left: int, right: int) -> KernelError:
    """PT707 with both shapes as the user writes them and as they are in this call."""

    def spelled(x: Index) -> str:
        return text(x, Spelling(names=lambda name: _spelled(graph, name)))

    sides = [spelled(side) for side in (check.left, check.right)]
    of = f" of {' and '.join(shape_text([spelled(e) for e in s]) for s in check.shapes)}" if check.shapes else ""
    notes = [f"in this call the shapes are {' and '.join(shape_text([e.evaluate(values) for e in s]) for s in check.shapes)}"]
    constant = next((k for k in (0, 1) if (check.left, check.right)[k].constant is not None), None)
    help = "pass arrays whose extents agree"
    if constant is not None:
        help = f"pass arrays with `{sides[1 - constant]}` of {sides[constant]}; or reshape an operand, if other axes should meet"
    if 1 in (left, right) and check.what in REGISTRY and REGISTRY[check.what].shape is broadcast:
        one = sides[0 if left == 1 else 1]
        help = f"annotate the axis 1 or pypto.STATIC: `{one}` is only known to be 1 in this call, and such an axis is not repeated"
    if check.what == WHOLE_AXIS:
        help = "repeat the value, pypto.expand_clone(value, shape), or write a part of the axis with out[a:b, 0:1] = value"
    if check.dropped:
        help = KEEPDIM.format(check.dropped)
    return error("PT707", f"{check.what}{of} needs `{sides[0]}` and `{sides[1]}` to be equal, and they are {left} and {right}", check.span,
                 others=_called(), notes=tuple(notes) if check.shapes else (), help=help, left=left, right=right)


def _spelled(graph: Graph, name: str) -> str:
    """A symbol as the user writes it: `x.shape[0]`."""
    symbol = graph.symbols.get(name)
    return f"{symbol.parameter}.shape[{symbol.axis}]" if symbol is not None and symbol.kind == "dim" else name


def _called() -> tuple[Label, ...]:
    span = here()
    return (Label(span, "called here"),) if span is not None else ()


def check_outputs(kernel: str, written: Sequence[tuple[str, Array]]) -> None:
    """Every array that is written can be written (PT706), and no two elements written share memory (PT709)."""
    for name, array in written:
        if not array.flags.writeable:
            raise error("PT706", f"`{name}` is written by {kernel}, and the array is read-only", here(),
                        help="pass a writable copy, or return the result instead: return value")
        if 0 in array.strides and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True)) and array.size:
            raise error("PT709", f"`{name}` is written by {kernel}, and its elements share memory "
                        f"(shape {list(array.shape)}, strides {list(array.strides)})", here(),
                        help=f"pass a dense array, such as np.empty({tuple(array.shape)}, np.{array.dtype.name})")
    for i, (name, array) in enumerate(written):
        for other, second in written[i + 1:]:
            if np.may_share_memory(array, second) and np.shares_memory(array, second):
                raise error("PT709", f"`{name}` and `{other}` are both written by {kernel}, and share memory", here(),
                            help="pass two arrays")


def as_numpy(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """A call's arguments with NumPy views for torch's CPU tensors; None when there is none, or one that needs a closer look."""
    torch = _torch()
    kind = getattr(torch, "Tensor", None)
    if kind is None or kind not in map(type, args):
        return None
    viewed = []
    for a in args:
        if type(a) is kind:
            if a.device.type != "cpu":
                return None
            try:
                a = _torch_array(torch, a, "") if _lacks_twin(a.dtype) else a.numpy()
            except RuntimeError:  # it records gradients, or is conjugated lazily
                a = _torch_array(torch, a, "")
        viewed.append(a)
    return tuple(viewed)


@cache
def _lacks_twin(dtype: Any) -> bool:
    """Whether NumPy has no dtype like torch's."""
    return str(dtype).removeprefix("torch.") in _TORCH_BITS


def likewise(args: tuple[Any, ...], made: Any) -> Any:
    """What a call on NumPy views of ``args`` has returned, as the first array among ``args`` is."""
    if made is None:
        return None
    sample = next(a for a in args if is_array(a))
    return tuple([like(sample, r) for r in made]) if isinstance(made, tuple) else like(sample, made)


def like(sample: Any, array: Array) -> Any:
    """A result as the caller's kind of array: a torch tensor when the first argument was one, else the NumPy array."""
    torch = _torch()
    if torch is None or not isinstance(sample, getattr(torch, "Tensor", ())):
        return array
    dense = np.ascontiguousarray(array)
    bits = _TORCH_BITS.get(array.dtype.name)
    return torch.from_numpy(dense) if bits is None else torch.from_numpy(dense.view(bits)).view(getattr(torch, array.dtype.name))


def shape_of(argument: TensorArgument) -> str:
    """The shape and dtype of an argument, as messages write them."""
    return f"{argument.dtype}[{', '.join(map(str, argument.array.shape))}]"


__all__ = ["Array", "TensorArgument", "as_array", "as_numpy", "check_extents", "check_outputs", "checked", "is_array", "like", "likewise",
           "shape_of", "shape_text", "symbol_values"]
