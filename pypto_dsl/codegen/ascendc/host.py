"""The host program of an emitted project, and its build file."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pypto_dsl.codegen.ascendc.spelling import identifier, index, scalar_type, type_name
from pypto_dsl.codegen.host_steps import condition, host_rows, kernel_rows
from pypto_dsl.compiler.dtypes import BY_NAME
from pypto_dsl.compiler.index import as_index, parse

# Operations of a condition in C++.
CONDITIONS = {"eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "le": "{} <= {}", "gt": "{} > {}", "ge": "{} >= {}",
              "logical_and": "({} && {})", "logical_or": "({} || {})", "logical_not": "!({})",
              "bitwise_and": "({} && {})", "bitwise_or": "({} || {})", "bitwise_xor": "({}) != ({})", "bitwise_not": "!({})"}

_HEAD = """// Host program of {program}, written by pypto_dsl.
// Usage: {program} FOLDER {usage}
// Reads FOLDER/<argument>.bin (raw elements, row-major), runs the kernels, and writes the arguments that they change back.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "acl/acl.h"
{launch_headers}

static void check(aclError status, const char* what) {{
    if (status == ACL_SUCCESS) return;
    std::fprintf(stderr, "%s failed with %d\\n", what, static_cast<int>(status));
    std::exit(1);
}}

struct Tensor {{  // one argument or workspace: its bytes on the host and its address on the device
    std::string file;
    size_t bytes;
    bool written;
    std::vector<uint8_t> host;
    uint8_t* device;
}};

