"""The op table: one typed function per operation; importing this package fills `REGISTRY`."""
from pypto_dsl.compiler.ops import activations, core, elementwise, layout, rows
from pypto_dsl.compiler.ops.definition import REGISTRY, OpDefinition

__all__ = ["REGISTRY", "OpDefinition", "activations", "core", "elementwise", "layout", "rows"]
