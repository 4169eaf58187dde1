"""Drops of one model and differences of two models' drops, against loops over queries and by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy import stats

from diptych.core.errors import (
    DataError,
    MismatchError,
    NumericalError,
    StorageError,
    UnknownNameError,
    UsageError,
)
from diptych.evaluation import Result, compare, evaluate
from diptych.evaluation.drops import Paired, drop_differences, drops
from diptych.metrics import GroundTruth
from diptych.metrics.bootstrap import Bootstrap, drawn_clusters
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


def gaps(one: Result, other: Result, way: str, name: str) -> np.ndarray:
    """Differences of an image's mean values."""
    return (one.per_query[way][name] - other.per_query[way][name]).reshape(N, -1).mean(axis=1)


def test_difference_interval_and_p(runs: dict[str, Result]) -> None:
    found, (plain, worse, again) = compare(runs, flips=2_000), runs.values()
    for way in ("i2t", "t2i"):
        one = found.difference("worse", "R@5", way)
        assert one.difference == pytest.approx(worse.value("R@5", way) - plain.value("R@5", way))
        assert one.low < one.difference < one.high < 0
        assert one.p_t == pytest.approx(stats.ttest_1samp(gaps(worse, plain, way, "R@5"), 0).pvalue, rel=1e-9)
        assert one.verdict == "worse"
    rank, total = found.difference("worse", "meanr", "t2i"), found.difference("worse", "rsum")
    assert rank.difference > 0  # a larger rank
    assert total.difference == pytest.approx(worse.value("rsum") - plain.value("rsum"))
    assert (rank.verdict, total.verdict) == ("worse", "worse")
    assert found.difference("again", "R@5", "t2i").verdict == ""
    # rsum is tested by image over both directions.
    one = compare({"plain": plain, "again": again}, ["rsum"]).difference("again", "rsum")
    sides = product(("R@1", "R@5", "R@10"), ("i2t", "t2i"))
    gap = sum(100 * gaps(again, plain, way, name) for name, way in sides)
    assert one.difference == pytest.approx(gap.mean())
    assert one.p_t == pytest.approx(stats.ttest_1samp(gap, 0).pvalue, rel=1e-9)
    assert one.p_randomisation == pytest.approx(one.p_t, abs=0.03)
    error = gap.std(ddof=1) / np.sqrt(N)
    ends = (gap.mean() - 1.96 * error, gap.mean() + 1.96 * error)
    assert (one.low, one.high) == pytest.approx(ends, abs=0.4 * error)


def test_bonferroni_counts_every_tested_comparison(runs: dict[str, Result]) -> None:
    corrected, plain, holm = (compare(runs, test="t", correction=by) for by in ("bonferroni", "none", "holm"))
    # Six measures in two directions but for medr, and rsum, for two runs: (5 × 2 + 1) × 2.
    assert corrected.tested == 22
    assert "Bonferroni over 22 comparisons" in corrected.line()
    assert "Holm over 22 comparisons" in holm.line()
    raws = [one.p_t for one in plain.differences]
    assert [one.p for one in plain.differences] == raws
    assert [one.p for one in holm.differences] == correct(raws, "holm")
    assert [one.p for one in corrected.differences] == [None if p is None else min(1.0, 22 * p) for p in raws]
    medians = [one for one in corrected.differences if one.measure == "medr"]
    assert [one.p is None and one.low is not None for one in medians] == [True] * 4
    assert "100 swaps cannot reach 0.05" in compare(runs, flips=100).line()
    assert "cannot reach" not in corrected.line()


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
    many, worse = [run(2.0, seed) for seed in (1, 3, 5)], runs["worse"]
    found = compare({"plain": many, "worse": worse}, flips=200)
    values = [one.value("R@1", "t2i") for one in many]
    spread = found.values["t2i", "R@1"]["plain"]
    assert spread.values == tuple(values)
    moments = (np.mean(values), np.std(values, ddof=1), np.std(values))
    assert (spread.mean, spread.sd, spread.population_sd) == pytest.approx(moments)
    assert found.values["t2i", "R@1"]["worse"].sd is None
    one = found.difference("worse", "R@1", "t2i")
    assert one.difference == pytest.approx(worse.value("R@1", "t2i") - np.mean(values))
    per_image = np.mean([gaps(worse, seed, "t2i", "R@1") for seed in many], axis=0)
    assert one.p_t == pytest.approx(stats.ttest_1samp(per_image, 0).pvalue)
    medians = [seed.value("medr", "i2t") for seed in many]
    gap = found.difference("worse", "medr", "i2t").difference
    assert gap == pytest.approx(worse.value("medr", "i2t") - np.mean(medians))
    assert "say nothing of other seeds" in found.line()
    assert found.values["both", "rsum"]["plain"].mean == pytest.approx(np.mean([one.rsum for one in many]))


