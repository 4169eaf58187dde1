from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.core.errors import DataError, NumericalError, UnknownNameError, UsageError
from diptych.evaluation.drops import Paired, drop_differences, drops, drops_line
from diptych.metrics.bootstrap import Bootstrap, drawn_clusters

CLUSTER = np.array([7, 7, 8, 8, 9, 9])


def paired(clean: Sequence[float], *perturbed: Sequence[float], **how: Any) -> Paired:
    return Paired("typos", "R@1", np.array(clean), np.array(perturbed), how.pop("cluster", CLUSTER), **how)


def test_three_pictures_by_hand() -> None:
    """The first loses three of four hits, the second one of five: drops −3/6 and −1/6, difference +2/6.

    What pictures add to it is (2, 1, −1)/6, so 2 of 8 assignments of signs add up to 4, 2 to 2, and so on:
    |±2 ±1 ±1| is at least 2 for 6 of 8.
    """
    first = paired([1, 1, 1, 0, 1, 0], [0, 0, 0, 0, 1, 0])
    second = paired([1, 1, 1, 0, 1, 1], [1, 1, 1, 0, 0, 1])
    (found,) = drop_differences([(first, second)])
    assert (found.condition, found.measure) == ("typos", "R@1")
    assert (found.first.clean, found.second.clean) == (pytest.approx(4 / 6), pytest.approx(5 / 6))
    assert (found.first.difference, found.second.difference) == (pytest.approx(-1 / 2), pytest.approx(-1 / 6))
    assert (found.first.relative, found.second.relative) == (pytest.approx(-3 / 4), pytest.approx(-1 / 5))
    assert found.difference == pytest.approx(2 / 6)
    assert found.relative == pytest.approx(-1 / 5 + 3 / 4)
    assert found.p == found.corrected == 6 / 8
    assert found.verdict == ""
    # Resamples hold each picture 0 to 3 times; the extremes are all of 7 and all of 9.
    assert (found.low, found.high) == (-1 / 2, 1)
    assert (found.relative_low, found.relative_high) == (-1 / 2, 1)


def test_a_model_against_itself_differs_by_nothing() -> None:
    clean = [0.1, 0.7, 0.3, 0.2, 0.9, 0.6]
    one = paired(clean, [0.2, 0.1, 0.3, 0.1, 0.3, 0.7], [0.1, 0.1, 0.9, 0.3, 0.2, 0.5])
    again = paired(clean, *one.perturbed.tolist())
    (found,) = drop_differences([(one, again)])
    assert found.first == found.second
    assert (found.difference, found.low, found.high, found.p, found.corrected) == (0, 0, 0, 1, 1)
    assert (found.relative, found.relative_low, found.relative_high) == (0, 0, 0)
    assert found.verdict == ""


def test_equal_drops_from_other_heights_differ_by_nothing() -> None:
    """In binary 0.3 − 0.2 and 0.2 − 0.1 are not equal; relative to what there was, they are not at all."""
    first, second = paired([0.3] * 6, [0.2] * 6), paired([0.2] * 6, [0.1] * 6)
    (found,) = drop_differences([(first, second)])
    assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1)
    assert found.relative == pytest.approx(-1 / 2 + 1 / 3)
    assert found.relative_high is not None
    assert found.relative_high < 0


def test_absolute_and_relative_may_point_to_different_models() -> None:
    """The second loses 20 of 80 where the first loses 10 of 20."""
    cluster = np.arange(100)
    first = paired([1.0] * 20 + [0.0] * 80, [1.0] * 10 + [0.0] * 90, cluster=cluster)
    second = paired([1.0] * 80 + [0.0] * 20, [1.0] * 60 + [0.0] * 40, cluster=cluster)
    (found,) = drop_differences([(first, second)], correction="none")
    assert found.difference == pytest.approx(-0.1)
    assert found.relative == pytest.approx(0.25)


def slowly(
    first: Paired, second: Paired, samples: int, seed: int, known: list[int]
) -> tuple[list[float], list[float], float]:
    """Every resample and every swap by loops over queries."""
    absolute, relative = [], []
    for weights in np.concatenate(list(drawn_clusters(Bootstrap(samples, 0.95, seed), 0, len(known), 1))):
        sums = np.zeros((2, 2))
        count = 0.0
        for row, value in enumerate(first.clean):
            if value != value:
                continue
            times = weights[known.index(int(first.cluster[row]))]
            count += times
            for number, pair in enumerate((first, second)):
                sums[number] += times * np.array([pair.clean[row], np.mean(pair.perturbed[:, row])])
        if count:
            drop = (sums[:, 1] - sums[:, 0]) / count
            absolute.append(float(drop[1] - drop[0]))
            if np.all(sums[:, 0] > 1e-12):
                share = (sums[:, 1] - sums[:, 0]) / sums[:, 0]
                relative.append(float(share[1] - share[0]))
    adds = [
        sum(
            (np.mean(second.perturbed[:, row]) - second.clean[row])
            - (np.mean(first.perturbed[:, row]) - first.clean[row])
            for row in range(len(first.clean))
            if first.cluster[row] == one and first.clean[row] == first.clean[row]
        )
        for one in known
    ]
    swaps = [abs(np.dot(signs, adds)) for signs in itertools.product([1, -1], repeat=len(known))]
    return absolute, relative, float(np.mean(np.array(swaps) >= abs(sum(adds)) - 1e-9))


