from __future__ import annotations

import itertools
import math

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_gains import slow_best, slow_discounted

from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.evaluation.evaluate import measure_queries
from diptych.metrics import TIE_RULES, GroundTruth, measure
from diptych.metrics.ground_truth import Direction
from diptych.metrics.measures import CLAMPED, ROUNDED, discounted_gain, discounts, normalised_gain
from diptych.metrics.measuring import GainMeasure
from diptych.metrics.products import cosine_rows
from diptych.metrics.relevance import Grades, graded_gains, similar_gains
from diptych.metrics.sources import GivenScores
from diptych.metrics.topk import BLOCK

LOG3 = math.log2(3)


def gain_measure(name: str) -> GainMeasure:
    found = measure(name)
    assert isinstance(found, GainMeasure)
    return found


def values(
    scores: np.ndarray,
    truth: GroundTruth,
    name: str,
    direction: Direction = "i2t",
    *,
    ties: str = "expected",
    similar: np.ndarray | None = None,
    grades: Grades | None = None,
    chance: bool = False,
    block: int = BLOCK,
) -> list[float]:
    """By a given score matrix (images, texts), with another one for similarities where one is given."""
    one = gain_measure(name)
    given_ = (GivenScores(scores), truth.positives(direction), direction, [one.gain], one.cutoff or 0)
    if one.gain.of == "grade":
        found = graded_gains(*given_, ties=ties, grades=grades, block=block)[one.gain]
    else:
        by = None if similar is None else GivenScores(similar)
        found = similar_gains(*given_, by=by, ties=ties, block=block)[one.gain]
    return (one.chances(found) if chance else one.values(found)).tolist()


SCORES = np.array([[0.9, 0.1, 0.5, 0.4], [0.2, 0.8, 0.3, -0.1], [0.6, 0.7, 0.5, 0.4]])
TRUTH = GroundTruth.from_pairs([0, 0, 1, 2], [0, 1, 2, 3], 3, 4)


def test_discounts_by_hand() -> None:
    assert discounts(3).tolist() == pytest.approx([1, 1 / LOG3, 1 / 2])
    assert discounted_gain(np.array([[1, 0, 1], [0, 1, 0.0]])).tolist() == pytest.approx([1.5, 1 / LOG3])
    assert normalised_gain(np.array([[0.0, 1.0], [0, 0]]), np.array([[1.0, 0], [0, 0]])).tolist() == [
        pytest.approx(1 / LOG3),
        0.0,
    ]


def test_three_by_four_by_hand() -> None:
    # Image 0 finds text 0 (a match), then text 2 (similarity 0.5); image 1 text 1 (0.8), then 2 (a match);
    # image 2 text 1 (0.7), then 0 (0.6).
    by_hand = [1 + 0.5 / LOG3, 0.8 + 1 / LOG3, 0.7 + 0.6 / LOG3]
    assert values(SCORES, TRUTH, "DCG_CM@2") == pytest.approx(by_hand)
    # At best: two matches; a match and 0.8; a match and 0.7.
    best = [1 + 1 / LOG3, 1 + 0.8 / LOG3, 1 + 0.7 / LOG3]
    assert values(SCORES, TRUTH, "nDCG_CM@2") == pytest.approx(
        [x / y for x, y in zip(by_hand, best, strict=True)]
    )
    # Text 3 ties between images 0 and 2: 0.4 to the wrong one and 1 to the right one; alone at place 1.
    assert values(SCORES, TRUTH, "DCG_CM@1", "t2i") == pytest.approx([1, 0.8, 0.5, (0.4 + 1) / 2])
    # By chance: the same order, and the matches anywhere in it: two of four, one of four, one of four.
    shares, firsts = [0.5, 0.25, 0.25], [(0.9, 0.5), (0.8, 0.3), (0.7, 0.6)]
    assert values(SCORES, TRUTH, "DCG_CM@2", chance=True) == pytest.approx(
        [
            share + (1 - share) * one + (share + (1 - share) * two) / LOG3
            for share, (one, two) in zip(shares, firsts, strict=True)
        ]
    )


def test_a_negative_cosine_is_no_gain_unless_as_published() -> None:
    scores = np.array([[-0.25, -0.123456]])
    truth = GroundTruth.from_pairs([], [], 1, 2)
    assert values(scores, truth, "DCG_CM@2") == [0]
    assert values(scores, truth, "nDCG_CM@2") == [0]  # 0 of 0
    assert values(scores, truth, "DCG_CM-published@2") == [round(-0.1235 - 0.25 / LOG3, 4)]
    assert gain_measure("DCG_CM-published@2").compat
    assert not gain_measure("DCG_CM@2").compat


