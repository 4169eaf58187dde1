"""Printed cells, how they are named, and the forms in which people have them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import UsageError
from diptych.evaluation.printed.digits import (
    COMPARED,
    LEAST_GAIN,
    names_of,
    possible_sizes,
    read_digits,
    signs,
    truncation,
)
from diptych.evaluation.printed.target import Printed, as_target, cell_name
from diptych.studies.published import published_table

X_VLM = {"i2t R@1": "64.60", "i2t R@5": "84.48", "i2t R@10": "84.50"}


def test_targets() -> None:
    for form in (
        {"i2t R@1": 64.6, "i2t R@5": 84.48, "i2t R@10": 84.5},
        {"i2t": [64.6, 84.48, 84.5]},
        {"i2t": np.array([64.6, 84.48, 84.5])},
        {"i2t": {"R@1": 64.6, 5: 84.48, "r10": 84.5}},
        {("i2t", "R@1"): 64.6, ("i2t", 5): 84.47999999999999, ("i2t", 10): 84.5},
        {"txt_r1": 64.6, "txt_r5": 84.48, "txt_r10": 84.5},  # as ALBEF, BLIP and X-VLM log them
        {"TR@1": "64.60", "TR@5": "84.48 %", "TR@10": "84.50"},
        ["i2t_R@1=64.6", "i2t/recall@5=84.48", "I2T r10 = 84.5"],
    ):
        assert as_target(form).to_dict() == X_VLM
    for text, name in (
        ("img_r10", "t2i R@10"),
        ("IR@1", "t2i R@1"),
        ("text-to-image recall@5", "t2i R@5"),
        ("i2t  R-precision", "i2t R-precision"),
        ("T2I rsum", "t2i rsum"),
        ("RSUM", "rsum"),
        ("R@1", "R@1"),
    ):
        assert cell_name(text) == name
    target = as_target({"i2t R@1": 64.6}, 2, "a table")
    assert as_target(target) == target
    changed = as_target(target, decimals=1, label="another")
    assert (changed.to_dict(), changed.label) == ({"i2t R@1": "64.6"}, "another")
    assert as_target("i2t R@1=64").to_dict() == {"i2t R@1": "64"}
    assert as_target(["i2t R@1=64"], decimals=1).to_dict() == {"i2t R@1": "64.0"}


def test_printed_alike() -> None:
    cell = Printed(12.3, 1)
    rounded = [value for value in (12.24, 12.25, 12.349, 12.36) if cell.is_print_of(value, "round")]
    cut_off = [value for value in (12.29, 12.3, 12.39, 12.4) if cell.is_print_of(value, "truncate")]
    assert (rounded, cut_off) == ([12.25, 12.349], [12.3, 12.39])
    assert str(Printed(84.5, 2)) == "84.50"
    assert Printed(50, 0).error(55) == pytest.approx(0.1)
    assert Printed(0, 1).error(0.2) == pytest.approx(2)  # of a zero, in units of the last digit
    assert Printed(42.4, 1).within(42.4 + 2.12, 0.05)  # 5 % to the digit
    assert not Printed(42.4, 1).within(42.4 + 2.13, 0.05)
    assert Printed(0.1, 1).within(0.149, 0.05)  # printed alike


def test_what_is_no_target() -> None:
    for form, message in (
        (None, "type NoneType names no cells"),
        (5, "type int names no cells"),
        ({}, "no cell"),
        ([], "names no cells"),
        ({"i2t R@1": None}, "is None, no number"),
        ({"i2t R@1": float("inf")}, "no number"),
        ({"i2t": [1, 2]}, "i2t has 2 values"),
        ({"R@1": 5}, "names neither i2t nor t2i"),
        ({"i2t R@1": 5, "txt_r1": 6}, "i2t R@1 is given twice: 5 and 6"),
        *(([text], "is not NAME=NUMBER") for text in ("i2t R@1", "i2t R@1=high", "i2t R@1=nan", "=5")),
        (["i2t R@1=5", "i2t R@1=6"], "given twice: 5 and 6"),
        (["i2t R@1=-3"], "-3.0 is no share"),
        (["i2t R@1=101"], "101.0 is no share"),
    ):
        refused(UsageError, message, as_target, form)
    refused(UsageError, "33.3 with 9 digits", Printed, 33.3, 9)
    for values, candidates, message in (
        ([], [10], "0 values"),
        ([Printed(10, 0)], [], "0 numbers of queries"),
        ([Printed(10, 0)], [0], "nothing to try"),
        ([Printed(101, 0)], [10], "101 is no share"),
    ):
        refused(UsageError, message, possible_sizes, values, "round", candidates)


PAPERS = {
    "metric-learning": [f"table-{n}" for n in range(1, 5)],
    "convse": [f"table-{n}" for n in range(1, 5)],
    "ltd": [f"table-{n}" for n in range(1, 4)],
    "svl": ["table-4.1", "table-4.2"],
    "d2s": [f"table-3.{n}" for n in range(1, 7)],
}
TABLES = [published_table(paper, name) for paper, names in PAPERS.items() for name in names]
ROWS = [row for table in TABLES for row in table.rows]
COLLAPSED = 1.0  # R@1 in per cent below which a printed model knows next to nothing


def full_rankings() -> list[tuple[float, ...]]:
    """Every printed R@1, R@5, R@10 of the papers whose galleries were ranked whole."""
    sides = [[f"{side} R@{k}" for k in (1, 5, 10)] for side in ("i2t", "t2i")]
    found = [
        tuple(row.cells[name].value for name in names)
        for row in ROWS
        for names in sides
        if set(names) <= set(row.cells)
    ]
    return [one for one in found if one[2] >= one[1]]  # one printed row falls: a misprint


def most(first: float, fifth: float, tenth: float, *known: float) -> int | None:
    """The most candidates that such recalls may be of, where they can be told at all."""
    found = truncation(recalls(first, fifth, tenth), *known)
    assert found is not None
    return found.at_most


def recalls(first: float, fifth: float, tenth: float, decimals: int = 2) -> dict[int, Printed]:
    return {1: Printed(first, decimals), 5: Printed(fifth, decimals), 10: Printed(tenth, decimals)}


X_VLM_ROWS = {  # thesis tables 2.1 and 2.2: i2t, t2i, images, captions
    "coco": ((64.60, 84.48, 84.50), (42.79, 67.61, 67.64), 5_000, 25_010),
    "flickr30k": ((63.30, 91.10, 91.10), (37.82, 82.36, 82.48), 1_000, 5_000),
    "cub": ((1.16, 2.35, 2.45), (0.70, 2.28, 2.45), 2_856, 2_856),
    "fashion200k": ((1.84, 3.96, 4.04), (2.80, 6.62, 6.70), 5_000, 5_000),
    "abo": ((3.20, 7.42, 7.50), (3.10, 6.48, 6.56), 5_000, 5_000),
}
CLIP = {
    "coco": ((24.36, 44.13, 53.41), (21.59, 40.22, 49.80)),
    "flickr30k": ((77.02, 94.18, 96.84), (74.95, 93.09, 96.15)),
    "cub": ((1.23, 3.40, 5.48), (0.71, 2.38, 4.42)),
    "fashion200k": ((3.43, 9.82, 14.56), (3.05, 8.56, 12.85)),
    "abo": ((7.99, 18.96, 25.57), (6.25, 13.90, 18.50)),
}
ORIGINAL = [(58.4, 81.5, 88.1), (37.8, 62.4, 72.2), (70.8, 92.1, 96.5), (55.6, 82.7, 90.0)]
ORIGINAL += [(88.0, 98.7, 99.4), (68.7, 90.6, 95.2), (85.3, 97.8, 99.6), (71.9, 93.3, 96.4)]


EVERYTHING_RANKED = {*full_rankings(), *ORIGINAL, *(one for row in CLIP.values() for one in row)}


def test_the_least_gain_is_that_of_the_printed_tables() -> None:
    some = [(tenth - fifth) / min(fifth, 100 - fifth) for _, fifth, tenth in EVERYTHING_RANKED if fifth]
    assert len(some) == COMPARED
    assert LEAST_GAIN <= min(some) < 1.01 * LEAST_GAIN  # not lower than need be
    known = [(one, fifth) for one, fifth, _ in EVERYTHING_RANKED if one >= COLLAPSED]
    assert 0.5 <= min((fifth - one) / min(one, 100 - one) for one, fifth in known) < 0.52


def test_no_full_ranking_is_called_truncated() -> None:
    for one in EVERYTHING_RANKED:
        for gallery in (None, 1_000):
            found = truncation(recalls(*one, decimals=1), gallery, 5, 1_000)
            assert found is None or found.at_most is None, one
    for one in itertools.chain.from_iterable(CLIP.values()):  # to two digits
        assert most(*one) is None, one


def test_the_thesis_ranked_two_to_five_candidates_for_x_vlm() -> None:
    for name in X_VLM_ROWS:
        i2t, t2i, images, captions = X_VLM_ROWS[name]
        for one, gallery, positives, queries in (
            (i2t, captions, captions / images, images),
            (t2i, images, 1, captions),
        ):
            for known in ((), (gallery, positives, queries)):
                found = truncation(recalls(*one), *known)
                assert found is not None
                assert (found.at_least, found.at_most) == (2, 5)


def test_random_numbers_of_a_cut_ranking_are_found() -> None:
    """A ranking of k candidates, all other places drawn, also where the matching head is nearly perfect: then R@5
    gains next to nothing over R@1 either, and R@10 − R@5 is no small part of that."""
    for k in (1, 2, 3, 4, 5):
        draw = np.random.default_rng(k)
        drawn = [draw.geometric(0.4, 5_000)] if k > 1 else []
        for ranked in (0.30, 0.88, 0.94) if k < 5 else ():
            ranks = np.where(draw.random(5_000) < ranked - 0.01, 1, 1_000)
            ranks[draw.random(5_000) < 0.01] = k
            drawn.append(ranks)
        for ranks in drawn:
            ranks = np.where(ranks <= k, ranks, k + draw.integers(1, 1_000 - k, 5_000))
            values = [100 * float(np.mean(ranks <= cutoff)) for cutoff in (1, 5, 10)]
            assert most(*values, 1_000, 1, 5_000) == 5
    # 99 % within 5 of 200 queries: two miss, and that neither is within 10 says nothing; of 50,000 it does.
    for queries, at_most in ((200, None), (50_000, 5)):
        assert most(80.0, 99.0, 99.0, 1_000, 1, queries) == at_most
    for nothing in (
        {1: Printed(5.0, 1)},
        recalls(99.0, 100.0, 100.0),  # there is no room
        recalls(0.01, 0.02, 0.05),  # a handful of hits
        recalls(50.0, 40.0, 45.0),  # no recalls
    ):
        assert truncation(nothing) is None


def test_impossible_numbers_are_named() -> None:
    """Perturbation study: R@1, R@5, R@10 printed in the order R@5, R@10, R@1."""
    said = signs(as_target({"i2t R@1": 58.06, "i2t R@5": 72.54, "i2t R@10": 79.30, "i2t rsum": 200.0}, 2))
    assert [one.kind for one in said] == ["impossible"]
    assert said[0].cells == ("i2t rsum", "i2t R@1", "i2t R@5", "i2t R@10")
    assert "209.90" in said[0].text
    falling = signs(as_target({"i2t R@1": 79.3, "i2t R@5": 58.1, "i2t R@10": 72.5}, 1))
    assert [(one.kind, one.cells) for one in falling] == [("impossible", ("i2t R@1", "i2t R@5"))]
    both = {f"{side} R@{k}": 10.0 * k for side in ("i2t", "t2i") for k in (1, 5)}
    assert signs(as_target({**both, "rsum": 5.0}, 1)) == signs(as_target(both, 1))  # not all parts are there
    level = signs(as_target({"i2t R@1": 60.0, "i2t R@5": 91.1, "i2t R@10": 91.1}, 1))
    assert "impossible" not in [one.kind for one in level]
    fractions = "no recall is above 1 %; if these are fractions of 1, give them in per cent"
    assert fractions in [one.text for one in signs(as_target({"i2t": [0.646, 0.845, 0.845]}))]
    assert fractions not in [one.text for one in signs(as_target({"i2t": [0.7, 2.28, 2.45]}))]


def test_of_how_many_queries_the_thesis_rows_are() -> None:
    """Tables 2.1, 2.2: CLIP's Flickr30k rows are of Karpathy's 1,014 validation images, cut off; its CUB rows of
    dev (2,938), rounded, and not of test (2,856); X-VLM's CUB rows are of test."""

    def sizes(rows: tuple[tuple[float, ...], ...], rule: str) -> list[int]:
        values = [Printed(value, 2) for row in rows for value in row]
        return [one.n for one in possible_sizes(values, rule, range(1, 10_000)).sizes]

    def said(rows: tuple[tuple[float, ...], ...]) -> str:
        names = [f"{side} R@{k}" for side in ("i2t", "t2i") for k in (1, 5, 10)]
        return "\n".join(
            read_digits(as_target(dict(zip(names, [*rows[0], *rows[1]], strict=True)), 2)).sentences()
        )

    flickr, cub, x_vlm = CLIP["flickr30k"], CLIP["cub"], X_VLM_ROWS["cub"][:2]
    assert [n for n in sizes(flickr, "truncate") if n < 2_000] == [1_014]
    assert [n for n in sizes(flickr, "round") if n < 2_000] == []
    values = [Printed(value, 2) for row in flickr for value in row]
    found = possible_sizes(values, "truncate").known[0]
    assert (found.n, found.known) == (1_014, ("images of Flickr30k val",))
    assert found.chance == pytest.approx((1_015 / 10_001) ** 6)
    assert sizes(cub, "round")[0] == 2_938 not in sizes(cub, "truncate")
    assert 2_856 not in sizes(cub, "round")
    assert 2_856 in sizes(x_vlm, "round")
    assert 2_938 not in sizes(x_vlm, "round")
    assert (
        possible_sizes([Printed(one, 2) for row in x_vlm for one in row]).distinct == 5
    )  # 2.45 is there twice
    assert "1,014 queries, cut off (images of Flickr30k val" in said(flickr)
    assert "1.1e-06" in said(flickr)
    assert "candidates" not in said(flickr)
    assert "2,938 queries, rounded (images of CUB-200 val" in said(cub)
    assert "2,856 queries, rounded (images of CUB-200 test" in said(x_vlm)
    assert said(X_VLM_ROWS["flickr30k"][:2]).count("ranking 2 to 5 candidates") == 2
    assert "by itself means little" in said(CLIP["coco"])
    # 33 % of 3, of 6, of 9, ...: 1/3, 2/6, 3/9. 66.6 is 2/3 cut off and nothing rounded.
    assert [one.n for one in possible_sizes([Printed(33, 0)], "round", range(1, 10)).sizes] == [3, 6, 9]
    assert [one.n for one in possible_sizes([Printed(66.6, 1)], "truncate", [3]).sizes] == [3]
    assert possible_sizes([Printed(66.6, 1)], "round", [3]).sizes == ()
    assert (names_of(1_014), len(names_of(1_000)), names_of(999)) == (("images of Flickr30k val",), 3, ())


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


def test_numbers_that_were_never_printed_have_four_digits() -> None:
    """As a program computes them; nine digits would be tried as shares of a billion queries."""
    target = as_target({"i2t R@1": 100 / 3, "i2t R@5": 50.0})
    assert target.to_dict() == {"i2t R@1": "33.3333", "i2t R@5": "50.0000"}
    found = [one.n for one in read_digits(target).sizes["i2t"]["round"].sizes]
    assert 3_000 in found
    assert max(found) < 200_000
    refused(UsageError, "33.3 with 9 digits", Printed, 33.3, 9)
