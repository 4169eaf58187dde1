"""Measures of gains through every way into evaluation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.evaluation import compare, evaluate
from diptych.metrics import DIRECTIONS, Bootstrap, Grades, GroundTruth, Relevance

NAMES = ["R@1", "DCG_CM@5", "nDCG_CM@5", "nDCG@5", "nDCG-exponential@3", "DCG_CM-published@10"]


def unit(random: np.random.Generator, count: int, width: int) -> np.ndarray:
    rows = random.normal(size=(count, width)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return unit(random, 24, 6), unit(random, 48, 6)


TRUTH = GroundTruth.from_caption_image(np.repeat(np.arange(24), 2), 24)
OTHER = Relevance(unit(np.random.default_rng(2), 24, 3), unit(np.random.default_rng(2), 48, 3), "model of 3")
GRADES = Grades(np.array([0, 0, 5]), np.array([0, 9, 40]), np.array([4.0, 2.5, 1.0]), "raters")


def test_chance_by_another_model_is_the_mean_over_random_orders(rows: tuple[np.ndarray, np.ndarray]) -> None:
    result = evaluate(*rows, TRUTH, NAMES, relevance=OTHER, grades=GRADES)
    random = np.random.default_rng(4)
    draws = [
        evaluate(random.random((24, 48)), None, TRUTH, NAMES, relevance=OTHER, grades=GRADES)
        for _ in range(150)
    ]
    for direction in DIRECTIONS:
        for name in NAMES[1:]:
            chance = result.score(name, direction).chance
            simulated = [one.value(name, direction) for one in draws]
            assert chance == pytest.approx(np.mean(simulated), rel=0.05, abs=0.04), (direction, name)
            assert chance == pytest.approx(draws[0].score(name, direction).chance, rel=1e-5)


def test_chance_by_the_own_cosines_is_the_mean_over_random_matches(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    """Rows that know nothing still order items by their own gains, so that chance is far above a random order."""
    names, random = ["DCG_CM@5", "nDCG_CM@5", "DCG_CM-published@10"], np.random.default_rng(4)
    result = evaluate(*rows, TRUTH, names)
    draws = []
    for _ in range(150):
        home = random.permutation(np.repeat(np.arange(24), 2))
        draws.append(evaluate(*rows, GroundTruth.from_caption_image(home, 24), names))
    other = evaluate(*rows, TRUTH, names, relevance=OTHER)
    for direction in DIRECTIONS:
        for name in names:
            chance = result.score(name, direction).chance
            simulated = [one.value(name, direction) for one in draws]
            assert chance == pytest.approx(np.mean(simulated), rel=0.01), (direction, name)
            assert result.value(name, direction) == pytest.approx(chance, rel=0.05)  # the rows are random
            assert chance > 1.5 * other.score(name, direction).chance


def test_every_way_in_says_the_same(rows: tuple[np.ndarray, np.ndarray]) -> None:
    by_rows = evaluate(*rows, TRUTH, NAMES)
    wide = [side.astype(np.float64) for side in rows]
    by_scores = evaluate(wide[0] @ wide[1].T, None, TRUTH, NAMES)
    terms = [csr_array(np.abs(side)) for side in rows]
    by_terms = evaluate(*terms, TRUTH, NAMES, relevance=OTHER)
    by_dense = evaluate(*(np.abs(side) for side in rows), TRUTH, NAMES, relevance=OTHER)
    for name, value in by_rows.values().items():
        assert by_scores.values()[name] == pytest.approx(value, abs=1e-6), name
        assert by_terms.values()[name] == pytest.approx(by_dense.values()[name], abs=1e-9), name


def test_folds_are_galleries_of_their_own(rows: tuple[np.ndarray, np.ndarray]) -> None:
    names = ["DCG_CM@5", "nDCG_CM@5", "nDCG@5"]
    whole = evaluate(*rows, TRUTH, names, protocol="folds(2)", relevance=OTHER, grades=GRADES)
    halves = []
    for half in range(2):
        images, texts = slice(12 * half, 12 * half + 12), slice(24 * half, 24 * half + 24)
        truth = TRUTH.subset(np.arange(24)[images], np.arange(48)[texts])
        inside = half == 0
        grades = Grades(  # the pair of image 5 and text 40 is in neither half
            GRADES.images[:2] if inside else GRADES.images[:0],
            GRADES.texts[:2] if inside else GRADES.texts[:0],
            GRADES.values[:2] if inside else GRADES.values[:0],
            "raters",
            top=4.0,
        )
        part = Relevance(OTHER.images[images], OTHER.texts[texts], OTHER.name)
        halves.append(evaluate(rows[0][images], rows[1][texts], truth, names, relevance=part, grades=grades))
    for name, value in whole.values().items():
        assert value == pytest.approx(np.mean([half.values()[name] for half in halves])), name


def test_the_protocol_says_what_gains_are_by(rows: tuple[np.ndarray, np.ndarray]) -> None:
    own = evaluate(*rows, TRUTH, ["DCG_CM@5", "nDCG_CM@5", "nDCG@5"]).protocol_line()
    assert "gains of DCG_CM@5, nDCG_CM@5: 1 for a match, else the cosine by the evaluated model" in own
    assert "clamped to [0, 1] (its scale counts, so models are not compared by it)" in own
    assert "gains of nDCG@5: the grade, 1 for a match" in own
    other = evaluate(
        *rows, TRUTH, ["DCG_CM-published@5", "nDCG@5"], relevance=OTHER, grades=GRADES
    ).protocol_line()
    assert "the cosine by model of 3, rounded to 4 digits and not clamped" in other
    assert "compat DCG_CM-published@5" in other
    # 48 matches, one of them graded.
    assert "gains of nDCG@5: the grade of raters, 47 matches without one have 4" in other


def test_compared(rows: tuple[np.ndarray, np.ndarray]) -> None:
    names = ["R@1", "DCG_CM@5"]
    one = evaluate(*rows, TRUTH, names, bootstrap=Bootstrap(50))
    score = one.score("DCG_CM@5", "i2t")
    assert (score.low or 99) < score.value < (score.high or 0)
    better = evaluate(rows[1][::2], rows[1], TRUTH, names)
    found = compare({"random": one, "better": better}, samples=20, flips=200)
    assert found.difference("better", "DCG_CM@5", "t2i").verdict == "better"
    assert "DCG_CM@5 by each run's own cosines: a difference may be one of scale" in found.line()
    by_other = evaluate(*rows, TRUTH, names, relevance=OTHER)
    with pytest.raises(MismatchError, match=r"cannot be compared by DCG_CM@5: .*model of 3"):
        compare({"random": one, "other": by_other}, samples=0, flips=10)
    assert "cosines" not in compare({"random": one, "other": by_other}, ["R@1"], samples=0, flips=10).line()


def test_models_without_cosines_need_a_relevance_model(rows: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(UsageError, match=r"DCG_CM@5 by the evaluated model need.*'order' gives penalties"):
        evaluate(*rows, TRUTH, ["DCG_CM@5"], similarity="order")
    with pytest.raises(UsageError, match="sums of term weights"):
        evaluate(*(csr_array(np.abs(side)) for side in rows), TRUTH, ["nDCG_CM@5"])
    with pytest.raises(UsageError, match="the given scores lie between 0 and 7"):
        evaluate(np.full((24, 48), 7.0), None, TRUTH, ["DCG_CM@5"])
    with pytest.raises(UsageError, match="the given scores lie between -3 and 0"):
        evaluate(np.full((24, 48), -3.0), None, TRUTH, ["DCG_CM@5"])
    assert evaluate(*rows, TRUTH, ["nDCG@5"], similarity="order").value("nDCG@5", "i2t") > 0
    assert evaluate(*rows, TRUTH, ["DCG_CM@5"], similarity="order", relevance=OTHER).value("DCG_CM@5", "i2t")
    with pytest.raises(DataError, match="model of 3: 23 image rows where 24"):
        evaluate(*rows, TRUTH, ["DCG_CM@5"], relevance=replace(OTHER, images=OTHER.images[:23]))


def test_queries_that_are_not_asked_play_no_part(rows: tuple[np.ndarray, np.ndarray]) -> None:
    pairs = (TRUTH.i2t.queries, TRUTH.i2t.rows)
    some = GroundTruth.from_directions(pairs, pairs, 24, 48, asked={"i2t": np.array([3, 4])})
    whole, part = (evaluate(*rows, truth, ["DCG_CM@5"]) for truth in (TRUTH, some))
    values = part.per_query["i2t"]["DCG_CM@5"]
    assert np.flatnonzero(~np.isnan(values)).tolist() == [3, 4]
    assert part.value("DCG_CM@5", "i2t") == whole.per_query["i2t"]["DCG_CM@5"][3:5].mean()
    # Chance is that of the two, too.
    gains = np.clip(rows[0][3:5].astype(float) @ rows[1].T.astype(float), 0, 1)
    first = -np.sort(-gains, axis=1)[:, :5]
    expected = np.mean((2 / 48 + 46 / 48 * first) @ (1 / np.log2(np.arange(2, 7))))
    assert part.score("DCG_CM@5", "i2t").chance == pytest.approx(expected, abs=1e-6)
