"""PyPTO's experimental names: sparse and paged attention's row gathers, the parts of an online softmax, a transposed batched product."""
from __future__ import annotations

from typing import Any
from typing import cast as cast_type

from pypto_dsl.compiler.dtypes import BF16, F32, DType
from pypto_dsl.compiler.errors import error
from pypto_dsl.compiler.index import Index, as_index
from pypto_dsl.compiler.ops.shapes import shape_text
from pypto_dsl.frontend.operations import called_outside_too, cast, tensor_operand, view
from pypto_dsl.frontend.operations import function_named as operation
from pypto_dsl.frontend.products import matmul
from pypto_dsl.frontend.spans import here
from pypto_dsl.frontend.tensor import Tensor, wrap


def _paged(x: Tensor) -> Tensor:
    """The matrix whose rows a page table numbers: of a window of whole rows, all rows of its source from the window's first one on."""
    window = x.value.op
    if x.dim != 2 or window is None or window.opcode != "view" or window.operands[0].type.shape[1] != x.type.shape[1]:
        return x
    source = window.operands[0]
    first = as_index(cast_type("tuple[Index | int, ...]", window.attributes["offsets"])[0])
    whole: Tensor = wrap(source)
    return whole if first.constant == 0 else view(whole, [source.type.shape[0] - first, source.type.shape[1]], [first, 0])


def _gathered(name: str, source: Any, indices: Any, block_table: Any, block_size: int) -> Any:
    """Rows of a paged [rows, width] tensor: logical row i lies at ``block_table[i // block_size] * block_size + i % block_size``."""
    rows, wanted, table = (tensor_operand(x, name) for x in (source, indices, block_table))
    for label, x in (("indices", wanted), ("block_table", table)):
        if x.dim != 2 or x.shape[0] != 1 or not x.dtype.is_integer:
            raise error("PT312", f"{name}: `{label}` is {x.dtype} {shape_text(x.type.shape)}, and integers of shape [1, n] are needed",
                        here(), help="take one row: indices[i:i + 1, :]")
    if rows.dim != 2:
        raise error("PT312", f"{name}: the rows are taken from a matrix, and got {shape_text(rows.type.shape)}", here(),
                    help="reshape it to [rows, width]")
    if isinstance(block_size, bool) or not isinstance(block_size, int) or block_size < 1:
        raise error("PT111", f"{name}: `block_size` is {block_size!r}, and a positive int is needed", here())
    count, pages = wanted.shape[1], table.shape[1]
    live = wanted.valid_shape[1]
    token = operation("reshape")(wanted, [count], valid_shape=[live])
    page = operation("floor_div")(token, block_size)
    physical = operation("index_select")(operation("reshape")(table, [pages]), 0, page)
    within = operation("remainder")(token, block_size)
    place = operation("add")(operation("mul")(cast(physical, token.dtype), block_size), within)
    return operation("index_select")(rows, 0, place)


@called_outside_too
def gather_in_ub(param: Any, indices: Any, block_table: Any, block_size: int, axis: int = -2) -> Any:
    """The rows of a paged cache ``param`` [rows, width] that ``indices`` [1, k] name, through ``block_table`` [1, pages]: [k, width].

    Row i lies at ``block_table[0, i // block_size] * block_size + i % block_size``. Where ``param`` is a window of whole rows, that
    counts from the window's first row and may lie behind its last: the row is its source's. Raises PT111 for another axis, PT312 for
    shapes.
    """
    if axis not in (-2, 0):
        raise error("PT111", f"gather_in_ub gathers rows, axis -2, and got axis {axis!r}", here(), help="axis=-2")
    return _gathered("gather_in_ub", _paged(tensor_operand(param, "gather_in_ub")), indices, block_table, block_size)


@called_outside_too
def gather_in_l1(src: Any, indices: Any, block_table: Any, block_size: int, size: int, is_b_matrix: bool = False,
                 is_trans: bool = False) -> Any:
    """As `gather_in_ub`, of the first ``size`` columns: [k, size]. Where it lies on the device is left to the compiler, so that
    ``is_b_matrix`` and ``is_trans`` change nothing. Raises PT111, PT312."""
    source = _paged(tensor_operand(src, "gather_in_l1"))
    columns = source if source.dim != 2 or source.shape[1] == size else view(source, [source.shape[0], size], [0, 0])
    return _gathered("gather_in_l1", columns, indices, block_table, block_size)


@called_outside_too
def transposed_batchmatmul(tensor_a: Any, tensor_b: Any, out_dtype: DType) -> Any:
    """[M, B, K] times [B, K, N] as [M, B, N]: the product of each B, accumulated in f32. Raises PT303, PT304 for shapes."""
    product = matmul(operation("transpose")(tensor_operand(tensor_a, "transposed_batchmatmul"), 0, 1), tensor_b, out_dtype)
    return operation("transpose")(product, 0, 1)


@called_outside_too
def online_softmax(scores: Any, scale: float) -> Any:
    """Column statistics of one block of ``scores`` [k, q] times ``scale``: (exp(x - max) in BF16, max [1, q], sum of exp [1, q])."""
    scaled = operation("mul")(tensor_operand(scores, "online_softmax"), scale)
    largest = operation("amax")(scaled, 0, True)
    weights = operation("exp")(operation("sub")(scaled, largest))
    return cast(weights, BF16), largest, operation("sum")(weights, 0, True)


@called_outside_too
def online_softmax_update(previous_max: Any, previous_sum: Any, previous_output: Any, current_max: Any, current_sum: Any,
                          current_output: Any) -> Any:
    """Two blocks' column maxima and sums [1, q] and outputs [d, q] as those of both blocks together: (max, sum, output), in FP32."""
    before, now = (cast(tensor_operand(x, "online_softmax_update"), F32) for x in (previous_max, current_max))
    largest = operation("maximum")(before, now)
    old, new = (operation("exp")(operation("sub")(x, largest)) for x in (before, now))

    def joined(a: Any, b: Any) -> Any:
        return operation("add")(operation("mul")(a, old), operation("mul")(b, new))

    return largest, joined(previous_sum, current_sum), joined(previous_output, current_output)


__all__ = ["gather_in_l1", "gather_in_ub", "online_softmax", "online_softmax_update", "transposed_batchmatmul"]
