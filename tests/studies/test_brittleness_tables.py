from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.evaluation.drops import Drop
from diptych.evaluation.stress import ChangedDrop, StressRow
from diptych.evaluation.stress.summary import jaccard_over
from diptych.studies.brittleness_retrieval import _cell, agreement_tables, chance_similarity, drop_tables
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


def a_row(changed: int, **drop: Any) -> StressRow:
    """A perturbation of 100 queries; rsum 200 clean, 195 changed, unless said otherwise."""
    given: dict[str, Any] = {
        **{"condition": "x", "measure": "rsum", "clean": 200.0, "perturbed": 195.0, "spread": None},
        **{"difference": -5.0, "low": -7.0, "high": -3.0, "relative": -0.025, "relative_low": -0.035},
        **{"relative_high": -0.015, "p": 0.001, "corrected": 0.013, "verdict": "worse"},
    }
    moved = drop.pop("moved", 0.1)
    return StressRow(
        **{"name": "x", "description": "", "group": "typos", "source": "", "keeps_meaning": True},
        **{"direction": "t2i", "options": {}, "queries": 100, "changed": [changed], "same": [0], "draws": 1},
        **{"reasons": {}, "drops": {"rsum": Drop(**{**given, **drop})}},
        changed_drops={"rsum": ChangedDrop(180.0, 162.0, -18.0, -20.0, -16.0, -0.1)},
        sizes={"decreased": moved, "increased": 0.0, "unchanged": 1 - moved},
    )


def test_a_drop_in_a_cell() -> None:
    assert _cell(None) == "–"
    assert _cell(a_row(100)) == "-2.5 % (-3.5 to -1.5) ↓"
    assert _cell(a_row(90)) == "-2.5 % (-3.5 to -1.5) ↓"
    assert _cell(a_row(89)) == "-2.5 % (-3.5 to -1.5) [-10.0] ↓"  # thinned by those that stayed
    assert _cell(a_row(100, relative_low=None, relative_high=None, verdict="")) == "-2.5 %"
    assert _cell(a_row(100, clean=0.0, difference=2.0, relative=None, verdict="better")) == "+2.0 of 0 ↑"


def test_a_mean_of_nothing_is_not_nothing_that_moves() -> None:
    still = {"difference": 0.0, "relative": 0.0, "p": 1.0, "corrected": 1.0, "verdict": ""}
    moving = a_row(100, **still, relative_low=-0.02, relative_high=0.02)
    assert _cell(moving) == "+0.0 % (-2.0 to +2.0)"
    assert _cell(a_row(100, **still, relative_low=0.0, relative_high=0.0, moved=0.0)) == "0"
