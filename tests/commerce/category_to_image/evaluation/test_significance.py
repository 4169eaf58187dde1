from __future__ import annotations

import numpy as np
import pytest

from diptych.commerce.category_to_image.evaluation.summary import (
    by_level,
    by_seen,
    compare_models,
    comparison_line,
    intervals_of,
    over_seeds,
)
from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.metrics import Bootstrap

NONE = Bootstrap(0)


def values(**models: list[list[float]]) -> dict[str, dict[str, list[np.ndarray]]]:
    return {name: {"P@1": [np.array(seed) for seed in seeds]} for name, seeds in models.items()}


def test_sign_flips_by_hand() -> None:
    """Three categories, all better by one: of eight swaps two are as large; averaged over seeds first."""
    given = values(base=[[0, 0, 0]], other=[[1, 1, 0], [1, 1, 2]])
    [one] = compare_models(given, "base", ["P@1"], correction="none", bootstrap=NONE)
    assert (one.run, one.measure, one.direction) == ("other", "P@1", "t2i")
    assert one.difference == pytest.approx(1)
    assert one.p == one.p_randomisation == pytest.approx(2 / 8)
    assert one.low is None
    assert one.better is True
    assert one.verdict == ""


def test_holm_corrects_over_all_models_and_measures() -> None:
    random = np.random.default_rng(0)
    base = (random.random(60) < 0.3).astype(float)
    given = values(base=[base.tolist()], best=[np.ones(60).tolist()], same=[base.tolist()])
    found = {one.run: one for one in compare_models(given, "base", ["P@1"], flips=2_000, bootstrap=NONE)}
    assert found["best"].verdict == "better"
    assert found["best"].p == pytest.approx(2 * found["best"].p_randomisation)
    assert found["same"].p == 1
    assert found["same"].better is None
    assert "Holm over 2 comparisons" in comparison_line("base", 2)


def test_intervals_hold_the_difference_and_are_of_categories() -> None:
    random = np.random.default_rng(1)
    base, other = random.random(200), random.random(200) + 0.1
    given = values(base=[base.tolist()], other=[other.tolist()])
    [one] = compare_models(given, "base", ["P@1"], bootstrap=Bootstrap(500))
    assert one.low is not None
    assert one.high is not None
    error = np.std(other - base) / np.sqrt(200)
    assert one.low == pytest.approx(one.difference - 1.96 * error, abs=0.3 * error)
    assert one.high == pytest.approx(one.difference + 1.96 * error, abs=0.3 * error)
    low, high = intervals_of({"P@1": base}, Bootstrap(500))["P@1"] or (0, 0)
    error = np.std(base) / np.sqrt(200)
    assert (low, high) == pytest.approx(
        (base.mean() - 1.96 * error, base.mean() + 1.96 * error), abs=error / 3
    )
    assert intervals_of({"P@1": base}, NONE) == {"P@1": None}


def test_odd_comparisons_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="baseline"):
        compare_models(values(a=[[0]], b=[[1]]), "c", ["P@1"])
    with pytest.raises(UsageError, match="1 model"):
        compare_models(values(a=[[0]]), "a", ["P@1"])
    with pytest.raises(MismatchError, match="a 1, b 2"):
        compare_models(values(a=[[0]], b=[[1, 1]]), "a", ["P@1"])


def test_groups_by_hand() -> None:
    each = np.array([1.0, 0, 0.5, 1])
    assert by_level(each, np.array([1, 2, 2, 3])) == {1: (1, 1.0), 2: (2, 0.25), 3: (1, 1.0)}
    assert by_seen(each, np.array([True, False, True, True])) == {0: (1, 0.0), 1: (3, pytest.approx(2.5 / 3))}
    assert by_seen(each, np.ones(4, dtype=bool)) == {1: (4, 0.625)}
    unseen, seen = over_seeds([{1: (4, 0.5)}, {0: (1, 0.0), 1: (3, 1.0)}])
    assert (unseen.group, unseen.categories, unseen.spread.values) == (0, 0.5, (0.0,))
    assert (seen.group, seen.categories, seen.spread.values) == (1, 3.5, (0.5, 1.0))
