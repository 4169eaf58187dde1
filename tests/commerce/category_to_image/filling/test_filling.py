"""Filling: probabilities of categories, the way down the tree, what a confidence is worth."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import softmax

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.filling import Filler, calibrate, candidate_nodes, reliability_of
from diptych.commerce.category_to_image.filling.calibration import expected_calibration_error
from diptych.commerce.category_to_image.filling.fill import (
    COLUMNS,
    VERDICTS,
    Filled,
    descend,
    masses_of,
    score_blocks,
    write_filled,
)
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError

TREE = CategoryTree([("A", "x"), ("A", "y", "z"), ("B",), ("C", "x")])
A, AX, AY, AYZ, B, C, CX = range(7)
CANDIDATES = np.array([AX, AYZ, B, CX])


def sorted_into(shop: Catalogue, tree: CategoryTree, places: list[list[int]]) -> Catalogue:
    """As many products as there are lists of places, in that tree."""
    part = shop.subset(np.arange(len(places)))
    start = np.concatenate([[0], np.cumsum([len(one) for one in places])]).astype(np.int64)
    flat = np.array([node for one in places for node in one], dtype=np.int64)
    return replace(part, tree=tree, place_start=start, places=flat)


def test_candidates(shop: Catalogue) -> None:
    texts = [shop.tree.text(node) for node in candidate_nodes(shop)]
    assert texts == [
        "Men > Accessories > Belts",
        "Men > Clothing",  # no leaf, but a product is sorted into it and no further
        "Men > Clothing > Shirts",
        "Men > Clothing > Trousers",
        "Women > Accessories > Rings",
        "Women > Clothing > Coats",
        "Women > Clothing > Dresses",
    ]
    assert candidate_nodes(shop, "all").tolist() == list(range(len(shop.tree)))
    with pytest.raises(UsageError, match="candidates 'some'"):
        candidate_nodes(shop, "some")  # type: ignore[arg-type]


def slow_way(tree: CategoryTree, masses: np.ndarray, own: np.ndarray) -> list[int]:
    way: list[int] = []
    node = -1
    while True:
        children = tree.children(node).tolist()
        if not children:
            return way
        best = max(children, key=lambda child: (masses[child], -child))
        if node >= 0 and masses[best] <= own[node]:
            return way
        way.append(best)
        node = best


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000))
def test_the_way_down_agrees_with_a_slow_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    paths = [tuple(random.choice(list("abc"), random.integers(1, 5))) for _ in range(random.integers(1, 12))]
    tree = CategoryTree([tuple(map(str, path)) for path in paths])
    candidates = np.flatnonzero(tree.is_leaf | (random.random(len(tree)) < 0.3))
    shares = random.integers(1, 4, (3, len(candidates))).astype(float)
    masses = shares @ masses_of(tree, candidates)
    own = np.zeros_like(masses)
    own[:, candidates] = shares
    found = descend(tree, masses, own)
    for row in range(3):
        assert found[row][found[row] >= 0].tolist() == slow_way(tree, masses[row], own[row])


def test_blocks_and_sparse_rows_score_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diptych.commerce.category_to_image.filling.fill._SCORES", 6)
    random = np.random.default_rng(0)
    products = random.integers(-3, 4, (7, 4)).astype(np.float32)
    categories = random.integers(-3, 4, (3, 4)).astype(np.float32)
    for left, right in ((products, categories), (csr_array(products), csr_array(categories))):
        blocks = list(score_blocks(left, right, np.array([6, 0, 3])))
        assert [rows.tolist() for rows, _ in blocks] == [[6, 0], [3]]
        assert np.array_equal(
            np.concatenate([scores for _, scores in blocks]), products[[6, 0, 3]] @ categories.T
        )
    with pytest.raises(MismatchError, match="width 4 and of categories of 3"):
        next(score_blocks(products, categories[:, :3], np.arange(2)))
    products[3, 1] = np.nan
    with pytest.raises(NumericalError, match="product row 3"):
        list(score_blocks(products, categories, np.array([0, 3])))


def test_the_temperature_that_was_planted_is_found(shop: Catalogue) -> None:
    random = np.random.default_rng(0)
    tree = CategoryTree([(name,) for name in "abcde"])
    scores = random.standard_normal((4000, 5)).astype(np.float32)
    chances = softmax(scores / 0.4, axis=1)
    labels = (chances.cumsum(axis=1) < random.random((4000, 1))).sum(axis=1)
    nothing = {"titles": [""] * 4000, "attributes": [()] * 4000, "picture_rows": np.full(4000, -1)}
    ids, splits = [f"p{row}" for row in range(4000)], ["val"] * 4000
    catalogue = replace(
        shop, ids=ids, tree=tree, place_start=np.arange(4001), places=labels, splits=splits, **nothing
    )
    found = calibrate(scores, np.eye(5, dtype=np.float32), np.arange(5), catalogue)
    assert found.temperature == pytest.approx(0.4, rel=0.05)
    assert found.loss < found.loss_at_one < found.chance == pytest.approx(np.log(5))
    assert found.products == 4000
    filler = Filler(tree, np.arange(5), np.eye(5, dtype=np.float32), found.temperature)
    worth = reliability_of(filler, scores, catalogue)
    assert worth.whole.error < 0.03
    assert worth.whole.accuracy == pytest.approx(float((scores.argmax(axis=1) == labels).mean()))
    cold = reliability_of(replace(filler, temperature=0.05), scores, catalogue)
    assert cold.whole.error > 0.1 > worth.whole.error
    assert cold.whole.accuracy == worth.whole.accuracy


def test_any_of_several_places_is_right(shop: Catalogue) -> None:
    catalogue = sorted_into(shop, TREE, [[AX, B], [B], [], [A]])
    rows = np.eye(4, dtype=np.float32)
    found = calibrate(rows, rows, CANDIDATES, catalogue)
    assert found.products == 2  # one has no category, one none of the candidates
    assert found.chance == pytest.approx((np.log(2) + np.log(4)) / 2)
    with pytest.raises(DataError, match="none of 4 products has one of 1 categories"):
        calibrate(rows, rows[:1], np.array([CX]), catalogue)


def test_of_too_many_products_the_same_ones_are_drawn(
    shop: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = candidate_nodes(shop)
    monkeypatch.setattr("diptych.commerce.category_to_image.filling.calibration._SCORES", 10 * len(nodes))
    random = np.random.default_rng(0)
    products, categories = (random.standard_normal((n, 6)).astype(np.float32) for n in (24, len(nodes)))
    found = calibrate(products, categories, nodes, shop, seed=3)
    order = random.permutation(24)
    again = calibrate(products[order], categories, nodes, shop.subset(order), seed=3)
    assert found.products == again.products == 10
    assert found.temperature == pytest.approx(again.temperature)
    assert found.temperature != calibrate(products, categories, nodes, shop, seed=4).temperature


def test_calibration_error_by_hand() -> None:
    error, bins = expected_calibration_error(
        np.array([0.1, 0.15, 0.9, 1.0]), np.array([False, True, True, True]), bins=2
    )
    assert bins == ((2, 0.125, 0.5), (2, 0.95, 1.0))
    assert error == pytest.approx(0.5 * 0.375 + 0.5 * 0.05)
    assert expected_calibration_error(np.zeros(0), np.zeros(0, bool))[0] == 0


def by_log(*shares: float) -> np.ndarray:
    """A product's row whose soft-max at temperature 1 over unit rows is ``shares``."""
    return np.log(np.array(shares, dtype=np.float32))[None]