def test_only_evaluated_queries_are_compared() -> None:
    pairs = (HOME, np.arange(5 * N))
    truth = GroundTruth.from_directions(
        pairs, pairs, N, 5 * N, text_image=HOME, evaluated={"t2i": np.arange(0, 5 * N, 2)}
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
    plain, zeros = runs["plain"], np.zeros((N, 5 * N))
    values = plain.per_query["i2t"]["R@5"].copy()
    values[7] = np.nan
    per_query = {**plain.per_query, "i2t": {**plain.per_query["i2t"], "R@5": values}}
    more = GroundTruth.from_pairs(np.r_[HOME, 0], np.r_[np.arange(5 * N), 399], N, 5 * N, text_image=HOME)
    for error, message, other in (
        (NumericalError, "other, i2t: R@5 of query 7 is nan", replace(plain, per_query=per_query)),
        (StorageError, "other has no values per query.*evaluate it again", replace(plain, text_image=None)),
        (UsageError, "no measure in common", evaluate(zeros, None, TRUTH, ("MRR",))),
        (MismatchError, r"protocol full and folds\(2\)", run(2.0, 1, protocol="folds(2)")),
        (MismatchError, "tie rule expected and optimistic", run(2.0, 1, ties="optimistic")),
        (MismatchError, "dataset missing and coco", run(2.0, 1, about={"dataset": "coco"})),
        (MismatchError, r"per image \(5, 5\) and \(5, 6\)", evaluate(zeros, None, more, MEASURES)),
        (MismatchError, "text 0 belongs to image 0 and 79", replace(plain, text_image=np.roll(HOME, 1))),
    ):
        refused(error, message, compare, {"plain": plain, "other": other})
    refused(UsageError, "1 runs: at least two", compare, {"plain": plain})
    for options, kind, message in (
        ({"baseline": 3}, UsageError, "baseline 3 of 3 runs"),
        ({"baseline": "pain"}, UnknownNameError, "unknown baseline 'pain'.*did you mean 'plain'"),
        ({"test": "z"}, UnknownNameError, "unknown test 'z'"),
        ({"correction": "sidak"}, UnknownNameError, "unknown correction 'sidak'"),
        ({"measures": ["MRR"]}, UsageError, "plain was not evaluated by MRR.*--measure MRR"),
        ({"flips": 0}, UsageError, "flips are 0"),
    ):
        refused(kind, message, compare, runs, **options)
    refused(UnknownNameError, "unknown correction 'sidak'", drops, [], correction="sidak")
    refused(UsageError, "samples are -1", drops, [], samples=-1)
    nothing = paired([NAN] * 2, [0] * 2, cluster=[0, 1])
    refused(DataError, "none of 2 queries is evaluated", drops, [nothing])


CLUSTER = np.array([7, 7, 8, 8, 9, 9])
NAN = float("nan")


def paired(clean: Sequence[float], *perturbed: Sequence[float], cluster: Any = CLUSTER) -> Paired:
    return Paired("typos", "R@1", np.array(clean), np.array(perturbed), np.asarray(cluster))


NOTHING = (0, 0, 0, 1)


def test_equal_values_differ_by_nothing() -> None:
    """Also where a mean of three like numbers is not that number, and 0.3 − 0.2 in binary not 0.2 − 0.1."""
    clean = [0.1, 0.7, 0.3, 0.2, 0.9, 0.6]
    (drop,) = drops([paired(clean, clean, clean, clean)])
    assert (drop.perturbed, drop.spread, drop.verdict) == (drop.clean, 0, "")
    one = paired(clean, [0.2, 0.1, 0.3, 0.1, 0.3, 0.7], [0.1, 0.1, 0.9, 0.3, 0.2, 0.5])
    (same,) = drop_differences([(one, paired(clean, *one.perturbed.tolist()))])
    for found in (drop, same):
        assert (found.difference, found.low, found.high, found.p, found.corrected) == (*NOTHING, 1)
        assert (found.relative, found.relative_low, found.relative_high) == (0, 0, 0)
    (found,) = drop_differences([(paired([0.3] * 6, [0.2] * 6), paired([0.2] * 6, [0.1] * 6))])
    assert (found.difference, found.low, found.high, found.p) == NOTHING
    assert found.relative == pytest.approx(-1 / 2 + 1 / 3)
    assert found.relative_high < 0
    # Without a clean hit there is no ratio.
    (drop,) = drops([paired([0] * 6, [0, 0, 1, 1, 0, 0])])
    assert (drop.relative, drop.relative_low, drop.relative_high) == (None, None, None)
    assert drop.difference == pytest.approx(1 / 3)
    assert drop.low is not None
    # One image in three is found clean and lost: every ratio that there is, is −1.
    (drop,) = drops([paired([1, 1, 0, 0, 0, 0], [0] * 6)])
    assert (drop.low, drop.high, drop.relative_low, drop.relative_high) == (pytest.approx(-1), 0, -1, -1)
    (found,) = drop_differences([(paired([0] * 6, [1] * 6), paired([1] * 6, [1] * 6))])
    assert (found.first.relative, found.relative, found.relative_low) == (None, None, None)
    assert found.difference == -1


def slowly(pairs: Sequence[Paired], samples: int, seed: int) -> tuple[list[float], list[float], float]:
    """The values, then every resample and every swap, of one drop or of the second's less the first's."""
    signs = [1] if len(pairs) == 1 else [-1, 1]
    asked = ~np.isnan(pairs[0].clean)
    cluster = pairs[0].cluster[asked].tolist()
    known = sorted(set(cluster))
    clean = np.array([pair.clean[asked] for pair in pairs])
    lost = np.array([pair.perturbed[:, asked].mean(axis=0) for pair in pairs]) - clean
    absolute, relative = [], []
    whole = np.ones((1, len(known)))
    for weights in np.concatenate([whole, *drawn_clusters(Bootstrap(samples, 0.95, seed), 0, len(known), 1)]):
        times = np.array([weights[known.index(one)] for one in cluster])
        if not times.sum():
            continue
        absolute.append(float(np.dot(signs, lost @ times) / times.sum()))
        if np.all(clean @ times > 1e-12):
            relative.append(float(np.dot(signs, (lost @ times) / (clean @ times))))
    adds = [np.dot(signs, lost[:, np.array(cluster) == one].sum(axis=1)) for one in known]
    swaps = [abs(np.dot(flips, adds)) for flips in itertools.product([1, -1], repeat=len(known))]
    return absolute, relative, float(np.mean(np.array(swaps) >= abs(sum(adds)) - 1e-9))


VALUES = st.sampled_from([0.0, 0.25, 0.5, 1.0])
ROWS = st.lists(st.tuples(st.booleans(), *[VALUES] * 6, st.integers(0, 5)), min_size=1, max_size=12)


def models(rows: list[tuple[Any, ...]]) -> tuple[Paired, Paired]:
    """Two models with two seeds each, of which the queries after the first may not be asked."""
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    there = columns[0] | (np.arange(len(rows)) == 0)
    return tuple(  # type: ignore[return-value]
        Paired("a", "m", np.where(there, columns[at], np.nan), np.stack(columns[at + 1 : at + 3]), columns[7])
        for at in (1, 4)
    )


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, seed=st.integers(0, 3))
def test_against_loops(rows: list[tuple[Any, ...]], seed: int) -> None:
    both = models(rows)
    own = drops(both, samples=50, seed=seed)
    (difference,) = drop_differences([both], samples=50, seed=seed)
    for found, pairs in ((own[0], both[:1]), (own[1], both[1:]), (difference, both)):
        (there, *absolute), relative, p = slowly(pairs, 50, seed)
        assert found.difference == pytest.approx(there, abs=1e-12)
        if found.relative is not None:
            assert found.relative == pytest.approx(relative.pop(0), abs=1e-12)
        assert (found.low, found.high) == pytest.approx(tuple(np.quantile(absolute, [0.025, 0.975])))
        if found.relative is not None and relative:
            ends = tuple(np.quantile(relative, [0.025, 0.975]))
            assert (found.relative_low, found.relative_high) == pytest.approx(ends, abs=1e-12)
        assert found.p == pytest.approx(p)
    for one, drop in zip((difference.first, difference.second), own, strict=True):
        assert (one.clean, one.difference, one.relative) == (drop.clean, drop.difference, drop.relative)


