from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.core.errors import DataError, NumericalError, UnknownNameError, UsageError
from diptych.evaluation.drops import Drop, Paired, drops, drops_line
from diptych.metrics.bootstrap import Bootstrap, drawn_clusters

CLUSTER = np.array([7, 7, 8, 8, 9, 9])


def paired(clean: Sequence[float], *perturbed: Sequence[float], cluster: np.ndarray = CLUSTER) -> Paired:
    return Paired("typos", "R@1", np.array(clean), np.array(perturbed), cluster)


def test_three_pictures_by_hand() -> None:
    """Swapping pictures: what they add is (−2, −1, 0)/6; 4 of 8 assignments add as much: p = 1/2."""
    (drop,) = drops([paired([1, 1, 1, 0, 1, 0], [0, 0, 0, 0, 1, 0])])
    assert (drop.condition, drop.measure) == ("typos", "R@1")
    assert drop.clean == pytest.approx(4 / 6)
    assert drop.perturbed == pytest.approx(1 / 6)
    assert drop.difference == pytest.approx(-1 / 2)
    assert drop.relative == pytest.approx(-3 / 4)
    assert drop.p == drop.corrected == 4 / 8
    assert (drop.spread, drop.verdict) == (None, "")
    # Resamples hold each picture 0 to 3 times; the ends are the extremes: all of 7, all of 9.
    assert (drop.low, drop.high) == (-1, 0)
    assert (drop.relative_low, drop.relative_high) == (-1, 0)


def test_equal_values_differ_by_nothing() -> None:
    """Also where a mean of three like numbers is not that number."""
    clean = [0.1, 0.7, 0.3, 0.2, 0.9, 0.6]
    (drop,) = drops([paired(clean, clean, clean, clean)])
    assert (drop.difference, drop.low, drop.high, drop.p, drop.corrected) == (0, 0, 0, 1, 1)
    assert (drop.relative, drop.relative_low, drop.relative_high) == (0, 0, 0)
    assert drop.perturbed == drop.clean
    assert (drop.spread, drop.verdict) == (0, "")


def test_seeds_are_averaged_query_by_query() -> None:
    clean, one, other = [1, 1, 1, 1, 1, 0], [0, 1, 1, 1, 1, 0], [1, 1, 0, 0, 1, 0]
    (drop,) = drops([paired(clean, one, other)], seed=3)
    means = [float(np.mean(one)), float(np.mean(other))]
    assert drop.perturbed == pytest.approx(np.mean(means))
    assert drop.spread == pytest.approx((4 / 6 - 3 / 6) / 2**0.5)
    mean: list[float] = np.mean([one, other], axis=0).tolist()
    (alone,) = drops([paired(clean, mean)], seed=3)
    assert (drop.difference, drop.low, drop.high) == (alone.difference, alone.low, alone.high)
    assert drop.p == alone.p


def test_queries_that_are_not_asked_are_left_out_of_both() -> None:
    nan = float("nan")
    whole = paired([1, nan, 1, 0, nan, nan], [0, 1, nan, 0, 5, nan])
    with pytest.raises(
        NumericalError, match=r"typos, R@1: query 2 is 1 clean and \[nan\] changed, 1 queries"
    ):
        drops([whole])
    (drop,) = drops([paired([1, nan, 1, 0, nan, nan], [0, 1, 0, 0, 5, nan])])
    (left,) = drops([paired([1, 1, 0], [0, 0, 0], cluster=np.array([7, 8, 8]))])
    assert drop == left


def test_nothing_relative_to_nothing() -> None:
    (drop,) = drops([paired([0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0])])
    assert (drop.relative, drop.relative_low, drop.relative_high) == (None, None, None)
    assert drop.difference == pytest.approx(1 / 3)
    assert drop.low is not None


def test_resamples_without_a_clean_hit_have_no_ratio() -> None:
    """One picture in three is found clean and lost: every ratio that there is, is −1."""
    (drop,) = drops([paired([1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0])])
    assert (drop.low, drop.high) == (pytest.approx(-1), 0)
    assert (drop.relative_low, drop.relative_high) == (-1, -1)


def slowly(pair: Paired, samples: int, seed: int, known: list[int]) -> tuple[list[float], list[float], float]:
    """Every resample and every swap by loops over queries."""
    asked = [row for row, value in enumerate(pair.clean) if value == value]
    absolute, relative = [], []
    for weights in np.concatenate(list(drawn_clusters(Bootstrap(samples, 0.95, seed), 0, len(known), 1))):
        clean = changed = count = 0.0
        for row in asked:
            times = weights[known.index(pair.cluster[row])]
            clean += times * pair.clean[row]
            changed += times * np.mean(pair.perturbed[:, row])
            count += times
        if count:
            absolute.append(changed / count - clean / count)
            if clean > 1e-12:
                relative.append((changed - clean) / clean)
    adds = [
        sum(np.mean(pair.perturbed[:, row]) - pair.clean[row] for row in asked if pair.cluster[row] == one)
        for one in known
    ]
    swaps = [abs(np.dot(signs, adds)) for signs in itertools.product([1, -1], repeat=len(known))]
    return absolute, relative, float(np.mean(np.array(swaps) >= abs(sum(adds)) - 1e-9))


