"""Targets on disk; how rows are kept is the row store's contract."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from diptych.encoders.targets import TargetModel, targets_of

from .test_contract import Counting

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
