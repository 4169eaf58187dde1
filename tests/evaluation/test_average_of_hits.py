from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking import ranks_from_scores
from slow_ranking import orders

from diptych.evaluation import evaluate
from diptych.metrics import TIE_RULES, GroundTruth, Measure, measure, tie_groups


def values(scores: np.ndarray, truth: GroundTruth, name: str, rule: str = "expected") -> list[float]:
    one = measure(name)
    assert isinstance(one, Measure)
    return one.values(tie_groups(ranks_from_scores(scores, truth, every=True)["i2t"], rule)).tolist()


def published(order: list[int], positives: set[int], k: int) -> Fraction:
    """Precision at every hit among the first k, averaged over these hits."""
    precisions: list[Fraction] = []
    for place, row in enumerate(order[:k], start=1):
        if row in positives:
            precisions.append(Fraction(len(precisions) + 1, place))
    return sum(precisions, Fraction(0)) / len(precisions) if precisions else Fraction(0)


def test_by_hand() -> None:
    # Six texts, best first 0 1 2 3 4 5. Five are right, of which the first two places hold some.
    scores = np.tile(np.arange(6, 0, -1.0), (4, 1))
    truth = GroundTruth.from_pairs([0, 0, 1, 1, 1, 2, 3, 3], [0, 5, 1, 2, 4, 5, 0, 1], 4, 6)
    assert values(scores, truth, "mAP-hits@5") == pytest.approx([1, (1 / 2 + 2 / 3 + 3 / 5) / 3, 0, 1])
    assert values(scores, truth, "mAP@5") == pytest.approx([1 / 2, (1 / 2 + 2 / 3 + 3 / 5) / 3, 0, 1])
    assert values(scores, truth, "mAP-hits@1") == [1, 0, 0, 1]
    assert values(scores, truth, "mAP-hits@100") == values(scores, truth, "mAP")


def test_a_tie_across_the_cut_off_by_hand() -> None:
    # One right text first, then a tie of one right and two wrong, of which one place counts.
    truth = GroundTruth.from_pairs([0, 0], [0, 1], 1, 4)
    scores = np.array([[2.0, 1.0, 1.0, 1.0]])
    assert values(scores, truth, "mAP-hits@2") == pytest.approx([1.0])  # (1 + 1) / 2 or 1 / 1
    # The tie alone: the first place is right or not, then nothing else counts.
    assert values(scores[:, 1:], GroundTruth.from_pairs([0], [0], 1, 3), "mAP-hits@1") == pytest.approx(
        [1 / 3]
    )
    # Two of three right, two places: right first 1, or (1 + 1) / 2; wrong first 1/2.
    two = GroundTruth.from_pairs([0, 0], [0, 1], 1, 3)
    assert values(np.zeros((1, 3)), two, "mAP-hits@2") == pytest.approx([(1 + 1 + 1 / 2) / 3])


@settings(max_examples=150)
@given(data=st.data())
def test_agrees_with_every_order_written_out(data: st.DataObject) -> None:
    m, k = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 8))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scores = random.integers(0, data.draw(st.integers(1, 5)), (3, m)).astype(np.float64)
    truth = GroundTruth.from_pairs(*np.nonzero(random.random((3, m)) < 0.5), 3, m)
    rule = data.draw(st.sampled_from(TIE_RULES))
    expected = []
    for query in range(3):
        mine = set(truth.i2t.of(query).tolist())
        found = [published(order, mine, k) for order in orders(scores[query].tolist(), mine, rule)]
        expected.append(float(sum(found, Fraction(0)) / len(found)))
    assert values(scores, truth, f"mAP-hits@{k}", rule) == pytest.approx(expected, abs=1e-12)


def test_large_tie_groups_stay_exact() -> None:
    # All 3,000 texts tie, 5 are right: the first hit alone decides with k = 1, and chance is 5 / 3000.
    truth = GroundTruth.from_pairs([0] * 5, range(5), 1, 3_000)
    assert values(np.zeros((1, 3_000)), truth, "mAP-hits@1") == pytest.approx([5 / 3_000], rel=1e-12)
    assert values(np.zeros((1, 3_000)), truth, "mAP-hits@3000") == pytest.approx(
        values(np.zeros((1, 3_000)), truth, "mAP"), rel=1e-9
    )


def test_a_collapsed_model_is_at_chance() -> None:
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(8), 5), 8)
    score = evaluate(np.zeros((8, 40)), None, truth, ("mAP-hits@5",)).score("mAP-hits@5", "i2t")
    assert score.value == pytest.approx(score.chance)
    simulated = []
    random = np.random.default_rng(5)
    for _ in range(4_000):
        simulated.append(float(published(random.permutation(40).tolist(), set(range(5)), 5)))
    assert score.chance == pytest.approx(np.mean(simulated), abs=0.01)


def test_the_two_ways_of_the_papers_lie_far_apart() -> None:
    """With five right texts of 1,000 for each of 200 images; see the published Table 1."""
    random = np.random.default_rng(0)
    images = random.normal(size=(200, 64))
    texts = np.repeat(images, 5, axis=0) + 3.5 * random.normal(size=(1_000, 64))
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(200), 5), 200)
    result = evaluate(images @ texts.T, None, truth, ("mAP@5", "mAP-hits@5", "mAP@R"))
    assert result.value("mAP-hits@5", "i2t") > 2 * result.value("mAP@5", "i2t")
    assert result.value("mAP@R", "i2t") == pytest.approx(result.value("mAP@5", "i2t"))  # R is 5 here
    assert result.protocol.compat == ("mAP-hits@5",)
    assert "compat mAP-hits@5" in result.protocol_line()


def test_r_precision_is_the_papers() -> None:
    """|first r ∩ positives| / r; for images with five captions, the published |first 5 ∩ 5| / 5."""
    random = np.random.default_rng(6)
    scores = random.normal(size=(12, 60))
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(12), 5), 12)
    published_form = [
        len(set(np.argsort(-scores[image])[:5].tolist()) & set(range(5 * image, 5 * image + 5))) / 5
        for image in range(12)
    ]
    assert values(scores, truth, "R-precision") == pytest.approx(published_form)
    assert values(scores, truth, "P@5") == pytest.approx(published_form)
    uneven = GroundTruth.from_pairs(*np.nonzero(random.random((12, 60)) < 0.1), 12, 60)
    expected = []
    for image in range(12):
        mine = set(uneven.i2t.of(image).tolist())
        first = set(np.argsort(-scores[image])[: len(mine)].tolist())
        expected.append(len(first & mine) / len(mine) if mine else 0.0)
    assert values(scores, uneven, "R-precision") == pytest.approx(expected)


def test_map_at_r_is_eccv_captions() -> None:
    """Precision at each of the first R places that holds a positive, 0 at the others, averaged over R."""
    random = np.random.default_rng(7)
    scores = random.normal(size=(10, 40))
    truth = GroundTruth.from_pairs(*np.nonzero(random.random((10, 40)) < 0.2), 10, 40)
    expected = []
    for image in range(10):
        mine, order = set(truth.i2t.of(image).tolist()), np.argsort(-scores[image]).tolist()
        places = [
            len(set(order[:r]) & mine) / r if order[r - 1] in mine else 0.0 for r in range(1, len(mine) + 1)
        ]
        expected.append(float(np.mean(places)))
    assert values(scores, truth, "mAP@R") == pytest.approx(expected)
