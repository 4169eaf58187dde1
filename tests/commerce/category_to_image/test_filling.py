"""Filling: probabilities of whole paths, what a confidence is worth, what is written."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused
from scipy.special import log_softmax, softmax

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.filling import (
    COLUMNS,
    VERDICTS,
    Filler,
    FillOptions,
    calibrate,
    hierarchical_f1,
    reliability_of,
    write_filled,
)
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import DataError, NumericalError, UsageError

CODES = {("A",): "1", ("A", "x"): "gid://shop/2", ("A", "y", "z"): "3"}
TREE = CategoryTree([("A", "x"), ("A", "y", "z"), ("B",), ("C", "x")], CODES)
A, AX, AY, AYZ, B, C, CX = range(7)
CANDIDATES = np.array([AX, AYZ, B, CX])
EYE = np.eye(7, dtype=np.float32)[:, CANDIDATES]
"""Rows of the tree's categories: a product's row is its scores of the candidates, all others have 0."""


def sorted_into(shop: Catalogue, tree: CategoryTree, places: list[list[int]]) -> Catalogue:
    """As many products as there are lists of places, in that tree."""
    part = shop.subset(np.arange(len(places)))
    start = np.concatenate([[0], np.cumsum([len(one) for one in places])]).astype(np.int64)
    flat = np.array([node for one in places for node in one], dtype=np.int64)
    return replace(part, tree=tree, place_start=start, places=flat)


def by_log(*shares: float) -> np.ndarray:
    """A product's row whose soft-max at temperature 1 is ``shares``."""
    return np.log(np.array(shares, dtype=np.float32))[None]


def test_a_paths_probability_is_the_product_of_what_its_levels_say() -> None:
    for weight, against in product((0.0, 0.5, 1.0), ("level", "siblings")):
        scores = np.random.default_rng(0).standard_normal((3, len(TREE)))
        filler = Filler(TREE, CANDIDATES, EYE, 0.5, weight, against)  # type: ignore[arg-type]
        key = {
            node: TREE.depth[node] if against == "level" else TREE.parent[node] for node in range(len(TREE))
        }
        for row, logits in zip(scores / 0.5, filler.logits(scores), strict=True):
            for node, logit in zip(CANDIDATES, logits, strict=True):
                expected = row[node]
                for one in TREE.ancestors(node).tolist():
                    rivals = [other for other in key if key[other] == key[one]]
                    expected += weight * log_softmax(row[rivals])[rivals.index(one)]
                assert logit == pytest.approx(expected)


def test_of_twins_the_one_whose_ancestors_fit_is_suggested(shop: Catalogue) -> None:
    """A > x and C > x score the same; A is like the product and C is not. A walk down would begin with B."""
    scores = np.array([[0.4, 0.9, 0.0, 0.0, 0.5, -0.4, 0.9]])
    filler = Filler(TREE, CANDIDATES, np.eye(7, dtype=np.float32), 0.2, 1.0, "siblings")
    ((filled, _),) = filler.fill(scores.astype(np.float32), sorted_into(shop, TREE, [[]]))
    assert [one["name"] for one in filled["levels"]] == ["A", "x"]
    assert filled["levels"][0]["confidence"] >= filled["levels"][1]["confidence"] > 0


