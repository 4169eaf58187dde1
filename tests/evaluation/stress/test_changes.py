from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import DataError, NumericalError
from diptych.evaluation.stress.summary import CHANGE_GROUPS, change_groups, jaccard_over


def test_groups_are_the_sign_of_what_became_of_a_query() -> None:
    clean, perturbed = np.array([3.0, 3, 2, 0, 0]), np.array([3.0, 2, 3, 0, 1])
    groups = change_groups(clean, perturbed)
    assert groups.tolist() == [0, -1, 1, 0, 1]
    assert groups.dtype == np.int8
    assert change_groups(perturbed, clean).tolist() == (-groups).tolist()


def test_three_conditions_by_hand() -> None:
    found = jaccard_over(
        {
            "a": np.array([-1, -1, 0, 0, 1, 0]),
            "b": np.array([-1, 0, 0, 0, 0, 0]),
            "c": np.array([-1, -1, -1, 0, 0, 0]),
        }
    )
    assert [(pair.first, pair.second) for pair in found.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [pair.decreased for pair in found.pairs] == pytest.approx([1 / 2, 2 / 3, 1 / 3])
    assert [pair.increased for pair in found.pairs] == [0.0, 0.0, None]  # b and c raise nobody
    assert [pair.unchanged for pair in found.pairs] == pytest.approx([3 / 5, 2 / 4, 3 / 5])
    assert found.decreased == pytest.approx(0.5)
    assert found.increased == 0
    assert found.unchanged == pytest.approx(17 / 30)
    assert found.left_out == {"decreased": 0, "increased": 1, "unchanged": 0}
    assert found.sizes["a"] == {"decreased": 2, "increased": 1, "unchanged": 3}


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from([-1, 0, 1]), min_size=n, max_size=n), min_size=1, max_size=5
        )
    )
)
def test_as_sets_of_queries(groups: list[list[int]]) -> None:
    conditions = {str(number): np.array(one) for number, one in enumerate(groups)}
    found = jaccard_over(conditions)
    for name, number in CHANGE_GROUPS.items():
        sets = {
            key: {row for row, value in enumerate(one) if value == number} for key, one in conditions.items()
        }
        expected = [
            len(sets[a] & sets[b]) / len(sets[a] | sets[b]) if sets[a] | sets[b] else None
            for a, b in combinations(conditions, 2)
        ]
        assert [getattr(pair, name) for pair in found.pairs] == expected
        present = [value for value in expected if value is not None]
        mean = getattr(found, name)
        assert mean == (pytest.approx(np.mean(present)) if present else None)
        assert found.left_out[name] == len(expected) - len(present)


def test_bad_input() -> None:
    with pytest.raises(DataError, match=r"\(3,\) clean and \(2,\) changed"):
        change_groups(np.zeros(3), np.zeros(2))
    with pytest.raises(NumericalError, match="query 1 is nan clean and 0 changed, 1 are"):
        change_groups(np.array([0, np.nan]), np.zeros(2))
    with pytest.raises(DataError, match="no condition"):
        jaccard_over({})
    with pytest.raises(DataError, match="2 queries of a and 3 of b"):
        jaccard_over({"b": np.zeros(3), "a": np.zeros(2)})
