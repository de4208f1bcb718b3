"""Option groups and tile shapes: validated by name and number, kept per kernel, and readable after it."""
from __future__ import annotations

import contextlib
import contextvars
import difflib
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from pypto_dsl.compiler.errors import Label, error, value_text
from pypto_dsl.compiler.graph import PRECISIONS, Value
from pypto_dsl.compiler.ops.definition import OpDefinition
from pypto_dsl.compiler.ops.shapes import shape_text
from pypto_dsl.compiler.promotion import rule_set
from pypto_dsl.frontend import fixes
from pypto_dsl.frontend.scalar import SymbolicScalar, is_symbolic
from pypto_dsl.frontend.spans import here
from pypto_dsl.frontend.trace import TileState, current

# PyPTO's option groups. They steer its runtime and passes and have no meaning here: accepted, checked by name, listed by `explain`.
GROUPS: dict[str, frozenset[str]] = {
    "host_options": frozenset({"compile_stage", "compile_monitor_enable", "compile_timeout", "compile_timeout_stage",
                               "compile_monitor_print_interval"}),
    "runtime_options": frozenset({"run_mode", "device_sched_mode", "stitch_function_max_num", "max_workspace_kb", "valid_shape_optimize",
                                  "ready_on_host_tensors", "device_sched_parallelism", "launch_sched_aicpu_num", "launch_early_mode"}),
    "codegen_options": frozenset({"support_dynamic_aligned", "enable_pmu_trace"}),
    "pass_options": frozenset({"enable_slice", "vec_nbuffer_setting", "cube_l1_reuse_setting", "cube_nbuffer_setting", "sg_set_scope",
                               "auto_mix_partition", "sg_set_ooo_scope", "ooo_sched_mode", "sg_set_tunevf_mode"}),
    "verify_options": frozenset({"enable_pass_verify", "pass_verify_save_tensor", "pass_verify_save_tensor_dir", "pass_verify_pass_filter",
                                 "pass_verify_error_tol"}),
    "debug_options": frozenset({"compile_debug_mode", "runtime_debug_mode", "dump_pass_graph"}),
}
RUN_MODE_NOTE = "note: kernels run on the CPU here and compute real numbers, with run_mode=RunMode.NPU and RunMode.SIM alike"
LINTS = ("on", "off")
MOST_TILE_SIZES = 8


@dataclass(frozen=True)
class KernelOptions:
    """What stands in `@pypto.jit(...)`: ours change meaning, PyPTO's groups are kept for `explain`."""

    promotion: str = "pypto"
    precision: str = "exact"
    lint: str = "on"
    target: str = ""
    groups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def meaning(self) -> dict[str, str]:
        """The options that a graph carries: those that differ from their defaults."""
        chosen = {"promotion": self.promotion, "precision": self.precision}
        return {k: v for k, v in chosen.items() if v != getattr(KernelOptions, k)}


def _near(name: str, known: Sequence[str] | frozenset[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), 1)
    return f"did you mean `{close[0]}`?" if close else f"one of {', '.join(sorted(known))}"


def check_group(group: str, values: Any) -> dict[str, Any]:
    """The options of a group as a dict. Raises PT114 for a group or an option that does not exist."""
    if group not in GROUPS:
        raise error("PT114", f"there is no option `{group}`", here(), help=_near(group, frozenset(GROUPS)))
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise error("PT114", f"`{group}` is a dict of options, and got {value_text(values)}", here(),
                    help=f"{group}={{\"{min(GROUPS[group])}\": ...}}")
    for name in values:
        if name not in GROUPS[group]:
            raise error("PT114", f"`{group}` has no option `{name}`", here(), help=_near(str(name), GROUPS[group]))
    if "run_mode" in values:
        _note_once(RUN_MODE_NOTE)
    return dict(values)


@cache
def _note_once(text: str) -> None:
    """Say something on stderr, once in a process."""
    print(text, file=sys.stderr)


def kernel_options(given: Mapping[str, Any]) -> KernelOptions:
    """Check what stands in `@pypto.jit(...)`. Raises PT114 for unknown names and values, PT207 for unknown promotion rules."""
    groups, ours = {}, {}
    own = ("promotion", "precision", "lint", "target")
    for name, value in given.items():
        if name in GROUPS:
            groups[name] = check_group(name, value)
        elif name in own:
            ours[name] = value
        elif name != "new_ir":
            raise error("PT114", f"@pypto.jit has no option `{name}`", here(), help=_near(name, frozenset((*own, *GROUPS))))
    for name, allowed in (("precision", PRECISIONS), ("lint", LINTS)):
        if name in ours and not (isinstance(ours[name], str) and ours[name] in allowed):
            raise error("PT114", f"`{name}` is {value_text(ours[name])}", here(), help=f"one of {', '.join(allowed)}")
    if not isinstance(ours.get("target", ""), str):
        raise error("PT114", f"`target` is {value_text(ours['target'])}, and a target is named", here(), help='target="llvm-cpu"')
    if "promotion" in ours:
        rule_set(ours["promotion"], here())
    return KernelOptions(**ours, groups=groups)


