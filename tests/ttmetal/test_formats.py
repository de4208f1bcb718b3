"""Tile formats: face order, round trips over ranks and ragged shapes, and the conversions whose values ttnn 0.81.1 gave."""
import numpy as np
import pytest

from pypto_dsl.runtime import formats

SHAPES = [(), (1,), (33,), (1, 1), (7, 33), (31, 32), (65, 100), (2, 3, 40, 5)]


def values(shape, name):
    rng = np.random.default_rng(len(shape))
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if name in ("i32", "u32"):
        return rng.integers(0, 2**31 - 1, shape).astype(formats.tile_format(name).dtype.numpy)
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("name", formats.FORMATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_round_trip(shape, name):
    once = formats.stored(values(shape, name), name)
    assert once.shape == shape
    assert np.array_equal(formats.stored(once, name), once), "a stored value is stored as itself"
    assert formats.tilize(once, name).shape == (formats.page_count(shape), formats.tile_format(name).bytes)


def test_faces_are_16_by_16_and_row_major():
    lanes = formats.faces(np.arange(64 * 64).reshape(64, 64))
    assert lanes[0, :17].tolist() == [*range(16), 64]                      # face 0 row 0, then its row 1
    assert lanes[0, 256] == 16 and lanes[0, 512] == 16 * 64                # faces 1 and 2
    assert lanes[1, 0] == 32 and lanes[2, 0] == 32 * 64                    # the next tile is to the right


@pytest.mark.parametrize("name", ["f32", "bf16"])
def test_lanes_beyond_the_shape_are_nan(name):
    whole = formats.untilize(formats.tilize(np.ones((3, 3), np.float32), name), (32, 32), name).astype(np.float32)
    assert np.isnan(whole).sum() == 32 * 32 - 9


# Values ttnn's own conversion gave: ties to even within the block, no carry into the exponent, a zero magnitude has no sign.
BLOCK_CASES = [
    ("bfp8_b", [64.5], [64.0]), ("bfp8_b", [7.9999], [7.9375]), ("bfp8_b", [1.0, -1e-4], [1.0, 0.0]), ("bfp8_b", [0.0, -0.0], [0.0, 0.0]),
    ("bfp4_b", [1.0, 0.5, 0.25], [1.0, 0.5, 0.25]), ("bfp4_b", [7.9], [7.0]), ("bfp4_b", [4.5], [4.0]), ("bfp4_b", [5.5], [6.0]),
]


@pytest.mark.parametrize("name, given, held", BLOCK_CASES)
def test_block_floats(name, given, held):
    got = formats.stored(np.array(given, np.float32), name)
    assert got.tolist() == held
    assert not np.signbit(got[got == 0]).any()


def test_the_device_packs_block_ties_away_from_zero():
    tie = np.array([1.0, 1 + 2.0**-7], np.float32)                         # halfway between two bfp8 codes
    assert formats.stored(tie, "bfp8_b")[1] == 1.0
    assert formats.block_packed_by_device(tie, "bfp8_b")[0][1] == 1 + 2.0**-6


def test_bfloat16_rounds_to_even_and_keeps_subnormals():
    x = np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8, 2.0**-130, np.inf], np.float32)
    assert formats.stored(x, "bf16").astype(np.float32).tolist() == [1.0, 1 + 2.0**-6, 2.0**-130, np.inf]


def test_an_unknown_format_is_named():
    with pytest.raises(KeyError, match="f64 has no tile format"):
        formats.tilize(np.zeros(1), "f64")
