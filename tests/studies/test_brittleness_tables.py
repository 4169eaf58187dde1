from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.evaluation.changes import jaccard_over
from diptych.studies.brittleness_tables import agreement_tables, chance_similarity, drop_tables
from diptych.studies.evidence import Evidence


def test_chance_by_hand() -> None:
    assert chance_similarity([0.8, 0.8]) == pytest.approx(0.64 / 0.96)  # the two thirds that the note names
    assert chance_similarity([1.0, 0.5]) == pytest.approx(0.5)
    assert chance_similarity([0.0, 0.5]) == 0
    assert chance_similarity([0.0, 0.0]) is None
    assert chance_similarity([0.3]) is None
    # All pairs count alike: ½, ½ and ⅓.
    assert chance_similarity([1.0, 0.5, 0.5]) == pytest.approx((0.5 + 0.5 + 1 / 3) / 3)


@settings(max_examples=10, deadline=None)
@given(st.floats(0.1, 0.9), st.floats(0.1, 0.9))
def test_chance_is_what_independent_sets_have(one: float, other: float) -> None:
    random = np.random.default_rng(0)
    n = 40_000
    groups = {name: np.where(random.random(n) < share, 1, 0) for name, share in (("a", one), ("b", other))}
    expected = chance_similarity([one, other])
    assert expected is not None
    found = jaccard_over(groups).increased
    assert found == pytest.approx(expected, abs=6 / math.sqrt(n))


def test_nothing_run_is_nothing_to_show() -> None:
    assert drop_tables(Evidence()) == []
    assert agreement_tables(Evidence(centric={"x": ""}, figures={"a": {}})) == []
