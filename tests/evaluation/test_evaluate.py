from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from slow_ranking import slow_values

from diptych.core.errors import DataError, NumericalError, UnknownNameError, UsageError
from diptych.evaluation import evaluate, partition
from diptych.metrics import TIE_RULES, Bootstrap, GroundTruth, RowProducts, read_qrels, read_run, write_trec

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


def test_folds_take_positives_and_queries_with_them() -> None:
    random = np.random.default_rng(4)
    images, texts = (random.normal(size=(n, 6)).astype(np.float32) for n in (10, 20))
    home = np.repeat(np.arange(10), 2)
    pairs = (np.r_[home, 0], np.r_[np.arange(20), 19])  # text 19 is of image 9: lost when folds part them
    truth = GroundTruth.from_directions(
        pairs, pairs, 10, 20, text_image=home, asked={"t2i": np.arange(1, 20)}
    )
    result = evaluate(images, texts, truth, ("R@1",), protocol="folds(2)")
    by_hand = []
    for fold in (0, 1):
        here = slice(10 * fold, 10 * fold + 10)
        part = GroundTruth.from_caption_image(np.repeat(np.arange(5), 2), 5)
        values = evaluate(images[5 * fold : 5 * fold + 5], texts[here], part, ("R@1",)).per_query["t2i"][
            "R@1"
        ]
        by_hand.append(values[1:].mean() if fold == 0 else values.mean())
    assert result.value("R@1", "t2i") == pytest.approx(np.mean(by_hand))
