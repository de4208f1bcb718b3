"""Every public name of the language, and the error of one that does not exist."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from pypto_dsl import driver, runtime
from pypto_dsl.compiler.dtypes import BY_PYPTO
from pypto_dsl.compiler.errors import CompilerBug, Diagnostic, KernelError
from pypto_dsl.compiler.ops import REGISTRY
from pypto_dsl.compiler.ops.arguments import default_text
from pypto_dsl.frontend import (
    arguments,
    blocks,
    constants,
    loops,
    operations,
    options,
    pass_config,
    products,
    triangles,
    verify,
    vocabulary,
)
from pypto_dsl.frontend.capture import KernelWarning
from pypto_dsl.frontend.foreign import UnknownName, unknown
from pypto_dsl.frontend.scalar import SymbolicScalar
from pypto_dsl.frontend.tensor import Tensor
from pypto_dsl.frontend.vocabulary import ALIASES, UNAVAILABLE, dtype_named


def _groups() -> dict[str, Any]:
    """`set_pass_options(...)` and `get_pass_options()` for every group."""
    made: dict[str, Any] = {}
    for group in options.GROUPS:
        made[f"set_{group}"] = functools.partial(options.set_group, group)
        made[f"get_{group}"] = functools.partial(options.get_group, group)
    return made


NAMES: dict[str, Any] = {
    **{e.__name__: e for e in vocabulary.ENUMERATIONS},
    **_groups(),
    "DYNAMIC": vocabulary.DYNAMIC, "DYN": vocabulary.DYNAMIC, "STATIC": vocabulary.STATIC,
    "DataType": vocabulary.DataType, "Element": vocabulary.Element, "Tensor": Tensor, "tensor": Tensor,
    "SymbolicScalar": SymbolicScalar, "symbolic_scalar": operations.symbolic_scalar,
    "function": blocks.function, "from_torch": arguments.from_torch,
    "jit": driver.jit, "options": options.options, "constant": constants.constant,
    "loop": loops.loop, "loop_unroll": loops.loop_unroll, "cond": loops.cond,
    "is_loop_begin": loops.is_loop_begin, "is_loop_end": loops.is_loop_end,
    "matmul": products.matmul, "scaled_mm": products.scaled_mm, "tril": triangles.tril, "triu": triangles.triu,
    "min": operations.min, "max": operations.max, "ceildiv": operations.ceildiv, "bytes_of": operations.bytes_of,
    **{n: getattr(options, n) for n in ("set_vec_tile_shapes", "get_vec_tile_shapes", "set_cube_tile_shapes", "get_cube_tile_shapes",
                                        "set_conv_tile_shapes", "get_conv_tile_shapes", "set_matrix_size", "set_semantic_label",
                                        "reset_options")},
    **{n: getattr(pass_config, n) for n in ("set_pass_config", "get_pass_config", "get_pass_configs", "set_pass_default_config",
                                            "get_pass_default_config")},
    "ROUND_DOWN": vocabulary.DequantScaleRoundingMode.ROUND_DOWN, "ROUND_UP": vocabulary.DequantScaleRoundingMode.ROUND_UP,
    **{n: getattr(verify, n) for n in ("set_verify_golden_data", "pass_verify_print", "pass_verify_save")},
    "platform": SimpleNamespace(npuarch=""),
    "error": SimpleNamespace(FeError=KernelError, PyptoError=KernelError),
    "KernelError": KernelError, "KernelWarning": KernelWarning, "CompilerBug": CompilerBug, "Diagnostic": Diagnostic,
}
vars(runtime).update(blocks.RUNTIME)
# Other names of operations in PyPTO.
OPERATION_ALIASES = {"greater": "gt"}


def lookup(name: str) -> Any:
    """The object of a public name.

    Raises UnknownName: PT127 for what PyPTO has and this language does not, else PT109 with the nearest name that exists.
    """
    if name in NAMES:
        return NAMES[name]
    if name in BY_PYPTO or name in ALIASES or name in UNAVAILABLE:
        return dtype_named(name)
    try:
        return operations.function_named(OPERATION_ALIASES.get(name, name))
    except KeyError:
        pass
    raise unknown("pypto.", "pypto", name, names())


def names() -> list[str]:
    """Every public name."""
    return sorted({*NAMES, *BY_PYPTO, *OPERATION_ALIASES, *operations.operation_names()})


def public_signature(name: str, function: Callable[..., Any] | None = None) -> str:
    """`sum(input, dim=None, keepdim=False)`: how the function of a public name, or ``function``, is called. Raises as `lookup`."""
    parts: list[str] = []
    kinds = inspect.Parameter
    for p in inspect.signature(function or lookup(name)).parameters.values():
        if p.kind is kinds.KEYWORD_ONLY and not [part for part in parts if part.startswith("*")]:
            parts.append("*")
        star = "*" if p.kind is kinds.VAR_POSITIONAL else "**" if p.kind is kinds.VAR_KEYWORD else ""
        parts.append(f"{star}{p.name}" + ("" if p.default is kinds.empty else f"={default_text(p.default)}"))
    return f"{name}({', '.join(parts)})"


def public_doc(name: str) -> str:
    """What the function of a public name says of itself, without its signature. Raises as `lookup`."""
    function = lookup(name)
    own = hasattr(function, "__wrapped__") or name not in REGISTRY
    return inspect.getdoc(function) or "" if own else REGISTRY[name].doc


__all__ = ["NAMES", "UnknownName", "lookup", "names", "public_doc", "public_signature"]
