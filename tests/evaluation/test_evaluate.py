"""Evaluations of dense rows, order embeddings, score matrices and sparse rows, and their TREC files."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.sparse import csr_array
from slow_ranking import slow_values

from diptych.core.artifact import decode, encode
from diptych.core.errors import DataError, NumericalError, StorageError, UnknownNameError, UsageError
from diptych.evaluation import evaluate, partition
from diptych.evaluation.result import Protocol
from diptych.metrics import (
    TIE_RULES,
    Bootstrap,
    GroundTruth,
    RowProducts,
    read_qrels,
    read_run,
    top_k,
    write_qrels,
    write_run,
    write_trec,
)
from diptych.metrics.sources import OrderScores
from diptych.metrics.sparse_products import SparseProducts, check_sparse_rows, sparse_top_k
from diptych.metrics.topk import best_of

EVERY = ("R@1", "R@5", "R@10", "medr", "medr-floor", "meanr", "MRR", "mAP@5", "P@5", "R-precision", "rsum")


@pytest.fixture(scope="module")
def rows():
    """60 images with 5 captions each, which are near their image."""
    random = np.random.default_rng(0)
    images = random.normal(size=(60, 16)).astype(np.float32)
    texts = (np.repeat(images, 5, axis=0) + 1.5 * random.normal(size=(300, 16))).astype(np.float32)
    return images, texts, GroundTruth.from_caption_image(np.repeat(np.arange(60), 5), 60)


def vsepp(scores):
    """R@1, R@5, R@10, median and mean rank both ways, as published code computes them (5 captions)."""
    found = {}
    for way, table in (("i2t", scores), ("t2i", scores.T)):
        order = [np.argsort(row, kind="stable")[::-1].tolist() for row in table]
        ranks = [one.index(row // 5) for row, one in enumerate(order)]
        if way == "i2t":
            ranks = [min(map(one.index, range(5 * row, 5 * row + 5))) for row, one in enumerate(order)]
        recalls = [float(np.mean(np.array(ranks) < k)) for k in (1, 5, 10)]
        found[way] = [*recalls, float(np.floor(np.median(ranks)) + 1), float(np.mean(ranks) + 1)]
    return found


def test_compat_is_what_published_code_prints(rows):
    images, texts, truth = rows
    names = ("R@1", "R@5", "R@10", "medr-floor", "meanr")
    for decimals in (0, 12):  # with many ties, and without
        scores = np.round(images.astype(np.float64) @ texts.T.astype(np.float64), decimals)
        result, expected = evaluate(scores, None, truth, (*names, "rsum"), ties="compat"), vsepp(scores)
        for side in ("i2t", "t2i"):
            assert [result.value(name, side) for name in names] == pytest.approx(expected[side])
        assert result.value("rsum") == pytest.approx(100 * sum(sum(one[:3]) for one in expected.values()))
        assert result.protocol.compat == ("ties", "medr-floor")


def test_a_collapsed_model_is_at_chance_and_never_perfect(rows):
    same, also = (np.full_like(side, 0.25) for side in rows[:2])
    for rule in set(TIE_RULES) - {"optimistic"}:
        result = evaluate(same, also, rows[2], EVERY, ties=rule)
        assert result.value("rsum") <= result.score("rsum").chance + 15
        if rule == "expected":
            scores = [result.score("rsum"), *(result.score(one, "i2t") for one in ("MRR", "mAP@5", "meanr"))]
            assert [one.value for one in scores] == pytest.approx([one.chance for one in scores])
    assert evaluate(same, also, rows[2], ("rsum",), ties="optimistic").value("rsum") == pytest.approx(600)


def test_folds_are_averaged(rows):
    images, texts, truth = rows
    result = evaluate(images, texts, truth, EVERY, protocol="folds(3)", bootstrap=Bootstrap(samples=40))
    own = GroundTruth.from_caption_image(np.repeat(np.arange(20), 5), 20)
    parts = [
        evaluate(images[20 * f : 20 * f + 20], texts[100 * f : 100 * f + 100], own, EVERY) for f in range(3)
    ]
    for name in ("R@1", "medr", "mAP@5"):
        for side in ("i2t", "t2i"):
            score, scores = result.score(name, side), [part.score(name, side) for part in parts]
            assert score.value == pytest.approx(np.mean([one.value for one in scores]))
            assert score.chance == pytest.approx(np.mean([one.chance for one in scores]))
            together = np.concatenate([part.per_query[side][name] for part in parts])
            assert result.per_query[side][name].tolist() == together.tolist()
    assert result.value("rsum") == pytest.approx(np.mean([part.value("rsum") for part in parts]))
    score = result.score("rsum")
    assert score.low < score.value < score.high
    order = np.random.default_rng(1).permutation(300)  # texts anywhere go with their images
    shuffled = GroundTruth.from_caption_image(truth.text_image[order], 60)
    there = evaluate(images, texts[order], shuffled, EVERY, protocol="folds(3)")
    assert there.values() == pytest.approx(result.values())


def test_partitions():
    many = GroundTruth.from_caption_image(np.repeat(np.arange(5000), 5), 5000)
    random = np.random.default_rng(0)
    images, texts = (random.normal(size=(n, 4)).astype(np.float32) for n in (5000, 25_000))
    result = evaluate(images, texts, many, ("R@1",), protocol="coco-1k")
    assert result.score("R@1", "i2t").chance == pytest.approx(5 / 5000)
    assert result.protocol_line().startswith(
        "coco-1k: 5,000 images, 25,000 texts (5 per image, 1 per text); similarity cosine; "
        "mean of 5 galleries; any-of-k for R@1"
    )
    five = next(partition("coco-5k").folds(many)).ground_truth
    assert (five.n_images, five.n_texts) == (5000, 25_000)
    three, small = (
        GroundTruth.from_caption_image([0, 0, 1, 2], 3),
        GroundTruth.from_caption_image(range(9), 9),
    )
    coco = "5,000 images and at least 25,000 captions, got 9 images and 9"
    for name, truth, error, message in (
        ("folds(2)", three, UsageError, "3 images cannot be cut into 2 equal folds"),
        ("folds(0)", three, UsageError, "at least one fold"),
        ("folds(n)", three, UsageError, r"'folds\(n\)' needs a number"),
        ("folds(2)", GroundTruth.from_pairs([0, 1], [0, 1], 2, 3), UsageError, "1 texts belong to no image"),
        ("coco", three, UnknownNameError, "unknown protocol 'coco'"),
        ("coco-1k", small, DataError, coco),
        ("coco-5k", small, DataError, coco),
    ):
        refused(error, message, lambda name=name, truth=truth: list(partition(name).folds(truth)))


def three_by_four():
    """Image 0 finds texts 0 and 1, image 1 text 2; text 0 is found by images 0 and 2, text 3 by image 2."""
    pairs = ([0, 0, 1], [0, 1, 2]), ([0, 2, 2], [0, 0, 3])
    evaluated = {"i2t": [0, 1], "t2i": [0, 3]}
    return GroundTruth.from_directions(*pairs, 3, 4, text_image=[0, 0, 1, 2], evaluated=evaluated)


def test_directions_by_hand():
    truth = three_by_four()
    assert [truth.i2t.of(image).tolist() for image in range(3)] == [[0, 1], [2], []]
    assert [truth.t2i.of(text).tolist() for text in range(4)] == [[0, 2], [], [], [2]]
    assert (truth.queries("i2t").tolist(), truth.queries("t2i").tolist()) == ([0, 1], [0, 3])
    assert truth.without_positive == {"i2t": 0, "t2i": 0}  # those that are not evaluated do not count
    assert not truth.symmetric
    homeless = GroundTruth.from_directions(([0], [1]), ([1, 1], [0, 1]), 2, 3)
    assert homeless.text_image.tolist() == [1, 1, -1]  # the first relevant image
    assert truth.mirrored("i2t").t2i.of(1).tolist() == [0]
    assert truth.mirrored("t2i").i2t.of(2).tolist() == [0, 3]
    assert truth.mirrored("i2t").symmetric
    for evaluated, message in (
        ([], "no t2i query is evaluated"),
        ([4], "evaluated t2i row 4"),
        ([0.5], "whole numbers"),
    ):
        pairs = ([0], [0]), ([0], [0])
        refused(DataError, message, GroundTruth.from_directions, *pairs, 3, 4, evaluated={"t2i": evaluated})


@settings(max_examples=60)
@given(data=st.data())
def test_each_direction_is_ranked_by_its_own_positives(data):
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


def test_only_evaluated_queries_count():
    random = np.random.default_rng(1)
    scores, home = random.normal(size=(30, 60)), np.repeat(np.arange(30), 2)
    evaluated = {"i2t": np.arange(0, 30, 3), "t2i": np.flatnonzero(home % 3 == 0)[1:]}
    pairs = (home, np.arange(60))
    truth = GroundTruth.from_directions(pairs, pairs, 30, 60, text_image=home, evaluated=evaluated)
    names, how = ("R@1", "R@2", "medr", "mAP"), Bootstrap(samples=200)
    result = evaluate(scores, None, truth, names, bootstrap=how)
    plain = evaluate(scores, None, GroundTruth.from_caption_image(home, 30), names, bootstrap=how)
    for way, rows in evaluated.items():
        for name in ("R@1", "R@2", "mAP"):
            score, whole = result.score(name, way), plain.per_query[way][name]
            assert score.value == pytest.approx(whole[rows].mean())
            assert score.low <= score.value <= score.high
            assert result.per_query[way][name][rows].tolist() == whole[rows].tolist()
            assert np.isnan(np.delete(result.per_query[way][name], rows)).all()
        assert result.score("R@1", way).chance == pytest.approx({"i2t": 2 / 60, "t2i": 1 / 30}[way])
        assert result.value("medr", way) == np.median(plain.ranks[way][rows])
    assert (result.protocol.evaluated, plain.protocol.evaluated) == ({"i2t": 10, "t2i": 19}, {})
    assert "10 i2t queries evaluated; 19 t2i queries evaluated" in result.protocol_line()
    stored = encode(result.protocol, {})
    assert stored["asked"] == {"i2t": 10, "t2i": 19}  # the name in files of every version
    assert decode(Protocol, stored, {}) == result.protocol


def slow_order(images, texts):
    """Minus the squared excess of every text over every image, one pair at a time."""
    return np.array(
        [[-sum(max(0.0, a - b) ** 2 for a, b in zip(t, i, strict=True)) for t in texts] for i in images]
    )


@settings(max_examples=40)
@given(data=st.data())
def test_order_scores_are_the_whole_matrix_whatever_the_block(data):
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    images, texts = (random.integers(0, 3, (n, 3)).astype(np.float32) for n in (4, 5))
    truth = GroundTruth.from_pairs(*np.nonzero(random.random((4, 5)) < 0.4), 4, 5)
    options = {"similarity": "order", "block": data.draw(st.sampled_from([1, 7, 2_500_000])), "threads": 1}
    measures = data.draw(st.sampled_from([("R@1", "R@5", "MRR", "mAP@3", "rsum"), ("R@1", "MRR", "rsum")]))
    found = evaluate(images, texts, truth, measures, **options)
    by_scores = evaluate(slow_order(images.tolist(), texts.tolist()), None, truth, measures)
    assert "similarity order" in found.protocol_line()
    assert "similarity given scores" in by_scores.protocol_line()
    for way in ("i2t", "t2i"):
        for name, expected in by_scores.per_query[way].items():
            assert found.per_query[way][name].tolist() == pytest.approx(expected.tolist(), abs=1e-12)


def test_what_cannot_be(rows):
    """Refused with the id and the row in the whole test set, unknown names before the rows are read."""
    images, texts, truth = rows
    broken, scores, wide = images.copy(), images @ texts.T, texts.copy()
    broken[47, 0], scores[47, 250], wide[9, 2] = np.nan, np.inf, np.nan
    ids, order = {"image_ids": [f"{i}.jpg" for i in range(60)]}, {"similarity": "order"}
    folds, nothing = {"protocol": "folds(3)"}, np.full_like(images, np.nan)
    texts_named = {"text_ids": [f"text {n}" for n in range(300)]}
    some, none = (csr_array(images[:3]), csr_array(texts[:4])), GroundTruth.from_caption_image([], 0)
    small, bad = GroundTruth.from_caption_image([0, 1, 2, 2], 3), some[1].copy()
    bad.data[17] = np.inf
    for error, message, *sides, options in (
        (NumericalError, r"image '47\.jpg' \(row 47\)", broken, texts, truth, ids),
        (NumericalError, r"image '47\.jpg' \(row 47\)", broken, texts, truth, {**ids, **folds}),
        (NumericalError, "image row 47 and text row 250 is inf", scores, None, truth, folds),
        (DataError, "59 image rows for a ground truth of 60 images", images[:59], texts, truth, folds),
        (UnknownNameError, "unknown", nothing, texts, truth, {"ties": "random"}),
        (UnknownNameError, "unknown", nothing, texts, truth, {"protocol": "half"}),
        (UnknownNameError, "unknown", nothing, texts, truth, {"measures": ["R"]}),
        (UnknownNameError, "'oder'.*did you mean 'order'", images, texts, truth, {"similarity": "oder"}),
        (DataError, "width 16, text rows 3", images, texts[:, :3], truth, order),
        (NumericalError, r"'text 9' \(row 9\) is not finite", images, wide, truth, texts_named | order),
        (DataError, "16 terms, text rows 3", some[0], csr_array(texts[:4, :3]), small, {}),
        (DataError, "sparse float32 matrix, got float64", some[0].astype(float), some[1], small, {}),
        (DataError, r"got float32 with shape \(3, 16\)", images[:3], some[1], small, {}),
        (DataError, "3 text rows for a ground truth of 4 texts", some[0], some[1][:3], small, {}),
        (DataError, "2 image ids for 3 image rows", *some, small, {"image_ids": ["a", "b"]}),
        (NumericalError, r"text 'b' \(row 1\) is not fin", some[0], bad, small, {"text_ids": list("abcd")}),
        (DataError, "there is nothing to rank", some[0][:0], some[1][:0], none, {}),
    ):
        refused(error, message, evaluate, *sides, **options)
    refused(UsageError, "k is 0", best_of, OrderScores(images, images), "i2t", 0)
    refused(DataError, "a gallery of 0 rows", best_of, OrderScores(images, images[:0]), "i2t", 1)
    refused(UsageError, "k is 0", sparse_top_k, *some, 0)
    refused(DataError, "cannot search a gallery of 0 rows", sparse_top_k, some[1], some[0][:0], 3)
    refused(DataError, "have 16 terms, gallery rows 3", sparse_top_k, some[1], csr_array(texts[:4, :3]), 3)


def sparse(values):
    return csr_array(np.asarray(values, dtype=np.float32))


def bags(seed, n, width, share=0.3):
    random = np.random.default_rng(seed)
    return sparse(random.exponential(size=(n, width)) * (random.random((n, width)) < share))


def slow_score(left, right):
    """Common terms in the order of the columns, added in float64; products without rounding."""
    mine, theirs = (dict(zip(one.indices.tolist(), one.data.tolist(), strict=True)) for one in (left, right))
    total = 0.0
    for term in sorted(mine.keys() & theirs.keys()):
        product = Fraction(mine[term]) * Fraction(theirs[term])
        assert Fraction(float(product)) == product  # exact in float64
        total += float(product)
    return total


def test_sparse_scores_have_the_same_bits_in_every_tile_and_pair():
    images, texts = bags(0, 23, 40), bags(1, 31, 40)
    source, back = SparseProducts(images, texts), SparseProducts(texts, images)

    def tile(of, first, second):
        return of.careful(slice(*first), slice(*second), lambda *_: np.zeros(0))

    whole = tile(source, (0, 23), (0, 31))
    slow = [[slow_score(images[[i]], texts[[t]]) for t in range(31)] for i in range(23)]
    assert np.array_equal(whole, np.array(slow))
    assert np.array_equal(tile(back, (0, 31), (0, 23)).T, whole)
    assert np.array_equal(tile(source, (5, 6), (7, 20)), whole[5:6, 7:20])
    i, t = np.indices(whole.shape).reshape(2, -1)
    assert np.array_equal(source.pairs(i, t), whole.ravel())


def test_sparse_rows_give_the_same_as_a_score_matrix():
    images, texts = bags(2, 20, 12, 0.2), bags(3, 40, 12, 0.1)  # many rows tie, some have no term
    empty = SparseProducts(images, texts).empty
    assert min(empty) > 0
    texts = texts[np.r_[0:40, 3, 3]]  # the same text three times
    truth = GroundTruth.from_caption_image(np.r_[np.repeat(np.arange(20), 2), 4, 5], 20)
    measures = ("R@1", "R@5", "R@10", "MRR@10", "medr", "rsum")
    scores = images.toarray().astype(np.float64) @ texts.toarray().astype(np.float64).T
    for ties in TIE_RULES:
        expected = evaluate(scores, None, truth, measures, ties=ties)
        for block in (1, 7, 2_500_000) if ties == "expected" else (7,):
            found = evaluate(images, texts, truth, measures, ties=ties, block=block)
            assert found.values() == pytest.approx(expected.values())
            assert f"rows without terms {empty[0]} images" in found.protocol_line()
            for way, ranks in expected.ranks.items():
                assert np.array_equal(found.ranks[way], ranks)


def test_sparse_top_k_with_ties_and_rows_without_terms():
    random = np.random.default_rng(6)
    queries, gallery = (
        sparse(random.integers(0, 3, (n, 6)) * (random.random((n, 6)) < 0.3)) for n in (15, 25)
    )
    exact = (queries @ gallery.T).toarray().astype(np.float64)
    for k, block in product((1, 4, 100), (1, 50, 2_500_000)):
        rows, scores = sparse_top_k(queries, gallery, k, block=block)
        for row, score, values in zip(rows.tolist(), scores.tolist(), exact.tolist(), strict=True):
            order = sorted(range(25), key=lambda place: (-values[place], place))[:k]
            assert row == [place if values[place] > 0 else -1 for place in order]
            assert score == [max(values[place], 0.0) for place in order]
        assert (rows == -1).any()
    values, places = np.array([1, 2, 4], dtype=np.float32), np.array([2, 0, 2])
    rows = csr_array((values, places, np.array([0, 3])), shape=(1, 3))
    checked = check_sparse_rows(rows, "image")  # unordered and repeated columns are put right
    assert (checked.indices.tolist(), checked.data.tolist()) == ([0, 2], [2, 5])
    assert rows.indices.tolist() == [2, 0, 2]  # the caller's stay as they were
    zero = csr_array((np.zeros(1, dtype=np.float32), np.array([1]), np.array([0, 1])), shape=(1, 3))
    assert SparseProducts(zero, zero).empty == (1, 1)  # a stored zero is no term


OURS_AND_THEIRS = {"R@1": "Success@1", "R@5": "Success@5", "MRR": "RR", "MRR@5": "RR@5", "P@5": "P@5"}
OURS_AND_THEIRS |= {"mAP": "AP", "mAP@10": "AP@10", "R-precision": "Rprec"}


def case():
    """30 images, 100 texts, 1 to 8 positives for each query, nothing tied."""
    random = np.random.default_rng(4)
    images, texts = (random.normal(size=(n, 12)).astype(np.float32) for n in (30, 100))
    pairs = random.random((30, 100)) < 0.03
    pairs[np.arange(100) % 30, np.arange(100)] = True
    truth = GroundTruth.from_pairs(*np.nonzero(pairs), 30, 100)
    assert truth.i2t.counts.max() <= 10
    return images, texts, truth, [f"{i}.jpg" for i in range(30)], [f"{t // 5}#{t % 5}" for t in range(100)]


def test_ir_measures_agrees_on_the_files(tmp_path):
    """Also where the first images have no positive."""
    images, texts, whole, *ids = case()
    for from_image in (0, 3):
        kept = whole.i2t.queries >= from_image
        truth = GroundTruth.from_pairs(whole.i2t.queries[kept], whole.i2t.rows[kept], 30, 100)
        paths = write_trec(tmp_path, RowProducts(images, texts), truth, *ids, k=100)
        result = evaluate(images, texts, truth, tuple(OURS_AND_THEIRS), similarity="dot")
        for way in ("i2t", "t2i"):
            theirs = ir_measures.calc_aggregate(
                [ir_measures.parse_measure(name) for name in OURS_AND_THEIRS.values()],
                ir_measures.read_trec_qrels(str(paths[f"{way}.qrels"])),
                ir_measures.read_trec_run(str(paths[f"{way}.run"])),
            )
            by_name = {str(name): value for name, value in theirs.items()}
            for ours, name in OURS_AND_THEIRS.items():
                assert result.value(ours, way) == pytest.approx(by_name[name], abs=1e-9), (way, ours)


def test_files_there_and_back(tmp_path):
    images, texts, truth, image_ids, text_ids = case()
    paths = write_trec(tmp_path, RowProducts(images, texts), truth, image_ids, text_ids, k=7)
    run, qrels = read_run(paths["t2i.run"]), read_qrels(paths["t2i.qrels"])
    rows, scores = top_k(texts, images, 7)
    assert list(run) == text_ids
    for query, name in enumerate(text_ids):
        assert [document for document, _ in run[name]] == [image_ids[row] for row in rows[query]]
        assert [score for _, score in run[name]] == pytest.approx(scores[query], rel=1e-6)
        assert qrels[name] == {image_ids[row]: 1 for row in truth.t2i.of(query)}
    first = paths["t2i.run"].read_text().splitlines()[0].split()
    assert (first[:4], first[5]) == (["0#0", "Q0", image_ids[rows[0, 0]], "1"], "diptych")
    few = write_trec(tmp_path, RowProducts(images[:3], texts[:4]), three_by_four(), list("abc"), list("wxyz"))
    assert read_qrels(few["i2t.qrels"]) == {"a": {"w": 1, "x": 1}, "b": {"y": 1}}  # of those evaluated alone
    assert read_qrels(few["t2i.qrels"]) == {"w": {"a": 1, "c": 1}, "z": {"c": 1}}
    assert sorted(read_run(few["t2i.run"])) == ["w", "z"]
    close = np.array([[1.0, 1.0 - 1e-12, 1.0 - 1e-12, 1.0 - 2e-12, 0.5]])  # order and ties stay in float32
    write_run(tmp_path / "run", ["q"], list("abcde"), np.arange(5)[None], close)
    lines = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    written = [np.float32(line[4]) for line in lines]
    assert written[0] > written[1] == written[2] > written[3] > written[4] == 0.5
    assert np.allclose(written, close[0], atol=1e-6)
    # trec_eval's order: the tied by descending document id, whatever the rank column says.
    assert [line[2] for line in lines] == list("abcde")
    assert [document for document, _ in read_run(tmp_path / "run")["q"]] == list("acbde")


def test_ids_and_files_that_cannot_be(tmp_path):
    rows, scores, file = np.zeros((1, 1), int), np.zeros((1, 1)), tmp_path / "file"
    one, two = (GroundTruth.from_caption_image([0] * n, 1).i2t for n in (1, 2))
    for bad in ("a b", "a\t", "", "a\n", " a"):
        space = r"query id .* \(row 0\) is empty or holds white space"
        refused(DataError, space, write_run, file, [bad], ["d"], rows, scores)
        refused(DataError, "document id", write_run, file, ["q"], [bad], rows, scores)
        refused(DataError, "document id", write_qrels, file, ["q"], [bad], one)
    assert not list(tmp_path.iterdir())
    refused(DataError, "2 query ids for 1 querys", write_qrels, file, ["q", "r"], ["a", "b"], two)
    refused(DataError, "document ids are not unique", write_qrels, file, ["q"], ["a", "a"], two)
    refused(StorageError, "does not exist", read_run, file)
    file.write_text("q Q0 d 1 0.5 tag\n\nq Q0 d 2 0.5\n")
    refused(StorageError, "line 3: 6 fields expected, got 5", read_run, file)
    file.write_text("q 0 d yes\n")
    refused(StorageError, "line 1: 'yes' is not a number", read_qrels, file)


def test_the_table(rows):
    result = evaluate(*rows, ("R@1", "medr", "rsum"), bootstrap=Bootstrap(samples=20))
    table = {row[0].text: row for row in result.tables()[0].rows}
    assert list(table) == ["R@1", "medr", "R@5", "R@10", "rsum"]
    recall, cell = result.score("R@1", "i2t"), table["R@1"][1]
    ends = f"{100 * recall.low:.1f}–{100 * recall.high:.1f}"
    assert (cell.text, cell.value, cell.note) == (f"{100 * recall.value:.1f}", recall.value, ends)
    assert table["R@1"][3].text == "1.7"
    total = result.score("rsum")
    assert [cell.text for cell in table["rsum"]] == ["rsum", f"{total.value:.1f}", "", f"{total.chance:.1f}"]
    assert evaluate(*rows, ("R@1",)).tables()[0].rows[0][1].note == ""
    refused(UnknownNameError, "unknown i2t measure 'R@2'", result.score, "R@2", "i2t")
    refused(UnknownNameError, "unknown direction 'i2i'", result.score, "R@1", "i2i")
    bars = result.charts()[0].series[0]
    assert (bars.name, bars.y[0]) == ("image → text", 100 * recall.value)
