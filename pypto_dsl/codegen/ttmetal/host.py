"""host.py: the Python program that runs the emitted kernels through ttnn.generic_op, spelled from the manifest alone."""
from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pypto_dsl.codegen.host_steps import condition, kernel_rows
from pypto_dsl.compiler.tile_ir.placed import OWN

CONFIGS = {"reader": "ttnn.ReaderConfigDescriptor()", "writer": "ttnn.WriterConfigDescriptor()"}
TTNN_DTYPES = {"f32": "float32", "bf16": "bfloat16", "i32": "int32", "bfp8_b": "bfloat8_b", "bfp4_b": "bfloat4_b",
                "bool": "bfloat16"}

# Operations of a condition in Python.
CONDITIONS = {"eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "le": "{} <= {}", "gt": "{} > {}", "ge": "{} >= {}",
              "logical_and": "({} and {})", "logical_or": "({} or {})", "logical_not": "not ({})",
              "bitwise_and": "({} and {})", "bitwise_or": "({} or {})", "bitwise_xor": "({}) != ({})", "bitwise_not": "not ({})"}

# Names that host.py has itself.
RESERVED = frozenset({"device", "tensors", "rings", "roles", "run", "expect", "ttnn", "struct", "pathlib", "HERE", "f32_word", "bf16_word",
                      "compute_config", "start", "count", "min", "max", "ValueError"})

HEAD = '''\
import pathlib
import struct

import ttnn

HERE = pathlib.Path(__file__).resolve().parent


def f32_word(value):
    """A number as the 32-bit word that a kernel takes."""
    return struct.unpack("<I", struct.pack("<f", value))[0]


def bf16_word(value):
    """A number rounded to bf16, nearest even, as the f32 word that a kernel takes."""
    word = f32_word(value)
    return word if value != value else (word + 0x7FFF + (word >> 16 & 1)) & 0xFFFF0000


def compute_config(fp32_dest, direct):
    config = ttnn.ComputeConfigDescriptor()
    config.math_fidelity = ttnn.MathFidelity.@FIDELITY@
    config.fp32_dest_acc_en = fp32_dest
    if direct:  # f32 circular buffers that are unpacked whole to DST, not through tf32
        modes = ttnn.UnpackToDestMode
        config.unpack_to_dest_mode = [modes.UnpackToDestFp32 if cb in direct else modes.Default for cb in range(@RINGS@)]
    return config


def expect(name, tensor, shape):
    """Kernels address whole tiles of the last two dimensions: the tensor must have the folded shape they were made for."""
    *lead, rows, columns = (1, 1, *tensor.shape)
    count = 1
    for extent in lead:
        count *= extent
    *wanted, wanted_rows, wanted_columns = (1, 1, *shape)
    for extent in wanted:
        count //= extent
    if count != 1 or (rows, columns) != (wanted_rows, wanted_columns):
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}; reshape it to {list(shape)}")


def run(device, tensors, order, items, rings, roles):
    """One kernel over the device's grid: every core takes an equal share of the items."""
    if items == 0:
        return
    grid = device.compute_with_storage_grid_size()
    cores = [ttnn.CoreCoord(n % grid.x, n // grid.x) for n in range(min(items, grid.x * grid.y))]
    core_set = ttnn.CoreRangeSet([ttnn.CoreRange(core, core) for core in cores])
    share = [(n * items // len(cores), (n + 1) * items // len(cores)) for n in range(len(cores))]
    descriptors = [
        ttnn.CBDescriptor(total_size=pages * page_size, core_ranges=core_set, format_descriptors=[
            ttnn.CBFormatDescriptor(buffer_index=index, data_format=data_format, page_size=page_size)])
        for index, data_format, page_size, pages in rings]
    kernels = []
    for path, accessors, arguments, settings in roles:
        words = [w for name in accessors for w in ttnn.TensorAccessorArgs(tensors[name]).get_compile_time_args()]
        kernels.append(ttnn.KernelDescriptor(
            kernel_source=str(HERE / path), source_type=ttnn.KernelDescriptor.SourceType.FILE_PATH, core_ranges=core_set,
            compile_time_args=words, config=settings,
            runtime_args=[(core, arguments(begin, end - begin)) for core, (begin, end) in zip(cores, share)]))
    program = ttnn.ProgramDescriptor(kernels=kernels, semaphores=[], cbs=descriptors)
    ttnn.generic_op([tensors[name] for name in order], program)
'''


