from __future__ import annotations

from math import log

import numpy as np
import pytest
from feature_oracle import log_ratio
from hypothesis import given, settings
from hypothesis import strategies as st
from small_views import small_view

from diptych.commerce.purchase_intent.features import FEATURES
from diptych.commerce.purchase_intent.features.markov import ABSENT, MarkovRatio, fit_markov

NAMES = ("home", "product")
H, P = 0, 1


def test_a_chain_by_hand() -> None:
    """Buyers: home product, product product. Others: home home. V = 2, s = 1."""
    chains = fit_markov(np.array([[H, P], [P, P], [H, H]]), np.array([True, True, False]), NAMES)
    # START: buyers 1 home, 1 product; others 1 home.
    start_home = log((1 + 1) / (2 + 2)) - log((1 + 1) / (1 + 2))
    start_product = log((1 + 1) / (2 + 2)) - log((0 + 1) / (1 + 2))
    # home: buyers 1 product; others 1 home.
    home_product = log((1 + 1) / (1 + 2)) - log((0 + 1) / (1 + 2))
    # product: buyers 1 product; others nothing.
    product_product = log((1 + 1) / (1 + 2)) - log((0 + 1) / (0 + 2))
    codes = np.array([[H, P], [P, P], [P, ABSENT]])
    np.testing.assert_allclose(
        chains.gains(codes),
        [[start_home, home_product], [start_product, product_product], [start_product, 0]],
    )
    np.testing.assert_allclose(chains.scores(codes)[0], start_home + home_product)


def test_what_training_has_not_seen_adds_nothing() -> None:
    """Also where the classes are of very different sizes, which would make any novelty a buyer's."""
    others = [[H, H, H, H]] * 100
    chains = fit_markov(np.array([*others, [H, P, H, P]]), np.array([False] * 100 + [True]), NAMES)
    unknown = len(chains.states)
    gains = chains.gains(np.array([[H, unknown, H, P]]))
    assert gains[0, 1] == 0
    assert gains[0, 2] == 0  # from a state of which nothing is known
    assert gains[0, 3] > 0


def test_states_are_those_of_training_alone() -> None:
    chains = fit_markov(np.array([[2, 0, ABSENT]]), np.array([True]), ("a", "b", "c"))
    assert chains.states == ("a", "c")
    assert chains.to_dict()["transitions"] == [[0, 1, 0, 1], [2, 0, 0, 1]]


def test_no_sequences_at_all() -> None:
    chains = fit_markov(np.zeros((0, 3), dtype=np.int64), np.zeros(0, dtype=bool), NAMES)
    assert chains.scores(np.array([[0, 0, ABSENT]])).tolist() == [0]
    assert MarkovRatio.from_dict(chains.to_dict()).scores(np.zeros((2, 0), dtype=np.int64)).tolist() == [0, 0]


sequences = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=5), min_size=1, max_size=8)


@settings(max_examples=40)
@given(sequences, sequences, st.data())
def test_the_same_as_written_out(
    training: list[list[str]], asked: list[list[str]], data: st.DataObject
) -> None:
    labels = data.draw(st.lists(st.booleans(), min_size=len(training), max_size=len(training)))
    pages = [[(float(place), name) for place, name in enumerate(one)] for one in training]
    fitted = FEATURES.get("page-sequence-score").fit(small_view(pages, labels=labels))
    view = small_view([[(float(place), name) for place, name in enumerate(one)] for one in asked])
    wanted = [log_ratio(one, list(zip(training, labels, strict=True))) for one in asked]
    np.testing.assert_allclose(fitted.values(view)[:, 0], wanted, atol=1e-12)
    again = FEATURES.get("page-sequence-score").load(fitted.to_dict())
    np.testing.assert_array_equal(again.values(view), fitted.values(view))


def test_pages_behind_a_purchase_teach_nothing() -> None:
    pages = [
        [(0, "home"), (1, "product"), (2, "confirm"), (3, "confirm")],
        [(0, "home"), (1, "home"), (2, "home")],
    ]
    feature = FEATURES.get("page-sequence-score")
    known = feature.fit(small_view(pages, labels=[True, False], before_purchase=[2, np.inf]))
    assert known.to_dict()["states"] == ["home", "product"]
    assert feature.fit(small_view(pages, labels=[True, False])).to_dict()["states"] == [
        "confirm",
        "home",
        "product",
    ]


def test_device_sequences_begin_with_the_earliest() -> None:
    columns = {
        "device": ["pc", "tv", "pc"],
        "device_before_1": ["tv", "", ""],
        "device_before_2": ["pc", "", ""],
        "devices": [2, 1, np.nan],
    }
    view = small_view([[]] * 3, columns, labels=[True, False, True])
    fitted = FEATURES.get("device-sequence-score").fit(view)
    # The third visitor is not known, and is neither learned from nor scored.
    training = [(["pc", "tv", "pc"], True), (["tv"], False)]
    wanted = [log_ratio(one, training) for one, _ in training]
    np.testing.assert_allclose(fitted.values(view)[:, 0], [*wanted, np.nan])


def test_unlabelled_sessions_cannot_be_learned_from() -> None:
    from diptych.core.errors import UsageError

    for name in ("page-sequence-score", "device-sequence-score", "device-rate"):
        with pytest.raises(UsageError, match="outcome is known"):
            FEATURES.get(name).fit(small_view([[(0, "home")]], {"device": ["pc"], "devices": [1]}))
