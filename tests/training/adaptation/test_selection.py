from __future__ import annotations

import math

import numpy as np
import pytest

from diptych.encoders.adapted import LinearMap, LinearMaps
from diptych.training.adaptation import gaussian
from diptych.training.adaptation.fit import MANY, confused_share, select_strength

from .planted import planted


def selected(images: np.ndarray, texts: np.ndarray, strengths: tuple[float, ...] = gaussian.STRENGTHS):  # type: ignore[no-untyped-def]
    positives = np.eye(len(images), dtype=bool)
    return select_strength(images, texts, positives, gaussian.GaussianMoments.of, strengths, 1024.0)


def test_confusion_by_hand() -> None:
    positives = np.array([[True, True, False], [False, False, True]])
    scores = np.array([[0.1, 0.9, 0.5], [0.6, 0.2, 0.4]])
    # Pictures: the first finds its second caption, the second another's. Texts: the first is taken for
    # the second picture's, the second for the first's, rightly, the third for the first's.
    assert confused_share(scores, positives) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert confused_share(np.zeros((2, 3)), positives) == 1.0  # ties are confusions
    assert confused_share(np.ones((1, 1)), np.array([[True]])) == 0.0


def test_few_pairs_pull_by_how_often_they_are_confused() -> None:
    images, texts = planted(16, turn=1.2, common=0.3)
    share = confused_share(images @ texts.T, np.eye(16, dtype=bool))
    assert 0 < share < 1
    found = selected(images, texts)
    assert found.strength == pytest.approx(1024 / share**2)
    assert found.losses == {}


def test_what_is_never_confused_stays_as_it_is() -> None:
    rows = np.eye(16)
    assert selected(rows, rows).strength == math.inf
    assert selected(rows[:1], rows[1:2]).strength == math.inf  # one pair has nothing to be confused with


def test_many_pairs_are_cross_validated_and_chosen_where_they_help() -> None:
    images, texts = planted(MANY + 20, turn=3.0)
    found = selected(images, texts)
    assert set(found.losses) == {math.inf, *gaussian.STRENGTHS}
    assert found.strength == min(found.losses, key=found.losses.__getitem__) < math.inf
    assert found.losses[found.strength] < found.losses[math.inf]


class Spoiler:
    """Gives maps that are better than nothing by a hair, and learns nothing."""

    def __init__(self, seen: list[int]) -> None:
        self.seen = seen

    def maps(self, strength: float) -> LinearMaps:
        side = LinearMap.of(np.eye(12) * 2.0, np.zeros(12))
        return LinearMaps(side, side)


def test_a_gain_within_chance_does_not_count_and_folds_are_never_seen() -> None:
    images, texts = planted(MANY)
    seen: list[int] = []

    def learner(fold_images: np.ndarray, fold_texts: np.ndarray, positives: np.ndarray) -> Spoiler:
        assert fold_images.shape == fold_texts.shape == (len(positives), 12)
        assert np.array_equal(positives, np.eye(len(positives), dtype=bool))
        seen.append(len(fold_images))
        return Spoiler(seen)

    found = select_strength(images, texts, np.eye(MANY, dtype=bool), learner, (1.0,), 1024.0)
    assert found.strength == math.inf  # doubling changes no cosine: the gain is a rounding error
    assert sum(MANY - count for count in seen) == MANY
    assert abs(found.losses[1.0] - found.losses[math.inf]) < 1e-6
