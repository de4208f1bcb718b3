import numpy as np
import pypto_dsl as pypto

x = np.ones((8, 8), np.float32)
out = np.zeros((8, 8), np.float32)

import contextlib
import pathlib
import tempfile

from pypto_dsl.cli.compile import check_replaceable, with_hashes, written_whole

with contextlib.chdir(tempfile.mkdtemp()):
    folder = pathlib.Path("out")
    written_whole(folder, with_hashes({"kernel.cpp": "// made", "manifest.json": "{}"}))
    (folder / "kernel.cpp").write_text("// edited")
    check_replaceable(folder)
