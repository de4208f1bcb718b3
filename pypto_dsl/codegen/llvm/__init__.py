"""The CPU backend: structured Tile IR to LLVM IR text with explicit vector loops."""