def test_the_temperature_that_was_planted_is_found(shop: Catalogue) -> None:
    random = np.random.default_rng(0)
    tree = CategoryTree([(name,) for name in "abcde"])
    scores = random.standard_normal((4000, 5)).astype(np.float32)
    chances = softmax(scores / 0.4, axis=1)
    labels = (chances.cumsum(axis=1) < random.random((4000, 1))).sum(axis=1)
    nothing = {"titles": [""] * 4000, "attributes": [()] * 4000, "picture_rows": np.full(4000, -1)}
    ids, splits = [f"p{row}" for row in range(4000)], ["val"] * 4000
    places = {"place_start": np.arange(4001), "places": labels}
    catalogue = replace(shop, ids=ids, tree=tree, splits=splits, **places, **nothing)
    filler = Filler(tree, np.arange(5), np.eye(5, dtype=np.float32))
    filler, found = calibrate(filler, scores, catalogue)
    # A root's own soft-max and that of its level are one: T and w share what there is to find.
    assert filler.temperature / (1 + filler.weight) == pytest.approx(0.4, rel=0.05)
    assert found["loss"] < found["chance"] == pytest.approx(np.log(5))
    assert found["products"] == 4000
    worth = reliability_of(filler, scores, catalogue)
    *_, whole = worth["levels"]
    assert whole["error"] < 0.03  # mean confidence is accuracy in every bin
    assert whole["accuracy"] == pytest.approx(float((scores.argmax(axis=1) == labels).mean()))
    assert worth["hierarchical"]["f1"] == pytest.approx(whole["accuracy"])  # on a flat tree
    *_, cold = reliability_of(replace(filler, temperature=0.05), scores, catalogue)["levels"]
    assert cold["error"] > 0.1 > whole["error"]
    assert cold["accuracy"] == whole["accuracy"]


def test_any_of_several_places_is_right(shop: Catalogue) -> None:
    catalogue = sorted_into(shop, TREE, [[AX, B], [B], [], [A]])
    filler = Filler(TREE, CANDIDATES, EYE)
    _, found = calibrate(filler, np.eye(4, dtype=np.float32), catalogue)
    assert found["products"] == 2  # one has no category, one none of the candidates
    assert found["chance"] == pytest.approx((np.log(2) + np.log(4)) / 2)
    unknown = sorted_into(shop, TREE, [[], [A]])
    with pytest.raises(DataError, match="none of 2 products has one of 4 categories"):
        calibrate(filler, np.eye(2, 4, dtype=np.float32), unknown)


def test_hierarchical_f1_by_hand() -> None:
    # A > x for A > y > z, nothing for B, C > x for C > x
    found = hierarchical_f1([(1, 2, 3), (0, 0, 1), (2, 2, 2)])
    assert found == {"precision": 3 / 4, "recall": 3 / 6, "f1": pytest.approx(0.6)}
    assert hierarchical_f1([])["f1"] == 0


def test_verdicts_cuts_and_codes(shop: Catalogue) -> None:
    rows = np.concatenate([by_log(0.45, 0.4, 0.1, 0.05)] * 8)
    rows[7] = by_log(0.26, 0.05, 0.34, 0.35)
    places = [[], [AX], [A], [B], [AY], [B, AYZ], [CX], []]
    catalogue = sorted_into(shop, TREE, places)
    filler = Filler(TREE, CANDIDATES, EYE, threshold=0.5)
    found, overlaps = zip(*filler.fill(rows, catalogue), strict=True)
    assert [one["verdict"] for one in found] == [
        "in part", "agrees", "agrees", "disagrees", "agrees", "agrees", "disagrees", "uncertain",
    ]  # fmt: skip
    first = found[0]
    assert (first["path"], first["code"], first["confidence"]) == (["A"], "1", pytest.approx(0.85))
    assert [tuple(one.values()) for one in (*first["levels"], *first["alternatives"][:2])] == [
        ("A", pytest.approx(0.85), "1"),
        ("x", pytest.approx(0.45), "gid://shop/2"),
        ("A > x", pytest.approx(0.45), "gid://shop/2"),
        ("A > y > z", pytest.approx(0.4), "3"),
    ]
    assert overlaps[:6] == (None, (1, 1, 2), (1, 1, 1), (0, 1, 1), (1, 1, 2), (1, 1, 3))
    assert (found[3]["own"], found[7]["path"], found[7]["code"]) == (["B"], [], None)
    lower = replace(filler, threshold=0.4)
    verdicts = [one["verdict"] for one, _ in lower.fill(rows, catalogue)]
    assert verdicts[:7] == ["whole", "agrees", "refines", "disagrees", "disagrees", "disagrees", "disagrees"]
    blank = list(filler.fill(rows, catalogue, np.arange(8) > 4))[:5]
    keys = ("verdict", "path", "levels", "alternatives")
    assert [[one[key] for key in keys] for one, _ in blank] == [["nothing known", [], [], []]] * 5
    assert [overlap for _, overlap in blank[:2]] == [None, (0, 0, 2)]
    assert set(verdicts) <= set(VERDICTS)


