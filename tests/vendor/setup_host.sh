#!/usr/bin/env bash
# Installs the real ttnn 0.81.1 package, with our compiler stand-in, for the host-program gate: needs a Python 3.12 (its path as $1).
# The environment goes to $PTC_TTNN_HOST, or to pypto_dsl/ttnn-host-0.81.1 in the user's cache folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=0.81.1
python=${1:-python3.12}
root=${PTC_TTNN_HOST:-${XDG_CACHE_HOME:-$HOME/.cache}/pypto_dsl/ttnn-host-$version}

"$here/setup.sh"
[ -x "$root/bin/python" ] || "$python" -m venv "$root"
"$root/bin/python" -m pip install -q "ttnn==$version" numpy
package=$("$root/bin/python" -c 'import importlib.util; print(importlib.util.find_spec("ttnn").submodule_search_locations[0])')
mkdir -p "$package/runtime/sfpi/compiler/bin" "$package/runtime/sfpi/include"
install -m 755 "$here/ttcheck/compiler_stand_in.py" "$package/runtime/sfpi/compiler/bin/riscv-tt-elf-g++"
cp "$here"/ttcheck/sfpi_stub/*.h "$package/runtime/sfpi/include/"
PYTHONPATH="$here" "$root/bin/python" - "$package" <<'PY'
import sys
from pathlib import Path

from ttcheck.real_headers import sfpi_names

package = Path(sys.argv[1])
lines = {line for chip in ("wormhole_b0", "blackhole") for line in sfpi_names(package, chip).splitlines() if line.startswith("constexpr")}
text = "#pragma once\nnamespace sfpi {\n" + "\n".join(sorted(lines)) + "\n}\n"
(package / "runtime/sfpi/include/sfpi_names_generated.h").write_text(text)
PY
echo "ttnn $version with the compiler stand-in is in $root"
