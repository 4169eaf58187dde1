"""Drops of one model and differences of two models' drops, against loops over queries and by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.evaluation.drops import Paired, drop_differences, drops
from diptych.metrics.bootstrap import Bootstrap, drawn_clusters

CLUSTER = np.array([7, 7, 8, 8, 9, 9])
NAN = float("nan")


def paired(clean: Sequence[float], *perturbed: Sequence[float], cluster: Any = CLUSTER) -> Paired:
    return Paired("typos", "R@1", np.array(clean), np.array(perturbed), np.asarray(cluster))


def test_equal_values_differ_by_nothing() -> None:
    """Also where a mean of three like numbers is not that number, and 0.3 − 0.2 in binary not 0.2 − 0.1."""
    clean = [0.1, 0.7, 0.3, 0.2, 0.9, 0.6]
    (drop,) = drops([paired(clean, clean, clean, clean)])
    assert drop.perturbed == drop.clean
    assert (drop.spread, drop.verdict) == (0, "")
    one = paired(clean, [0.2, 0.1, 0.3, 0.1, 0.3, 0.7], [0.1, 0.1, 0.9, 0.3, 0.2, 0.5])
    (same,) = drop_differences([(one, paired(clean, *one.perturbed.tolist()))])
    for found in (drop, same):
        assert (found.difference, found.low, found.high, found.p, found.corrected) == (0, 0, 0, 1, 1)
        assert (found.relative, found.relative_low, found.relative_high) == (0, 0, 0)
    (found,) = drop_differences([(paired([0.3] * 6, [0.2] * 6), paired([0.2] * 6, [0.1] * 6))])
    assert (found.difference, found.low, found.high, found.p) == (0, 0, 0, 1)
    assert found.relative == pytest.approx(-1 / 2 + 1 / 3)
    assert (found.relative_high or 0) < 0


def test_without_a_clean_hit_there_is_no_ratio() -> None:
    (drop,) = drops([paired([0] * 6, [0, 0, 1, 1, 0, 0])])
    assert (drop.relative, drop.relative_low, drop.relative_high) == (None, None, None)
    assert drop.difference == pytest.approx(1 / 3)
    assert drop.low is not None
    # One picture in three is found clean and lost: every ratio that there is, is −1.
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
    for name, other in (
        ("difference", "difference"),
        ("low", "high"),
        ("high", "low"),
        ("relative", "relative"),
        ("relative_low", "relative_high"),
    ):
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


def test_without_resamples_there_are_no_intervals() -> None:
    for found in (drops(ONE, samples=0)[0], drop_differences(TWO, samples=0)[0]):
        assert (found.low, found.high, found.relative_low, found.relative_high) == (None, None, None, None)
        assert found.relative is not None
    assert drops([]) == drop_differences([]) == []


def test_intervals_are_of_pictures_not_of_captions() -> None:
    random = np.random.default_rng(1)
    clean, changed = (np.repeat(random.random(60) < share, 5).astype(float) for share in (0.7, 0.5))
    wide, narrow = (
        drops([paired(clean, changed, cluster=cluster)])[0]  # type: ignore[arg-type]
        for cluster in (np.repeat(np.arange(60), 5), np.arange(300))
    )
    assert None not in (wide.low, wide.high, narrow.low, narrow.high)
    assert wide.high - wide.low > 1.8 * (narrow.high - narrow.low)  # type: ignore[operator]
    assert wide.p > narrow.p


def test_bad_input() -> None:
    zero = paired([0.0] * 6, [0.0] * 6)
    refused(UnknownNameError, "unknown correction 'sidak'", drops, [], correction="sidak")
    refused(UsageError, "flips are 0", drops, [], flips=0)
    refused(UsageError, "samples are -1", drops, [], samples=-1)
    refused(DataError, "none of 2 queries is asked", drops, [paired([NAN] * 2, [0] * 2, cluster=[0, 1])])
    refused(UnknownNameError, "unknown correction 'sidak'", drop_differences, [], correction="sidak")
    refused(UsageError, "flips are 0", drop_differences, [(zero, zero)], flips=0)
