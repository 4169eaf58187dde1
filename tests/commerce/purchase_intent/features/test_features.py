"""Features against hand-written values, an independent implementation and the printed table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from feature_oracle import log_ratio
from hypothesis import given, settings
from hypothesis import strategies as st
from small_views import small_view

from diptych.commerce.purchase_intent.features import FEATURES, FittedFeatures, fit_features
from diptych.commerce.purchase_intent.features.fitting import NOTHING, MarkovRatio, SessionsView, features_of
from diptych.commerce.purchase_intent.options import FeatureOptions
from diptych.core.errors import UnknownNameError

NaN = np.nan


def fit(name: str, view: SessionsView) -> FittedFeatures:
    """One feature, of sessions that did not end in a purchase where the view does not say."""
    labels = np.zeros(len(view), bool) if view.labels is None else view.labels
    return fit_features([FEATURES.get(name)], replace(view, labels=labels))


def values(name: str, view: SessionsView) -> np.ndarray:
    return fit(name, view).matrix(view)


def test_starts() -> None:
    view = small_view([[]] * 3, {"start_hour": [0, 6, 23], "start_dow": [0, 6, NaN]})
    assert values("start-hour", view)[:, 0].tolist() == [0, 6, 23]
    days = values("week-day", view)
    assert days[:2].argmax(axis=1).tolist() == [0, 6]
    assert days[:2].sum(axis=1).tolist() == [1, 1]
    assert np.isnan(days[2]).all()
    angles = values("hour-cyclic", view)
    np.testing.assert_allclose(angles[:2], [[0, 1], [1, 0]], atol=1e-12)
    assert np.hypot(*(angles[2] - angles[0])) < 0.27  # an hour on the circle


pages = st.lists(
    st.tuples(st.integers(0, 1800), st.sampled_from(["home", "search", "product", "basket"])),
    min_size=12,
    max_size=12,
)


@settings(max_examples=25)
@given(st.lists(pages, min_size=2, max_size=4), st.data(), st.integers(1, 10))
def test_no_feature_depends_on_what_lies_behind_its_step(
    sessions: list[list[tuple[int, str]]], data: st.DataObject, step: int
) -> None:
    sessions = [
        [(sum(t for t, _ in one[: place + 1]), name) for place, (_, name) in enumerate(one)]
        for one in sessions
    ]
    ends = [data.draw(pages) for _ in sessions]
    others = [
        one[:step] + [(one[-1][0] + t, n) for t, n in end] for one, end in zip(sessions, ends, strict=True)
    ]
    labels = [number % 2 == 0 for number in range(len(sessions))]
    view, other = (small_view(one, labels=labels).until(step) for one in (sessions, others))
    features = list(FEATURES)
    np.testing.assert_array_equal(
        fit_features(features, view).matrix(view), fit_features(features, other).matrix(other)
    )


sequences = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=5), min_size=1, max_size=8)


@settings(max_examples=40)
@given(sequences, sequences, st.data())
def test_the_same_as_written_out(
    training: list[list[str]], asked: list[list[str]], data: st.DataObject
) -> None:
    labels = data.draw(st.lists(st.booleans(), min_size=len(training), max_size=len(training)))
    pages = [[(float(place), name) for place, name in enumerate(one)] for one in training]
    fitted = fit("page-sequence-score", small_view(pages, labels=labels))
    view = small_view([[(float(place), name) for place, name in enumerate(one)] for one in asked])
    wanted = [log_ratio(one, list(zip(training, labels, strict=True))) for one in asked]
    np.testing.assert_allclose(fitted.matrix(view)[:, 0], wanted, atol=1e-12)


def test_pages_behind_a_purchase_teach_nothing_and_no_sequence_scores_nothing() -> None:
    pages = [[(0, "home"), (1, "product"), (2, "confirm")], [(0, "home"), (1, "home"), (2, "home")]]
    for before, states in (([2, np.inf], ("home", "product")), (None, ("confirm", "home", "product"))):
        known = fit("page-sequence-score", small_view(pages, labels=[True, False], before_purchase=before))
        assert known.learned[0].states == states
    chains = MarkovRatio.fit(np.zeros((0, 3), dtype=object), np.zeros(0, dtype=bool))
    assert chains.encode(np.array([["home", "home", NOTHING]], dtype=object)).tolist() == [[0]]
    assert np.isnan(chains.encode(np.array([[NOTHING], [NOTHING]], dtype=object))).all()


PRINTED = """
    current page dwell time, mean; current page dwell time, σ; page sequence score; number of pages; channel type;
    start hour; week day; device type; device conversion rate; number of orders; days since last purchase;
    number of sessions; number of devices; device sequence score; switch probability
"""


def names_of(*cell: Any) -> list[str]:
    return [feature.name for feature in features_of(*cell)]


def test_the_rows_of_table_6_7_in_four_sets_and_what_is_asked_for_besides() -> None:
    rows = names_of("identified", "extended", 5)
    declared = [FEATURES.get(name) for name in rows]
    assert [one.label for one in declared] == [label.strip() for label in PRINTED.split(";")]
    assert [one.dynamic for one in declared] == [True] * 4 + [False] * 11
    assert [one.group for one in declared] == ["session"] * 9 + ["history"] * 6
    optional = {one.name for one in FEATURES if not one.default}
    assert optional == {"previous-device", "previous-device-rate", "hour-cyclic", "history-days"}
    assert optional == set(FEATURES.names()) - set(rows)
    assert names_of("anonymous", "baseline", 1) == rows[:4]
    assert names_of("anonymous", "extended", 10) == rows[:9]
    assert names_of("anonymous", "extended", 0) == rows[4:9]
    assert names_of("identified", "baseline", 1) == [*rows[:4], "orders", "days-since-purchase"]
    also = ("previous-device", "hour-cyclic")
    assert names_of("identified", "extended", 1, also) == [*rows, "hour-cyclic", "previous-device"]
    assert names_of("anonymous", "extended", 1, also) == [*rows[:9], "hour-cyclic"]
    assert names_of("identified", "baseline", 1, also) == names_of("identified", "baseline", 1)
    with pytest.raises(UnknownNameError, match="hour-cylic"):
        FeatureOptions(also=("hour-cylic",))