def test_the_greatest_published_value_of_image_to_text() -> None:
    """Ten matches: 4.5436."""
    scores = np.linspace(1, 0, 12)[None]
    truth = GroundTruth.from_pairs([0] * 12, range(12), 1, 12)
    assert values(scores, truth, "DCG_CM-published@10") == [4.5436]


def test_by_a_relevance_model() -> None:
    similar = np.array([[0.1, 0.2, 0.9, 0.3], [0.5, 0.5, 0.1, 0.7], [0.0, 0.4, 0.6, 0.2]])
    # Image 0 finds texts 0 (a match) and 2 (0.9); at best both matches. Image 1 finds 1 (0.5) and 2 (a match);
    # at best a match and 0.7. Image 2 finds 1 (0.4) and 0 (0.0); at best a match and 0.6.
    assert values(SCORES, TRUTH, "DCG_CM@2", similar=similar) == pytest.approx(
        [1 + 0.9 / LOG3, 0.5 + 1 / LOG3, 0.4]
    )
    assert values(SCORES, TRUTH, "nDCG_CM@2", similar=similar) == pytest.approx(
        [
            (1 + 0.9 / LOG3) / (1 + 1 / LOG3),
            (0.5 + 1 / LOG3) / (1 + 0.7 / LOG3),
            0.4 / (1 + 0.6 / LOG3),
        ]
    )
    mean = [(1 + 1 + 0.9 + 0.3) / 4, (0.5 + 0.5 + 1 + 0.7) / 4, (0 + 0.4 + 0.6 + 1) / 4]
    assert values(SCORES, TRUTH, "DCG_CM@1", similar=similar, chance=True) == pytest.approx(mean)


def test_grades_by_hand() -> None:
    grades = Grades(np.array([0, 0, 1, 2]), np.array([0, 2, 1, 1]), np.array([5.0, 3.0, 2.0, 0.5]))
    # Text 1 of image 0, text 2 of image 1 and text 3 of image 2 are matches that nobody graded: 5.
    linear = [(5 + 3 / LOG3) / (5 + 5 / LOG3), (2 + 5 / LOG3) / (5 + 2 / LOG3), 0.5 / (5 + 0.5 / LOG3)]
    assert values(SCORES, TRUTH, "nDCG@2", grades=grades) == pytest.approx(linear)
    low, high = 2**0.5 - 1, 2**5 - 1
    assert values(SCORES, TRUTH, "nDCG-exponential@2", grades=grades) == pytest.approx(
        [
            (high + 7 / LOG3) / (high + high / LOG3),
            (3 + high / LOG3) / (high + 3 / LOG3),
            low / (high + low / LOG3),
        ]
    )
    assert values(SCORES, TRUTH, "nDCG@1", grades=grades, chance=True) == pytest.approx(
        [(5 + 3 + 5) / 4 / 5, (2 + 5) / 4 / 5, (0.5 + 5) / 4 / 5]
    )


def random_case(data: st.DataObject) -> tuple[np.ndarray, GroundTruth, np.ndarray, np.random.Generator]:
    n, m = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    levels = data.draw(st.integers(1, 8))
    scores = random.integers(-2, levels, (n, m)) / 8.0
    truth = GroundTruth.from_pairs(*np.nonzero(random.random((n, m)) < 0.3), n, m)
    return scores, truth, random.uniform(-0.3, 1, (n, m)), random


