from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError
from diptych.sparse.pairs import Pairs, check_pairs, pairs_fingerprint, term_mask

from .small_pairs import WIDTH, SmallPairs, small_pairs

CPU = torch.device("cpu")


def pairs_of(data: SmallPairs, batch_size: int, seed: int = 0) -> Pairs:
    terms = csr_array(np.eye(len(data.captions), 60, dtype=np.float32))
    return Pairs(data.images, data.texts, data.caption_image, terms, batch_size, seed)


def test_an_epoch_has_every_caption_once_and_batches_of_nearly_one_size() -> None:
    pairs = pairs_of(small_pairs(25), 16)
    batches = pairs.epoch(3)
    assert pairs.steps == len(batches) == 4
    assert sorted(np.concatenate(batches)) == list(range(50))
    assert sorted(len(batch) for batch in batches) == [12, 12, 13, 13]


def test_the_order_is_a_function_of_seed_and_epoch() -> None:
    data = small_pairs()
    first = np.concatenate(pairs_of(data, 16).epoch(3))
    assert np.array_equal(first, np.concatenate(pairs_of(data, 16).epoch(3)))
    assert not np.array_equal(first, np.concatenate(pairs_of(data, 16).epoch(4)))
    assert not np.array_equal(first, np.concatenate(pairs_of(data, 16, seed=1).epoch(3)))


def test_a_batch_holds_each_captions_own_picture_and_terms() -> None:
    data = small_pairs()
    pairs = pairs_of(data, 16)
    for rows in pairs.epoch(0):
        batch = pairs.load(rows, CPU)
        assert np.array_equal(batch.texts, data.texts.rows[rows])
        assert np.array_equal(batch.images, data.images.rows[rows // 2])
        assert batch.in_caption.nonzero().tolist() == [[place, row] for place, row in enumerate(rows)]


def test_document_frequency() -> None:
    data = small_pairs(2)
    terms = csr_array(np.array([[1, 0, 1], [1, 0, 0], [1, 0, 0], [0, 0, 0]], dtype=np.float32))
    pairs = Pairs(data.images, data.texts, data.caption_image, terms, 2, 0)
    assert pairs.document_frequency.tolist() == [0.75, 0.0, 0.25]


def test_a_mask_of_terms() -> None:
    rows = csr_array(np.array([[0, 2.0, 0], [0, 0, 0], [1.0, 0, 3.0]], dtype=np.float32))
    assert term_mask(rows, CPU).tolist() == [[False, True, False], [False] * 3, [True, False, True]]


def test_a_batch_larger_than_the_data_is_refused() -> None:
    with pytest.raises(UsageError, match="batches of 49 pairs from 48 captions"):
        pairs_of(small_pairs(), 49)


def test_what_does_not_belong_together_is_refused() -> None:
    data = small_pairs()
    good = (data.images, data.texts, data.captions, data.caption_image)
    check_pairs(*good)
    wide = replace(data.images, rows=np.ones((24, WIDTH + 1), np.float32))
    with pytest.raises(MismatchError, match=r"pictures have width 9, those of captions 8"):
        check_pairs(wide, *good[1:])
    with pytest.raises(MismatchError, match="encoder other, those of captions e0"):
        check_pairs(replace(data.images, encoder="other"), *good[1:])
    with pytest.raises(MismatchError, match="similarity order, those of captions cosine"):
        check_pairs(replace(data.images, similarity="order"), *good[1:])
    with pytest.raises(DataError, match="48 rows of captions, 47 captions"):
        check_pairs(data.images, data.texts, data.captions[1:], data.caption_image)
    with pytest.raises(DataError, match="of picture 24, there are 24"):
        check_pairs(data.images, data.texts, data.captions, data.caption_image + 1)
    rows = data.texts.rows.copy()
    rows[3, 0] = np.nan
    with pytest.raises(NumericalError, match="text3"):
        check_pairs(data.images, replace(data.texts, rows=rows), data.captions, data.caption_image)


def test_the_fingerprint_knows_rows_captions_and_pairs() -> None:
    data = small_pairs()
    good = (data.images, data.texts, data.captions, data.caption_image)
    others = [
        (replace(data.images, data="x"), *good[1:]),
        (*good[:2], [*data.captions[:-1], "x"], good[3]),
        (*good[:3], data.caption_image[::-1]),
    ]
    found = {pairs_fingerprint(*one) for one in [good, *others]}  # type: ignore[arg-type]
    assert len(found) == 4
    assert pairs_fingerprint(*good) in found
