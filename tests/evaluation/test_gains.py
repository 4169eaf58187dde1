from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.sparse import csr_array
from slow_gains import slow_best, slow_discounted
from slow_ranking import exact_scores

from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.evaluation import evaluate
from diptych.evaluation.evaluate import measure_queries
from diptych.metrics import DIRECTIONS, TIE_RULES, GroundTruth, Relevance, measure
from diptych.metrics.ground_truth import Direction
from diptych.metrics.measures import discounts
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
    return one.values(found, chance).tolist()


SCORES = np.array([[0.9, 0.1, 0.5, 0.4], [0.2, 0.8, 0.3, -0.1], [0.6, 0.7, 0.5, 0.4]])
TRUTH = GroundTruth.from_pairs([0, 0, 1, 2], [0, 1, 2, 3], 3, 4)


def test_a_negative_cosine_is_no_gain_unless_as_published() -> None:
    scores = np.array([[-0.25, -0.123456]])
    truth = GroundTruth.from_pairs([], [], 1, 2)
    assert values(scores, truth, "DCG_CM@2") == [0]
    assert values(scores, truth, "nDCG_CM@2") == [0]  # 0 of 0
    assert values(scores, truth, "DCG_CM-published@2") == [round(-0.1235 - 0.25 / LOG3, 4)]
    assert gain_measure("DCG_CM-published@2").compat
    assert not gain_measure("DCG_CM@2").compat
    # The greatest published value of image to text: ten matches.
    truth = GroundTruth.from_pairs([0] * 12, range(12), 1, 12)
    assert values(np.linspace(1, 0, 12)[None], truth, "DCG_CM-published@10") == [4.5436]


def test_grades_by_hand() -> None:
    grades = Grades(np.array([0, 0, 1, 2]), np.array([0, 2, 1, 1]), np.array([5.0, 3.0, 2.0, 0.5]))
    # Text 1 of image 0, text 2 of image 1 and text 3 of image 2 are matches without a grade: 5.
    linear = [(5 + 3 / LOG3) / (5 + 5 / LOG3), (2 + 5 / LOG3) / (5 + 2 / LOG3), 0.5 / (5 + 0.5 / LOG3)]
    assert values(SCORES, TRUTH, "nDCG@2", grades=grades) == pytest.approx(linear)
    chances = [(5 + 3 + 5) / 4 / 5, (2 + 5) / 4 / 5, (0.5 + 5) / 4 / 5]
    assert values(SCORES, TRUTH, "nDCG@1", grades=grades, chance=True) == pytest.approx(chances)


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


def by_ir_measures(measure: Any, scores: np.ndarray, rated: np.ndarray) -> list[float]:
    pairs = [(query, row) for query in range(len(scores)) for row in range(scores.shape[1])]
    qrels = [ir_measures.Qrel(str(q), str(row), int(rated[q, row])) for q, row in pairs]
    run = [ir_measures.ScoredDoc(str(q), str(row), float(scores[q, row])) for q, row in pairs]
    found = {int(one.query_id): one.value for one in ir_measures.iter_calc([measure], qrels, run)}
    return [found.get(query, 0.0) for query in range(len(scores))]


@settings(max_examples=60)
@given(data=st.data())
def test_agrees_with_ir_measures_with_and_without_grades(data: st.DataObject) -> None:
    n, m, k = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 8)), data.draw(st.integers(1, 10))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scores = random.permuted(np.tile(np.arange(m), (n, 1)), axis=1) / 16 - 1  # no ties, no similarity above 0
    rated = random.integers(0, 6, (n, m)) * (random.random((n, m)) < 0.6)
    images, texts = np.nonzero(rated)
    truth = GroundTruth.from_pairs(images, texts, n, m)
    grades = Grades(images, texts, rated[images, texts].astype(np.float64))
    exponential = ir_measures.nDCG(gains={g: 2**g - 1 for g in range(6)}) @ k
    plain = by_ir_measures(ir_measures.nDCG @ k, scores, rated > 0)
    ideal = [discounts(min(k, count)).sum() for count in truth.i2t.counts.tolist()]
    for name, given_, expected in (
        (f"nDCG@{k}", grades, by_ir_measures(ir_measures.nDCG(judged_only=False) @ k, scores, rated)),
        (f"nDCG-exponential@{k}", grades, by_ir_measures(exponential, scores, rated)),
        (f"nDCG@{k}", None, plain),
        (f"nDCG_CM@{k}", None, plain),
        (f"DCG_CM@{k}", None, [x * y for x, y in zip(plain, ideal, strict=True)]),
    ):
        assert values(scores, truth, name, grades=given_) == pytest.approx(expected, abs=1e-12), name


