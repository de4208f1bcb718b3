"""Tile formats of TT-Metal: NumPy arrays to and from pages of 32 x 32 tiles, faces inside, in every format we emit.

A tile is four faces of 16 x 16 (top left, top right, bottom left, bottom right), each row-major; the tiles of a matrix
follow in row-major order; the last two dimensions are padded to whole tiles. Block formats share one exponent among the
16 elements of a face row. Layout and host rounding as ttnn 0.81.1 converts (values of its own in
`tests/ttmetal/test_formats.py`).
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pypto_dsl.compiler import dtypes
from pypto_dsl.compiler.dtypes import DType

TILE, FACE = 32, 16
LANES = TILE * TILE
BLOCK = 16  # elements that share an exponent
# What memory nobody wrote holds in the emulator: a NaN as f32 and as bf16 (little endian 0xffa5).
POISON = (0xA5, 0xFF)

Array = NDArray[Any]
Pages = NDArray[np.uint8]


@dataclass(frozen=True)
class TileFormat:
    """One storage format: the vendor's DataFormat number, bytes of a tile, and the functions between lanes and bytes.

    ``encode`` takes [tiles, 1024] lanes in memory order and gives [tiles, bytes]; ``decode`` is its inverse.
    """

    dtype: DType
    code: int
    bytes: int
    lanes: DType  # of lanes on their way in; they can hold `poison`
    encode: Callable[[Array], Pages]
    decode: Callable[[Pages], Array]


def _plain(dtype: DType) -> tuple[Callable[[Array], Pages], Callable[[Pages], Array]]:
    def encode(lanes: Array) -> Pages:
        return np.ascontiguousarray(lanes.astype(dtype.numpy, copy=False)).view(np.uint8).reshape(len(lanes), -1)

    def decode(pages: Pages) -> Array:
        return np.ascontiguousarray(pages).view(dtype.numpy).reshape(len(pages), LANES)

    return encode, decode


def block_codes(rows: ArrayLike, magnitude_bits: int, ties_away: bool = False) -> tuple[Pages, Pages]:
    """Shared exponents [n] and codes [n, 16] (sign above the magnitude) of rows [n, 16] of f32.

    The exponent is the largest biased f32 exponent of the row; each 24-bit significand is shifted to it and rounded to
    ``magnitude_bits``, without a carry into the exponent; a zero magnitude drops its sign. The host rounds ties to even,
    the device's packer away from zero (``ties_away``; tt-metal#17237, #52155).
    """
    bits = np.ascontiguousarray(rows, np.float32).view(np.uint32).astype(np.int64)
    exponent = (bits >> 23) & 255
    shared = exponent.max(axis=1, keepdims=True)
    significand = np.where(bits & 0x7FFFFFFF == 0, 0, (bits & 0x7FFFFF) | 0x800000) >> np.minimum(shared - exponent, 31)
    drop = 24 - magnitude_bits
    magnitude, rest, half = significand >> drop, significand & ((1 << drop) - 1), 1 << (drop - 1)
    up = (rest > half) | ((rest == half) & (ties_away | (magnitude & 1 == 1)))
    magnitude = np.minimum(magnitude + up, (1 << magnitude_bits) - 1)
    code = magnitude | np.where(magnitude > 0, (bits >> 31) << magnitude_bits, 0)
    return shared[:, 0].astype(np.uint8), code.astype(np.uint8)


def block_values(shared: Pages, codes: Pages, magnitude_bits: int) -> Array:
    """f32 values [n, 16] of shared exponents [n] and codes [n, 16]."""
    magnitude = (codes & ((1 << magnitude_bits) - 1)).astype(np.float64)
    scale = np.exp2(shared.astype(np.float64) - 126 - magnitude_bits)[:, None]
    return (np.where(codes >> magnitude_bits & 1, -1.0, 1.0) * magnitude * scale).astype(np.float32)


def _block(magnitude_bits: int) -> tuple[Callable[[Array], Pages], Callable[[Pages], Array]]:
    exponents = LANES // BLOCK

    def encode(lanes: Array) -> Pages:
        shared, codes = block_codes(np.asarray(lanes, np.float32).reshape(-1, BLOCK), magnitude_bits)
        codes = codes.reshape(len(lanes), LANES)
        if magnitude_bits == 3:  # two to a byte, the first in the low nibble
            codes = (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8)
        return np.concatenate([shared.reshape(len(lanes), exponents), codes], axis=1)

    def decode(pages: Pages) -> Array:
        codes = pages[:, exponents:]
        if magnitude_bits == 3:
            codes = np.stack([codes & 15, codes >> 4], axis=2).astype(np.uint8)
        return block_values(pages[:, :exponents].reshape(-1), codes.reshape(-1, BLOCK), magnitude_bits).reshape(len(pages), LANES)

    return encode, decode


def _truth(pages: Pages) -> Array:
    """Lanes of a BOOL tensor: nonzero is true, by their bits, so that NaN in dead lanes is no concern."""
    bits: Array = np.ascontiguousarray(pages).view(np.uint16).reshape(len(pages), LANES) & 0x7FFF
    truth: Array = bits != 0
    return truth


FORMATS: Mapping[str, TileFormat] = MappingProxyType({
    f.dtype.name: f
    for f in (
        TileFormat(dtypes.F32, 0, 4096, dtypes.F32, *_plain(dtypes.F32)),
        TileFormat(dtypes.BF16, 5, 2048, dtypes.BF16, *_plain(dtypes.BF16)),
        TileFormat(dtypes.I32, 8, 4096, dtypes.I32, *_plain(dtypes.I32)),
        TileFormat(dtypes.U32, 24, 4096, dtypes.U32, *_plain(dtypes.U32)),
        TileFormat(dtypes.BOOL, 5, 2048, dtypes.BF16, _plain(dtypes.BF16)[0], _truth),  # 1 or 0 in bf16, as comparisons give
        TileFormat(dtypes.BFP8, 6, 1088, dtypes.F32, *_block(7)),
        TileFormat(dtypes.BFP4, 7, 576, dtypes.F32, *_block(3)),
    )
})


def tile_format(name: str) -> TileFormat:
    """The format of a dtype name ("bf16", "bfp8_b", ...); KeyError names the ones there are."""
    if name not in FORMATS:
        raise KeyError(f"{name} has no tile format; there are {', '.join(FORMATS)}")
    return FORMATS[name]


def page_count(shape: tuple[int, ...]) -> int:
    """Tiles of a tensor: leading dimensions times whole tiles of the last two (a vector is one row, a scalar one lane)."""
    *lead, rows, columns = (1, 1, *shape)
    return int(np.prod(lead, dtype=np.int64)) * -(-rows // TILE) * -(-columns // TILE)


def faces(matrix: Array) -> Array:
    """[..., R, C] of whole tiles -> [tiles, 1024] lanes in memory order."""
    r, c = matrix.shape[-2] // TILE, matrix.shape[-1] // TILE
    split = matrix.reshape(-1, r, 2, FACE, c, 2, FACE)
    return split.transpose(0, 1, 4, 2, 5, 3, 6).reshape(-1, LANES)


def from_faces(lanes: Array, rows: int, columns: int) -> Array:
    """The inverse of `faces`: [batch, rows, columns], both multiples of 32."""
    split = lanes.reshape(-1, rows // TILE, columns // TILE, 2, 2, FACE, FACE)
    return split.transpose(0, 1, 3, 5, 2, 4, 6).reshape(-1, rows, columns)


def poison(form: TileFormat) -> Any:
    """The value of a lane nobody may read: NaN, or for integers the bit pattern of `POISON`; block formats take 0."""
    return np.float32(0) if form.dtype.kind == "block" else np.frombuffer(bytes(POISON) * 4, form.lanes.numpy)[0]


def tilize(array: ArrayLike, name: str) -> Pages:
    """An array of any rank as pages [tiles, bytes] of format ``name``; lanes beyond its shape hold `poison`.

    Values are converted as ttnn's host does: to nearest even for bf16 and within a block for block formats.
    """
    form = tile_format(name)
    a = np.asarray(array)
    if not a.size:
        return np.zeros((0, form.bytes), np.uint8)  # no tiles
    *lead, rows, columns = (1, 1, *a.shape)
    whole = (int(np.prod(lead, dtype=np.int64)), -(-rows // TILE) * TILE, -(-columns // TILE) * TILE)
    padded = np.full(whole, poison(form), form.lanes.numpy)
    padded[:, :rows, :columns] = a.reshape(-1, rows, columns)
    return form.encode(faces(padded))


def untilize(pages: Pages, shape: tuple[int, ...], name: str) -> Array:
    """Pages [tiles, bytes] of format ``name`` as an array of ``shape``; block formats come back as f32."""
    form = tile_format(name)
    if 0 in shape:
        return np.zeros(shape, form.decode(np.zeros((1, form.bytes), np.uint8)).dtype)
    rows, columns = (1, 1, *shape)[-2:]
    whole = from_faces(form.decode(pages), -(-rows // TILE) * TILE, -(-columns // TILE) * TILE)
    return np.ascontiguousarray(whole[:, :rows, :columns]).reshape(shape)


def stored(array: ArrayLike, name: str) -> Array:
    """The values a tensor of format ``name`` holds after the host wrote ``array`` to it."""
    a = np.asarray(array)
    return untilize(tilize(a, name), a.shape, name)


def round_bfloat16(array: ArrayLike) -> NDArray[np.float32]:
    """f32 values rounded to bf16, nearest even, subnormals kept, still held as f32."""
    return np.asarray(array, np.float32).astype(dtypes.BF16.numpy).astype(np.float32)


def block_packed_by_device(array: ArrayLike, name: str) -> tuple[Array, Array]:
    """What the device's packer leaves of f32 values in a block format, and one step of each value's block."""
    bits = {"bfp8_b": 7, "bfp4_b": 3}[name]
    a = np.asarray(array, np.float32)
    rows, columns = (1, 1, *a.shape)[-2:]
    padded = np.zeros((a.size // (rows * columns), -(-rows // TILE) * TILE, -(-columns // TILE) * TILE), np.float32)
    padded[:, :rows, :columns] = a.reshape(-1, rows, columns)
    shared, codes = block_codes(faces(padded).reshape(-1, BLOCK), bits, ties_away=True)
    step = np.repeat(np.exp2(shared.astype(np.float64) - 126 - bits), BLOCK)
    shape = padded.shape[1:]

    def back(lanes: Array) -> Array:
        return np.ascontiguousarray(from_faces(lanes.reshape(-1, LANES), *shape)[:, :rows, :columns]).reshape(a.shape)

    return back(block_values(shared, codes, bits)), back(step)
