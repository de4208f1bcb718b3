"""The Ascend C backend: placed Tile IR to kernels, host program, build file, manifest and source map."""
from pypto_dsl.codegen.ascendc.emit import Emitted, emit

__all__ = ["Emitted", "emit"]