VALUES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.one_of(VALUES, st.just(float("nan"))), VALUES, VALUES, st.integers(0, 5)),
        min_size=1,
        max_size=12,
    ),
    seed=st.integers(0, 3),
)
def test_against_loops(rows: list[tuple[float, float, float, int]], seed: int) -> None:
    if all(row[0] != row[0] for row in rows):
        rows = [(1.0, *rows[0][1:]), *rows[1:]]
    clean, one, other, home = (np.array(column) for column in zip(*rows, strict=True))
    pair = Paired("a", "m", clean, np.stack([one, other]), home)
    (drop,) = drops([pair], samples=50, seed=seed)
    known = sorted({int(home[row]) for row in range(len(rows)) if clean[row] == clean[row]})
    absolute, relative, p = slowly(pair, 50, seed, known)
    assert (drop.low, drop.high) == pytest.approx(tuple(np.quantile(absolute, [0.025, 0.975])))
    if drop.relative is not None and relative:
        ends = tuple(np.quantile(relative, [0.025, 0.975]))
        assert (drop.relative_low, drop.relative_high) == pytest.approx(ends)
    assert drop.p == pytest.approx(p)


def many() -> list[Paired]:
    random = np.random.default_rng(5)
    cluster = np.repeat(np.arange(80), 5)
    clean = (random.random(400) < 0.6).astype(float)
    losses = {"a": 0.3, "b": 0.02, "same": 0.0}
    return [
        Paired(name, "R@1", clean, np.where(random.random((2, 400)) < share, 0, clean), cluster)
        for name, share in losses.items()
    ]


def test_holm_over_all_that_are_given() -> None:
    first, second, same = drops(many())
    assert first.p == pytest.approx(1 / 10_001)
    assert first.corrected == pytest.approx(3 * first.p)
    assert second.corrected == pytest.approx(2 * second.p)
    assert first.verdict == "worse"
    assert (same.p, same.corrected, same.verdict) == (1, 1, "")
    for name, factor in (("bonferroni", 3), ("none", 1)):
        others = drops(many(), correction=name)
        assert [one.corrected for one in others] == pytest.approx(
            [min(1, factor * one.p) for one in (first, second, same)]
        )


def test_the_same_draws_for_all_conditions() -> None:
    """A pair's own numbers do not hang on the pairs beside it; only the correction does."""
    together = drops(many(), correction="none")
    assert together == [drops([pair], correction="none")[0] for pair in many()]
    assert drops(many(), seed=1) != drops(many(), seed=2)
    assert drops(many(), seed=1) == drops(many(), seed=1)


def test_ranks_are_better_when_smaller() -> None:
    (pair, *_) = many()
    swapped = Paired("a", "meanr", -pair.clean, -pair.perturbed, pair.cluster, less_is_better=True)
    drop = drops([swapped])[0]
    assert drop.difference > 0
    assert drop.verdict == "worse"
    gain = Paired("a", "R@1", pair.perturbed[0], pair.clean, pair.cluster)
    assert drops([gain])[0].verdict == "better"


def test_without_resamples_there_are_no_intervals() -> None:
    drop = drops(many(), samples=0)[0]
    assert (drop.low, drop.high, drop.relative_low, drop.relative_high) == (None, None, None, None)
    assert drop.relative is not None
    assert drops([]) == []


def test_intervals_are_of_pictures_not_of_captions() -> None:
    random = np.random.default_rng(1)
    clean = np.repeat(random.random(60) < 0.7, 5).astype(float)
    perturbed = np.repeat(random.random(60) < 0.5, 5).astype(float)
    per_picture, per_caption = (
        drops([Paired("a", "R@1", clean, perturbed, cluster)])[0]
        for cluster in (np.repeat(np.arange(60), 5), np.arange(300))
    )
    assert width(per_picture) > 1.8 * width(per_caption)
    assert per_picture.p > per_caption.p


def width(drop: Drop) -> float:
    assert drop.low is not None
    assert drop.high is not None
    return drop.high - drop.low


def test_the_line_says_how() -> None:
    assert drops_line(12, correction="none", samples=0) == (
        "differences to the clean queries, paired by query; p of 10,000 random swaps per picture, two-sided"
    )
    said = drops_line(600)
    assert (
        "95 % intervals (not corrected) from 1,000 resamples of pictures with their captions, seed 0" in said
    )
    assert "Holm over 600 comparisons, two-sided" in said
    assert "10,000 swaps cannot reach 0.05 after the correction: raise flips" in said
    assert "cannot reach" not in drops_line(400)


def test_bad_input() -> None:
    zeros = [0.0] * 6
    with pytest.raises(UnknownNameError, match="unknown correction 'sidak'"):
        drops([], correction="sidak")
    with pytest.raises(UsageError, match="flips are 0"):
        drops([], flips=0)
    with pytest.raises(UsageError, match="samples are -1"):
        drops([], samples=-1)
    with pytest.raises(DataError, match=r"typos, R@1: values of shape \(6,\) clean and \(1, 5\) changed"):
        drops([paired(zeros, zeros[:5])])
    with pytest.raises(DataError, match=r"6 queries, \(3,\) clusters, 1 seeds"):
        drops([paired(zeros, zeros, cluster=np.arange(3))])
    with pytest.raises(DataError, match=r"6 queries, \(6,\) clusters, 0 seeds"):
        drops([Paired("typos", "R@1", np.array(zeros), np.empty((0, 6)), CLUSTER)])
    with pytest.raises(DataError, match="none of 2 queries is asked"):
        drops([paired([np.nan, np.nan], [0, 0], cluster=np.arange(2))])
    with pytest.raises(DataError, match="none of 0 queries is asked"):
        drops([paired([], [], cluster=np.arange(0))])
    with pytest.raises(NumericalError, match="query 0 is inf clean"):
        drops([paired([np.inf, *zeros[1:]], zeros)])
