"""Type-checks one TT-Metal kernel against the real headers of an unpacked ttnn wheel, with Debian's RISC-V GCC.

It rebuilds, in a scratch folder, the few files that tt-metal's JIT generates for a kernel, then compiles the wheel's own
firmware wrapper (brisck.cc, ncrisck.cc, trisck.cc) around it, to assembly, so that every used template is instantiated.
Nothing of tt-metal is copied here. What it guards: names, signatures, template arguments, compile-time words. What it cannot
see: the protocol (a missing init or barrier), which is the emulator's business, and anything about running.
"""
from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMPILER = "riscv64-unknown-elf-g++"
PICOLIBC = Path("/usr/lib/picolibc/riscv64-unknown-elf/include")
HOST_CXX = Path("/usr/include/c++")
# format -> (DataFormat number, bytes of a tile)
FORMATS = {"f32": (0, 4096), "bf16": (5, 2048), "bool": (5, 2048),
           "bfp8_b": (6, 1088), "bfp4_b": (7, 576), "i32": (8, 4096), "u32": (24, 4096)}
TF32, BF16, UNUSED, BUFFERS = 4, 5, 255, 32
HIFI4 = 4


@dataclass(frozen=True)
class Architecture:
    """Names and bank counts that ttnn passes as defines for one chip."""

    folder: str
    define: str
    family: str
    dram_banks: int
    l1_banks: int


ARCHITECTURES = {
    "wormhole": Architecture("wormhole_b0", "ARCH_WORMHOLE", "wormhole", 12, 72),
    "blackhole": Architecture("blackhole", "ARCH_BLACKHOLE", "blackhole", 8, 140),
}
TRISC = {"unpack": (0, "UNPACK"), "math": (1, "MATH"), "pack": (2, "PACK")}


@dataclass(frozen=True)
class Kernel:
    """One kernel file as the host would register it."""

    role: str
    text: str
    compile_arguments: Sequence[int] = ()
    formats: Mapping[int, str] = field(default_factory=dict)  # circular buffer -> format
    direct: frozenset[int] = frozenset()
    fp32_dest: bool = False


@dataclass(frozen=True)
class Answer:
    """What the compiler said of one translation unit."""

    unit: str
    accepted: bool
    output: str


def check(root: Path, kernel: Kernel, architecture: str) -> list[Answer]:
    """Compile every translation unit of one kernel (three for compute); ``root`` holds the wheel's tt_metal/."""
    arch = ARCHITECTURES[architecture]
    with tempfile.TemporaryDirectory(prefix="ttcheck-") as scratch:
        folder = Path(scratch)
        source = folder / f"{kernel.role}.cpp"
        source.write_text(kernel.text)
        include = f'#include "{source}"\n'
        (folder / "kernel_includes.hpp").write_text(include)
        (folder / "defines_generated.h").write_text("")
        (folder / "chlkc_descriptors.h").write_text(descriptors(kernel))
        (folder / "sfpi_names_generated.h").write_text(sfpi_names(root, arch.folder))
        for name, (_, define) in TRISC.items():
            (folder / f"chlkc_{name}.cpp").write_text(f'#define TRISC_{define}\n#include "defines_generated.h"\n{include}')
        return [compile_unit(root, folder, arch, kernel, unit) for unit in (TRISC if kernel.role == "compute" else (kernel.role,))]