@settings(max_examples=150)
@given(data=st.data())
def test_agrees_with_every_order_written_out(data: st.DataObject) -> None:
    scores, truth, other, _ = random_case(data)
    rule = data.draw(st.sampled_from(TIE_RULES))
    direction: Direction = data.draw(st.sampled_from(["i2t", "t2i"]))
    similar = other if data.draw(st.booleans()) else None
    k = data.draw(st.integers(1, 7))
    block = data.draw(st.sampled_from([1, 3, BLOCK]))
    positives = truth.positives(direction)
    sims = scores if similar is None else similar
    turned = (lambda matrix: matrix) if direction == "i2t" else np.transpose
    ranked, compared = turned(scores), turned(sims)

    def gain(query: int, row: int) -> float:
        if row in positives.of(query):
            return 1.0
        return min(1.0, max(0.0, float(compared[query, row])))

    slow = slow_discounted(ranked, gain, k, rule)
    given_ = {"ties": rule, "similar": similar, "block": block}
    fast = values(scores, truth, f"DCG_CM@{k}", direction, **given_)  # type: ignore[arg-type]
    assert fast == pytest.approx(slow, abs=1e-12)
    best = slow_best(ranked.shape, gain, k)
    ratios = [x / y if y else 0.0 for x, y in zip(slow, best, strict=True)]
    normalised = values(scores, truth, f"nDCG_CM@{k}", direction, **given_)  # type: ignore[arg-type]
    assert normalised == pytest.approx(ratios, abs=1e-12)
    assert max(normalised) <= 1.0
    chance = values(scores, truth, f"DCG_CM@{k}", direction, chance=True, **given_)  # type: ignore[arg-type]
    if similar is not None:  # everything ties
        assert chance == pytest.approx(slow_discounted(np.zeros(ranked.shape), gain, k), abs=1e-12)
        return
    for query, expected in enumerate(chance):  # every set of as many matches, in the model's own order
        sets = itertools.combinations(range(ranked.shape[1]), int(positives.counts[query]))
        clipped = np.clip(ranked[query], 0, 1)
        drawn = [
            slow_discounted(
                ranked[query][None],
                lambda _, row, some=some, clipped=clipped: 1.0 if row in some else clipped[row],
                k,
            )
            for some in sets
        ]
        assert expected == pytest.approx(np.mean(drawn), abs=1e-12)


@settings(max_examples=60)
@given(data=st.data())
def test_graded_agrees_with_ir_measures(data: st.DataObject) -> None:
    n, m = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 8))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scores = random.permuted(np.tile(np.arange(m), (n, 1)), axis=1).astype(np.float64)  # no ties
    rated = random.integers(0, 6, (n, m)) * (random.random((n, m)) < 0.6)
    images, texts = np.nonzero(rated)
    truth = GroundTruth.from_pairs(images, texts, n, m)
    grades = Grades(images, texts, rated[images, texts].astype(np.float64))
    k = data.draw(st.integers(1, 10))
    qrels = [ir_measures.Qrel(str(q), str(d), int(rated[q, d])) for q in range(n) for d in range(m)]
    run = [ir_measures.ScoredDoc(str(q), str(d), float(scores[q, d])) for q in range(n) for d in range(m)]
    for name, wanted in (
        (f"nDCG@{k}", ir_measures.nDCG(judged_only=False) @ k),
        (f"nDCG-exponential@{k}", ir_measures.nDCG(gains={g: 2**g - 1 for g in range(6)}) @ k),
    ):
        theirs = {int(one.query_id): one.value for one in ir_measures.iter_calc([wanted], qrels, run)}
        ours = values(scores, truth, name, grades=grades)
        assert ours == pytest.approx([theirs.get(query, 0.0) for query in range(n)], abs=1e-12), name


def test_rows_that_tie_across_the_cut_off_share_it() -> None:
    """Thirty equal texts, one of them a match, and two places."""
    images = np.array([[1.0, 0.0]], dtype=np.float32)
    texts = np.tile(np.array([[0.6, 0.8]], dtype=np.float32), (30, 1))
    truth = GroundTruth.from_pairs([0], [7], 1, 30)
    cosine = float(np.float32(0.6))
    share = (1 + 29 * cosine) / 30
    found = measure_queries(images, texts, truth.i2t, ["DCG_CM@2", "nDCG_CM@2"], query_side="i2t")
    assert found["DCG_CM@2"].tolist() == pytest.approx([share * (1 + 1 / LOG3)])
    assert found["nDCG_CM@2"].tolist() == pytest.approx([share * (1 + 1 / LOG3) / (1 + cosine / LOG3)])
    worst = measure_queries(images, texts, truth.i2t, ["DCG_CM@2"], query_side="i2t", ties="pessimistic")
    assert worst["DCG_CM@2"].tolist() == pytest.approx([cosine * (1 + 1 / LOG3)])


