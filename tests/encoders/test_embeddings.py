from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diptych.core.errors import DataError, NumericalError
from diptych.encoders.embeddings import Embeddings

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
ABOUT = {"encoder": "e", "data": "d", "kind": "image", "about": {"split": "test"}}


def test_a_row_that_is_not_finite_is_named() -> None:
    rows = ROWS.copy()
    rows[2, 1] = np.inf
    with pytest.raises(NumericalError, match=r"image embedding 'c' \(row 2\) is not finite"):
        Embeddings(list("abcd"), rows, **ABOUT).check_finite()  # type: ignore[arg-type]


def test_ids_and_rows_must_fit() -> None:
    with pytest.raises(DataError, match=r"3 ids for rows of shape \(4, 3\)"):
        Embeddings(list("abc"), ROWS, **ABOUT)  # type: ignore[arg-type]


def test_many_ids_are_read_when_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Embeddings(["a", "é", "", "a b\nc"], ROWS, **ABOUT).save(tmp_path / "e")  # type: ignore[arg-type]
    few = Embeddings.open(folder)
    monkeypatch.setattr("diptych.encoders.embeddings._HELD_IDS", 3)
    many = Embeddings.open(folder)
    assert isinstance(few.ids, list)
    assert not isinstance(many.ids, list)
    assert list(few.ids) == list(many.ids) == ["a", "é", "", "a b\nc"]
    assert (len(many), many.ids[1], many.ids[2:]) == (4, "é", ["", "a b\nc"])
