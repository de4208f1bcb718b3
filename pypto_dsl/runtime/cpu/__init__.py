"""Runs LLVM kernels on the host: JIT, object cache, thread pool, launchers and the executable of a compiled program."""