def compile_unit(root: Path, folder: Path, arch: Architecture, kernel: Kernel, unit: str) -> Answer:
    """Preprocess, relax what GCC 12 cannot take, compile to assembly."""
    command = [COMPILER, "-std=c++20", "-march=rv32im", "-mabi=ilp32", "-nostdinc++", "-ffreestanding", "-ffast-math",
               "-fno-exceptions", "-fno-rtti", "-fno-use-cxa-atexit", "-w", *(f"-D{d}" for d in defines(arch, kernel, unit))]
    for system in (HERE / "cxx32", *host_headers(), PICOLIBC):
        command += ["-isystem", str(system)]
    for include in include_folders(root, arch, compute=kernel.role == "compute"):
        command += ["-I", str(include)]
    wrapper = {"reader": "ncrisck.cc", "writer": "brisck.cc"}.get(unit, "trisck.cc")
    firmware = root / "tt_metal/hw/firmware/src/tt-1xx" / wrapper
    preprocessed = folder / f"{unit}.ii"
    first = _run([*command, "-E", "-o", str(preprocessed), str(firmware)], folder)
    if first.returncode:
        return Answer(unit, False, first.stdout)
    # Debian's GCC 12 takes neither '#pragma GCC unroll <template argument>' nor static_assert(false) in a template nobody uses.
    text = re.sub(r"(?m)^#pragma GCC unroll.*$", "", preprocessed.read_text())
    preprocessed.write_text(re.sub(r"static_assert\s*\(\s*false\b", "static_assert(true", text))
    second = _run([*command, "-S", "-O1", "-o", "/dev/null", str(preprocessed)], folder)
    return Answer(unit, second.returncode == 0, second.stdout)


def _run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)


def defines(arch: Architecture, kernel: Kernel, unit: str) -> Iterable[str]:
    """The -D words that ttnn's JIT passes."""
    yield from (arch.define, "TENSIX_FIRMWARE", "LOCAL_MEM_EN=0", "KERNEL_BUILD", "ROUTING_FW_ENABLED", "DISPATCH_MESSAGE_ADDR=0",
                "PROGRAMMABLE_CORE_TYPE=0", f"NUM_DRAM_BANKS={arch.dram_banks}", f"NUM_L1_BANKS={arch.l1_banks}",
                "PCIE_NOC_X=0", "PCIE_NOC_Y=3")
    for name, banks in (("DRAM", arch.dram_banks), ("L1", arch.l1_banks)):
        power_of_two = banks & (banks - 1) == 0
        yield f"LOG_BASE_2_OF_NUM_{name}_BANKS={banks.bit_length() - 1}" if power_of_two else f"IS_NOT_POW2_NUM_{name}_BANKS=1"
    if kernel.compile_arguments:
        yield "KERNEL_COMPILE_TIME_ARGS=" + ",".join(map(str, kernel.compile_arguments))
    if unit in TRISC:
        index, name = TRISC[unit]
        yield from (f"UCK_CHLKC_{name}", f"COMPILE_FOR_TRISC={index}", f"PROCESSOR_INDEX={index + 2}")
    else:
        reader = unit == "reader"
        yield from (f"COMPILE_FOR_{'NC' if reader else 'B'}RISC", f"PROCESSOR_INDEX={int(reader)}", f"NOC_INDEX={int(not reader)}",
                    "NOC_MODE=0")


def include_folders(root: Path, arch: Architecture, compute: bool) -> Iterable[Path]:
    """The include path of ttnn's JIT, in its order."""
    metal = root / "tt_metal"
    hardware, kernels, llk = metal / "hw/inc", metal / "hw/ckernels" / arch.folder / "metal", metal / "tt-llk"
    own, chip = hardware / "internal/tt-1xx", llk / f"tt_llk_{arch.folder}"
    yield from (Path("."), root, root / "ttnn", root / "ttnn/cpp", metal, metal / "include", hardware, metal / "hostdevcommon/api",
                metal / "api", kernels / "common", kernels / "llk_io", own, own / arch.family,
                own / arch.family / f"{arch.folder}_defines", own / arch.family / "noc", llk / "common", llk / "tools/include",
                chip / "llk_lib/hal", chip / "common/inc", chip / "llk_lib")
    if compute:
        yield from (kernels / "llk_api", kernels / "llk_api/llk_sfpu", chip / "common/inc/sfpu", HERE / "sfpi_stub")
    yield metal / "hw/firmware/src/tt-1xx"


@cache
def host_headers() -> tuple[Path, ...]:
    """The host's libstdc++ (its freestanding part): the RISC-V compiler of Debian comes without one."""
    version = max((p.name for p in HOST_CXX.iterdir() if p.name.isdigit()), key=int)
    return tuple(p for p in (HOST_CXX / version, Path("/usr/include/x86_64-linux-gnu/c++") / version) if p.is_dir())


