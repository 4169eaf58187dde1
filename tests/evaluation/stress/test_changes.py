from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from diptych.evaluation.stress.summary import CHANGE_GROUPS, jaccard


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
