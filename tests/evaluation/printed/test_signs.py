"""What recalls give away of how they were made, held against every printed table at hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from diptych.evaluation.printed import Printed, Target, read_digits, signs, truncation
from diptych.evaluation.printed.digits import COMPARED, LEAST_GAIN
from diptych.studies.published import published_table

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


X_VLM = {  # thesis tables 2.1 and 2.2: i2t, t2i, images, captions
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


@pytest.mark.parametrize("name", X_VLM)
def test_the_thesis_ranked_two_to_five_candidates_for_x_vlm(name: str) -> None:
    i2t, t2i, images, captions = X_VLM[name]
    for one, gallery, positives, queries in (
        (i2t, captions, captions / images, images),
        (t2i, images, 1, captions),
    ):
        for known in ((), (gallery, positives, queries)):
            found = truncation(recalls(*one), *known)
            assert found is not None
            assert (found.at_least, found.at_most) == (2, 5)


def test_what_unranked_places_gain_by_chance() -> None:
    """Thesis table 2.1, COCO t2i: 32.39 % miss, 5 of 4,995 further places: 0.03 %, and 0.03 is printed."""
    found = truncation(recalls(42.79, 67.61, 67.64), 5_000, 1, 25_010)
    assert found is not None
    assert found.by_chance == pytest.approx((100 - 67.61) * 5 / 4995)
    assert round(found.gain, 2) == round(found.by_chance, 2) == 0.03


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_random_numbers_of_a_cut_ranking_are_found(k: int) -> None:
    """A ranking of k candidates, all other places drawn, also where the matching head is nearly perfect: then R@5
    gains next to nothing over R@1 either, and R@10 − R@5 is no small part of that."""
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


def test_few_queries_are_not_enough_to_tell() -> None:
    """99 % within 5 of 200 queries: two miss, and that neither is within 10 says nothing; of 50,000 it does."""
    for queries, at_most in ((200, None), (50_000, 5)):
        assert most(80.0, 99.0, 99.0, 1_000, 1, queries) == at_most


def test_where_nothing_can_be_told() -> None:
    assert truncation({1: Printed(5.0, 1)}) is None
    assert truncation(recalls(99.0, 100.0, 100.0)) is None  # there is no room
    assert truncation(recalls(0.01, 0.02, 0.05)) is None  # a handful of hits
    assert truncation(recalls(50.0, 40.0, 45.0)) is None  # no recalls


def test_impossible_numbers_are_named() -> None:
    """Perturbation study: R@1, R@5, R@10 printed in the order R@5, R@10, R@1."""
    said = signs(Target.of({"i2t R@1": 58.06, "i2t R@5": 72.54, "i2t R@10": 79.30, "i2t rsum": 200.0}, 2))
    assert [one.kind for one in said] == ["impossible"]
    assert said[0].cells == ("i2t rsum", "i2t R@1", "i2t R@5", "i2t R@10")
    assert "209.90" in said[0].text
    falling = signs(Target.of({"i2t R@1": 79.3, "i2t R@5": 58.1, "i2t R@10": 72.5}, 1))
    assert [(one.kind, one.cells) for one in falling] == [("impossible", ("i2t R@1", "i2t R@5"))]
    both = {f"{side} R@{k}": 10.0 * k for side in ("i2t", "t2i") for k in (1, 5)}
    assert signs(Target.of({**both, "rsum": 5.0}, 1)) == signs(Target.of(both, 1))  # not all parts are there


def test_one_caption_per_image_shows_in_the_directions() -> None:
    said = signs(Target.of({"i2t R@1": 77.02, "t2i R@1": 74.95}, 2))
    assert [one.kind for one in said] == ["unusual"]
    assert not signs(Target.of({"i2t R@1": 88.0, "t2i R@1": 68.7}, 1))
    names = ("i2t R@1", "t2i R@1")
    both = [[row.cells[name].value for name in names] for row in ROWS if {*names} <= set(row.cells)]
    ratios = [one / other for one, other in both if other >= 10]
    assert len(ratios) > 100
    assert sum(ratio < 1.14 for ratio in ratios) == 2


def test_the_report_of_the_thesis_rows() -> None:
    names = [f"{side} R@{k}" for side in ("i2t", "t2i") for k in (1, 5, 10)]

    def said(rows: tuple[tuple[float, ...], ...]) -> str:
        values = dict(zip(names, [*rows[0], *rows[1]], strict=True))
        return "\n".join(read_digits(Target.of(values, 2)).sentences())

    assert "1,014 queries, cut off (images of Flickr30k val" in said(CLIP["flickr30k"])
    assert "1.1e-06" in said(CLIP["flickr30k"])
    assert "2,938 queries, rounded (images of CUB-200 val" in said(CLIP["cub"])
    assert "2,856 queries, rounded (images of CUB-200 test" in said(X_VLM["cub"][:2])
    assert said(X_VLM["flickr30k"][:2]).count("ranking 2 to 5 candidates") == 2
    assert "candidates" not in said(CLIP["flickr30k"])
    assert "alone means little" in said(CLIP["coco"])
