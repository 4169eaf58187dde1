from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.evaluation.stress.summary import CHANGE_GROUPS, jaccard


def test_three_conditions_by_hand() -> None:
    found = jaccard(np.array([[-1, -1, 0, 0, 1, 0], [-1, 0, 0, 0, 0, 0], [-1, -1, -1, 0, 0, 0]]))
    assert found["decreased"] == pytest.approx([1 / 2, 2 / 3, 1 / 3])
    assert found["increased"] == [0.0, 0.0, None]  # the last two raise nobody
    assert found["unchanged"] == pytest.approx([3 / 5, 2 / 4, 3 / 5])


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from([-1, 0, 1]), min_size=n, max_size=n), min_size=1, max_size=5
        )
    )
)
def test_as_sets_of_queries(groups: list[list[int]]) -> None:
    found = jaccard(np.array(groups))
    for name, number in CHANGE_GROUPS.items():
        sets = [{row for row, value in enumerate(one) if value == number} for one in groups]
        expected = [len(a & b) / len(a | b) if a | b else None for a, b in combinations(sets, 2)]
        assert found[name] == expected
