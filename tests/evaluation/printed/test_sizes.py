"""Of how many queries printed shares can be shares."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import UsageError
from diptych.evaluation.printed import Printed, chance_of_size, names_of, possible_sizes

CLIP_FLICKR30K = (74.95, 93.09, 96.15, 77.02, 94.18, 96.84)
CLIP_CUB = (0.71, 2.38, 4.42, 1.23, 3.40, 5.48)
X_VLM_CUB = (0.70, 2.28, 2.45, 1.16, 2.35, 2.45)


def printed(values: tuple[float, ...], decimals: int = 2) -> list[Printed]:
    return [Printed(value, decimals) for value in values]


def sizes(values: tuple[float, ...], rule: str, most: int = 10_000) -> list[int]:
    return [one.n for one in possible_sizes(printed(values), rule, range(1, most)).sizes]


def test_of_how_many_queries_the_thesis_rows_are() -> None:
    """Tables 2.1, 2.2: CLIP's Flickr30k rows are of Karpathy's 1,014 validation images, cut off; its CUB rows of
    dev (2,938), rounded, and not of test (2,856); X-VLM's CUB rows are of test."""
    assert [n for n in sizes(CLIP_FLICKR30K, "truncate") if n < 2_000] == [1_014]
    assert [n for n in sizes(CLIP_FLICKR30K, "round") if n < 2_000] == []
    found = possible_sizes(printed(CLIP_FLICKR30K), "truncate")
    assert (found.known[0].n, found.known[0].known) == (1_014, ("images of Flickr30k val",))
    assert found.known[0].chance == pytest.approx((1_015 / 10_001) ** 6)
    assert sizes(CLIP_CUB, "round")[0] == 2_938
    assert 2_938 not in sizes(CLIP_CUB, "truncate")
    assert 2_856 not in sizes(CLIP_CUB, "round")
    assert 2_856 in sizes(X_VLM_CUB, "round")
    assert 2_938 not in sizes(X_VLM_CUB, "round")
    assert possible_sizes(printed(X_VLM_CUB)).distinct == 5  # 2.45 stands there twice


def test_small_hand_made_cases() -> None:
    """33 % of 3, of 6, of 9, ... and whatever else rounds to it, below 10: 1/3, 2/6, 3/9."""
    assert [one.n for one in possible_sizes([Printed(33, 0)], "round", range(1, 10)).sizes] == [3, 6, 9]
    # 66.6 is 2/3 cut off and nothing rounded.
    assert [one.n for one in possible_sizes([Printed(66.6, 1)], "truncate", [3]).sizes] == [3]
    assert possible_sizes([Printed(66.6, 1)], "round", [3]).sizes == ()
    assert names_of(1_014) == ("images of Flickr30k val",)
    assert len(names_of(1_000)) == 3
    assert names_of(999) == ()


@given(st.integers(1, 60), st.integers(0, 1_000), st.sampled_from(["round", "truncate"]))
def test_against_trying_every_count_of_hits(n: int, unit: int, rule: str) -> None:
    def prints(hits: int) -> set[int]:
        exact = Fraction(1_000 * hits, n)
        if rule == "truncate":
            return {int(exact)}
        half = Fraction(1, 2)
        return {math.floor(exact + half), math.ceil(exact - half)}  # a half up, a half down

    fits = any(unit in prints(hits) for hits in range(n + 1))
    assert bool(possible_sizes([Printed(unit / 10, 1)], rule, [n]).sizes) == fits


def test_chance_is_the_share_of_printable_values_that_n_makes() -> None:
    """With one decimal there are 1,001 values; 9 queries print 10 of them, whatever the rule."""
    assert chance_of_size(9, [Printed(11.1, 1)]) == pytest.approx(10 / 1001)
    reached = sum(
        bool(possible_sizes([Printed(unit / 10, 1)], "truncate", [9]).sizes) for unit in range(1001)
    )
    assert reached == 10
    assert chance_of_size(5_000, [Printed(11.1, 1)]) == 1.0


@pytest.mark.parametrize(
    ("values", "rule", "candidates", "message"),
    [
        ([], "round", [10], "0 values"),
        ([Printed(10, 0)], "round", [], "0 numbers of queries"),
        ([Printed(10, 0)], "round", [0], "nothing to try"),
        ([Printed(101, 0)], "round", [10], "101 is no share"),
    ],
)
def test_what_cannot_be(values: list[Printed], rule: str, candidates: list[int], message: str) -> None:
    refused(UsageError, message, possible_sizes, values, rule, candidates)
