"""The meaning of the operations beyond the core, in NumPy, one module per sort of operation.

The conventions are those of `ops.reference`: operands arrive as arrays of the compute dtype, floats as float64, attributes as
keywords; the caller rounds results to the declared dtype.
"""