def host_text(manifest: Mapping[str, Any]) -> str:
    """The text of host.py for a program's manifest."""
    manifest = _renamed(manifest)
    name = _identifier(manifest["name"])
    head = HEAD.replace("@FIDELITY@", manifest["fidelity"]).replace("@RINGS@", str(manifest["ring_count"]))
    source = next((k["source"] for k in kernel_rows(manifest["steps"]) if k["source"]), None)
    lines = [f'"""{manifest["name"]} through ttnn.generic_op. Generated{f" from {source}" if source else ""} for ttnn {manifest["ttnn"]}; '
             'not run on a device."""', *head.splitlines(), "", ""]
    arguments = [a["name"] for a in manifest["arguments"]]
    users = [s["name"] for s in manifest["scalars"] if s["name"] not in _extents(manifest)]
    lines.append(f"def {name}({', '.join(['device', *map(_identifier, arguments), *map(_identifier, users)])}):")
    lines += [f"    {line}" for line in _bindings(manifest)]
    for left, right in manifest["checks"]:
        lines += [f"    if {left} != {right}:",
                  f'        raise ValueError(f"{left} is {{{left}}}, and must be {right}, which is {{{right}}}")']
    named = ", ".join(f'"{a}": {_identifier(a)}' for a in arguments)
    lines.append(f"    tensors = {{{named}}}")
    for w in manifest["workspaces"]:
        if w.get("host"):
            continue
        shape = ", ".join(w["shape"])
        dtype = TTNN_DTYPES[w["dtype"]]
        lines.append(f'    tensors["{w["name"]}"] = ttnn.empty([{shape}], dtype=ttnn.{dtype}, layout=ttnn.TILE_LAYOUT, device=device)')
    numbers = frozenset(w["name"] for w in manifest["workspaces"] if w.get("host"))
    lines += _indented(_steps(manifest["steps"], manifest["name"], numbers))
    written = [a["name"] for a in manifest["arguments"] if a["role"] != "in"]
    lines.append(f"    return {', '.join(map(_identifier, written)) or None}")
    return "\n".join(lines) + "\n"


def _identifier(name: str) -> str:
    """A name as a variable of host.py: placement's own names plain, users' with an underscore where host.py has that name itself."""
    if name.startswith(OWN):
        return name.removeprefix(OWN)
    plain = re.sub(r"\W", "_", name)
    return f"{plain}_" if plain in RESERVED or keyword.iskeyword(plain) else plain


EXPRESSIONS = frozenset({"shape", "requires", "items", "pages", "start", "stop", "step", "needed", "available", "element", "checks"})
NAMES = frozenset({"loop", "symbol", "read", "number"})


def _renamed(part: Any, key: str = "") -> Any:
    """A manifest, or a part of it under ``key``, with index expressions and names of numbers over variables of host.py."""
    if isinstance(part, Mapping):
        own = ("dtype" in part and "value" in part) or ("dtype" in part and set(part) == {"name", "dtype"})  # a scalar
        return {k: _identifier(v) if own and k == "name" else _renamed(v, k) for k, v in part.items()}
    if isinstance(part, str):
        return _expression(part) if key in EXPRESSIONS or key == "value" else _identifier(part) if key in NAMES else part
    if isinstance(part, (list, tuple)) and key in ("branch", "value", "number"):
        return _condition(part)
    if isinstance(part, (list, tuple)):
        return [_renamed(x, key) for x in part]
    return part


def _condition(row: Sequence[Any]) -> list[Any]:
    head, *rest = row
    if head in ("index", "number"):
        return [head, (_expression if head == "index" else _identifier)(rest[0])]
    return [head, *(_condition(r) if isinstance(r, (list, tuple)) else r for r in rest)]


def _expression(text: str) -> str:
    """An index expression over variables of host.py."""
    return re.sub(r"[^\W\d][\w.]*", lambda found: found[0] if found[0] in ("min", "max") else _identifier(found[0]), text)


