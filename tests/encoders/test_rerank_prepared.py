from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fake_matching import FakeMatching

from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.data.readers import read_collection
from diptych.encoders.encode import encode_collection
from diptych.encoders.rerank import rerank
from diptych.encoders.rerank_pairs import rerank_prepared


@pytest.mark.parametrize(("k", "batch"), [(1, 64), (5, 3), (500, 7)])
@pytest.mark.parametrize("adds", [True, False])
def test_the_same_as_of_a_collection(
    k: int, batch: int, adds: bool, scenes_folder: Path, tmp_path: Path
) -> None:
    collection = read_collection(str(scenes_folder)).split("test")
    head = FakeMatching()
    head.adds_contrastive = adds  # type: ignore[misc]
    encoded = encode_collection(head, collection, tmp_path / "rows", "test")
    images = head.image_inputs([collection.item(row) for row in range(collection.n_images)])
    texts = head.text_inputs(list(collection.captions))
    found = rerank_prepared(head, encoded.images.rows, encoded.texts.rows, images, texts, k=k, batch=batch)
    expected = rerank(head, collection, encoded, k)
    for direction in ("i2t", "t2i"):
        one, other = found.candidates(direction), expected.candidates(direction)  # type: ignore[arg-type]
        np.testing.assert_array_equal(one.items, other.items)
        np.testing.assert_array_equal(one.contrastive, other.contrastive)
        np.testing.assert_allclose(one.matching, other.matching, rtol=1e-5)
        np.testing.assert_array_equal(
            found.final(direction),  # type: ignore[arg-type]
            one.matching + one.contrastive if adds else one.matching,
        )
    found.check()
    if k == 500:
        assert (found.matrix("i2t") > -100).all()


def test_what_does_not_belong_together() -> None:
    head = FakeMatching()
    rows = np.eye(6, dtype=np.float32)
    images = head.image_inputs([np.full((2, 2, 3), shade, dtype=np.uint8) for shade in range(6)])
    texts = head.text_inputs(list("abcdef"))
    for sides in ((rows[:5], rows, images, texts), (rows, rows[:5], images, texts)):
        with pytest.raises(MismatchError, match="5 rows of .*, and inputs of 6"):
            rerank_prepared(head, *sides, k=2)
    with pytest.raises(MismatchError, match="6 rows of images, and inputs of nothing"):
        rerank_prepared(head, rows, rows, {}, texts, k=2)
    for options in ({"k": 0}, {"k": 2, "batch": 0}):
        with pytest.raises(UsageError, match="is 0, it must be at least 1"):
            rerank_prepared(head, rows, rows, images, texts, **options)
    nobody = head.image_inputs([])
    with pytest.raises(DataError):
        rerank_prepared(head, rows[:0], rows, nobody, texts, k=2)
