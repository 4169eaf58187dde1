"""Measures, resamples and Platt's sigmoid: against scikit-learn, by brute force."""

from __future__ import annotations

from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.commerce.purchase_intent.measures import (
    Persons,
    Ranking,
    best_threshold,
    f1,
    least_cost_threshold,
    measure,
    of_probabilities,
)
from diptych.commerce.purchase_intent.models import MODELS, fit_platt, log_odds
from diptych.core.errors import DataError
from diptych.metrics import bootstrap as drawing
from diptych.metrics.bootstrap import Bootstrap, drawn_clusters

SCORES = np.array([0.9, 0.8, 0.7, 0.6, 0.5])


def average_precision(scores: np.ndarray, labels: np.ndarray) -> float:
    return float(Ranking(scores, labels).values()["average_precision"])


@st.composite
def scored(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores with many ties, labels of both classes, whole weights of which one of either class is not 0."""
    n = draw(st.integers(2, 25))
    scores = draw(st.lists(st.integers(0, 6), min_size=n, max_size=n))
    labels = [True, False, *draw(st.lists(st.booleans(), min_size=n - 2, max_size=n - 2))]
    weights = [1, 1, *draw(st.lists(st.integers(0, 3), min_size=n - 2, max_size=n - 2))]
    return np.array(scores) / 8, np.array(labels), np.array(weights, dtype=np.float64)


def test_what_is_not_defined_is_nan() -> None:
    none = np.zeros(5, dtype=bool)
    for one in (average_precision, best_threshold):
        assert np.isnan(one(SCORES, none))
    nothing = measure(SCORES, none, 0.5)
    assert np.isnan([nothing["lift_10"], nothing["precision_at_recall_50"]]).all()
    for labels, defined in ((none, []), (~none, ["average_precision"])):
        values = Ranking(SCORES, labels).values()
        assert [name for name in values if not np.isnan(values[name])] == defined
    assert np.isnan(f1(none, none))
    assert f1(~none, none) == 0


@settings(max_examples=20)
@given(scored())
def test_as_scikit_learn(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    from sklearn import metrics

    scores, labels, weights = case
    found = Ranking(scores, labels).values(np.stack([weights, np.ones(len(labels))]))
    predicted = scores >= 0.5
    for place, given_weights in enumerate((weights, None)):
        how = {"sample_weight": given_weights}
        precision = metrics.average_precision_score(labels, scores, **how)
        assert found["average_precision"][place] == pytest.approx(precision)
        assert found["roc_auc"][place] == pytest.approx(metrics.roc_auc_score(labels, scores, **how))
        assert f1(predicted, labels, given_weights) == pytest.approx(
            metrics.f1_score(labels, predicted, zero_division=0.0, **how)
        )
    cell = measure(scores, labels, 0.5) | of_probabilities(scores, labels)
    assert (cell["average_precision"], cell["roc_auc"]) == pytest.approx(
        tuple(one[1] for one in found.values())
    )
    assert cell["brier"] == pytest.approx(metrics.brier_score_loss(labels, scores))


@settings(max_examples=40)
@given(scored())
def test_thresholds_by_trying_all(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    scores, labels, _ = case
    every = sorted(set(scores.tolist()), reverse=True)
    found = {one: float(f1(scores >= one, labels)) for one in every}
    chosen = best_threshold(scores, labels)
    assert found[chosen] == pytest.approx(max(found.values()))
    assert all(found[one] < found[chosen] - 1e-12 for one in every if one > chosen)
    enough = [one for one in every if labels[scores >= one].sum() >= 0.5 * labels.sum()]
    assert measure(scores, labels, 0.5)["precision_at_recall_50"] == pytest.approx(
        max(labels[scores >= one].mean() for one in enough)
    )


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=2, max_size=6))
def test_lift_is_the_mean_over_orders_of_equal_scores(rows: list[tuple[int, bool]]) -> None:
    scores, labels = np.array([row[0] for row in rows]) / 2, np.array([row[1] for row in rows])
    labels[0] = True
    orders = [list(order) for order in permutations(range(len(rows)))]
    lifts = [labels[one[0]] / labels.mean() for one in orders if (np.diff(scores[one]) <= 0).all()]
    assert measure(scores, labels, 0.5)["lift_10"] == pytest.approx(np.mean(lifts))


@settings(max_examples=40)
@given(scored(), st.integers(1, 12))
def test_reliability_counts_everybody_once(
    case: tuple[np.ndarray, np.ndarray, np.ndarray], bins: int
) -> None:
    p, labels, _ = case
    rows = of_probabilities(p, labels, bins)["reliability"]
    assert 1 <= len(rows) <= bins
    assert sum(row["n"] for row in rows) == len(p)
    assert sum(row["n"] * row["share"] for row in rows) == pytest.approx(labels.sum())
    assert sum(row["n"] * row["mean_score"] for row in rows) == pytest.approx(p.sum())
    for before, after in pairwise(rows):
        assert before["high"] < after["low"]  # equal probabilities are in one bin
    if len(set(p.tolist())) == len(p) and len(p) >= bins:
        assert max(row["n"] for row in rows) - min(row["n"] for row in rows) <= 2


def test_cells_share_draws_of_whole_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    who, scores, labels = random.integers(0, 30, 60), random.random(60), random.random(60) < 0.4
    persons = Persons(who * 7, Bootstrap(50))

    def measured(rows: np.ndarray) -> np.ndarray:
        return persons.of_scores(rows, scores[rows], labels[rows], {})["average_precision"]

    whole, half = measured(np.arange(60)), measured(np.arange(0, 60, 2))
    (weights,) = drawn_clusters(persons.how, 0, len(np.unique(who)), 60)
    weights = weights[:, np.unique(who, return_inverse=True)[1]]
    for number, drawn in enumerate(weights.astype(int)):
        rows = np.repeat(np.arange(60), drawn)
        assert all(len(set(drawn[who == one])) == 1 for one in set(who.tolist()))
        assert sum(drawn[who == one][0] for one in set(who.tolist())) == len(set(who.tolist()))
        assert whole[number] == pytest.approx(average_precision(scores[rows], labels[rows]))
        even = rows[rows % 2 == 0]
        assert half[number] == pytest.approx(average_precision(scores[even], labels[even]))
    monkeypatch.setattr(drawing, "_CHUNK_NUMBERS", 100)  # a resample at a time
    assert measured(np.arange(60)).tolist() == whole.tolist()
    nothing = Persons(np.arange(4), Bootstrap(0))
    ends = nothing.ends(nothing.of_scores(np.arange(4), SCORES[:4], SCORES[:4] > 0.7, {}), "x")
    assert ends == {"x_low": None, "x_high": None}
    half_of_them = Persons(np.arange(4), Bootstrap(9, confidence=0.5))
    assert [*half_of_them.ends({"x": np.array([np.nan, 0.0, 1, 2, 3, 4])}, "x").values()] == [1.0, 3.0]


@settings(max_examples=40)
@given(scored(), st.sampled_from([0.1, 1.0, 7.0]))
def test_the_threshold_by_cost_costs_least(
    case: tuple[np.ndarray, np.ndarray, np.ndarray], missed: float
) -> None:
    p, labels, _ = case

    def cost(threshold: float) -> float:
        return float((p >= threshold)[~labels].sum() + missed * labels[p < threshold].sum())

    found = least_cost_threshold(p, labels, 1.0, missed)
    assert cost(found) == pytest.approx(min(map(cost, (*p, 1.0))))


def drawn(
    n: int = 300, slope: float = 2.0, intercept: float = -1.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.normal(0, 2, n)
    return x, random.random(n) < 1 / (1 + np.exp(-(slope * x + intercept)))


def test_no_other_sigmoid_is_likelier() -> None:
    """By Platt's likelihood, written out: (N₊+1)/(N₊+2) and 1/(N₋+2) are what was seen."""
    x, labels = drawn()
    bought = labels.sum()
    soft = np.where(labels, (bought + 1) / (bought + 2), 1 / (len(x) - bought + 2))

    def loss(slope: float, intercept: float) -> float:
        z = slope * x + intercept
        return float(np.sum(np.logaddexp(0, z) - soft * z))

    for scale, step in product((1.0, 1e-3, 1e4), (1e-3, -1e-3)):
        found = fit_platt(scale * x + 5, labels)
        slope, intercept = found.slope * scale, found.intercept + 5 * found.slope
        assert loss(slope, intercept) < min(loss(slope + step, intercept), loss(slope, intercept + step))


def test_extremes_of_calibration() -> None:
    labels, rounded = np.array([False, False, True, True]), float(np.nextafter(0.1, 1))
    for x in ([-1.0, -1, 1, 1], [1e6, 1e6, -1e6, -1e6], [0.0] * 4, [0.1, 0.1, 0.1, rounded]):
        found = fit_platt(np.array(x), labels)
        p = found.probabilities(np.array(x))
        assert ((p > 0) & (p < 1)).all()
        if np.ptp(x) < 1e-9:  # nothing to tell apart by: not by rounding either
            assert (found.slope, p.tolist()) == (0, [0.5] * 4)
        else:  # the targets are 1/4 and 3/4, and can be met
            assert p == pytest.approx([0.25, 0.25, 0.75, 0.75], abs=1e-6)
    for labels in (np.zeros(3, dtype=bool), np.ones(3, dtype=bool)):
        with pytest.raises(DataError, match="cannot be calibrated"):
            fit_platt(np.arange(3.0), labels)
    scores = np.array([0.0, 0.2, 0.5, 1.0])
    assert log_odds(scores, MODELS.get("svm")).tolist() == scores.tolist()
    odds = log_odds(scores, MODELS.get("random-forest"))
    assert odds == pytest.approx(np.log([0.001 / 0.999, 0.25, 1, 0.999 / 0.001]))
