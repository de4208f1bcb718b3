"""The defined order of the CPU's sums. It depends on the extent alone, so every width, thread count and tile gives the same bits.

Along a row element i goes to partial i mod 64, in blocks of 4096 elements; the 64 partials are halved (i with i + 32, then
i + 16, ...). Down the rows, blocks of 256 rows are added in order. Block results are merged pairwise: equal-sized neighbours first,
as a binary counter carries.

A matrix product takes k in blocks of 256. Each block is one ascending chain of fused multiply-adds from zero, whatever computes it,
and the blocks' sums are added in ascending order to the first one's. So an element has at most 255 + k / 256 roundings behind one
another, and of numbers of one sign their errors grow with the third part of k, not with k: 256 is right for k of some thousands.
"""

PARTIALS = 64
ROW_BLOCK = 4096
COLUMN_BLOCK = 256
PRODUCT_BLOCK = 256
