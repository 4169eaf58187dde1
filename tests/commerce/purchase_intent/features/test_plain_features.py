"""Features that need no fitting, on sessions small enough to compute by hand; and none looks behind its step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_views import small_view

from diptych.commerce.purchase_intent.features import FEATURES, fit_features
from diptych.commerce.purchase_intent.features.view import SessionsView

NaN = np.nan

PAGES = [
    [(0, "home"), (10, "search"), (30, "product"), (30, "basket")],
    [(5, "home"), (6, "home"), (66, "home"), (67.5, "product")],
]


def values(name: str, view: SessionsView) -> np.ndarray:
    feature = FEATURES.get(name)
    fitted = feature.fit(view)
    assert len(fitted.names) == fitted.values(view).shape[1]
    return fitted.values(view)


@pytest.mark.parametrize(
    ("step", "mean", "deviation"),
    [
        (1, [NaN, NaN], [NaN, NaN]),
        (2, [10, 1], [0, 0]),
        (3, [15, 30.5], [5, 29.5]),
        (4, [10, 62.5 / 3], [np.sqrt((0 + 100 + 100) / 3), np.std([1, 60, 1.5])]),
    ],
)
def test_dwell_is_known_once_the_next_page_opens(
    step: int, mean: list[float], deviation: list[float]
) -> None:
    view = small_view(PAGES).until(step)
    np.testing.assert_allclose(values("dwell-mean", view)[:, 0], mean)
    np.testing.assert_allclose(values("dwell-deviation", view)[:, 0], deviation)
    assert values("pages", view)[:, 0].tolist() == [step, step]


def test_sessions_that_have_come_to_different_pages() -> None:
    view = small_view([PAGES[0], PAGES[1][:2], []])
    np.testing.assert_allclose(values("dwell-mean", view)[:, 0], [10, 1, NaN])
    np.testing.assert_allclose(values("dwell-deviation", view)[:, 0], [np.std([10, 20, 0]), 0, NaN])
    assert values("pages", view)[:, 0].tolist() == [4, 2, 0]


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


def test_history_of_a_buyer_of_a_newcomer_and_of_nobody() -> None:
    view = small_view(
        [[]] * 3,
        {
            "orders": [2, 0, NaN],
            "days_since_purchase": [3.5, NaN, NaN],
            "sessions": [7, 0, NaN],
            "devices": [2, 1, NaN],
            "switches": [4, 0, NaN],
            "pairs": [6, 0, NaN],
            "history_days": [10, 12, NaN],
        },
    )
    assert values("orders", view)[:2, 0].tolist() == [2, 0]
    np.testing.assert_array_equal(values("days-since-purchase", view), [[3.5, 0], [NaN, 1], [NaN, NaN]])
    np.testing.assert_array_equal(values("switch-probability", view)[:, 0], [4.5 / 8, 0.25, NaN])
    for name in ("orders", "sessions", "devices", "history-days"):
        assert np.isnan(values(name, view)[2]).all()


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
    names = ("home", "search", "product", "basket")
    view, other = (small_view(one, labels=labels, vocabulary=names).until(step) for one in (sessions, others))
    features = list(FEATURES)
    np.testing.assert_array_equal(
        fit_features(features, view).matrix(view), fit_features(features, other).matrix(other)
    )


def test_a_session_alone_has_the_values_it_has_in_the_crowd() -> None:
    random = np.random.default_rng(0)
    names = ["home", "search", "product"]
    crowd = [
        list(
            zip(
                np.cumsum(random.exponential(30, 10)).tolist(), random.choice(names, 10).tolist(), strict=True
            )
        )
        for _ in range(50)
    ]
    view = small_view(crowd, {"device": ["pc", "tv"] * 25}, labels=[True, False] * 25)
    fitted = fit_features(list(FEATURES), view)
    whole = fitted.matrix(view)
    for row in range(0, 50, 7):
        alone = small_view(
            [crowd[row]], {"device": [["pc", "tv"][row % 2]]}
        )  # its own vocabulary: other codes
        np.testing.assert_allclose(fitted.matrix(alone)[0], whole[row], rtol=1e-12)
