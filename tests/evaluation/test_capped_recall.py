from __future__ import annotations

import itertools

import numpy as np
import pytest
from ranking import ranks_from_scores

from diptych.evaluation import evaluate
from diptych.metrics import GroundTruth, Measure, measure, tie_groups


def values(scores: np.ndarray, truth: GroundTruth, name: str) -> list[float]:
    found = measure(name)
    assert isinstance(found, Measure)
    return found.values(tie_groups(ranks_from_scores(scores, truth, every=True)["i2t"], "expected")).tolist()


def test_three_by_four_by_hand() -> None:
    scores = np.array([[0.9, 0.1, 0.5, 0.4], [0.2, 0.8, 0.3, 0.1], [0.6, 0.7, 0.5, 0.4]])
    truth = GroundTruth.from_pairs([0, 0, 0, 1], [0, 1, 2, 2], 3, 4)
    # Image 0 has its three texts at 1, 2 and 4, image 1 its one at 2, image 2 has none.
    assert values(scores, truth, "R-cap@1") == [1, 0, 0]
    assert values(scores, truth, "R-cap@2") == [1, 1, 0]
    assert values(scores, truth, "R-cap@3") == pytest.approx([2 / 3, 1, 0])
    assert values(scores, truth, "R-cap@10") == [1, 1, 0]


def test_five_captions_as_table_5_2_prints_them() -> None:
    """R@1 is a hit, R@5 and R@10 are shares of the five captions."""
    scores = np.array([[1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]])
    truth = GroundTruth.from_pairs([0] * 5, [0, 2, 6, 9, 10], 1, 11)
    assert [values(scores, truth, f"R-cap@{k}")[0] for k in (1, 5, 10)] == pytest.approx([1, 2 / 5, 4 / 5])


def test_ties_count_as_they_are_expected() -> None:
    scores = np.array([[1.0, 1.0, 1.0, 0.0]])
    truth = GroundTruth.from_pairs([0, 0], [0, 3], 1, 4)
    # Of the three tied, each is among the first two in two of three orders.
    assert values(scores, truth, "R-cap@2") == pytest.approx([2 / 3 / 2])


def test_with_one_positive_each_it_is_recall_and_it_says_it_is_published() -> None:
    random = np.random.default_rng(0)
    truth = GroundTruth.from_caption_image(np.arange(8), 8)
    result = evaluate(random.random((8, 8)), None, truth, ["R@3", "R-cap@3"])
    assert result.value("R-cap@3", "t2i") == result.value("R@3", "t2i")
    assert result.score("R-cap@3", "i2t").chance == pytest.approx(3 / 8)
    assert result.protocol.compat == ("R-cap@3",)


def test_chance_is_the_mean_over_all_orders() -> None:
    truth = GroundTruth.from_pairs([0, 0], [0, 1], 1, 4)
    one = measure("R-cap@3")
    assert isinstance(one, Measure)
    by_hand = [len({0, 1} & set(order[:3])) / 2 for order in itertools.permutations(range(4))]
    assert one.chance(truth.i2t.counts, 4) == pytest.approx(np.mean(by_hand))
