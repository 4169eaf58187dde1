from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.encoders.inputs import ByteTable
from diptych.encoders.preprocessing import Preprocessing


def test_every_byte_has_its_number_in_every_channel() -> None:
    table = ByteTable(np.stack([np.arange(256), np.arange(256) * 2, np.arange(256) + 1000]))
    pixels = np.array([[[0, 1, 2], [255, 254, 253]]], dtype=np.uint8)
    assert table(pixels).tolist() == [[[0, 255]], [[2, 508]], [[1002, 1253]]]
    assert table(pixels).dtype == np.float32


@given(
    st.integers(0, 2**32 - 1),
    st.tuples(*[st.floats(0, 1, allow_subnormal=False)] * 3),
    st.tuples(*[st.floats(0.01, 1)] * 3),
)
def test_the_bits_are_those_of_the_arithmetic(
    seed: int, mean: tuple[float, float, float], std: tuple[float, float, float]
) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (9, 5, 3), dtype=np.uint8)
    # As it was computed before there were tables.
    scale = 1.0 / (255.0 * np.asarray(std, dtype=np.float32))
    shift = np.asarray(mean, dtype=np.float32) / np.asarray(std, dtype=np.float32)
    expected = (pixels.astype(np.float32) * scale - shift).transpose(2, 0, 1)
    np.testing.assert_array_equal(Preprocessing(mean=mean, std=std)._normalised(pixels), expected)

    def double(pixels: np.ndarray) -> np.ndarray:
        return ((pixels / 255.0 - mean) / std).transpose(2, 0, 1).astype(np.float32)

    table = ByteTable.of(double)
    assert table is not None
    np.testing.assert_array_equal(table(pixels), double(pixels))


def test_what_is_more_than_a_table_has_none() -> None:
    def levelled(pixels: np.ndarray) -> np.ndarray:
        values = pixels.transpose(2, 0, 1).astype(np.float32)
        return values - values.mean()

    assert ByteTable.of(levelled) is None
    assert ByteTable.of(lambda pixels: levelled(pixels)[:, :-1]) is None
    assert ByteTable.of(lambda pixels: pixels.transpose(2, 0, 1) / 255.0) is None  # double precision


def test_a_view_of_a_picture_is_looked_up_too() -> None:
    whole = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    table = ByteTable(np.tile(np.arange(256), (3, 1)))
    np.testing.assert_array_equal(table(whole[3:12, ::2]), whole[3:12, ::2].transpose(2, 0, 1))
    with pytest.raises(IndexError):
        table(whole[:, :, 0])