def test_a_larger_scale_of_cosines_has_more_gain_and_the_same_ranks() -> None:
    """Why values by the evaluated model do not compare models."""
    random = np.random.default_rng(5)
    images = random.normal(size=(40, 8)).astype(np.float32)
    texts = np.repeat(images, 2, axis=0) + random.normal(size=(80, 8)).astype(np.float32)
    images, texts = cosine_rows(images), cosine_rows(texts.astype(np.float32))
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(40), 2), 40)

    def narrower(rows: np.ndarray) -> np.ndarray:
        """One more coordinate that all share: every cosine c becomes 0.75 + c / 4."""
        more = np.full((len(rows), 1), np.sqrt(0.75))
        return np.hstack([rows / 2, more]).astype(np.float32)

    names = ["R@1", "meanr", "nDCG@10", "DCG_CM@10", "nDCG_CM@10"]
    wide = measure_queries(texts, images, truth.t2i, names, query_side="t2i")
    narrow = measure_queries(narrower(texts), narrower(images), truth.t2i, names, query_side="t2i")
    for name in names[:3]:
        assert wide[name].tolist() == narrow[name].tolist(), name
    assert np.all(narrow["DCG_CM@10"] > wide["DCG_CM@10"])
    assert narrow["DCG_CM@10"].mean() > 1.3 * wide["DCG_CM@10"].mean()
    assert narrow["nDCG_CM@10"].mean() > wide["nDCG_CM@10"].mean()
    fixed = {
        name: measure_queries(
            rows[0], rows[1], truth.t2i, ["DCG_CM@10"], query_side="t2i", relevance=(texts, images)
        )["DCG_CM@10"].tolist()
        for name, rows in {"wide": (texts, images), "narrow": (narrower(texts), narrower(images))}.items()
    }
    assert fixed["wide"] == fixed["narrow"]  # one relevance model for both does compare


def test_rows_of_other_lengths_are_compared_by_their_cosine() -> None:
    images = np.array([[3.0, 0.0]], dtype=np.float32)
    texts = np.array([[2.0, 0.0], [0.0, 5.0], [0.0, 0.0]], dtype=np.float32)
    truth = GroundTruth.from_pairs([], [], 1, 3)
    found = measure_queries(images, texts, truth.i2t, ["DCG_CM@1", "nDCG_CM@1"], query_side="i2t")
    assert {name: value.tolist() for name, value in found.items()} == {"DCG_CM@1": [1.0], "nDCG_CM@1": [1.0]}
    same = np.vstack([np.eye(2), np.zeros((1, 2))]).astype(np.float32)
    assert cosine_rows(same[:2]).base is same  # no copy of what has length 1
    assert cosine_rows(same).tolist() == same.tolist()
    short = np.array([[1.0, 0.0], [0.0, 5e-4], [0.9995, 0.0]], dtype=np.float32)
    assert cosine_rows(short).tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    assert cosine_rows(short[2:]).tolist() == [[1.0, 0.0]]  # half a thousandth is more than rounding


def test_rounding_alone_is_no_more_than_the_best() -> None:
    mean = sum([0.1] * 3) / 3
    assert mean > 0.1
    assert normalised_gain(np.full((1, 3), mean), np.full((1, 3), 0.1)).tolist() == [1.0]


def test_the_highest_grade_is_that_of_the_whole_test_set() -> None:
    given = Grades(np.array([0, 1]), np.array([0, 1]), np.array([5.0, 2.0]))
    part = given.part(np.array([1]), np.array([1, 2]), 2, 3)
    assert (part.images.tolist(), part.texts.tolist(), part.values.tolist()) == ([0], [0], [2.0])
    assert part.highest == 5.0


def test_what_is_not_a_number_is_named() -> None:
    images = np.array([[np.nan, 0.0]], dtype=np.float32)
    with pytest.raises(NumericalError, match="image"):
        measure_queries(
            images, images, GroundTruth.from_pairs([0], [0], 1, 1).i2t, ["DCG_CM@1"], query_side="i2t"
        )
    rows = np.ones((1, 2), dtype=np.float32)
    with pytest.raises(NumericalError, match="is not finite"):
        measure_queries(
            rows,
            rows,
            GroundTruth.from_pairs([0], [0], 1, 1).i2t,
            ["DCG_CM@1"],
            query_side="i2t",
            relevance=(images, images),
        )


def test_grades_that_cannot_be() -> None:
    one, two = np.array([0]), np.array([0, 0])
    with pytest.raises(DataError, match="2 images, 1 texts"):
        Grades(two, one, np.array([1.0]))
    with pytest.raises(NumericalError, match="row 0 and text row 0 is nan"):
        Grades(one, one, np.array([np.nan]))
    with pytest.raises(UsageError, match="below 0"):
        Grades(one, one, np.array([-1.0]))
    with pytest.raises(DataError, match="two grades"):
        Grades(two, two, np.array([1.0, 2.0]))
    with pytest.raises(DataError, match="query row 5"):
        values(SCORES, TRUTH, "nDCG@1", grades=Grades(np.array([5]), one, np.array([1.0])))


def test_both_gains_are_kept_apart() -> None:
    assert CLAMPED.transform(np.array([-1.0, 0.55555, 2.0])).tolist() == [0.0, 0.55555, 1.0]
    assert ROUNDED.transform(np.array([-1.0, 0.55555])).tolist() == [-1.0, 0.5556]
