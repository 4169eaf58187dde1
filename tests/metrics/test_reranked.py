from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from diptych.core.errors import DataError, NumericalError
from diptych.metrics import UNSCORED, Candidates, Reranked


def side(items: object, contrastive: object = None, matching: object = None) -> Candidates:
    rows = np.asarray(items)
    falling = -np.tile(np.arange(rows.shape[1], dtype=np.float32), (len(rows), 1))
    first = falling if contrastive is None else np.asarray(contrastive, np.float32)
    second = rows.astype(np.float32) if matching is None else np.asarray(matching, np.float32)
    return Candidates(rows, first, second)


@pytest.fixture
def given() -> Reranked:
    """Two images, three texts, two candidates."""
    return Reranked(side([[2, 0], [1, 2]]), side([[0, 1], [1, 0], [1, 0]]), True, {"encoder": "abc", "k": 2})


def test_saved_over_what_it_is_mapped_from(given: Reranked, tmp_path: Path) -> None:
    opened = Reranked.open(given.save(tmp_path / "reranked"))
    assert isinstance(opened.t2i.items, np.memmap)
    assert opened.first(1).i2t.items.tolist() == [[2], [1]]
    again = Reranked.open(opened.save(tmp_path / "reranked"))
    assert again.t2i.items.tolist() == given.t2i.items.tolist()
    assert {path.suffix for path in (tmp_path / "reranked").iterdir()} == {".npy", ".json"}


def test_the_published_matrix(given: Reranked) -> None:
    assert given.matrix("i2t").tolist() == [[-1, UNSCORED, 2], [UNSCORED, 1, 1]]  # matching + contrastive


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    for items, contrastive, matching, error, message in (
        ([[0, 3]], None, None, DataError, "i2t query 0: a candidate is not in a gallery of 3"),
        ([[0, -1]], None, None, DataError, "a candidate is not in a gallery of 3"),
        ([[0, 1], [2, 2]], None, None, DataError, "i2t query 1: a row is a candidate twice"),
        ([[0, 1]], [[0.1, 0.2]], None, DataError, "a higher contrastive score than"),
        ([[0, 1]], [[np.inf, 0]], None, NumericalError, "a contrastive score is not finite"),
        ([[0, 1]], None, [[0, np.nan]], NumericalError, "a matching score is not finite"),
        (np.zeros((2, 0), int), None, None, DataError, "2 queries with 0 candidates each"),
        (np.zeros((0, 2), int), None, None, DataError, "0 queries with 2 candidates each"),
    ):
        given = Reranked(side(items, contrastive, matching), side(np.zeros((3, 1), int)))
        assert given.n_images == len(np.asarray(items))
        refused(error, message, given.save, tmp_path / "reranked")
        assert not (tmp_path / "reranked").exists()
    scores = np.zeros((1, 2))
    message = r"candidates of shape \(1, 2\), contrastive scores \(1, 3\)"
    refused(DataError, message, Candidates, np.zeros((1, 2), int), np.zeros((1, 3)), scores)
    refused(DataError, "candidates are float64 numbers", Candidates, scores, scores, scores)