def _extents(manifest: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """Extent -> (argument, dimension) that gives it."""
    found: dict[str, tuple[str, int]] = {}
    for a in manifest["arguments"]:
        for i, e in enumerate(a["shape"]):
            if re.fullmatch(r"[A-Za-z_]\w*", e):
                found.setdefault(e, (a["name"], i))
    return found


def _bindings(manifest: Mapping[str, Any]) -> Iterable[str]:
    for extent, (argument, i) in _extents(manifest).items():
        yield f"{extent} = {_identifier(argument)}.shape[{i}]"


def _steps(steps: Sequence[Any], title: str, numbers: frozenset[str]) -> list[str]:
    """Kernels and what the host does between them; ``numbers`` are the workspaces that are its variables."""
    return [line for step in steps for line in (_step(step, title) if isinstance(step, list) else _between(step, title, numbers))]


def _between(step: Mapping[str, Any], title: str, numbers: frozenset[str]) -> list[str]:
    if "loop" in step:
        head = f"for {step['loop']} in range({step['start']}, {step['stop']}, {step['step']}):"
        return [head, *_indented(_steps(step["steps"], title, numbers))]
    if "branch" in step:
        lines = [f"if {_number(step['branch'])}:", *(_indented(_steps(step["steps"], title, numbers)) or ["    pass"])]
        return lines + (["else:", *_indented(_steps(step["orelse"], title, numbers))] if step["orelse"] else [])
    if "number" in step:
        return [f"{step['number']} = {_number(step['value'])}"]
    if "read" in step:
        names = " = ".join(dict.fromkeys(n for n in (step["symbol"], step["read"]) if n))
        if step["tensor"] in numbers:
            return [f"{names} = {step['tensor']}"]
        return [f'{names} = ttnn.to_torch(tensors["{step["tensor"]}"]).flatten()[{step["element"]}].item()']
    return [f"if {step['needed']} > {step['available']}:",
            f'    raise ValueError(f"{step["guard"]} reaches {{{step["needed"]}}} where {step["available"]} is {{{step["available"]}}}")']


def _number(row: Sequence[Any]) -> str:
    """A number of the host."""
    return condition(row, CONDITIONS, lambda text: text if text.isalnum() else f"({text})", str)


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _step(variants: list[Mapping[str, Any]], title: str) -> list[str]:
    """The kernel of a step whose requirements hold, or an error that names them."""
    lines: list[str] = []
    for i, kernel in enumerate(variants):
        conditions = " and ".join(f"{c} >= 0" for c in kernel["requires"])
        if not conditions and i == 0:
            return [f"# {kernel['name']}", *_kernel(kernel)]
        head = f"{'if' if i == 0 else 'elif'} {conditions}:" if conditions else "else:"
        lines += [head, *(f"    {line}" for line in _kernel(kernel))]
        if not conditions:
            return lines
    lines += ["else:", f'    raise ValueError("no schedule of {title} takes tensors of these extents")']
    return lines


def _kernel(kernel: Mapping[str, Any]) -> list[str]:
    lines = [f"{s['name']} = {_value(s)}" for s in kernel["scalars"] if s["value"] is not None]
    for p in kernel["params"]:
        lines.append(f'expect("{p["tensor"]}", tensors["{p["tensor"]}"], ({", ".join(p["shape"])},))')
    bound = {p["name"]: p["tensor"] for p in kernel["params"]}
    lines.append("rings = [")
    for r in kernel["rings"]:
        lines.append(f"    ({r['index']}, ttnn.{TTNN_DTYPES[r['dtype']]}, {r['page_bytes']}, {r['pages']}),  # {r['name']}")
    lines.append("]")
    lines.append("roles = [")
    for role in ("reader", "writer", "compute"):
        r = kernel["roles"][role]
        words = ", ".join(_argument(a, bound, kernel) for a in r["arguments"])
        accessors = ", ".join(f'"{bound[a]}"' for a in r["accessors"])
        config = CONFIGS.get(role, f"compute_config({kernel['fp32_dest']}, {kernel['unpack_to_dest']})")
        lines.append(f'    ("{kernel["name"]}/{r["file"]}", [{accessors}], lambda start, count: [{words}], {config}),')
    lines.append("]")
    items = " * ".join(f"({e})" for e in kernel["items"]) or "1"
    order = ", ".join(f'"{t}"' for t in dict.fromkeys(p["tensor"] for p in sorted(kernel["params"], key=lambda p: bool(p["role"] != "in"))))
    lines.append(f"run(device, tensors, [{order}], {items}, rings, roles)")
    return lines


def _value(scalar: Mapping[str, Any]) -> str:
    return f"f32_word({scalar['value']})" if scalar["dtype"] == "f32" else str(scalar["value"])


def _argument(name: str, bound: Mapping[str, str], kernel: Mapping[str, Any]) -> str:
    if name.endswith(".address"):
        return f'tensors["{bound[name.removesuffix(".address")]}"].buffer_address()'
    name = _identifier(name)
    scalar = next((s for s in kernel["scalars"] if s["name"] == name), None)
    if scalar is None or scalar["value"] is not None or scalar["dtype"] not in ("f32", "bf16"):
        return name
    return f"{scalar['dtype']}_word({name})"
