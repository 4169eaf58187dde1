from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from diptych.core.errors import NumericalError, StorageError, UnknownNameError, UsageError
from diptych.encoders.targets.contract import (
    TargetModel,
    TargetOptions,
    make_target_model,
    open_target_model,
    targets_of,
)


class Counting(TargetModel):
    """Rows of letter counts; keeps what it was asked for."""

    kind = "counting"
    width = 26  # type: ignore[assignment]
    fingerprint = "0123456789abcdef"  # type: ignore[assignment]

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def _write(self, folder: Path) -> dict[str, Any]:
        return {}

    def _rows(self, texts: list[str]) -> np.ndarray:
        self.batches.append(texts)
        rows = np.array(
            [[text.count(chr(97 + letter)) for letter in range(26)] for text in texts], dtype=float
        )
        rows[[text == "bad" for text in texts]] = np.nan
        return rows


def test_each_distinct_caption_once_in_order_of_length() -> None:
    model = Counting()
    texts = ["aa", "b", "cccc", "aa", "ddd", "b", "ee"]
    rows = model.encode(texts, batch_size=2)
    assert model.batches == [["cccc", "ddd"], ["aa", "ee"], ["b"]]
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows.argmax(axis=1), [0, 1, 2, 0, 3, 1, 4])
    np.testing.assert_array_equal(rows.sum(axis=1), 1)


def test_rows_are_of_unit_length_and_zero_rows_stay() -> None:
    rows = Counting().encode(["abab", "", "abc"])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 0, 1], atol=1e-7)
    assert Counting().encode([]).shape == (0, 26)


def test_a_row_that_is_no_number_names_its_caption() -> None:
    refused(NumericalError, "the embedding of caption bad is not finite", Counting().encode, ["good", "bad"])


def test_bad_requests(tmp_path: Path) -> None:
    refused(UsageError, "batch size 0", Counting().encode, ["a"], batch_size=0)
    with pytest.raises(UnknownNameError, match="unknown kind of target 'sentense'"):
        make_target_model(TargetOptions(kind="sentense"), [])
    refused(StorageError, "nowhere does not exist", open_target_model, tmp_path / "nowhere")
    refused(StorageError, "holds no targets", open_target_model, tmp_path)


CAPTIONS = [f"{'a' * (1 + number % 5)}{chr(97 + number % 26)}{'z' * (number // 26)}" for number in range(60)]


def stored(model: TargetModel, captions: list[str], root: Path) -> np.ndarray:
    return targets_of(model, captions, root, batch_size=8)


def computed(model: Counting) -> int:
    return sum(len(batch) for batch in model.batches)


def test_each_caption_is_computed_once_per_model(tmp_path: Path) -> None:
    model = Counting()
    first = stored(model, [*CAPTIONS[:40], CAPTIONS[3]], tmp_path)
    assert np.array_equal(first, Counting().encode([*CAPTIONS[:40], CAPTIONS[3]]))
    others = CAPTIONS[50:19:-1]
    assert np.array_equal(stored(model, others, tmp_path), Counting().encode(others))
    stored(model, CAPTIONS[10:30], tmp_path)
    assert computed(model) == 51
    other = Counting()
    other.fingerprint = "f" * 16  # type: ignore[misc]
    stored(other, CAPTIONS, tmp_path)
    assert computed(other) == len(set(CAPTIONS))
    assert stored(model, [], tmp_path).shape == (0, model.width)


def test_captions_without_a_target_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        rows = stored(Counting(), ["dog", "123", "", "cat"], tmp_path)
        assert rows.any(axis=1).tolist() == [True, False, False, True]
    assert "2 of 4 captions have no target" in caplog.text
