from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from refusals import refused
from scipy import stats

from diptych.core.errors import MismatchError, NumericalError, StorageError, UnknownNameError, UsageError
from diptych.evaluation import Result, compare, evaluate, spread_over_seeds
from diptych.metrics import GroundTruth
from diptych.metrics.paired import corrected as correct

N = 80
HOME = np.repeat(np.arange(N), 5)
TRUTH = GroundTruth.from_caption_image(HOME, N)
MEASURES = ("R@1", "R@5", "R@10", "medr", "meanr", "mAP@5", "rsum")


def run(noise: float, seed: int, **options: object) -> Result:
    """Captions that lie near their image, the nearer the better the run."""
    images = np.random.default_rng(0).normal(size=(N, 16)).astype(np.float32)
    random = np.random.default_rng(seed)
    texts = (images[HOME] + noise * random.normal(size=(5 * N, 16))).astype(np.float32)
    return evaluate(images, texts, TRUTH, MEASURES, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def runs() -> dict[str, Result]:
    return {"plain": run(2.0, 1), "worse": run(4.0, 2), "again": run(2.0, 3)}


def test_difference_interval_and_p(runs: dict[str, Result]) -> None:
    found = compare(runs, flips=2_000)
    plain, worse = runs["plain"], runs["worse"]
    for way in ("i2t", "t2i"):
        one = found.difference("worse", "R@5", way)
        assert one.difference == pytest.approx(worse.value("R@5", way) - plain.value("R@5", way))
        assert one.low is not None
        assert one.high is not None
        assert one.low < one.difference < one.high < 0
        per_query = worse.per_query[way]["R@5"] - plain.per_query[way]["R@5"]
        means = per_query if way == "i2t" else per_query.reshape(N, 5).mean(axis=1)
        assert one.p_t == pytest.approx(stats.ttest_1samp(means, 0).pvalue, rel=1e-9)
        assert one.verdict == "worse"
    rank = found.difference("worse", "meanr", "t2i")
    assert rank.difference > 0  # a larger rank
    assert rank.verdict == "worse"
    assert found.difference("again", "R@5", "t2i").verdict == ""
    total = found.difference("worse", "rsum")
    assert total.difference == pytest.approx(worse.value("rsum") - plain.value("rsum"))
    assert total.verdict == "worse"


def test_rsum_is_tested_by_image_over_both_directions(runs: dict[str, Result]) -> None:
    one = compare({name: runs[name] for name in ("plain", "again")}, ["rsum"]).difference("again", "rsum")
    gap = np.zeros(N)
    for name in ("R@1", "R@5", "R@10"):
        for way in ("i2t", "t2i"):
            values = runs["again"].per_query[way][name] - runs["plain"].per_query[way][name]
            gap += 100 * values.reshape(N, -1).mean(axis=1)
    assert one.difference == pytest.approx(gap.mean())
    assert one.p_t == pytest.approx(stats.ttest_1samp(gap, 0).pvalue, rel=1e-9)
    assert one.p_randomisation == pytest.approx(one.p_t, abs=0.03)
    error = gap.std(ddof=1) / np.sqrt(N)
    assert one.low == pytest.approx(gap.mean() - 1.96 * error, abs=0.4 * error)
    assert one.high == pytest.approx(gap.mean() + 1.96 * error, abs=0.4 * error)


def test_bonferroni_counts_every_tested_comparison(runs: dict[str, Result]) -> None:
    corrected = compare(runs, test="t")
    plain = compare(runs, test="t", correction="none")
    # Six measures in two directions but for medr, and rsum, for two runs: (5 × 2 + 1) × 2.
    assert corrected.tested == 22
    assert "Bonferroni over 22 comparisons" in corrected.line()
    holm = compare(runs, test="t", correction="holm")
    assert "Holm over 22 comparisons" in holm.line()
    raws = [one.p for one in plain.differences]
    assert [one.p for one in holm.differences] == correct(raws, "holm")
    assert "100 swaps cannot reach 0.05" in compare(runs, flips=100).line()
    assert "cannot reach" not in corrected.line()
    for one, raw in zip(corrected.differences, plain.differences, strict=True):
        assert raw.p == raw.p_t
        assert one.p == (None if raw.p is None else min(1.0, 22 * raw.p))
    medians = [one for one in corrected.differences if one.measure == "medr"]
    assert len(medians) == 4
    assert all(one.p is None and one.low is not None for one in medians)


@pytest.mark.parametrize("test", ["randomisation", "t"])
def test_identical_runs(runs: dict[str, Result], test: str) -> None:
    found = compare({"one": runs["plain"], "two": runs["plain"]}, test=test, flips=200)
    for one in found.differences:
        assert (one.difference, one.low, one.high) == (0, 0, 0)
        assert one.p in (1.0, None)
        assert (one.p is None) == (one.measure == "medr")
        assert one.better is None
        assert one.verdict == ""


def test_one_query_everything_tied_and_everything_better() -> None:
    truth = GroundTruth.from_pairs([0], [1], 1, 3)
    right, wrong = (evaluate(np.array([scores]), None, truth, ("R@1",)) for scores in ([1, 3, 2], [3, 1, 2]))
    one = compare({"right": right, "wrong": wrong}).difference("wrong", "R@1", "i2t")
    assert (one.difference, one.low, one.high, one.p_randomisation, one.p_t) == (-1, -1, -1, 1.0, None)
    truth = GroundTruth.from_caption_image(np.arange(12), 12)
    tied, best = evaluate(np.zeros((12, 12)), None, truth), evaluate(np.eye(12), None, truth)
    one = compare({"tied": tied, "best": best}).difference("best", "R@1", "t2i")
    assert one.difference == pytest.approx(1 - 1 / 12)
    assert one.p_randomisation == pytest.approx(2 / 2**12)  # all swaps: no spread, so no t-test
    assert one.p_t is None


def test_folds_are_compared_fold_by_fold() -> None:
    one, two = (run(noise, seed, protocol="folds(4)") for noise, seed in ((2.0, 1), (2.6, 2)))
    found = compare({"one": one, "two": two}, ["R@1", "medr"], flips=500)
    gap = found.difference("two", "R@1", "t2i")
    assert gap.difference == pytest.approx(two.value("R@1", "t2i") - one.value("R@1", "t2i"))
    means = (two.per_query["t2i"]["R@1"] - one.per_query["t2i"]["R@1"]).reshape(4, 20, 5).mean(axis=2)
    error = np.sqrt(np.sum(means.var(axis=1, ddof=1) / 20)) / 4
    assert gap.p_t == pytest.approx(2 * stats.t.sf(abs(means.mean() / error), 76))
    assert "mean of 4 galleries" in found.protocol


def test_seeds_are_averaged_and_their_spread_is_said(runs: dict[str, Result]) -> None:
    many = [run(2.0, seed) for seed in (1, 3, 5)]
    found = compare({"plain": many, "worse": runs["worse"]}, flips=200)
    values = [one.value("R@1", "t2i") for one in many]
    spread = found.values["t2i", "R@1"]["plain"]
    assert spread.values == tuple(values)
    assert spread.mean == pytest.approx(np.mean(values))
    assert spread.sd == pytest.approx(np.std(values, ddof=1))
    assert spread.population_sd == pytest.approx(np.std(values))
    assert found.values["t2i", "R@1"]["worse"].sd is None
    one = found.difference("worse", "R@1", "t2i")
    assert one.difference == pytest.approx(runs["worse"].value("R@1", "t2i") - np.mean(values))
    mean = np.mean([seed.per_query["t2i"]["R@1"] for seed in many], axis=0)
    per_image = (runs["worse"].per_query["t2i"]["R@1"] - mean).reshape(N, 5).mean(axis=1)
    assert one.p_t == pytest.approx(stats.ttest_1samp(per_image, 0).pvalue)
    medians = [seed.value("medr", "i2t") for seed in many]
    gap = found.difference("worse", "medr", "i2t").difference
    assert gap == pytest.approx(runs["worse"].value("medr", "i2t") - np.mean(medians))
    assert "say nothing of other seeds" in found.line()
    by_name = spread_over_seeds(many)
    assert by_name["t2i R@1"] == spread
    assert by_name["rsum"].mean == pytest.approx(np.mean([one.value("rsum") for one in many]))


def test_only_queries_that_were_asked_are_compared() -> None:
    pairs = (HOME, np.arange(5 * N))
    truth = GroundTruth.from_directions(
        pairs, pairs, N, 5 * N, text_image=HOME, asked={"t2i": np.arange(0, 5 * N, 2)}
    )
    random = np.random.default_rng(8)
    one, two = (evaluate(random.normal(size=(N, 5 * N)), None, truth, ("R@10",)) for _ in range(2))
    gap = compare({"one": one, "two": two}, flips=300).difference("two", "R@10", "t2i")
    values = (two.per_query["t2i"]["R@10"] - one.per_query["t2i"]["R@10"])[::2]
    assert gap.difference == pytest.approx(values.mean())
    assert gap.low is not None
    broken = replace(two, per_query={**two.per_query, "t2i": {"R@10": np.zeros(5 * N)}})
    refused(NumericalError, "200 queries are not as expected", compare, {"one": one, "two": broken})


def test_bad_input(runs: dict[str, Result]) -> None:
    plain = runs["plain"]
    values = plain.per_query["i2t"]["R@5"].copy()
    values[7] = np.nan
    per_query = {**plain.per_query, "i2t": {**plain.per_query["i2t"], "R@5": values}}
    broken, old = replace(plain, per_query=per_query), replace(plain, text_image=None)
    other = evaluate(np.zeros((N, 5 * N)), None, TRUTH, ("MRR",))
    more = GroundTruth.from_pairs(np.r_[HOME, 0], np.r_[np.arange(5 * N), 399], N, 5 * N, text_image=HOME)
    larger = evaluate(np.zeros((N, 5 * N)), None, more, MEASURES)
    folds, ties = run(2.0, 1, protocol="folds(2)"), run(2.0, 1, ties="optimistic")
    named, moved = run(2.0, 1, about={"dataset": "coco"}), replace(plain, text_image=np.roll(HOME, 1))
    wrong: list[tuple[dict[str, Result], dict[str, Any], type[Exception], str]] = [
        ({"plain": plain, "broken": broken}, {}, NumericalError, "broken, i2t: R@5 of query 7 is nan"),
        ({"plain": plain, "old": old}, {}, StorageError, "old has no values per query.*evaluate it again"),
        ({"plain": plain, "other": other}, {}, UsageError, "no measure in common"),
        ({"plain": plain, "other": folds}, {}, MismatchError, r"protocol full and folds\(2\)"),
        ({"plain": plain, "other": ties}, {}, MismatchError, "tie rule expected and optimistic"),
        ({"plain": plain, "other": named}, {}, MismatchError, "dataset not said and coco"),
        ({"plain": plain, "more": larger}, {}, MismatchError, r"per image \(5, 5\) and \(5, 6\)"),
        ({"plain": plain, "moved": moved}, {}, MismatchError, "text 0 belongs to image 0 and 79"),
        ({"plain": plain}, {}, UsageError, "1 runs: at least two"),
        (runs, {"baseline": 3}, UsageError, "baseline 3 of 3 runs"),
        (runs, {"baseline": "pain"}, UnknownNameError, "unknown baseline 'pain'.*did you mean 'plain'"),
        (runs, {"test": "z"}, UnknownNameError, "unknown test 'z'"),
        (runs, {"correction": "sidak"}, UnknownNameError, "unknown correction 'sidak'"),
        (runs, {"measures": ["MRR"]}, UsageError, "plain was not evaluated by MRR.*--measure MRR"),
        (runs, {"flips": 0}, UsageError, "flips are 0"),
    ]
    for given, options, error, message in wrong:
        refused(error, message, compare, given, **options)
    refused(UsageError, "no results", spread_over_seeds, [])