def test_verdicts_and_cuts(shop: Catalogue) -> None:
    rows = np.concatenate([by_log(0.45, 0.4, 0.1, 0.05)] * 8)
    rows[7] = by_log(0.26, 0.05, 0.34, 0.35)
    places = [[], [AX], [A], [B], [AY], [B, AYZ], [CX], []]
    catalogue = sorted_into(shop, TREE, places)
    filler = Filler(TREE, CANDIDATES, np.eye(4, dtype=np.float32), 1.0, threshold=0.5, alternatives=2)
    found = list(filler.fill(rows, catalogue, np.arange(8)))
    assert [one.verdict for one in found] == [
        "in part", "agrees", "agrees", "disagrees", "agrees", "agrees", "disagrees", "uncertain",
    ]  # fmt: skip
    first = found[0]
    assert first.path == ("A",)
    assert first.confidence == pytest.approx(0.85)
    assert [name for name, _ in first.levels] == ["A", "x"]
    assert [value for _, value in first.levels] == pytest.approx([0.85, 0.45])
    assert first.alternatives == (("A > x", pytest.approx(0.45)), ("A > y > z", pytest.approx(0.4)))
    assert found[3].own == ("B",)
    assert found[7].path == ()
    lower = replace(filler, threshold=0.4)
    verdicts = [one.verdict for one in lower.fill(rows, catalogue, np.arange(8))]
    assert verdicts[:7] == ["whole", "agrees", "refines", "disagrees", "disagrees", "disagrees", "disagrees"]
    assert [one.id for one in filler.fill(rows, catalogue)] == [catalogue.ids[0], catalogue.ids[7]]
    assert set(verdicts) <= set(VERDICTS)


