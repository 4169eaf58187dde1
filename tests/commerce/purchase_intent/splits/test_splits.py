"""Splits: who is on which side, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.commerce.purchase_intent.splits import SPLITS, SplitInput
from diptych.core.errors import DataError, UnknownNameError, UsageError

DAY = 86_400_000_000


def sessions(
    labels: list[int], persons: list[int] | None = None, starts: list[int] | None = None
) -> SplitInput:
    n = len(labels)
    start = np.array(starts if starts is not None else range(n), dtype=np.int64)
    who = np.array(persons if persons is not None else range(n), dtype=np.int64)
    return SplitInput(np.array(labels, dtype=bool), who, start, start + 1)


def drawn(n: int, seed: int) -> SplitInput:
    random = np.random.default_rng(seed)
    bought = (np.arange(n) < 12) | (random.random(n) < 0.2)
    bought[12:24] = False
    return sessions(bought.tolist(), random.integers(0, 2 * n, n).tolist())


@pytest.mark.parametrize("name", ["random", "grouped"])
@settings(max_examples=12)
@given(n=st.integers(60, 200), folds=st.integers(2, 6), seed=st.integers(0, 5))
def test_every_session_is_tested_once_by_all_others(name: str, n: int, folds: int, seed: int) -> None:
    table = drawn(n, seed)
    found = SPLITS.get(name).folds(table, folds, seed)
    assert len(found) == folds
    assert sorted(np.concatenate([fold.test for fold in found]).tolist()) == list(range(n))
    bought = []
    for fold in found:
        assert sorted([*fold.train.tolist(), *fold.test.tolist()]) == list(range(n))
        assert (np.diff(fold.train) > 0).all()
        assert (np.diff(fold.test) > 0).all()
        bought.append(int(table.labels[fold.test].sum()))
        if name == "grouped":
            assert not set(table.persons[fold.train].tolist()) & set(table.persons[fold.test].tolist())
    if name == "random":
        assert max(bought) - min(bought) <= 1
    else:
        assert max(bought) - min(bought) <= table.labels.sum() / folds + 2
    again = SPLITS.get(name).folds(table, folds, seed)
    assert [fold.test.tolist() for fold in again] == [fold.test.tolist() for fold in found]
    other = SPLITS.get(name).folds(table, folds, seed + 1)
    assert [fold.test.tolist() for fold in other] != [fold.test.tolist() for fold in found]


def test_grouped_folds_are_alike_where_persons_are() -> None:
    # 4 persons with 2 purchases, 8 with 1, 30 with none; two sessions each.
    labels = [1, 1] * 4 + [1, 0] * 8 + [0, 0] * 30
    persons = [number for number in range(42) for _ in range(2)]
    found = SPLITS.get("grouped").folds(sessions(labels, persons), 2, 0)
    assert [len(fold.test) for fold in found] == [42, 42]
    assert [int(np.array(labels)[fold.test].sum()) for fold in found] == [8, 8]


def test_grouped_folds_are_dealt_there_and_back_again() -> None:
    # One person with 6 sessions with a purchase, one with 5, … one with 1; as many with none.
    sizes = [size for size in range(1, 7) for _ in range(2)]
    labels = [place % 2 for place, size in enumerate(sizes) for _ in range(size)]
    persons = [place for place, size in enumerate(sizes) for _ in range(size)]
    found = SPLITS.get("grouped").folds(sessions(labels, persons), 3, 0)
    # Buyers: 6 and 1, 5 and 2, 4 and 3; those of 6 to 1 sessions without one likewise.
    assert [int(np.array(labels)[fold.test].sum()) for fold in found] == [7, 7, 7]
    assert [len(fold.test) for fold in found] == [14, 14, 14]


def test_a_session_at_the_edge_is_tested_once() -> None:
    table = sessions([0, 1] * 6, starts=[0, 10, 20, 30, 40, 50, 60, 61, 80, 81, 99, 100])
    found = SPLITS.get("time").folds(table, 2, 0)  # 0, 20, 40, 60, 80, 101
    assert [table.start_us[fold.test].tolist() for fold in found] == [[60, 61], [80, 81, 99, 100]]


def test_time_trains_on_the_first_three_quarters() -> None:
    starts = [0, 10, 20, 30, 59, 60, 61, 70, 79, 80]
    table = sessions([0, 1, 0, 1, 1, 0, 1, 0, 1, 0], starts=starts)
    table.end_us[4] = 65  # began before 60, had not ended then
    (fold,) = SPLITS.get("time").folds(table, 1, 0)
    assert fold.train.tolist() == [0, 1, 2, 3]
    assert fold.test.tolist() == [5, 6, 7, 8, 9]


def test_time_windows_grow() -> None:
    table = sessions([0, 1] * 30, starts=list(range(0, 600, 10)))
    found = SPLITS.get("time").folds(table, 3, 0)  # 590 in six parts: 0, 98, 196, 295, 393, 491
    assert [fold.train.tolist() for fold in found] == [
        list(range(30)),
        list(range(40)),
        list(range(49)),  # the one that began at 490 ended at 491, not before
    ]
    assert [fold.test.tolist() for fold in found] == [
        list(range(30, 40)),
        list(range(40, 50)),
        list(range(50, 60)),
    ]


@pytest.mark.parametrize("name", ["random", "grouped"])
def test_what_cannot_be_split_evenly(name: str) -> None:
    split = SPLITS.get(name)
    with pytest.raises(DataError, match=r"0 .*: nothing can be trained"):
        split.folds(sessions([0] * 20), 5, 0)
    with pytest.raises(DataError, match=r"3 .* cannot be in each of 5 folds.*--folds 3"):
        split.folds(sessions([1] * 3 + [0] * 20), 5, 0)
    with pytest.raises(DataError, match="without a purchase"):
        split.folds(sessions([1] * 20), 5, 0)
    with pytest.raises(UsageError, match="at least two"):
        split.folds(sessions([1, 0] * 10), 1, 0)


def test_grouped_needs_buyers_and_not_purchases() -> None:
    labels, persons = [1] * 6 + [0] * 20, [1] * 5 + [2] + list(range(10, 30))
    with pytest.raises(DataError, match="2 persons with a purchase session cannot be in each of 3 folds"):
        SPLITS.get("grouped").folds(sessions(labels, persons), 3, 0)


def test_what_cannot_be_split_by_time() -> None:
    split = SPLITS.get("time")
    with pytest.raises(DataError, match=r"from 1970-01-04.* 0 with a purchase"):
        split.folds(sessions([1, 0, 1, 0, 0], starts=[0, DAY, 2 * DAY, 3 * DAY, 4 * DAY]), 1, 0)
    with pytest.raises(DataError, match="no session"):
        split.folds(sessions([]), 1, 0)
    with pytest.raises(UsageError, match="at least one"):
        split.folds(sessions([1, 0]), 0, 0)
    with pytest.raises(UnknownNameError, match="time"):
        SPLITS.get("tme")