def test_a_level_counts_where_the_own_path_reaches_it(shop: Catalogue) -> None:
    rows = np.concatenate([by_log(0.1, 0.7, 0.1, 0.1)] * 4)
    catalogue = sorted_into(shop, TREE, [[AYZ], [AY], [B], []])
    worth = reliability_of(Filler(TREE, CANDIDATES, EYE), rows, catalogue)
    assert worth["products"] == 3
    assert [(one["level"], one["products"], one["accuracy"]) for one in worth["levels"]] == [
        ("level 1", 3, pytest.approx(2 / 3)), ("level 2", 2, 1.0), ("level 3", 1, 1.0),
        ("whole path", 3, pytest.approx(1 / 3)),
    ]  # fmt: skip
    assert worth["levels"][0]["confidence"] == pytest.approx(0.8)
    assert worth["kept"] == 3
    assert worth["hierarchical"] == {"precision": 5 / 9, "recall": 5 / 6, "f1": pytest.approx(10 / 15)}


LEVELS = [{"name": "X", "confidence": 0.9, "code": None}, {"name": "Y, Z", "confidence": 0.75, "code": "8"}]
OTHERS = [{"category": "X > Y, Z", "probability": 0.7, "code": "8"}]
ODD: dict[str, Any] = {
    "id": "-p1", "title": '=1+"2"', "verdict": "disagrees", "own": [], "path": ["X", "Y, Z"], "code": "8",
    "confidence": 0.75, "levels": LEVELS, "alternatives": OTHERS,
}  # fmt: skip
OWN = {
    **ODD,
    "id": "p2",
    "title": "",
    "verdict": "agrees",
    "own": ["@X"],
    "levels": LEVELS[:1],
    "path": ["X"],
}


def test_what_is_written(tmp_path: Path) -> None:
    for name in ("filled.csv", "filled.jsonl"):
        written = write_filled([(ODD, None), (OWN, (1, 1, 1))], tmp_path / name, {"run": "r"}, ("agrees",))
        assert (written["products"], written["review"]) == (2, 1)
        tables = ["filled.review.csv"] + ([name] if name.endswith(".csv") else [])
        for table in tables:
            with open(tmp_path / table, encoding="utf-8", newline="") as file:
                header, row = csv.reader(file)
            assert header == COLUMNS
            # A spreadsheet would compute the first two.
            assert row == ["'-p1", "'=1+\"2\"", "disagrees", "X > Y, Z", "8", "0.750000", "", "X > Y, Z", "8",
                           "0.900000 0.750000", "X > Y, Z (0.700000)"]  # fmt: skip
        if name.endswith(".jsonl"):
            (line,) = (tmp_path / name).read_text("utf-8").splitlines()
            assert json.loads(line) == ODD
        summary = json.loads((tmp_path / "filled.summary.json").read_text())
        assert summary["counts"] == {"agrees": 1, "disagrees": 1}
        assert summary["hierarchical"] == {"products": 1, "precision": 1.0, "recall": 1.0, "f1": 1.0}
        assert summary == {**written, "run": "r"}


def test_a_failure_leaves_the_older_file(tmp_path: Path) -> None:
    file = tmp_path / "filled.jsonl"
    write_filled([(OWN, (1, 1, 1))], file, {})
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}

    def broken() -> Iterator[Any]:
        yield ODD, None
        raise NumericalError("no number")

    refused(NumericalError, "no number", write_filled, broken(), file, {})
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before
    refused(UsageError, r"ends in '\.xlsx'", FillOptions, out=tmp_path / "filled.xlsx")
