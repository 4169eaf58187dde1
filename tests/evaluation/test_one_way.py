from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_gains import slow_best, slow_discounted
from slow_ranking import exact_scores, slow_values

from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.evaluation import evaluate
from diptych.evaluation.evaluate import measure_queries
from diptych.metrics import DIRECTIONS, TIE_RULES, GroundTruth
from diptych.metrics.ground_truth import Direction
from diptych.metrics.products import cosine_rows
from diptych.metrics.relevance import Grades

NAMES = ["R@1", "R@5", "MRR", "meanr", "mAP@3", "R-cap@5", "P@2"]


def unit(random: np.random.Generator, count: int, width: int) -> np.ndarray:
    rows = random.normal(size=(count, width)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def few_directions(random: np.random.Generator, count: int) -> np.ndarray:
    """Unit rows of which many are equal: ties of all lengths."""
    kinds = np.array([[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6], [-1, 0], [0, 0]], dtype=np.float32)
    return kinds[random.integers(0, random.integers(1, 7), count)]


@pytest.mark.parametrize("ties", TIE_RULES)
def test_the_same_as_both_directions_at_once(ties: str) -> None:
    random = np.random.default_rng(3)
    images, texts = few_directions(random, 30), few_directions(random, 70)
    truth = GroundTruth.from_caption_image(random.integers(0, 30, 70), 30)
    both = evaluate(images, texts, truth, NAMES, ties=ties)
    for direction in DIRECTIONS:
        sides = (images, texts) if direction == "i2t" else (texts, images)
        alone = measure_queries(
            *sides, truth.positives(direction), NAMES, query_side=direction, ties=ties, block=41
        )
        assert list(alone) == NAMES
        for name in NAMES:
            assert alone[name].tolist() == both.per_query[direction][name].tolist(), (direction, name)


def test_order_embeddings_keep_their_sides() -> None:
    random = np.random.default_rng(4)
    images, texts = (np.abs(random.normal(size=(n, 3))).astype(np.float32) for n in (12, 20))
    truth = GroundTruth.from_caption_image(random.integers(0, 12, 20), 12)
    both = evaluate(images, texts, truth, ["R@2", "MRR", "nDCG@4"], similarity="order")
    for direction in DIRECTIONS:
        sides = (images, texts) if direction == "i2t" else (texts, images)
        alone = measure_queries(
            *sides,
            truth.positives(direction),
            ["R@2", "MRR", "nDCG@4"],
            query_side=direction,
            similarity="order",
        )
        for name, values in alone.items():
            assert values.tolist() == both.per_query[direction][name].tolist(), (direction, name)


def test_some_queries_have_the_values_they_have_among_all() -> None:
    random = np.random.default_rng(6)
    images, texts = unit(random, 50, 16), unit(random, 100, 16)
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(50), 2), 50)
    names = [*NAMES, "DCG_CM@10", "nDCG_CM@10", "nDCG@10"]
    whole = measure_queries(texts, images, truth.t2i, names, query_side="t2i")
    some = np.array([7, 3, 99])
    part = measure_queries(texts[some], images, truth.t2i.taken(some), names, query_side="t2i")
    for name in names:
        assert part[name].tolist() == whole[name][some].tolist(), name
    nobody = measure_queries(
        texts[:0], images, truth.t2i.taken(np.array([], dtype=np.int64)), names, query_side="t2i"
    )
    assert {name: len(values) for name, values in nobody.items()} == dict.fromkeys(names, 0)