VALUES = st.sampled_from([0.0, 0.25, 0.5, 1.0])
ROWS = st.lists(
    st.tuples(st.booleans(), *[VALUES] * 6, st.integers(0, 5)),
    min_size=1,
    max_size=12,
)


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
    first, second = models(rows)
    (found,) = drop_differences([(first, second)], samples=50, seed=seed)
    asked = ~np.isnan(first.clean)
    known = sorted(set(first.cluster[asked].tolist()))
    absolute, relative, p = slowly(first, second, 50, seed, known)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(absolute, [0.025, 0.975])))
    if found.relative is not None and relative:
        ends = tuple(np.quantile(relative, [0.025, 0.975]))
        assert (found.relative_low, found.relative_high) == pytest.approx(ends, abs=1e-12)
    assert found.p == pytest.approx(p)
    alone = drops([first, second], samples=0, flips=9)
    for own, drop in zip((found.first, found.second), alone, strict=True):
        assert (own.clean, own.difference, own.relative) == (drop.clean, drop.difference, drop.relative)


@settings(max_examples=40, deadline=None)
@given(rows=ROWS)
def test_the_other_way_round_every_sign_turns(rows: list[tuple[Any, ...]]) -> None:
    first, second = models(rows)
    (there,), (back,) = (drop_differences([pair], samples=40) for pair in ((first, second), (second, first)))
    assert (back.first, back.second) == (there.second, there.first)
    assert back.difference == -there.difference
    assert back.p == there.p
    assert (back.low, back.high) == pytest.approx(turned(there.low, there.high))
    assert (back.relative is None) == (there.relative is None)
    if there.relative is not None and back.relative is not None:
        assert back.relative == -there.relative
        ends = turned(there.relative_low, there.relative_high)
        assert (back.relative_low, back.relative_high) == pytest.approx(ends)
    opposite = {"more robust": "less robust", "less robust": "more robust", "": ""}
    assert back.verdict == opposite[there.verdict]


def turned(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    return None if high is None else -high, None if low is None else -low


def many() -> list[tuple[Paired, Paired]]:
    """The second loses less under ``a``, a little more under ``b``, and as much under ``same``."""
    random = np.random.default_rng(5)
    cluster = np.repeat(np.arange(80), 5)
    clean = (random.random((2, 400)) < 0.6).astype(float)

    def lost(model: int, share: float) -> np.ndarray:
        return np.where(random.random((2, 400)) < share, 0, clean[model])

    made = []
    for name, shares in {"a": (0.5, 0.1), "b": (0.2, 0.22), "same": (0.0, 0.0)}.items():
        one, other = (Paired(name, "R@1", clean[row], lost(row, shares[row]), cluster) for row in (0, 1))
        made.append((one, other))
    return made


def test_holm_over_all_that_are_given() -> None:
    first, second, same = drop_differences(many())
    assert first.p == pytest.approx(1 / 10_001)
    assert first.corrected == pytest.approx(3 * first.p)
    assert second.corrected == pytest.approx(min(1, 2 * second.p))
    assert (first.verdict, second.verdict) == ("more robust", "")
    assert (same.difference, same.relative, same.p, same.corrected, same.verdict) == (0, 0, 1, 1, "")
    (one, *_) = drop_differences(many(), correction="bonferroni")
    assert one.corrected == pytest.approx(3 * one.p)


def test_ranks_are_better_when_smaller() -> None:
    (first, second), *_ = many()
    ranks = tuple(
        Paired("a", "meanr", -one.clean, -one.perturbed, one.cluster, less_is_better=True)
        for one in (first, second)
    )
    (found,) = drop_differences([ranks])  # type: ignore[list-item]
    assert found.difference < 0
    assert found.verdict == "more robust"


def test_without_resamples_and_without_clean_hits() -> None:
    found = drop_differences(many(), samples=0)[0]
    assert (found.low, found.high, found.relative_low, found.relative_high) == (None, None, None, None)
    assert found.relative is not None
    (found,) = drop_differences([(paired([0] * 6, [1] * 6), paired([1] * 6, [1] * 6))])
    assert (found.first.relative, found.relative, found.relative_low) == (None, None, None)
    assert found.difference == -1
    assert drop_differences([]) == []


def test_the_line_says_what_is_tested() -> None:
    said = drops_line(6, what="differences of two models' drops")
    assert said.startswith("differences of two models' drops, paired by query; 95 % intervals")
    assert "Holm over 6 comparisons" in said


def test_bad_input() -> None:
    zeros = [0.0] * 6
    one = paired(zeros, zeros)
    with pytest.raises(UnknownNameError, match="unknown correction 'sidak'"):
        drop_differences([], correction="sidak")
    with pytest.raises(UsageError, match="flips are 0"):
        drop_differences([(one, one)], flips=0)
    with pytest.raises(
        DataError, match=r"'typos', 'R@1', False\) and \('typos', 'R@5', False\) are compared"
    ):
        drop_differences([(one, Paired("typos", "R@5", one.clean, one.perturbed, CLUSTER))])
    with pytest.raises(DataError, match="6 queries of 6 and 3 of 3 are not the same ones"):
        drop_differences([(one, paired(zeros[:3], zeros[:3], cluster=CLUSTER[:3]))])
    with pytest.raises(DataError, match="6 queries of 6 and 5 of 6 are not the same ones"):
        drop_differences([(one, paired([np.nan, *zeros[1:]], zeros))])
    with pytest.raises(DataError, match="6 queries of 6 and 6 of 6 are not the same ones"):
        drop_differences([(one, paired(zeros, zeros, cluster=CLUSTER[::-1]))])
    with pytest.raises(NumericalError, match="query 0 is inf clean"):
        drop_differences([(one, paired([np.inf, *zeros[1:]], zeros))])
