"""The passes over Graph IR and the lowering to Tile IR; `pypto_dsl.compiler.pipeline` puts them in order."""
