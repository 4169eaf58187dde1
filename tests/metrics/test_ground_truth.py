from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from diptych.core.errors import DataError, UnknownNameError
from diptych.metrics import GroundTruth


def test_relevant_pairs_by_hand() -> None:
    truth = GroundTruth.from_caption_image([0, 0, 2, 0, 2], 4)
    assert [truth.i2t.of(image).tolist() for image in range(4)] == [[0, 1, 3], [], [2, 4], []]
    assert [truth.t2i.of(text).tolist() for text in range(5)] == [[0], [0], [2], [0], [2]]
    assert (truth.i2t.gallery, truth.t2i.gallery) == (5, 4)
    assert truth.text_image.tolist() == [0, 0, 2, 0, 2]
    assert truth.without_positive == {"i2t": 2, "t2i": 0}
    truth = GroundTruth.from_pairs([1, 0, 1, 1], [0, 2, 2, 0], 2, 4)
    assert [truth.i2t.of(image).tolist() for image in range(2)] == [[2], [0, 2]]
    assert [truth.t2i.of(text).tolist() for text in range(4)] == [[1], [], [0, 1], []]
    assert truth.text_image.tolist() == [1, -1, 0, -1]
    assert truth.without_positive == {"i2t": 0, "t2i": 2}
    truth = GroundTruth.from_pairs([0, 1, 1, 2], [0, 1, 2, 2], 3, 3, text_image=[0, 1, 1])
    part = truth.subset(np.array([2, 1]), np.array([1, 2]))
    assert [part.i2t.of(image).tolist() for image in range(2)] == [[1], [0, 1]]
    assert part.text_image.tolist() == [1, 1]
    assert truth.subset(np.array([2]), np.array([1, 2])).text_image.tolist() == [-1, -1]


def test_what_is_no_ground_truth_and_no_change_to_one() -> None:
    caption_image = np.array([0, 1])
    truth = GroundTruth.from_caption_image(caption_image, 2)
    caption_image[0] = 1
    assert truth.t2i.of(0).tolist() == [0]
    with pytest.raises(ValueError, match="read-only"):
        truth.i2t.rows[0] = 1
    for images, texts, message in (
        ([0, 2], [0, 1], r"image row 2 \(entry 1\) is not in \[0, 2\)"),
        ([0, -1], [0, 1], r"image row -1 \(entry 1\)"),
        ([0, 1], [0, 3], r"text row 3 \(entry 1\) is not in \[0, 3\)"),
        ([0], [0, 1], "1 images and 2 texts are not pairs"),
        ([0.5], [0], "must be a list of whole numbers, got an array of float64"),
        ([[0]], [0], "must be a list of whole numbers"),
    ):
        refused(DataError, message, GroundTruth.from_pairs, images, texts, 2, 3)
    pairs = GroundTruth.from_pairs
    refused(DataError, "1 entries for 2 texts", pairs, [0], [0], 1, 2, text_image=[0])
    refused(DataError, r"text_image row 1 \(entry 0\)", pairs, [0], [0], 1, 1, text_image=[1])
    way = GroundTruth.from_caption_image([0], 1).positives
    refused(UnknownNameError, "unknown direction 'i2i'", way, "i2i")