@cache
def sfpi_names(root: Path, arch_folder: str) -> str:
    """SFPI names its instruction modifiers as constants; the stub takes those that the wheel's headers mention, with value 0."""
    names: set[str] = set()
    for tree in (root / f"tt_metal/tt-llk/tt_llk_{arch_folder}", root / f"tt_metal/hw/ckernels/{arch_folder}"):
        for path in tree.rglob("*.h*"):
            text = path.read_text(errors="replace")
            names.update(re.findall(r"sfpi::(SFP[A-Z0-9_]+)", text))
            if "using namespace sfpi" in text:
                names.update(re.findall(r"\b(SFP[A-Z0-9]*_(?:MOD[0-9]|IMM|RND|DEST)[A-Z0-9_]*)", text))
    constants = "".join(f"constexpr unsigned {n} = 0;\n" for n in sorted(names) if not n.endswith("_"))
    return f"#pragma once\nnamespace sfpi {{\n{constants}}}\n"


def descriptors(kernel: Kernel) -> str:
    """The generated header that tells the unpacker and packer each circular buffer's format and tile shape."""
    source, unpacked, packed, size = [UNUSED] * BUFFERS, [UNUSED] * BUFFERS, [UNUSED] * BUFFERS, [1088] * BUFFERS
    for cb, name in kernel.formats.items():
        code, nbytes = FORMATS[name]
        source[cb], size[cb] = code, nbytes
        # L1 -> SrcA/B or DST: block floats travel as bf16, f32 as tf32 beside a 32-bit DST unless it is unpacked straight to DST
        narrow = TF32 if kernel.fp32_dest else BF16
        unpacked[cb] = {"bfp8_b": BF16, "bfp4_b": BF16, "f32": code if cb in kernel.direct else narrow}.get(name, code)
        packed[cb] = 0 if kernel.fp32_dest and name not in ("i32", "u32") else {"f32": BF16, "bfp8_b": BF16, "bfp4_b": BF16}.get(name, code)

    def array(kind: str, name: str, values: Sequence[int]) -> str:
        return f"constexpr {kind} {name}[{len(values)}] = {{{','.join(map(str, values))}}};\n"

    def shapes(side: str) -> str:
        fields = {"tile_num_faces": 4, "partial_face": 0, "tile_face_r_dim": 16, "narrow_tile": 0, "tile_r_dim": 32,
                  "tile_c_dim": 32, "num_faces_r_dim": 2, "num_faces_c_dim": 2}
        small = "".join(array("uint8_t", f"{side}_{n}", [v] * BUFFERS) for n, v in fields.items())
        return small + array("uint16_t", f"{side}_tile_size", size)

    return "".join((
        "#pragma once\n#include \"llk_defs.h\"\n",
        f"constexpr ckernel::MathFidelity MATH_FIDELITY = static_cast<ckernel::MathFidelity>({HIFI4});\nconstexpr bool APPROX = false;\n",
        "#if !defined(UCK_CHLKC_PACK)\n", array("uint8_t", "unpack_src_format", source),
        array("uint8_t", "unpack_dst_format", unpacked), shapes("unpack"),
        "#endif\n#if !defined(UCK_CHLKC_MATH) && !defined(UCK_CHLKC_UNPACK)\n",
        array("unsigned char", "pack_src_format", packed),
        array("unsigned char", "pack_dst_format", source), shapes("pack"),
        "#if defined(UCK_CHLKC_PACK)\n", array("uint8_t", "unpack_src_format", source), "#endif\n#endif\n",
        "#if defined(UCK_CHLKC_MATH) || defined(UCK_CHLKC_PACK) || defined(UCK_CHLKC_UNPACK)\n",
        f"constexpr bool DST_ACCUM_MODE = {str(kernel.fp32_dest).lower()};\n#define DST_SYNC_MODE DstSync::SyncHalf\n#endif\n",
    ))