# ---- scoped options ----------------------------------------------------------------------------------------------------------

_SCOPE: contextvars.ContextVar[Mapping[str, Mapping[str, Any]]] = contextvars.ContextVar("options", default={})  # noqa: B039


def _entered(changes: Mapping[str, Mapping[str, Any]]) -> contextvars.Token[Mapping[str, Mapping[str, Any]]]:
    now = _SCOPE.get()
    return _SCOPE.set({**now, **{g: {**now.get(g, {}), **values} for g, values in changes.items()}})


class options(contextlib.ContextDecorator):
    """`with pypto.options(pass_options={...})` and `@pypto.options(...)`: option groups that hold inside."""

    def __init__(self, name: str = "", **groups: Any) -> None:
        self.changes = {g: check_group(g, v) for g, v in groups.items()}
        self.tokens: list[contextvars.Token[Mapping[str, Mapping[str, Any]]]] = []

    def _recreate_cm(self) -> options:
        return options("", **self.changes)

    def __enter__(self) -> options:
        self.tokens.append(_entered(self.changes))
        return self

    def __exit__(self, *exception: object) -> None:
        _SCOPE.reset(self.tokens.pop())


def set_group(group: str, **values: Any) -> None:
    """`set_pass_options(...)` and its like; inside a kernel also recorded for `explain`."""
    checked = check_group(group, values)
    _entered({group: checked})
    trace = current()
    if trace is not None:
        trace.hints += [(group, f"{k} = {v!r}", here()) for k, v in checked.items()]


def get_group(group: str) -> dict[str, Any]:
    """`get_pass_options()` and its like."""
    return dict(_SCOPE.get().get(group, {}))


def reset_options() -> None:
    """Forget what `set_pass_options(...)` and its like, and `pypto.options(...)`, have set."""
    _SCOPE.set({})


# ---- tile shapes -------------------------------------------------------------------------------------------------------------

TILES: contextvars.ContextVar[TileState | None] = contextvars.ContextVar("tiles_set", default=None)
_LEFT: contextvars.ContextVar[TileState | None] = contextvars.ContextVar("tiles_left", default=None)


def outside() -> TileState:
    """The tile shapes set outside kernels, with which every kernel begins."""
    return TILES.get() or TileState()


# The tile shapes set outside kernels, or None. Every call of a kernel asks, so it is no function in Python.
tiles_outside: Callable[[], TileState | None] = TILES.get


def leave_tiles(state: TileState) -> None:
    """What a kernel set last can be read after it, and is not handed to the next kernel."""
    _LEFT.set(state.copied())


def _read() -> TileState:
    trace = current()
    return trace.tiles if trace is not None else _LEFT.get() or outside()


def _written() -> TileState:
    trace = current()
    if trace is not None:
        return trace.tiles
    state = replace(outside())
    TILES.set(state)
    _LEFT.set(None)
    return state


def _size(what: str, value: Any, position: int) -> int:
    if is_symbolic(value) and isinstance(value, SymbolicScalar) and value.index.constant is None:
        raise error("PT401", f"{what}: size {position} is `{value}`, which is only known when the kernel runs", here(),
                    help="tile sizes are ints: tails of a dynamic extent are handled by themselves")
    try:
        size = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        size = None
    if isinstance(value, bool) or size is None:
        raise error("PT401", f"{what}: size {position} is {value_text(value)}, and sizes are ints", here(),
                    help=f"pypto.{what}(32, 64)")
    if size >= 1 << 31:
        raise error("PT401", f"{what}: size {position} is {value_text(size)}, and no tile is that large", here(),
                    help=f"pypto.{what}(32, 64)")
    if size <= 0:
        span = here()
        raise error("PT401", f"{what}: size {position} is {size}, and every size is at least 1", span, help=f"pypto.{what}(32, 64)",
                    fix=fixes.number(span, size, 1), size=size, position=position)
    return int(size)


