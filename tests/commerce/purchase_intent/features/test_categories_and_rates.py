from __future__ import annotations

import numpy as np
from small_views import small_view

from diptych.commerce.purchase_intent.features import FEATURES
from diptych.commerce.purchase_intent.features.column_features import MOST_CATEGORIES, OneHot


def test_one_column_per_channel_and_none_for_a_new_one() -> None:
    fitted = FEATURES.get("channel").fit(small_view([[]] * 3, {"channel": ["paid", "direct", "paid"]}))
    assert fitted.names == ("channel=direct", "channel=paid")
    seen = fitted.values(small_view([[]] * 3, {"channel": ["paid", "organic", "direct"]}))
    assert seen.tolist() == [[0, 1], [0, 0], [1, 0]]


def test_only_the_most_frequent_categories_have_columns() -> None:
    names = [f"campaign-{number:03}" for number in range(MOST_CATEGORIES + 5)]
    fitted = OneHot("channel", "channel").fit(
        small_view([[]] * (len(names) + 1), {"channel": [*names, names[-1]]})
    )
    assert len(fitted.names) == MOST_CATEGORIES
    assert f"channel={names[-1]}" in fitted.names  # twice there
    assert f"channel={names[-2]}" not in fitted.names  # of those once there, the first by name


def test_rates_are_drawn_to_the_rate_of_all() -> None:
    view = small_view(
        [[]] * 10, {"device": ["pc"] * 6 + ["tv"] * 4}, labels=[True] * 3 + [False] * 6 + [True]
    )
    fitted = FEATURES.get("device-rate").fit(view)
    rates = fitted.values(small_view([[]] * 3, {"device": ["pc", "tv", "console"]}))[:, 0]
    np.testing.assert_allclose(rates, [(3 + 20 * 0.4) / 26, (1 + 20 * 0.4) / 24, 0.4])
    again = FEATURES.get("device-rate").load(fitted.to_dict())
    np.testing.assert_array_equal(again.values(view), fitted.values(view))


def test_who_has_no_session_before_has_no_rate_of_its_device() -> None:
    view = small_view([[]] * 3, {"device_before_1": ["pc", "", "pc"]}, labels=[True, True, False])
    fitted = FEATURES.get("previous-device-rate").fit(view)
    # The session without one before counts for no device, and not for the rate of all.
    np.testing.assert_allclose(fitted.values(view)[:, 0], [0.5, np.nan, 0.5])
    hot = FEATURES.get("previous-device").fit(view).values(view)
    assert hot.tolist() == [[1], [0], [1]]


def test_half_a_character_and_other_strange_names() -> None:
    names = ["a\ud800", "=", "", "'; DROP TABLE sessions"]
    fitted = FEATURES.get("channel").fit(small_view([[]] * 4, {"channel": names}))
    assert fitted.values(small_view([[]], {"channel": ["'; DROP TABLE sessions"]})).sum() == 1
