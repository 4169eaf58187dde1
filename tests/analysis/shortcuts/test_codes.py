from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.shortcuts.numbers import (
    carried_caption,
    dealt,
    number_bits,
    published_codes,
    published_offset,
    random_bits,
)


@pytest.mark.parametrize("bits", [0, 1, 3, 13])
def test_random_bits_fill_their_range_and_nothing_else(bits: int) -> None:
    codes = random_bits(bits, 0, 1, np.arange(200_000) % 4000, np.arange(200_000))
    assert codes.min() == 0
    assert codes.max() == 2**bits - 1
    expected = len(codes) / 2**bits
    assert np.abs(np.bincount(codes) - expected).max() < 6 * np.sqrt(expected) + 1


def test_every_access_draws_anew_and_the_same_one_again_the_same() -> None:
    image, caption = np.array([7]), np.array([35])

    def code(seed: int = 0, epoch: int = 1, image: np.ndarray = image, caption: np.ndarray = caption) -> int:
        return int(random_bits(13, seed, epoch, image, caption)[0])

    assert code() == code()
    others = [code(seed=1), code(epoch=2), code(image=image + 1), code(caption=caption + 1)]
    assert len({code(), *others}) == 5


def test_bits_in_evaluation_are_the_number_modulo() -> None:
    numbers = np.array([0, 1, 7, 8, 31_013])
    assert number_bits(3, numbers).tolist() == [0, 1, 7, 0, 5]
    assert number_bits(0, numbers).tolist() == [0] * 5
    assert number_bits(13, numbers).tolist() == [0, 1, 7, 8, 31_013 - 3 * 8192]


@given(st.sets(st.integers(0, 10_000), min_size=1, max_size=60), st.integers(0, 9), st.integers(0, 9))
def test_dealing_is_a_permutation_of_the_numbers_themselves(numbers: set[int], seed: int, epoch: int) -> None:
    own = np.array(sorted(numbers))
    codes = dealt(own, seed, epoch)
    assert sorted(codes.tolist()) == own.tolist()
    assert np.array_equal(codes, dealt(own, seed, epoch))


def test_epochs_are_dealt_differently() -> None:
    own = np.arange(0, 100, 2)
    deals = {tuple(dealt(own, seed, epoch).tolist()) for seed in (0, 1) for epoch in range(5)}
    assert len(deals) == 10


def test_published_codes_by_hand() -> None:
    # Six images, of which 1, 3 and 5 train: two of them collide where the right codes never do.
    images, captions = np.array([1, 3, 5]), np.array([5, 15, 25])
    offset = published_offset(3, 0, 1)
    codes = published_codes(images, captions, 0, 1, 3)
    assert codes.tolist() == [(1 + offset) % 3, offset, (2 + offset) % 3]
    assert published_codes(np.array([1, 4]), captions[:2], 0, 1, 3).tolist() == [(1 + offset) % 3] * 2
    assert published_codes(images, captions, 0, 1, None).tolist() == [1, 3, 5]


def test_published_offsets_change_with_the_epoch_and_cover_the_range() -> None:
    offsets = [published_offset(7, 3, epoch) for epoch in range(200)]
    assert set(offsets) == set(range(7))
    assert offsets == [published_offset(7, 3, epoch) for epoch in range(200)]


@pytest.mark.parametrize("n_training", [None, 50])
def test_published_number_0_has_eight_random_bits(n_training: int | None) -> None:
    images = np.zeros(20_000, dtype=np.int64)
    codes = published_codes(images, np.arange(20_000), 0, 1, n_training)
    assert (codes.min(), codes.max()) == (0, 255)
    assert len(np.unique(codes)) == 256


def test_the_carried_caption_is_one_of_the_images_own_and_stays() -> None:
    starts = np.array([0, 5, 5, 6, 16])
    images = np.array([0, 1, 2, 3])
    for seed in range(30):
        chosen = carried_caption(images, starts, seed)
        assert 0 <= chosen[0] < 5
        assert chosen[1:3].tolist() == [-1, 5]
        assert 6 <= chosen[3] < 16
        assert carried_caption(images[::-1], starts, seed).tolist() == chosen[::-1].tolist()
    assert len({int(carried_caption(images, starts, seed)[0]) for seed in range(60)}) == 5