def test_rows_of_other_lengths_are_compared_by_their_cosine() -> None:
    images = np.array([[3.0, 0.0]], dtype=np.float32)
    texts = np.array([[2.0, 0.0], [0.0, 5.0], [0.0, 0.0]], dtype=np.float32)
    truth = GroundTruth.from_pairs([], [], 1, 3)
    found = measure_queries(images, texts, truth.i2t, ["DCG_CM@1", "nDCG_CM@1"], query_side="i2t")
    assert {name: value.tolist() for name, value in found.items()} == {"DCG_CM@1": [1.0], "nDCG_CM@1": [1.0]}
    same = np.vstack([np.eye(2), np.zeros((1, 2))]).astype(np.float32)
    assert cosine_rows(near := same[:2] * np.float32(1 - 2e-7)) is near  # but for rounding of length 1
    assert cosine_rows(same).tolist() == same.tolist()
    short = np.array([[1.0, 0.0], [0.0, 5e-4], [0.9995, 0.0]], dtype=np.float32)
    assert cosine_rows(short).tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    assert cosine_rows(short[2:]).tolist() == [[1.0, 0.0]]  # half a thousandth is more than rounding


def unit(random: np.random.Generator, count: int, width: int) -> np.ndarray:
    rows = random.normal(size=(count, width)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_one_direction_is_the_same_as_both_at_once() -> None:
    random = np.random.default_rng(3)
    kinds = np.array([[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6], [0, 0]], dtype=np.float32)
    images, texts = kinds[random.integers(0, 5, 30)], kinds[random.integers(0, 5, 70)]  # ties of all lengths
    truth = GroundTruth.from_caption_image(random.integers(0, 30, 70), 30)
    names = ["R@1", "R@5", "MRR", "meanr", "mAP@3", "R-cap@5", "P@2", "nDCG@4"]
    for similarity in ("cosine", "order"):
        how: dict[str, Any] = {"similarity": similarity}
        both = evaluate(images, texts, truth, names, **how)
        for way in DIRECTIONS:
            sides = (images, texts) if way == "i2t" else (texts, images)
            one = measure_queries(*sides, truth.positives(way), names, query_side=way, block=41, **how)
            assert list(one) == names
            for name in names:
                assert one[name].tolist() == both.per_query[way][name].tolist(), (way, name)


def test_a_long_gallery_in_small_blocks_is_the_same() -> None:
    """Many tiles, ties longer than the spare candidates, a float32 product that cannot tell."""
    random = np.random.default_rng(8)
    gallery = unit(random, 400, 12)
    gallery[50:90] = gallery[7]  # forty equal rows
    gallery[200] = gallery[7] * np.float32(1 + 2**-23)
    queries = np.vstack([gallery[[7, 120, 333]], unit(random, 5, 12)])
    positives = GroundTruth.from_pairs([0, 1, 2, 3], [7, 120, 0, 55], 8, 400).i2t
    scores, names, weights = exact_scores(queries, gallery), ["DCG_CM@10", "nDCG_CM@10"], discounts(10)
    cosines = np.clip(exact_scores(cosine_rows(queries), cosine_rows(gallery)), 0, 1)
    cosines[positives.queries, positives.rows] = 1.0
    for block in (1, 100, 3000, 2_500_000):
        how: dict[str, Any] = {"query_side": "i2t", "similarity": "dot", "block": block}
        found = measure_queries(queries, gallery, positives, names, **how)
        for query, row in enumerate(scores):
            best = np.sort(row)[::-1][:10]
            total = weights @ [cosines[query][row == one].mean() for one in best]
            assert found["DCG_CM@10"][query] == pytest.approx(total, abs=1e-9), (block, query)
            ideal = weights @ np.sort(cosines[query])[::-1][:10]
            assert found["nDCG_CM@10"][query] == pytest.approx(total / ideal, abs=1e-9), (block, query)


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return unit(random, 24, 6), unit(random, 48, 6)


PAIRS = GroundTruth.from_caption_image(np.repeat(np.arange(24), 2), 24)
MODEL = Relevance(unit(np.random.default_rng(2), 24, 3), unit(np.random.default_rng(2), 48, 3), "model of 3")
RATED = Grades(np.array([0, 0, 5]), np.array([0, 9, 40]), np.array([4.0, 2.5, 1.0]), "raters")


def test_queries_that_are_not_evaluated_play_no_part(rows: tuple[np.ndarray, np.ndarray]) -> None:
    pairs = (PAIRS.i2t.queries, PAIRS.i2t.rows)
    some = GroundTruth.from_directions(pairs, pairs, 24, 48, evaluated={"i2t": np.array([3, 4])})
    whole, part = (evaluate(*rows, truth, ["DCG_CM@5"]) for truth in (PAIRS, some))
    values = part.per_query["i2t"]["DCG_CM@5"]
    assert np.flatnonzero(~np.isnan(values)).tolist() == [3, 4]
    assert part.value("DCG_CM@5", "i2t") == whole.per_query["i2t"]["DCG_CM@5"][3:5].mean()
    # Chance is that of the two, too.
    gains = np.clip(rows[0][3:5].astype(float) @ rows[1].T.astype(float), 0, 1)
    first = -np.sort(-gains, axis=1)[:, :5]
    expected = np.mean((2 / 48 + 46 / 48 * first) @ (1 / np.log2(np.arange(2, 7))))
    assert part.score("DCG_CM@5", "i2t").chance == pytest.approx(expected, abs=1e-6)


def test_folds_are_galleries_of_their_own(rows: tuple[np.ndarray, np.ndarray]) -> None:
    names = ["DCG_CM@5", "nDCG_CM@5", "nDCG@5"]
    whole = evaluate(*rows, PAIRS, names, protocol="folds(2)", relevance=MODEL, grades=RATED)
    halves = []
    for images, texts, rated in ((slice(12), slice(24), 2), (slice(12, 24), slice(24, 48), 0)):
        truth = PAIRS.subset(np.arange(24)[images], np.arange(48)[texts])
        pairs = (RATED.images[:rated], RATED.texts[:rated], RATED.values[:rated])
        grades = Grades(*pairs, "raters", top=4.0)  # the pair of image 5 and text 40 is in neither half
        part = Relevance(MODEL.images[images], MODEL.texts[texts], MODEL.name)
        halves.append(evaluate(rows[0][images], rows[1][texts], truth, names, relevance=part, grades=grades))
    for name, value in whole.values().items():
        assert value == pytest.approx(np.mean([half.values()[name] for half in halves])), name


def test_what_cannot_be(rows: tuple[np.ndarray, np.ndarray]) -> None:
    one, two = np.array([0]), np.array([0, 0])
    nan, ones = np.array([[np.nan, 0.0]], dtype=np.float32), np.ones((1, 2), dtype=np.float32)
    pair, eye = GroundTruth.from_pairs([0], [0], 1, 1).i2t, np.eye(2, dtype=np.float32)
    truth, order = GroundTruth.from_caption_image([0, 1], 2).i2t, {"similarity": "order"}
    outside = Grades(np.array([5]), one, np.array([1.0]))
    refused(DataError, "2 images, 1 texts", Grades, two, one, np.array([1.0]))
    refused(NumericalError, "row 0 and text row 0 is nan", Grades, one, one, np.array([np.nan]))
    refused(UsageError, "below 0", Grades, one, one, np.array([-1.0]))
    refused(DataError, "two grades", Grades, two, two, np.array([1.0, 2.0]))
    refused(DataError, "query row 5", values, SCORES, TRUTH, "nDCG@1", grades=outside)
    for error, message, *sides, options in (
        (NumericalError, "image", nan, nan, pair, {}),
        (NumericalError, "is not finite", ones, ones, pair, {"relevance": (nan, nan)}),
        (DataError, "1 text rows where 2", eye, eye, truth, {"relevance": (eye, eye[:1])}),
        (UsageError, "model need cosines", eye, eye, truth, order),
    ):
        refused(error, message, measure_queries, *sides, ["DCG_CM@1"], query_side="i2t", **options)
    # Models without cosines need a relevance model.
    terms, other = [csr_array(np.abs(side)) for side in rows], replace(MODEL, images=MODEL.images[:23])
    for sides, options, error, message in (
        (rows, order, UsageError, r"DCG_CM@5 by the evaluated model need.*'order' gives none"),
        (terms, {}, UsageError, "'dot' gives none"),
        ((np.full((24, 48), 7.0), None), {}, UsageError, "'given scores' gives none"),
        ((np.full((24, 48), -3.0), None), {}, UsageError, "'given scores' gives none"),
        (rows, {"relevance": other}, DataError, "model of 3: 23 image rows where 24"),
    ):
        refused(error, message, evaluate, *sides, PAIRS, ["DCG_CM@5"], **options)
    assert evaluate(*rows, PAIRS, ["nDCG@5"], **order).value("nDCG@5", "i2t") > 0
    assert evaluate(*rows, PAIRS, ["DCG_CM@5"], relevance=MODEL, **order).value("DCG_CM@5", "i2t")