def test_a_level_counts_where_the_own_path_reaches_it(shop: Catalogue) -> None:
    rows = np.concatenate([by_log(0.1, 0.7, 0.1, 0.1)] * 4)
    catalogue = sorted_into(shop, TREE, [[AYZ], [AY], [B], []])
    worth = reliability_of(Filler(TREE, CANDIDATES, np.eye(4, dtype=np.float32), 1.0), rows, catalogue)
    assert worth.products == 3
    assert [(one.level, one.products, one.accuracy) for one in worth.levels] == [
        (1, 3, pytest.approx(2 / 3)), (2, 2, 1.0), (3, 1, 1.0),
    ]  # fmt: skip
    assert worth.levels[0].confidence == pytest.approx(0.8)
    assert worth.whole.accuracy == pytest.approx(1 / 3)
    assert worth.cut == ((3, 3, 1.0),)  # of one of them alone it is known whether the third level is right


def test_what_cannot_be(shop: Catalogue) -> None:
    rows = np.eye(4, dtype=np.float32)
    filler = Filler(TREE, CANDIDATES, rows, 1.0)
    for refused, error, match in (
        (lambda: Filler(TREE, CANDIDATES, rows[:3], 1.0), MismatchError, "4 categories .*, 3 rows"),
        (lambda: Filler(TREE, CANDIDATES, rows, 1.0, threshold=1.5), UsageError, r"threshold 1\.5"),
        (lambda: Filler(TREE, CANDIDATES, rows, 0.0), UsageError, "temperature 0"),
        (lambda: next(filler.fill(rows, shop)), MismatchError, "4 rows for 24 products"),
        (lambda: next(filler.fill(np.zeros((24, 4), np.float32), shop)), MismatchError, "not the same"),
    ):
        with pytest.raises(error, match=match):
            refused()


LEVELS, OTHERS = (("X", 0.9), ("Y, Z", 0.75)), (("X > Y, Z", 0.7),)
ODD = Filled("p1", 'a "b", <i>c</i>\nd', (), ("X", "Y, Z"), 0.75, LEVELS, OTHERS, "whole")
OWN = Filled("p2", "", ("X",), ("X",), 0.9, (("X", 0.9),), (), "agrees")


def test_a_table(tmp_path: Path) -> None:
    write_filled([ODD, OWN], tmp_path / "filled.csv", {})
    with open(tmp_path / "filled.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == list(COLUMNS)
    assert rows[1] == ["p1", ODD.title, "whole", "X > Y, Z", "0.750000", "", "X > Y, Z", "0.900000 0.750000",
                       "X > Y, Z (0.700000)"]  # fmt: skip
    assert rows[2][5] == "X"


def test_a_failure_leaves_the_older_file(tmp_path: Path) -> None:
    file = tmp_path / "filled.jsonl"
    write_filled([OWN], file, {})
    before = file.read_bytes()

    def broken():  # type: ignore[no-untyped-def]
        yield ODD
        raise NumericalError("no number")

    with pytest.raises(NumericalError):
        write_filled(broken(), file, {})
    assert file.read_bytes() == before
    with pytest.raises(UsageError, match=r"ends in '\.xlsx'"):
        write_filled([], tmp_path / "filled.xlsx", {})
