#!/usr/bin/env bash
# Installs what the real-header gate needs: Debian's RISC-V GCC and the unpacked ttnn 0.81.1 wheel (nothing of it is committed).
# The wheel goes to $PTC_TTNN_ROOT, or to pypto_dsl/ttnn-0.81.1 in the user's cache folder. Running it again costs nothing.
set -euo pipefail
version=0.81.1
root=${PTC_TTNN_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/pypto_dsl/ttnn-$version}
python=${PYTHON:-python3}

if ! command -v riscv64-unknown-elf-g++ >/dev/null || [ ! -d /usr/lib/picolibc/riscv64-unknown-elf/include ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf >/dev/null
fi
if [ ! -d "$root/ttnn/tt_metal" ]; then
    mkdir -p "$root"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    # The headers are text: the wheel's own Python and C library do not have to be this machine's.
    "$python" -m pip download -q --no-deps --only-binary=:all: --implementation cp --python-version 3.12 --abi cp312 \
        --platform manylinux_2_34_x86_64 -d "$scratch" "ttnn==$version"
    "$python" -m zipfile -e "$scratch"/ttnn-*.whl "$root"
fi
echo "ttnn $version is in $root"
