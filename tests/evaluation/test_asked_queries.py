"""Positives that differ by direction, and queries that are not asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_ranking import slow_values

from diptych.core.errors import DataError
from diptych.evaluation import evaluate
from diptych.metrics import Bootstrap, GroundTruth, RowProducts, read_qrels, read_run, write_trec

MEASURES = ("R@1", "R@2", "medr", "mAP", "R-precision", "rsum")


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


def test_a_subset_keeps_both_directions_and_who_is_asked() -> None:
    part = three_by_four().subset(np.array([2, 0]), np.array([0, 3, 1]))
    assert [part.i2t.of(image).tolist() for image in range(2)] == [[], [0, 2]]
    assert [part.t2i.of(text).tolist() for text in range(3)] == [[0, 1], [0], []]
    assert part.queries("i2t").tolist() == [1]
    assert part.queries("t2i").tolist() == [0, 1]


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
    result = evaluate(scores, None, truth, MEASURES, bootstrap=how)
    plain = evaluate(scores, None, GroundTruth.from_caption_image(home, 30), MEASURES, bootstrap=how)
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
