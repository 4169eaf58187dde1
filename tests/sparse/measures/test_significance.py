from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_rel

from diptych.core.errors import MismatchError, NumericalError, UsageError
from diptych.sparse.measures import paired_tests


def test_as_published_every_caption_by_itself() -> None:
    random = np.random.default_rng(0)
    first = random.random(50)
    second = first - random.normal(0.02, 0.1, 50)
    other = random.random(50)
    found = paired_tests({"Exact@20": (first, second), "Semantic@20": (first, other)}, None)
    for name, values in (("Exact@20", second), ("Semantic@20", other)):
        wanted = ttest_rel(first, values).pvalue
        assert found[name].p == pytest.approx(wanted)
        assert found[name].corrected == pytest.approx(min(1, 2 * wanted))
    assert found["Exact@20"].difference == pytest.approx(first.mean() - second.mean())


def test_captions_of_one_picture_are_one_observation() -> None:
    random = np.random.default_rng(1)
    of_picture = random.normal(0.3, 1, 20)
    difference = np.repeat(of_picture, 5)  # five captions that say the same five times
    picture = np.repeat(np.arange(20), 5)
    found = paired_tests({"Exact@20": (difference, np.zeros(100))}, picture)["Exact@20"]
    assert found.p == pytest.approx(ttest_rel(of_picture, np.zeros(20)).pvalue)
    alone = paired_tests({"Exact@20": (difference, np.zeros(100))}, None)["Exact@20"]
    assert alone.p is not None
    assert found.p is not None
    assert alone.p < found.p


def test_what_cannot_be_said_is_not_counted() -> None:
    found = paired_tests(
        {"same": (np.ones(4), np.ones(4)), "shifted": (np.ones(4), np.zeros(4))}, np.arange(4)
    )
    assert (found["same"].p, found["same"].corrected) == (1, 1)
    assert (found["shifted"].p, found["shifted"].corrected) == (None, None)


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="no values to test"):
        paired_tests({}, None)
    with pytest.raises(MismatchError, match="Exact@20: 3 and 4 values of 3 queries"):
        paired_tests({"Exact@20": (np.zeros(3), np.zeros(4))}, None)
    with pytest.raises(MismatchError, match="3 and 3 values of 4 queries"):
        paired_tests({"Exact@20": (np.zeros(3), np.zeros(3))}, np.arange(4))
    with pytest.raises(NumericalError, match="a value is not finite"):
        paired_tests({"Exact@20": (np.array([np.nan]), np.zeros(1))}, None)