@settings(max_examples=40, deadline=None)
@given(rows=ROWS)
def test_the_other_way_round_every_sign_turns(rows: list[tuple[Any, ...]]) -> None:
    first, second = models(rows)
    (there,), (back,) = (drop_differences([pair], samples=40) for pair in ((first, second), (second, first)))
    assert (back.first, back.second, back.p) == (there.second, there.first, there.p)
    pairs = {"difference": "difference", "low": "high", "high": "low", "relative": "relative"}
    for name, other in (*pairs.items(), ("relative_low", "relative_high")):
        value, turned = getattr(there, name), getattr(back, other)
        assert (turned is None) if value is None else (turned == pytest.approx(-value)), name
    opposite = {"more robust": "less robust", "less robust": "more robust", "": ""}
    assert back.verdict == opposite[there.verdict]


def many(*shares: float) -> list[Paired]:
    """One model that loses such shares of its hits under ``a``, ``b`` and ``same``."""
    random = np.random.default_rng(5)
    cluster = np.repeat(np.arange(80), 5)
    clean = (random.random(400) < 0.6).astype(float)
    return [
        Paired(name, "R@1", clean, np.where(random.random((2, 400)) < share, 0, clean), cluster)
        for name, share in zip(("a", "b", "same"), shares, strict=True)
    ]


ONE = many(0.3, 0.02, 0.0)
TWO = list(zip(many(0.5, 0.2, 0.0), many(0.1, 0.19, 0.0), strict=True))


def test_holm_over_all_that_are_given() -> None:
    first, second, same = drops(ONE)
    assert first.p == pytest.approx(1 / 10_001)
    assert (first.corrected, second.corrected) == pytest.approx((3 * first.p, 2 * second.p))
    assert (first.verdict, same.p, same.corrected, same.verdict) == ("worse", 1, 1, "")
    for name, factor in (("bonferroni", 3), ("none", 1)):
        others = drops(ONE, correction=name)
        assert [one.corrected for one in others] == pytest.approx(
            [min(1, factor * one.p) for one in (first, second, same)]
        )
    more, less, none = drop_differences(TWO)
    assert more.p == pytest.approx(1 / 10_001)
    assert (more.corrected, less.corrected) == pytest.approx((3 * more.p, min(1, 2 * less.p)))
    assert (more.verdict, less.verdict) == ("more robust", "")
    assert (none.difference, none.relative, none.p, none.corrected, none.verdict) == (0, 0, 1, 1, "")
    assert drop_differences(TWO, correction="bonferroni")[0].corrected == pytest.approx(3 * more.p)
