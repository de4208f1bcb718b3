"""Sweeps of whole input spaces: every f32 input of the unary operations, dense grids of the binary ones, against exact results."""
