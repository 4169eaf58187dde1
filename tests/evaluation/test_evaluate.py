"""Sparse rows: exact scores whatever the tile, ties as elsewhere, rows without terms."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.sparse import csr_array
from slow_ranking import slow_values

from diptych.core.errors import DataError, NumericalError, StorageError, UnknownNameError, UsageError
from diptych.evaluation import evaluate, partition
from diptych.metrics import (
    TIE_RULES,
    Bootstrap,
    GroundTruth,
    RowProducts,
    read_qrels,
    read_run,
    write_qrels,
    write_run,
    write_trec,
)
from diptych.metrics.sources import OrderScores
from diptych.metrics.sparse_products import SparseProducts, check_sparse_rows, sparse_top_k
from diptych.metrics.topk import best_of

Rows = tuple[np.ndarray, np.ndarray, GroundTruth]
EVERY = ("R@1", "R@5", "R@10", "medr", "medr-floor", "meanr", "MRR", "mAP@5", "P@5", "R-precision", "rsum")


@pytest.fixture(scope="module")
def rows() -> Rows:
    """60 images with 5 captions each, which are near their image."""
    random = np.random.default_rng(0)
    images = random.normal(size=(60, 16)).astype(np.float32)
    texts = (np.repeat(images, 5, axis=0) + 1.5 * random.normal(size=(300, 16))).astype(np.float32)
    return images, texts, GroundTruth.from_caption_image(np.repeat(np.arange(60), 5), 60)


def vsepp(scores: np.ndarray) -> dict[str, list[float]]:
    """R@1, R@5, R@10, median and mean rank both ways, as published code computes them (5 captions)."""
    image_ranks = []
    for image in range(len(scores)):
        order = np.argsort(scores[image], kind="stable")[::-1].tolist()
        image_ranks.append(min(order.index(text) for text in range(5 * image, 5 * image + 5)))
    text_ranks = [
        np.argsort(scores[:, text], kind="stable")[::-1].tolist().index(text // 5)
        for text in range(scores.shape[1])
    ]
    found = {}
    for name, ranks in (("i2t", np.array(image_ranks)), ("t2i", np.array(text_ranks))):
        recalls = [float(np.mean(ranks < k)) for k in (1, 5, 10)]
        found[name] = [*recalls, float(np.floor(np.median(ranks)) + 1), float(ranks.mean() + 1)]
    return found


@pytest.mark.parametrize("tied", [False, True])
def test_compat_is_what_published_code_prints(rows: Rows, tied: bool) -> None:
    images, texts, truth = rows
    scores = np.round(images.astype(np.float64) @ texts.T.astype(np.float64), 0 if tied else 12)
    result = evaluate(
        scores, None, truth, ("R@1", "R@5", "R@10", "medr-floor", "meanr", "rsum"), ties="compat"
    )
    expected = vsepp(scores)
    for name in ("i2t", "t2i"):
        found = [result.value(key, name) for key in ("R@1", "R@5", "R@10", "medr-floor", "meanr")]
        assert found == pytest.approx(expected[name])
    assert result.value("rsum") == pytest.approx(100 * sum(sum(expected[name][:3]) for name in expected))
    assert result.protocol.compat == ("ties", "medr-floor")


def test_rows_and_their_scores_agree(rows: Rows) -> None:
    images, texts, truth = rows
    by_rows = evaluate(images, texts, truth, EVERY, similarity="dot")
    scores = (images.astype(np.float64)[:, None] * texts.astype(np.float64)[None]).sum(axis=2)
    assert by_rows.scores == evaluate(scores, None, truth, EVERY).scores
    assert by_rows.values()["i2t R@1"] == by_rows.value("R@1", "i2t")
    assert by_rows.per_query["t2i"]["R@1"].mean() == by_rows.value("R@1", "t2i")
    assert by_rows.ranks["i2t"].mean() == by_rows.value("meanr", "i2t")
    refused(UnknownNameError, "unknown i2t measure 'R@2'", by_rows.score, "R@2", "i2t")
    refused(UnknownNameError, "unknown direction 'i2i'", by_rows.score, "R@1", "i2i")


def test_a_collapsed_model_is_at_chance_and_never_perfect(rows: Rows) -> None:
    images, texts, truth = rows
    same, also = np.full_like(images, 0.25), np.full_like(texts, 0.25)
    for rule in set(TIE_RULES) - {"optimistic"}:
        result = evaluate(same, also, truth, EVERY, ties=rule)
        assert result.value("rsum") <= result.score("rsum").chance + 15
        if rule == "expected":
            assert result.value("rsum") == pytest.approx(result.score("rsum").chance)
            for name in ("R@5", "MRR", "mAP@5", "meanr"):
                score = result.score(name, "i2t")
                assert score.value == pytest.approx(score.chance)
    assert evaluate(same, also, truth, ("rsum",), ties="optimistic").value("rsum") == pytest.approx(600)


def test_folds_are_averaged(rows: Rows) -> None:
    images, texts, truth = rows
    how = Bootstrap(samples=40)
    result = evaluate(images, texts, truth, EVERY, protocol="folds(3)", bootstrap=how)
    parts = [
        evaluate(
            images[20 * f : 20 * f + 20],
            texts[100 * f : 100 * f + 100],
            GroundTruth.from_caption_image(np.repeat(np.arange(20), 5), 20),
            EVERY,
        )
        for f in range(3)
    ]
    for name in ("R@1", "medr", "mAP@5"):
        for direction in ("i2t", "t2i"):
            mean = np.mean([part.value(name, direction) for part in parts])
            assert result.value(name, direction) == pytest.approx(mean)
            chance = np.mean([part.score(name, direction).chance for part in parts])
            assert result.score(name, direction).chance == pytest.approx(chance)
            together = np.concatenate([part.per_query[direction][name] for part in parts])
            assert result.per_query[direction][name].tolist() == together.tolist()
    assert result.value("rsum") == pytest.approx(np.mean([part.value("rsum") for part in parts]))
    score = result.score("rsum")
    assert (score.low or 999) < score.value < (score.high or 0)
    assert result.protocol.galleries == 3


def test_coco_protocols() -> None:
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(5000), 5), 5000)
    random = np.random.default_rng(0)
    images = random.normal(size=(5000, 4)).astype(np.float32)
    texts = random.normal(size=(25_000, 4)).astype(np.float32)
    result = evaluate(images, texts, truth, ("R@1",), protocol="coco-1k")
    assert result.score("R@1", "i2t").chance == pytest.approx(5 / 5000)
    assert result.protocol_line().startswith(
        "coco-1k: 5,000 images, 25,000 texts (5 per image, 1 per text); similarity cosine; "
        "mean of 5 galleries; any-of-k for R@1"
    )
    five = next(partition("coco-5k").folds(truth))
    assert (five.ground_truth.n_images, five.ground_truth.n_texts) == (5000, 25_000)
    small = GroundTruth.from_caption_image(np.repeat(np.arange(1000), 5), 1000)
    for name in ("coco-1k", "coco-5k"):
        with pytest.raises(
            DataError, match="5,000 images and at least 25,000 captions, got 1,000 images and 5,000"
        ):
            list(partition(name).folds(small))


def test_folds_that_cannot_be() -> None:
    three, loose = (
        GroundTruth.from_caption_image([0, 0, 1, 2], 3),
        GroundTruth.from_pairs([0, 1], [0, 1], 2, 3),
    )
    for name, truth, error, message in (
        ("folds(2)", three, UsageError, "3 images cannot be cut into 2 equal folds"),
        ("folds(5)", three, UsageError, "3 images cannot be cut into 5 equal folds"),
        ("folds(0)", three, UsageError, "at least one fold"),
        ("folds(n)", three, UsageError, r"'folds\(n\)' needs a number"),
        ("folds(2)", loose, UsageError, "1 texts belong to no image"),
        ("coco", three, UnknownNameError, "unknown protocol 'coco'"),
    ):
        with pytest.raises(error, match=message):
            list(partition(name).folds(truth))


def test_queries_without_positives_are_counted_and_reported() -> None:
    truth = GroundTruth.from_pairs([0, 1], [0, 1], 3, 4)
    rows = np.eye(4, dtype=np.float32)
    result = evaluate(rows[:3], rows, truth, ("R@1", "meanr"))
    assert result.value("R@1", "i2t") == pytest.approx(2 / 3)
    assert result.value("R@1", "t2i") == pytest.approx(2 / 4)
    assert result.value("meanr", "i2t") == pytest.approx((1 + 1 + 5) / 3)
    line = result.protocol_line()
    assert "1 i2t queries without a positive count as 0" in line
    assert "2 t2i queries without a positive count as 0" in line
    assert "(0–1 per image, 0–1 per text)" in line


def test_a_bad_row_is_named_in_the_whole_test_set(rows: Rows) -> None:
    images, texts, truth = rows
    broken = images.copy()
    broken[47, 0] = np.nan
    ids = [f"{i}.jpg" for i in range(60)]
    for protocol in ("full", "folds(3)"):
        with pytest.raises(NumericalError, match=r"image '47\.jpg' \(row 47\)"):
            evaluate(broken, texts, truth, protocol=protocol, image_ids=ids)
    scores = images @ texts.T
    scores[47, 250] = np.inf
    with pytest.raises(NumericalError, match="image row 47 and text row 250 is inf"):
        evaluate(scores, None, truth, protocol="folds(3)")
    with pytest.raises(DataError, match="59 image rows for a ground truth of 60 images"):
        evaluate(images[:59], texts, truth, protocol="folds(3)")


ASKED = ("R@1", "R@2", "medr", "mAP", "R-precision", "rsum")


def three_by_four() -> GroundTruth:
    """Image 0 finds texts 0 and 1, image 1 text 2; text 0 is found by images 0 and 2, text 3 by image 2."""
    return GroundTruth.from_directions(
        ([0, 0, 1], [0, 1, 2]),
        ([0, 2, 2], [0, 0, 3]),
        3,
        4,
        text_image=[0, 0, 1, 2],
        asked={"i2t": [0, 1], "t2i": [0, 3]},
    )


def test_directions_by_hand() -> None:
    truth = three_by_four()
    assert [truth.i2t.of(image).tolist() for image in range(3)] == [[0, 1], [2], []]
    assert [truth.t2i.of(text).tolist() for text in range(4)] == [[0, 2], [], [], [2]]
    assert truth.queries("i2t").tolist() == [0, 1]
    assert truth.queries("t2i").tolist() == [0, 3]
    assert truth.without_positive == {"i2t": 0, "t2i": 0}  # those that are not asked do not count
    assert not truth.symmetric
    homeless = GroundTruth.from_directions(([0], [1]), ([1, 1], [0, 1]), 2, 3)
    assert homeless.text_image.tolist() == [1, 1, -1]  # the first relevant image
    assert truth.mirrored("i2t").t2i.of(1).tolist() == [0]
    assert truth.mirrored("t2i").i2t.of(2).tolist() == [0, 3]
    assert truth.mirrored("i2t").symmetric
    assert GroundTruth.from_pairs([0, 1, 1], [1, 1, 0], 2, 2).symmetric


@pytest.mark.parametrize(
    ("asked", "message"), [([], "no t2i query is asked"), ([4], "asked t2i row 4"), ([0.5], "whole numbers")]
)
def test_bad_queries(asked: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        GroundTruth.from_directions(([0], [0]), ([0], [0]), 3, 4, asked={"t2i": asked})


@settings(max_examples=60)
@given(data=st.data())
def test_each_direction_is_ranked_by_its_own_positives(data: st.DataObject) -> None:
    n, m = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scores = random.integers(0, 4, (n, m)).astype(np.float64)
    pairs = [np.nonzero(random.random((n, m)) < 0.5) for _ in range(2)]
    truth = GroundTruth.from_directions(*pairs, n, m)
    result = evaluate(scores, None, truth, ("mAP", "R@2"), ties="expected")
    for way, matrix in (("i2t", scores), ("t2i", scores.T)):
        positives = [set(truth.positives(way).of(row).tolist()) for row in range(len(matrix))]
        for name, slow in (("mAP", ("mAP", None)), ("R@2", ("R", 2))):
            expected = slow_values(matrix, positives, *slow, "expected")
            assert result.per_query[way][name].tolist() == pytest.approx(expected, abs=1e-12)


def test_only_those_asked_count() -> None:
    random = np.random.default_rng(1)
    scores, home = random.normal(size=(30, 60)), np.repeat(np.arange(30), 2)
    asked = {"i2t": np.arange(0, 30, 3), "t2i": np.flatnonzero(home % 3 == 0)[1:]}
    pairs = (home, np.arange(60))
    truth = GroundTruth.from_directions(pairs, pairs, 30, 60, text_image=home, asked=asked)  # type: ignore[arg-type]
    how = Bootstrap(samples=200)
    result = evaluate(scores, None, truth, ASKED, bootstrap=how)
    plain = evaluate(scores, None, GroundTruth.from_caption_image(home, 30), ASKED, bootstrap=how)
    for way, rows in asked.items():
        for name in ("R@1", "R@2", "mAP"):
            whole = plain.per_query[way][name]
            assert result.value(name, way) == pytest.approx(whole[rows].mean())
            assert result.per_query[way][name][rows].tolist() == whole[rows].tolist()
            assert np.isnan(np.delete(result.per_query[way][name], rows)).all()
            score = result.score(name, way)
            assert (score.low or 0) <= score.value <= (score.high or 0)
        assert result.score("R@1", way).chance == pytest.approx({"i2t": 2 / 60, "t2i": 1 / 30}[way])
        assert result.value("medr", way) == np.median(plain.ranks[way][rows])
        assert np.isnan(np.delete(result.ranks[way], rows)).all()
    assert result.protocol.asked == {"i2t": 10, "t2i": 19}
    assert "10 i2t queries asked; 19 t2i queries asked" in result.protocol_line()
    assert plain.protocol.asked == {}


def test_trec_files_hold_only_the_queries_asked(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    images, texts = (random.normal(size=(n, 5)).astype(np.float32) for n in (3, 4))
    paths = write_trec(tmp_path, RowProducts(images, texts), three_by_four(), list("abc"), list("wxyz"))
    assert read_qrels(paths["i2t.qrels"]) == {"a": {"w": 1, "x": 1}, "b": {"y": 1}}
    assert read_qrels(paths["t2i.qrels"]) == {"w": {"a": 1, "c": 1}, "z": {"c": 1}}
    run = read_run(paths["t2i.run"])
    assert sorted(run) == ["w", "z"]
    best = int(np.argmax(images.astype(np.float64) @ texts[3]))
    assert run["z"][0][0] == "abc"[best]


ORDER_MEASURES = ("R@1", "R@5", "MRR", "mAP@3", "rsum")


def slow_scores(images: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """Minus the squared excess of every text over every image, one pair at a time."""
    return np.array(
        [
            [
                -sum(max(0.0, float(t) - float(i)) ** 2 for t, i in zip(text, image, strict=True))
                for text in texts
            ]
            for image in images
        ]
    )


@settings(max_examples=40)
@given(data=st.data())
def test_the_same_as_the_whole_matrix_whatever_the_block(data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    images, texts = (random.integers(0, 3, (n, 3)).astype(np.float32) for n in (4, 5))
    truth = GroundTruth.from_pairs(*np.nonzero(random.random((4, 5)) < 0.4), 4, 5)
    block = data.draw(st.sampled_from([1, 7, 2_500_000]))
    measures = data.draw(st.sampled_from([ORDER_MEASURES, ("R@1", "MRR", "rsum")]))
    found = evaluate(images, texts, truth, measures, similarity="order", block=block, threads=1)
    given = evaluate(slow_scores(images, texts), None, truth, measures)
    assert found.protocol.similarity == "order"
    assert "similarity order" in found.protocol_line()
    assert "similarity given scores" in given.protocol_line()
    for way in ("i2t", "t2i"):
        for name, expected in given.per_query[way].items():
            assert found.per_query[way][name].tolist() == pytest.approx(expected.tolist(), abs=1e-12)


def test_bad_input() -> None:
    random = np.random.default_rng(4)
    images, texts = (random.random((size, 7), dtype=np.float32) for size in (20, 40))
    truth, order = GroundTruth.from_caption_image(np.repeat(np.arange(20), 2), 20), {"similarity": "order"}
    unknown = "unknown similarity 'oder'.*did you mean 'order'"
    refused(UnknownNameError, unknown, evaluate, images, texts, truth, similarity="oder")
    refused(DataError, "width 7, text rows 3", evaluate, images, texts[:, :3], truth, **order)
    texts[9, 2] = np.nan
    names = [f"text {n}" for n in range(40)]
    nan = "text 'text 9' \\(row 9\\) is not finite"
    refused(NumericalError, nan, evaluate, images, texts, truth, text_ids=names, **order)
    refused(UsageError, "k is 0", best_of, OrderScores(images, images), "i2t", 0)
    refused(DataError, "a gallery of 0 rows", best_of, OrderScores(images, images[:0]), "i2t", 1)


MEASURES = ("R@1", "R@5", "R@10", "MRR@10", "medr", "rsum")


def sparse(values: Any) -> csr_array:
    return csr_array(np.asarray(values, dtype=np.float32))


def bags(seed: int, n: int, width: int, share: float = 0.3) -> csr_array:
    random = np.random.default_rng(seed)
    return sparse(random.exponential(size=(n, width)) * (random.random((n, width)) < share))


def slow_score(left: csr_array, right: csr_array) -> float:
    """Common terms in the order of the columns, added in float64; products without rounding."""
    mine = dict(zip(left.indices.tolist(), left.data.tolist(), strict=True))
    theirs = dict(zip(right.indices.tolist(), right.data.tolist(), strict=True))
    total = 0.0
    for term in sorted(mine.keys() & theirs.keys()):
        product = Fraction(mine[term]) * Fraction(theirs[term])
        assert Fraction(float(product)) == product  # exact in float64
        total += float(product)
    return total


IMAGES = sparse([[2, 0, 1, 0], [0, 3, 0, 0], [0, 0, 0, 0]])
TEXTS = sparse([[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 5], [0, 0, 0, 0]])


def test_scores_have_the_same_bits_in_every_tile_and_pair() -> None:
    images, texts = bags(0, 23, 40), bags(1, 31, 40)
    source = SparseProducts(images, texts)
    back = SparseProducts(texts, images)
    whole = source.careful(slice(0, 23), slice(0, 31), lambda *_: np.zeros(0))
    slow = [[slow_score(images[[i]], texts[[t]]) for t in range(31)] for i in range(23)]
    assert np.array_equal(whole, np.array(slow))
    assert np.array_equal(back.careful(slice(0, 31), slice(0, 23), lambda *_: np.zeros(0)).T, whole)
    assert np.array_equal(source.careful(slice(5, 6), slice(7, 20), lambda *_: np.zeros(0)), whole[5:6, 7:20])
    i, t = np.indices(whole.shape).reshape(2, -1)
    assert np.array_equal(source.pairs(i, t), whole.ravel())


@pytest.mark.parametrize("ties", ["expected", "pessimistic", "optimistic", "compat"])
@pytest.mark.parametrize("block", [1, 7, 2_500_000])
def test_the_same_as_a_score_matrix(block: int, ties: str) -> None:
    images, texts = bags(2, 20, 12, 0.2), bags(3, 40, 12, 0.1)  # many rows tie, some have no term
    assert min(SparseProducts(images, texts).empty) > 0
    texts = texts[np.r_[0:40, 3, 3]]  # the same text three times
    truth = GroundTruth.from_caption_image(np.r_[np.repeat(np.arange(20), 2), 4, 5], 20)
    found = evaluate(images, texts, truth, MEASURES, ties=ties, block=block)
    scores = images.toarray().astype(np.float64) @ texts.toarray().astype(np.float64).T
    given_scores = evaluate(scores, None, truth, MEASURES, ties=ties)
    assert found.values() == pytest.approx(given_scores.values())
    for way, ranks in given_scores.ranks.items():
        assert np.array_equal(found.ranks[way], ranks)


def slow_top(scores: np.ndarray, k: int) -> list[list[int]]:
    found = []
    for row in scores.tolist():
        order = sorted(range(len(row)), key=lambda place: (-row[place], place))[:k]
        found.append([place if row[place] > 0 else -1 for place in order])
    return found


@pytest.mark.parametrize("block", [1, 50, 2_500_000])
@pytest.mark.parametrize("k", [1, 4, 100])
def test_top_k_with_ties_and_rows_without_terms(k: int, block: int) -> None:
    random = np.random.default_rng(6)
    queries, gallery = (
        sparse(random.integers(0, 3, (n, 6)) * (random.random((n, 6)) < 0.3)) for n in (15, 25)
    )
    rows, scores = sparse_top_k(queries, gallery, k, block=block)
    exact = (queries @ gallery.T).toarray().astype(np.float64)
    assert rows.tolist() == slow_top(exact, k)
    assert rows.shape == (15, min(k, 25))
    for row, score, values in zip(rows, scores, exact, strict=True):
        assert score.tolist() == [values[place] if place >= 0 else 0.0 for place in row]
    assert (rows == -1).any()


def test_unordered_and_repeated_columns_are_put_right() -> None:
    values, places = np.array([1, 2, 4], dtype=np.float32), np.array([2, 0, 2])
    rows = csr_array((values, places, np.array([0, 3])), shape=(1, 3))
    checked = check_sparse_rows(rows, "image")
    assert (checked.indices.tolist(), checked.data.tolist()) == ([0, 2], [2, 5])
    assert rows.indices.tolist() == [2, 0, 2]  # the caller's stay as they were
    zero = csr_array((np.zeros(1, dtype=np.float32), np.array([1]), np.array([0, 1])), shape=(1, 3))
    assert SparseProducts(zero, zero).empty == (1, 1)  # a stored zero is no term


def test_bad_rows() -> None:
    truth = GroundTruth.from_caption_image([0, 1, 2, 2], 3)
    broken, ids = TEXTS.copy(), {"text_ids": ["c0", "c1", "c2", "c3"]}
    broken.data[2] = np.inf
    five, none = GroundTruth.from_caption_image([0, 1, 2, 2, 0], 3), GroundTruth.from_caption_image([], 0)
    for rows, options, error, message in (
        ((sparse(np.zeros((3, 3))), TEXTS, truth), {}, DataError, "3 terms, text rows 4"),
        (
            (IMAGES.astype(np.float64), TEXTS, truth),
            {},
            DataError,
            "must be a sparse float32 matrix, got float64",
        ),
        ((IMAGES.toarray(), TEXTS, truth), {}, DataError, r"got float32 with shape \(3, 4\)"),
        ((IMAGES, TEXTS, five), {}, DataError, "4 text rows for a ground truth of 5 texts"),
        ((IMAGES, TEXTS, truth), {"image_ids": ["a", "b"]}, DataError, "2 image ids for 3 image rows"),
        ((IMAGES, broken, truth), ids, NumericalError, r"text 'c1' \(row 1\) is not finite: a weight is inf"),
        ((IMAGES, TEXTS, truth), {"ties": "lucky"}, UnknownNameError, "unknown tie rule 'lucky'"),
        ((IMAGES[:0], TEXTS[:0], none), {}, DataError, "there is nothing to rank"),
    ):
        refused(error, message, evaluate, *rows, **options)
    for gallery, k, error, message in (
        (IMAGES, 0, UsageError, "k is 0"),
        (IMAGES[:0], 3, DataError, "cannot search a gallery of 0 rows"),
        (sparse(np.ones((2, 3))), 3, DataError, "query rows have 4 terms, gallery rows 3"),
    ):
        refused(error, message, sparse_top_k, TEXTS, gallery, k)


OURS_AND_THEIRS = {
    "R@1": "Success@1",
    "R@5": "Success@5",
    "MRR": "RR",
    "MRR@5": "RR@5",
    "P@5": "P@5",
    "mAP": "AP",
    "mAP@10": "AP@10",
    "R-precision": "Rprec",
}


def case() -> tuple[np.ndarray, np.ndarray, GroundTruth, list[str], list[str]]:
    """30 images, 100 texts, 1 to 8 positives for each query, nothing tied."""
    random = np.random.default_rng(4)
    images, texts = (random.normal(size=(n, 12)).astype(np.float32) for n in (30, 100))
    pairs = random.random((30, 100)) < 0.03
    pairs[np.arange(100) % 30, np.arange(100)] = True
    truth = GroundTruth.from_pairs(*np.nonzero(pairs), 30, 100)
    assert truth.i2t.counts.max() <= 10
    return images, texts, truth, [f"{i}.jpg" for i in range(30)], [f"{t // 5}#{t % 5}" for t in range(100)]


@pytest.mark.parametrize("from_image", [0, 3])
def test_ir_measures_agrees_on_the_files(tmp_path: Path, from_image: int) -> None:
    """Also where the first images have no positive."""
    images, texts, truth, image_ids, text_ids = case()
    kept = truth.i2t.queries >= from_image
    truth = GroundTruth.from_pairs(truth.i2t.queries[kept], truth.i2t.rows[kept], 30, 100)
    paths = write_trec(tmp_path, RowProducts(images, texts), truth, image_ids, text_ids, k=100)
    assert sorted(paths) == ["i2t.qrels", "i2t.run", "t2i.qrels", "t2i.run"]
    result = evaluate(images, texts, truth, tuple(OURS_AND_THEIRS), similarity="dot")
    for direction in ("i2t", "t2i"):
        theirs = ir_measures.calc_aggregate(
            [ir_measures.parse_measure(name) for name in OURS_AND_THEIRS.values()],
            ir_measures.read_trec_qrels(str(paths[f"{direction}.qrels"])),
            ir_measures.read_trec_run(str(paths[f"{direction}.run"])),
        )
        by_name = {str(name): value for name, value in theirs.items()}
        for ours, name in OURS_AND_THEIRS.items():
            assert result.value(ours, direction) == pytest.approx(by_name[name], abs=1e-9), (direction, ours)


def test_scores_keep_order_and_ties_in_float32(tmp_path: Path) -> None:
    close = np.array([[1.0, 1.0 - 1e-12, 1.0 - 1e-12, 1.0 - 2e-12, 0.5]])
    write_run(tmp_path / "run", ["q"], list("abcde"), np.arange(5)[None], close)
    lines = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    written = [np.float32(line[4]) for line in lines]
    assert written[0] > written[1] == written[2] > written[3] > written[4] == 0.5
    assert np.allclose(written, close[0], atol=1e-6)
    # trec_eval's order: the tied by descending document id, whatever the rank column says.
    assert [line[2] for line in lines] == list("abcde")
    assert [document for document, _ in read_run(tmp_path / "run")["q"]] == list("acbde")


@pytest.mark.parametrize("bad", ["a b", "a\t", "", "a\n", " a"])
def test_ids_with_white_space(tmp_path: Path, bad: str) -> None:
    rows, scores, truth = np.zeros((1, 1), int), np.zeros((1, 1)), GroundTruth.from_caption_image([0], 1)
    space = r"query id .* \(row 0\) is empty or holds white space"
    refused(DataError, space, write_run, tmp_path / "run", [bad], ["d"], rows, scores)
    refused(DataError, "document id", write_run, tmp_path / "run", ["q"], [bad], rows, scores)
    refused(DataError, "run id", write_run, tmp_path / "run", ["q"], ["d"], rows, scores, tag=bad)
    refused(DataError, "document id", write_qrels, tmp_path / "qrels", ["q"], [bad], truth.i2t)
    assert not list(tmp_path.iterdir())


def test_ids_that_do_not_fit_and_files_that_are_not(tmp_path: Path) -> None:
    truth, file = GroundTruth.from_caption_image([0, 0], 1).i2t, tmp_path / "file"
    refused(DataError, "2 query ids for 1 querys", write_qrels, file, ["q", "r"], ["a", "b"], truth)
    refused(DataError, "document ids are not unique", write_qrels, file, ["q"], ["a", "a"], truth)
    refused(StorageError, "does not exist", read_run, file)
    file.write_text("q Q0 d 1 0.5 tag\n\nq Q0 d 2 0.5\n")
    refused(StorageError, "line 3: 6 fields expected, got 5", read_run, file)
    file.write_text("q 0 d yes\n")
    refused(StorageError, "line 1: 'yes' is not a number", read_qrels, file)
