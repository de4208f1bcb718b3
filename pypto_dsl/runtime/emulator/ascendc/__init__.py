"""The Ascend C emulator: vendor-named headers under `include/`, and what builds and runs emitted kernels on them."""