@settings(max_examples=100)
@given(data=st.data())
def test_rows_agree_with_every_order_written_out(data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, m = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    queries, gallery = few_directions(random, n), few_directions(random, m)
    truth = GroundTruth.from_pairs(*np.nonzero(random.random((n, m)) < 0.3), n, m)
    rule, k = data.draw(st.sampled_from(TIE_RULES)), data.draw(st.integers(1, 7))
    direction: Direction = data.draw(st.sampled_from(["i2t", "t2i"]))
    scores = exact_scores(queries, gallery)

    def gain(query: int, row: int) -> float:
        return 1.0 if row in truth.i2t.of(query) else min(1.0, max(0.0, float(scores[query, row])))

    found = measure_queries(
        queries,
        gallery,
        truth.i2t,
        [f"DCG_CM@{k}", f"nDCG_CM@{k}", f"R@{k}"],
        query_side=direction,
        ties=rule,
        block=data.draw(st.sampled_from([1, 4, 2_500_000])),
    )
    slow, best = slow_discounted(scores, gain, k, rule), slow_best(scores.shape, gain, k)
    assert found[f"DCG_CM@{k}"].tolist() == pytest.approx(slow, abs=1e-12)
    ratios = [x / y if y else 0.0 for x, y in zip(slow, best, strict=True)]
    assert found[f"nDCG_CM@{k}"].tolist() == pytest.approx(ratios, abs=1e-12)
    positives = [set(truth.i2t.of(query).tolist()) for query in range(n)]
    assert found[f"R@{k}"].tolist() == pytest.approx(slow_values(scores, positives, "R", k, rule), abs=1e-12)


def test_a_long_gallery_in_small_blocks_is_the_same() -> None:
    """Many tiles, ties longer than the spare candidates, a float32 product that cannot tell."""
    random = np.random.default_rng(8)
    gallery = unit(random, 400, 12)
    gallery[50:90] = gallery[7]  # forty equal rows
    gallery[200] = gallery[7] * np.float32(1 + 2**-23)
    queries = np.vstack([gallery[[7, 120, 333]], unit(random, 5, 12)])
    truth = GroundTruth.from_pairs([0, 1, 2, 3], [7, 120, 0, 55], 8, 400)
    scores = exact_scores(queries, gallery)
    cosines = np.clip(exact_scores(cosine_rows(queries), cosine_rows(gallery)), 0, 1)
    cosines[truth.i2t.queries, truth.i2t.rows] = 1.0
    for block in (1, 100, 3000, 2_500_000):
        found = measure_queries(
            queries,
            gallery,
            truth.i2t,
            ["DCG_CM@10", "nDCG_CM@10"],
            query_side="i2t",
            similarity="dot",
            block=block,
        )
        for query, row in enumerate(scores):
            best = np.sort(row)[::-1]
            gains = [cosines[query][row == best[place]].mean() for place in range(10)]
            total = sum(gain / np.log2(place + 2) for place, gain in enumerate(gains))
            assert found["DCG_CM@10"][query] == pytest.approx(total, abs=1e-9), (block, query)
            ideal = sum(
                gain / np.log2(place + 2)
                for place, gain in enumerate(np.sort(cosines[query])[::-1][:10].tolist())
            )
            assert found["nDCG_CM@10"][query] == pytest.approx(total / ideal, abs=1e-9), (block, query)


def test_a_relevance_model_of_another_width() -> None:
    images, texts = np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)[[1, 0]]
    truth = GroundTruth.from_pairs([0, 1], [0, 1], 2, 2)  # every text finds the wrong image first
    other = np.array([[1.0, 0, 0], [0.6, 0.8, 0]], dtype=np.float32)
    found = measure_queries(
        texts, images, truth.t2i, ["DCG_CM@1"], query_side="t2i", relevance=(other, other)
    )
    assert found["DCG_CM@1"].tolist() == pytest.approx([0.6, 0.6])  # text 0 and image 1, text 1 and image 0
    with pytest.raises(DataError, match=r"1 image rows where 2"):
        measure_queries(
            texts, images, truth.t2i, ["DCG_CM@1"], query_side="t2i", relevance=(other, other[:1])
        )


def test_grades_of_these_queries() -> None:
    images, texts = np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)
    truth = GroundTruth.from_caption_image([0, 1, 2], 3)
    grades = Grades(np.array([1, 0]), np.array([0, 0]), np.array([5.0, 1.0]))
    found = measure_queries(texts, images, truth.t2i, ["nDCG@1"], query_side="t2i", grades=grades)
    assert found["nDCG@1"].tolist() == pytest.approx([1 / 5, 1, 1])


def test_what_cannot_be_asked() -> None:
    rows = np.eye(2, dtype=np.float32)
    truth = GroundTruth.from_caption_image([0, 1], 2)
    with pytest.raises(UsageError, match="rsum is a sum over both directions"):
        measure_queries(rows, rows, truth.i2t, ["rsum"], query_side="i2t")
    with pytest.raises(UnknownNameError, match="tie rule"):
        measure_queries(rows, rows, truth.i2t, ["R@1"], query_side="i2t", ties="luck")
    with pytest.raises(DataError, match=r"1 queries and 2 gallery rows for positives of 2 queries"):
        measure_queries(rows[:1], rows, truth.i2t, ["R@1"], query_side="i2t")
    with pytest.raises(UsageError, match="by the evaluated model need cosines"):
        measure_queries(rows, rows, truth.i2t, ["DCG_CM@1"], query_side="i2t", similarity="order")
    empty = GroundTruth.from_pairs([], [], 2, 0)
    with pytest.raises(DataError, match="empty gallery"):
        measure_queries(rows, rows[:0], empty.i2t, ["R@1"], query_side="i2t")
