"""Three parts of the sessions: nobody learns from what comes later, or from the same person."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.commerce.purchase_intent.scoring.fitting import slices_of
from diptych.commerce.purchase_intent.splits import SplitInput
from diptych.core.errors import UnknownNameError, UsageError


def sessions(starts: list[int], length: int = 1, persons: list[int] | None = None) -> SplitInput:
    start = np.array(starts, dtype=np.int64)
    who = np.arange(len(starts)) if persons is None else np.array(persons)
    return SplitInput(np.zeros(len(starts), dtype=bool), who, start, start + length)


def test_a_small_case_in_time() -> None:
    found = slices_of(sessions([50, 10, 20, 30, 40, 60, 70, 80, 90, 100]), calibration=0.2, holdout=0.3)
    assert np.flatnonzero(found.fit).tolist() == [0, 1, 2, 3, 4]
    assert np.flatnonzero(found.calibration).tolist() == [5, 6]
    assert np.flatnonzero(found.holdout).tolist() == [7, 8, 9]
    assert (found.split, found.ends, found.n_left_out) == ("time", (60, 80), 0)


def test_who_runs_across_an_end_is_in_none() -> None:
    found = slices_of(sessions([10, 20, 30, 40, 50], length=10), calibration=0.2, holdout=0.2)
    assert found.ends == (40, 50)
    assert np.flatnonzero(found.fit).tolist() == [0, 1]
    assert np.flatnonzero(found.calibration).tolist() == []
    assert np.flatnonzero(found.holdout).tolist() == [4]
    assert found.n_left_out == 2


@given(st.lists(st.integers(0, 50), min_size=2, max_size=40), st.integers(0, 20))
def test_parts_follow_one_another(starts: list[int], length: int) -> None:
    given = sessions(starts, length)
    found = slices_of(given, calibration=0.25, holdout=0.25)
    if found.split == "grouped":
        assert len(set(starts)) == 1
        return
    parts = [found.fit, found.calibration, found.holdout]
    assert (np.sum(parts, axis=0) <= 1).all()
    for before, after in ((0, 1), (1, 2), (0, 2)):
        if parts[before].any() and parts[after].any():
            assert given.end_us[parts[before]].max() < given.start_us[parts[after]].min()


def test_without_times_persons_are_told_apart_and_it_is_said() -> None:
    persons = [number // 3 for number in range(900)]
    found = slices_of(sessions([0] * 900, persons=persons), seed=3)
    assert found.split == "grouped"
    assert "no times" in found.note
    assert (found.fit | found.calibration | found.holdout).all()
    part = found.calibration + 2 * found.holdout
    assert (part.reshape(300, 3) == part.reshape(300, 3)[:, :1]).all()
    assert found.holdout.mean() == pytest.approx(0.2, abs=0.07)
    again = slices_of(sessions([0] * 900, persons=persons), seed=3)
    assert (again.fit == found.fit).all()
    asked = slices_of(sessions(list(range(900)), persons=persons), split="grouped", seed=3)
    assert (asked.fit == found.fit).all()
    assert "no times" not in asked.note


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="random"):
        slices_of(sessions([1, 2]), split="random")
    for calibration, holdout in ((0.0, 0.2), (0.2, 0.0), (0.5, 0.5), (float("nan"), 0.2)):
        with pytest.raises(UsageError, match="leave nothing"):
            slices_of(sessions([1, 2]), calibration=calibration, holdout=holdout)
