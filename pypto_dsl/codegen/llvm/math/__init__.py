"""The CPU's vector math library in LLVM IR: one function per operation, parameterised by the feature level's width."""
