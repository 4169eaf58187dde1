"""Resampled persons: each draw is so many copies of their sessions, and the same for all cells."""

from __future__ import annotations

import numpy as np
import pytest

from diptych.commerce.purchase_intent.evaluation.measures import Persons, average_precision
from diptych.core.errors import UsageError
from diptych.metrics import bootstrap as drawing
from diptych.metrics.bootstrap import Bootstrap


def test_a_resample_is_whole_persons() -> None:
    persons = Persons.of(np.array([70, 70, 3, 5, 3, 70]), Bootstrap(200))
    assert persons.numbers.tolist() == [2, 2, 0, 1, 0, 2]
    weights = []
    persons.resamples(np.arange(6), {"kept": lambda drawn: weights.append(drawn) or drawn[:, 0]})
    drawn = np.concatenate(weights)
    assert drawn.shape == (200, 6)
    assert (drawn[:, 0] == drawn[:, 1]).all()
    assert (drawn[:, 2] == drawn[:, 4]).all()
    assert (drawn[:, [0, 2, 3]].sum(axis=1) == 3).all()  # as many persons as there are
    assert drawn[:, 0].mean() == pytest.approx(1, abs=0.2)


def test_cells_share_draws_whichever_sessions_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    who, scores, labels = random.integers(0, 30, 60), random.random(60), random.random(60) < 0.4
    persons = Persons.of(who, Bootstrap(50))

    def measured(rows: np.ndarray) -> np.ndarray:
        found = persons.resamples(rows, {"ap": lambda w: average_precision(scores[rows], labels[rows], w)})
        return found["ap"]

    whole, half = measured(np.arange(60)), measured(np.arange(0, 60, 2))
    drawn = []
    persons.resamples(np.arange(60), {"w": lambda w: drawn.append(w.copy()) or w[:, 0]})
    for number, weights in enumerate(np.concatenate(drawn).astype(int)):
        rows = np.repeat(np.arange(60), weights)
        assert whole[number] == pytest.approx(average_precision(scores[rows], labels[rows]))
        even = rows[rows % 2 == 0]
        assert half[number] == pytest.approx(average_precision(scores[even], labels[even]))
    monkeypatch.setattr(drawing, "_CHUNK_NUMBERS", 100)  # a resample at a time
    assert measured(np.arange(60)).tolist() == whole.tolist()


def test_intervals() -> None:
    persons = Persons.of(np.arange(4), Bootstrap(0))
    assert persons.resamples(np.arange(4), {"ap": lambda w: w[:, 0]})["ap"].shape == (0,)
    assert persons.interval(np.zeros(0)) == (None, None)
    with_samples = Persons.of(np.arange(4), Bootstrap(9, confidence=0.5))
    assert with_samples.interval(np.array([np.nan, 0.0, 1, 2, 3, 4])) == (1.0, 3.0)
    with pytest.raises(UsageError):
        Bootstrap(-1)
