"""Distinct numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from diptych.metrics.ground_truth import distinct


@given(st.lists(st.integers(-5, 5)))
def test_as_a_set_says(values: list[int]) -> None:
    found = distinct(np.array(values, dtype=np.int64))
    assert found.dtype == np.int64
    assert found.tolist() == sorted(set(values))
