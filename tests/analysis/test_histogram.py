from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis import WeightHistogram


def test_bins_by_hand() -> None:
    histogram = WeightHistogram()
    histogram.add(np.array([0.0, 1e-9, 0.01, 0.0105, 1.0, 3e4]), queries=2)
    histogram.add(np.array([0.0]), queries=1)
    assert (histogram.queries, histogram.zeros, histogram.candidates) == (3, 2, 7)
    assert histogram.counts[0] == 1
    assert histogram.counts[-1] == 1
    lower = {float(histogram.edges[place - 1]): int(histogram.counts[place]) for place in range(1, 61)}
    assert {edge: n for edge, n in lower.items() if n} == pytest.approx({0.01: 2, 1.0: 1})
    assert sum(histogram.sums) == pytest.approx(1e-9 + 0.0205 + 1.0 + 3e4)


@given(st.lists(st.floats(0, 1e5), max_size=50), st.integers(0, 50))
def test_batch_by_batch_is_all_at_once(weights: list[float], cut: int) -> None:
    whole, parts = WeightHistogram(), WeightHistogram()
    whole.add(np.array(weights), 4)
    parts.add(np.array(weights[:cut]), 1)
    parts.add(np.array(weights[cut:]), 3)
    assert parts.counts == whole.counts
    assert parts.sums == pytest.approx(whole.sums)
    assert parts.candidates == len(weights)
