"""Relative results: who is ahead, near ties by counting, agreement."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from diptych.evaluation import evaluate
from diptych.metrics import GroundTruth
from diptych.studies.evidence import Evidence, Figure
from diptych.studies.published import published_table
from diptych.studies.reproducibility_orders import (
    Agreement,
    Order,
    agreement,
    measured_near_tie,
    order_in,
    printed_near_tie,
)

ROWS = {row.row: row for row in published_table("reproducibility", "table-2.1").rows}


def test_who_is_ahead() -> None:
    evidence = Evidence(
        {"a": {"x": Figure(2.0), "y": Figure(1.0)}, "b": {"x": Figure(1.5), "y": Figure(1.0)}}
    )
    assert order_in(evidence, ("a", "b"), "x") == Order("a", 0.5)
    assert order_in(evidence, ("b", "a"), "x") == Order("a", -0.5)
    assert order_in(evidence, ("a", "b"), "y") == Order("", 0.0)
    assert order_in(evidence, ("a", "c"), "x") is None
    # The same recalls, summed in another order.
    sums = Evidence({"a": {"rsum": Figure(0.1 + 0.2 + 0.3)}, "b": {"rsum": Figure(0.3 + 0.2 + 0.1)}})
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1
    assert order_in(sums, ("a", "b"), "rsum") == Order("", 0.0)
    assert order_in(evidence, ("a", "b"), "z") is None


@given(st.lists(st.tuples(st.sampled_from("ab-"), st.sampled_from("ab-")), max_size=12))
def test_agreement_counts_what_can_be_compared(pairs: list[tuple[str, str]]) -> None:
    def order(name: str) -> Order | None:
        return None if name == "-" else Order(name, 1.0)

    found = agreement((order(one), order(other)) for one, other in pairs)
    known = [pair for pair in pairs if "-" not in pair]
    assert (found.same, found.of) == (sum(one == other for one, other in known), len(known))
    words = {one == other for one, other in known}
    assert (
        found.word
        == {
            frozenset(): "not run",
            frozenset({True}): "holds",
            frozenset({False}): "fails",
            frozenset({True, False}): "partly",
        }[frozenset(words)]
    )
    assert str(found + Agreement(1, 2)) == f"{found.same + 1} of {found.of + 2}"


@pytest.mark.parametrize(
    ("who", "dataset", "column", "near"),
    [
        ("Orig.", "COCO", "t2i R@1", False),  # 17.8 apart on 25,000 captions
        ("Orig.", "Flickr30k", "i2t R@1", True),  # 88.0 and 85.3 of 1,000: 2.7 apart, 1.96 × 1.52 allowed
        ("Orig.", "Flickr30k", "t2i R@1", False),  # 3.2 apart, 1.96 × 0.92
        ("Orig.", "Flickr30k", "i2t R@10", True),  # six misses against four
        ("Repr.", "Flickr30k", "i2t R@5", False),
        ("Orig.", "COCO", "t2i rsum", None),
        ("Orig.", "COCO", "rsum", None),
    ],
)
def test_printed_near_ties_are_counted(who: str, dataset: str, column: str, near: bool | None) -> None:
    first, second = ROWS[f"{who} X-VLM, {dataset}"], ROWS[f"{who} CLIP, {dataset}"]
    assert printed_near_tie(first, second, column) is near
    assert printed_near_tie(second, first, column) is near


def test_a_printed_near_tie_by_hand() -> None:
    first, second = ROWS["Orig. X-VLM, Flickr30k"], ROWS["Orig. CLIP, Flickr30k"]
    error = math.sqrt(0.88 * 0.12 / 1000 + 0.853 * 0.147 / 1000)
    assert abs(0.88 - 0.853) < 1.96 * error  # of which the test above says the same
    assert printed_near_tie(first, second, "i2t R@1")


COLUMNS = ("i2t R@1", "t2i R@1", "t2i R@5", "t2i rsum", "rsum")


def saved(folder: Path, seed: int, noise: float, images: int = 40) -> Path:
    """An evaluation of rows that are right but for noise."""
    random = np.random.default_rng(seed)
    rows = np.random.default_rng(9).normal(size=(images, 12))
    texts = rows + noise * random.normal(size=rows.shape)
    unit = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in (rows, texts)]
    truth = GroundTruth.from_caption_image(np.arange(images), images)
    result = evaluate(*(part.astype(np.float32) for part in unit), truth, ("R@1", "R@5", "R@10", "rsum"))
    return result.save(folder)


def test_measured_near_ties_are_those_of_a_paired_t_test(tmp_path: Path) -> None:
    """One caption per image: images are the queries, and the test is scipy's."""
    folders = [saved(tmp_path / f"{seed}", seed, noise) for seed, noise in ((1, 1.2), (2, 1.3), (3, 3.0))]
    from diptych.evaluation import Result

    results = [Result.open(folder) for folder in folders]
    outcomes = set()
    for one, other in ((0, 1), (0, 2), (1, 2)):
        found = measured_near_tie(folders[one], folders[other], COLUMNS)
        for column in ("i2t R@1", "t2i R@1", "t2i R@5"):
            way, name = column.split(" ")
            first, second = (results[place].per_query[way][name] for place in (one, other))
            p = stats.ttest_rel(first, second).pvalue
            assert found[column] is bool(p > 0.05)
            outcomes.add(found[column])
        sums = [
            sum(
                results[place].per_query[way][name]
                for way in ("t2i", "i2t")
                for name in ("R@1", "R@5", "R@10")
            )
            for place in (one, other)
        ]
        assert found["rsum"] is bool(stats.ttest_rel(*sums).pvalue > 0.05)
    assert outcomes == {True, False}


def test_the_same_evaluation_is_a_near_tie_and_others_are_not_compared(tmp_path: Path) -> None:
    folder, other = saved(tmp_path / "a", 1, 1.0), saved(tmp_path / "b", 1, 1.0, images=30)
    assert measured_near_tie(folder, folder, COLUMNS) == dict.fromkeys(COLUMNS, True)
    assert measured_near_tie(folder, other, COLUMNS) == dict.fromkeys(COLUMNS)
