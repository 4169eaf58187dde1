"""Labels laid on other people's sessions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.commerce.purchase_intent.auditing.checks import (
    best_column,
    column_aucs,
    mean_interval,
    permuted_by_person,
)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=30), st.integers(0, 5))
def test_as_many_purchases_as_before(sessions: list[tuple[bool, int]], seed: int) -> None:
    labels, persons = (np.array(column) for column in zip(*sessions, strict=True))
    found = permuted_by_person(labels, persons, (seed,))
    assert found.sum() == labels.sum()
    assert (found == permuted_by_person(labels, persons, (seed,))).all()


def test_labels_of_a_person_stay_together_and_say_nothing() -> None:
    persons = np.repeat(np.arange(2000), 2)  # everybody has two sessions, of one outcome
    labels = np.repeat(np.random.default_rng(0).random(2000) < 0.3, 2)
    found = permuted_by_person(labels, persons, (1, 2))
    assert (found[::2] == found[1::2]).all()
    assert abs(np.corrcoef(found, labels)[0, 1]) < 0.1
    other = permuted_by_person(labels, persons, (1, 3))
    assert (found != other).any()


def test_an_interval_of_a_mean() -> None:
    from scipy import stats

    values = [0.4, 0.5, 0.7]
    expected = stats.t.interval(0.99, 2, np.mean(values), stats.sem(values))
    assert mean_interval(values, 0.99) == pytest.approx(expected)


def test_single_columns_either_way_and_by_what_is_missing() -> None:
    nan = np.nan
    labels = np.array([True, True, False, False])
    matrix = np.array(
        [
            [1.0, 9.0, nan, 0.0, nan],
            [2.0, 8.0, nan, 0.0, nan],
            [3.0, 7.0, 5.0, 0.0, nan],
            [1.5, 6.0, 4.0, 0.0, nan],
        ]
    )
    aucs = column_aucs(matrix, labels)
    assert aucs.tolist() == [0.75, 1.0, 1.0, 0.5, 0.5]
    assert best_column("abcde", aucs) == ("b", 1.0)
    assert best_column((), np.zeros(0)) == ("", 0.5)