def set_vec_tile_shapes(*sizes: Any) -> None:
    """The tile of the operations that follow, one size per axis of their results; in force until set again.

    Raises PT401 for a size that is no positive int, PT403 for none or more than 8. A later operation whose result has more axes than
    the tile has sizes is refused with PT402. A tile never changes a result.
    """
    given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes
    if not 1 <= len(given) <= MOST_TILE_SIZES:
        raise error("PT403", f"set_vec_tile_shapes takes 1 to {MOST_TILE_SIZES} sizes, and got {len(given)}", here(),
                    help="one size per axis of the results: pypto.set_vec_tile_shapes(32, 64)")
    state, sizes_ = _written(), tuple(_size("set_vec_tile_shapes", s, i) for i, s in enumerate(given, 1))
    state.vector, state.vector_set_at = sizes_, here()


def get_vec_tile_shapes() -> list[int]:
    """The tile in force; outside kernels what the last kernel set."""
    return list(_read().vector or ())


def set_cube_tile_shapes(m: Any, k: Any, n: Any, enable_split_k: bool = False, enable_multi_data_load: bool = False) -> None:
    """The tile of matrix products: a size, or (inner, outer) sizes, for each of m, k and n. Raises PT401, PT404."""
    checked = []
    for name, sizes in (("m", m), ("k", k), ("n", n)):
        given = sizes if isinstance(sizes, (list, tuple)) else (sizes,)
        if not 1 <= len(given) <= 3:
            raise error("PT404", f"set_cube_tile_shapes: `{name}` has {len(given)} sizes, and takes one or two (k: three)", here(),
                        help="pypto.set_cube_tile_shapes([64, 64], [64, 64], [64, 64])")
        checked.append(tuple(_size("set_cube_tile_shapes", s, i) for i, s in enumerate(given, 1)))
    _written().cube = (*checked, bool(enable_split_k))


def get_cube_tile_shapes() -> tuple[Any, ...] | None:
    """The matrix tile in force."""
    return _read().cube


def set_conv_tile_shapes(*sizes: Any, **named: Any) -> None:
    """The tile of convolutions: recorded, and shown by `explain`."""
    _written().convolution = (*sizes, *sorted(named.items()))


def get_conv_tile_shapes() -> tuple[Any, ...] | None:
    """What `set_conv_tile_shapes` was given, which nothing reads: there are no convolutions here."""
    return _read().convolution


def set_matrix_size(*sizes: Any) -> None:
    """The extents of the matrix product that follows; the compiler knows them, so this is a hint."""
    given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes
    _written().matrix = tuple(given)


def set_semantic_label(label: str) -> None:
    """A name for the operations that follow, shown by `explain`. Raises PT111 for what is no string."""
    if not isinstance(label, str):
        raise error("PT111", f"a semantic label is a string, and got {label!r}", here())
    _written().label = label
    trace = current()
    if trace is not None:
        trace.hints.append(("semantic_label", label, here()))


_OPERATION: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar("operation_options", default={})  # noqa: B039


def get_operation_options() -> dict[str, Any]:
    """What `set_operation_options` was last given."""
    return dict(_OPERATION.get())


def set_operation_options(**options_: Any) -> None:
    """Hints for single operations (experimental in PyPTO): recorded, and shown by `explain`."""
    _OPERATION.set({**_OPERATION.get(), **options_})
    trace = current()
    if trace is not None:
        trace.hints += [("operation_options", f"{k} = {v!r}", here()) for k, v in options_.items()]


UNTILED = frozenset({"layout", "generator", "scalar", "cast", "matmul"})


def check_tile(state: TileState, definition: OpDefinition, result: Value) -> None:
    """Refuse (PT402) an operation whose result has more axes than the tile in force has sizes; the caret stands where it was set."""
    tile = state.vector or ()
    if definition.family in UNTILED or result.type.rank <= len(tile):
        return
    place = result.op.span if result.op is not None else here()
    others = (Label(place, f"{definition.name} gives {result.type}"),) if place is not None and state.vector_set_at is not None else ()
    enough = ", ".join(["1"] * (result.type.rank - len(tile)) + list(map(str, tile)))
    raise error("PT402", f"the vector tile {list(tile)} has {len(tile)} size{'s' * (len(tile) > 1)}, and the result of {definition.name} "
                f"has {result.type.rank} axes: {shape_text(result.type.shape)}", state.vector_set_at or place, others=others,
                help=f"set one size per axis: pypto.set_vec_tile_shapes({enough})",
                fix=f"pypto.set_vec_tile_shapes({enough})" if state.vector_set_at is not None else None,
                tile=list(tile), rank=result.type.rank)