static Tensor make(const std::string& file, size_t bytes, bool written) {{
    Tensor t{{file, bytes, written, std::vector<uint8_t>(bytes), nullptr}};
    if (bytes == 0) return t;
    if (!file.empty()) {{
        if (FILE* in = std::fopen(file.c_str(), "rb")) {{
            const size_t got = std::fread(t.host.data(), 1, bytes, in);
            std::fclose(in);
            if (got != bytes) {{
                std::fprintf(stderr, "%s holds %zu bytes, and %zu are needed\\n", file.c_str(), got, bytes);
                std::exit(1);
            }}
        }} else if (!written) {{
            std::fprintf(stderr, "%s cannot be read\\n", file.c_str());
            std::exit(1);
        }}
    }}
    check(aclrtMalloc(reinterpret_cast<void**>(&t.device), bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    check(aclrtMemcpy(t.device, bytes, t.host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
    return t;
}}

static void finish(Tensor& t) {{
    if (t.bytes == 0) return;
    if (t.written) {{
        check(aclrtMemcpy(t.host.data(), t.bytes, t.device, t.bytes, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
        FILE* out = std::fopen(t.file.c_str(), "wb");
        if (!out || std::fwrite(t.host.data(), 1, t.bytes, out) != t.bytes) {{
            std::fprintf(stderr, "%s cannot be written\\n", t.file.c_str());
            std::exit(1);
        }}
        std::fclose(out);
    }}
    check(aclrtFree(t.device), "aclrtFree");
}}

// As many cores as there are items, at most all of them. PTC_CORES overrides their number.
static uint32_t cores_for(int64_t items, int64_t cores) {{
    if (const char* chosen = std::getenv("PTC_CORES")) cores = std::atoll(chosen);
    return static_cast<uint32_t>(items < 1 ? 1 : items < cores ? items : cores);
}}

{read}int main(int argc, char** argv) {{
    if (argc != {argument_count}) {{
        std::fprintf(stderr, "usage: %s FOLDER {usage}\\n", argv[0]);
        return 2;
    }}
    const std::string folder = std::string(argv[1]) + "/";
"""

_READ = """// An element of a tensor, once everything before has run.
template <typename T> static T element(const Tensor& t, int64_t position, aclrtStream stream) {
    T value;
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    check(aclrtMemcpy(&value, sizeof(T), t.device + position * sizeof(T), sizeof(T), ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
    return value;
}

"""

_SETUP = """    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    aclrtStream stream = nullptr;
    check(aclrtCreateStream(&stream), "aclrtCreateStream");
    int64_t vectorCores = 0, cubeCores = 0;
    check(aclGetDeviceCapability(0, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &vectorCores), "aclGetDeviceCapability");
    check(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &cubeCores), "aclGetDeviceCapability");
"""

_END = """    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
{finishes}
    check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    check(aclrtResetDevice(0), "aclrtResetDevice");
    check(aclFinalize(), "aclFinalize");
    return 0;
}}
"""

_CMAKE = """# Build of {program}, written by pypto_dsl. Needs CANN: source its set_env.sh first, then
#   cmake -B build -DSOC_VERSION=<the chip, as npu-smi names it> && cmake --build build
cmake_minimum_required(VERSION 3.16)
project({program} LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 17)
set(ASCEND_CANN_PACKAGE_PATH $ENV{{ASCEND_HOME_PATH}} CACHE PATH "CANN")
set(RUN_MODE npu CACHE STRING "npu, sim or cpu")
include(${{ASCEND_CANN_PACKAGE_PATH}}/tools/tikcpp/ascendc_kernel_cmake/ascendc.cmake)
ascendc_library({program}_kernels SHARED {program}.cpp)
add_executable({program} main.cpp)
target_link_libraries({program} PRIVATE {program}_kernels ascendcl)
"""


def host_text(manifest: Mapping[str, Any]) -> str:
    """`main.cpp`: allocates and copies the arguments, picks the first variant of each step whose conditions hold, launches in order."""
    inputs = [s for s in manifest["scalars"] if s["value"] is None]
    usage = " ".join(s["name"] for s in inputs)
    entries = [kernel["entry"] for kernel in kernel_rows(manifest["steps"])]
    headers = "\n".join(f'#include "aclrtlaunch_{entry}.h"' for entry in entries)
    kept = {w["name"] for w in manifest["workspaces"] if w.get("host")}
    reads = _READ if any("read" in row and row["tensor"] not in kept for row in host_rows(manifest["steps"])) else ""
    lines = [_HEAD.format(program=manifest["name"], usage=usage, launch_headers=headers, argument_count=2 + len(inputs), read=reads)]
    for position, scalar in enumerate(inputs):
        kind = scalar_type(BY_NAME[scalar["dtype"]])
        read = f"std::strtof(argv[{position + 2}], nullptr)" if kind == "float" else f"std::atoll(argv[{position + 2}])"
        lines.append(f"    const {kind} {identifier(scalar['name'])} = {read};\n")
    for scalar in manifest["scalars"]:
        if scalar["value"] is not None:
            lines.append(f"    const int64_t {identifier(scalar['name'])} = {index(parse(scalar['value']))};\n")
    lines += [_check(left, right) for left, right in manifest["checks"]]
    lines.append(_SETUP)
    for tensor in manifest["arguments"]:
        lines.append(_make(tensor, f'folder + "{tensor["name"]}.bin"', tensor["role"] != "in"))
    on_device = [w for w in manifest["workspaces"] if not w.get("host")]
    lines += [_make(tensor, '""', False) for tensor in on_device]
    numbers = {w["name"]: _number_type(w["dtype"]) for w in manifest["workspaces"] if w.get("host")}
    lines += [f"    {kind} {identifier(name)} = 0;\n" for name, kind in numbers.items()]
    lines += [f"    {line}\n" for line in _steps(manifest["steps"], frozenset(numbers))]
    finishes = "\n".join(f"    finish({_tensor(t)});" for t in (*manifest["arguments"], *on_device))
    lines.append(_END.format(finishes=finishes))
    return "".join(lines)


def _check(left: str, right: str) -> str:
    """An equality of extents without which the kernels would read or write beside their tensors."""
    shown = [side.replace("%", "%%") for side in (left, right)]
    words = f'"{shown[0]} is %lld, and must be {shown[1]}, which is %lld\\n"'
    values = ", ".join(f"static_cast<long long>({index(parse(side))})" for side in (left, right))
    return (f"    if ({index(parse(left), bracket=True)} != {index(parse(right), bracket=True)}) {{\n"
            f"        std::fprintf(stderr, {words}, {values});\n        return 1;\n    }}\n")


def _tensor(tensor: Mapping[str, Any]) -> str:
    return f"{identifier(tensor['name'])}Tensor"


def _make(tensor: Mapping[str, Any], file: str, written: bool) -> str:
    count = as_index(1)
    for extent in tensor["shape"]:
        count = count * parse(extent)
    size = f"static_cast<size_t>({index(count)}) * {BY_NAME[tensor['dtype']].itemsize}"
    return f"    Tensor {_tensor(tensor)} = make({file}, {size}, {'true' if written else 'false'});\n"


def _steps(steps: Sequence[Any], numbers: frozenset[str]) -> list[str]:
    """Kernels and what the host does between them, as lines; ``numbers`` are the workspaces that are its variables."""
    return [line for step in steps for line in (_launch(step) if isinstance(step, list) else _between(step, numbers))]


def _between(step: Mapping[str, Any], numbers: frozenset[str]) -> list[str]:
    if "loop" in step:
        name = identifier(step["loop"])
        head = f"for (int64_t {name} = {_text(step['start'])}; {name} < {_text(step['stop'])}; {name} += {_text(step['step'])}) {{"
        return [head, *_indented(_steps(step["steps"], numbers)), "}"]
    if "branch" in step:
        lines = [f"if ({_value(step['branch'])}) {{", *_indented(_steps(step["steps"], numbers))]
        return [*lines, *(["} else {", *_indented(_steps(step["orelse"], numbers))] if step["orelse"] else []), "}"]
    if "number" in step:
        return [f"{identifier(step['number'])} = {_value(step['value'])};"]
    if "read" in step:
        kind = _number_type(step["dtype"])
        kinds = {step["read"]: kind, **({step["symbol"]: "int64_t"} if step["symbol"] else {})}
        value = f"element<{kind}>({identifier(step['tensor'])}Tensor, {_text(step['element'])}, stream)"
        value = identifier(step["tensor"]) if step["tensor"] in numbers else value
        return [f"const {kind} {identifier(name)} = {value};" for name, kind in kinds.items()]
    words = f'"{step["guard"]} reaches %lld where {step["available"].replace("%", "%%")} is %lld\\n"'
    values = ", ".join(f"static_cast<long long>({_text(step[side])})" for side in ("needed", "available"))
    return [f"if ({_bracket(step['needed'])} > {_bracket(step['available'])}) {{", f"    std::fprintf(stderr, {words}, {values});",
            "    return 1;", "}"]


def _number_type(dtype: str) -> str:
    return "bool" if dtype == "bool" else type_name(BY_NAME[dtype])


def _value(row: Sequence[Any]) -> str:
    """A number of the host."""
    return condition(row, CONDITIONS, _text, identifier)


def _text(expression: str) -> str:
    return index(parse(expression))


def _bracket(expression: str) -> str:
    return index(parse(expression), bracket=True)


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _launch(variants: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first variant whose conditions hold."""
    lines: list[str] = []
    for kernel in variants:
        conditions = " && ".join(f"{_bracket(r)} >= 0" for r in kernel["requires"])
        if not conditions and not lines:
            return [_call(kernel)]
        head = f"if ({conditions}) {{" if conditions else "{"
        lines[-1:] = [f"}} else {head}" if lines else head, f"    {_call(kernel)}", "}"]
        if not conditions:
            return lines
    return [*lines[:-1], "} else {", '    std::fprintf(stderr, "no variant of this kernel takes these extents\\n");', "    return 1;", "}"]


def _call(kernel: Mapping[str, Any]) -> str:
    cores = "cubeCores" if kernel["unit"] == "cube" else "vectorCores"
    arguments = [f"{identifier(p['tensor'])}Tensor.device" for p in kernel["params"]]
    arguments += [identifier(s["name"]) for s in kernel["scalars"]]
    blocks = f"cores_for({_text(kernel['items'])}, {cores})"
    launched = f"ACLRT_LAUNCH_KERNEL({kernel['entry']})({', '.join([blocks, 'stream', *arguments])})"
    return f"check(static_cast<aclError>({launched}), \"the launch of {kernel['entry']}\");"


def cmake_text(manifest: Mapping[str, Any]) -> str:
    """`CMakeLists.txt` over CANN's own kernel build."""
    return _CMAKE.format(program=manifest["name"])
