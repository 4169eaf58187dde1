"""Training and test products, seen and unseen categories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tiny_catalogue import tiny_catalogue

from diptych.commerce.catalogue import Catalogue, judge
from diptych.commerce.catalogue.splits import SPLITS, assign_splits, seen_nodes
from diptych.core.errors import DataError, UnknownNameError, UsageError


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return tiny_catalogue(tmp_path_factory.mktemp("tiny") / "pictures")


def test_there_are_three() -> None:
    assert SPLITS.names() == ["category", "given", "product"]


def test_given_is_what_came(shop: Catalogue) -> None:
    assert assign_splits(shop, "given").splits == list(shop.splits)


def test_by_product_follows_the_id(shop: Catalogue) -> None:
    many = replace(
        shop.subset(np.zeros(0, dtype=np.int64)),
        ids=[f"p{row}" for row in range(3000)],
        titles=[""] * 3000,
        attributes=[()] * 3000,
        splits=["x"] * 3000,
        place_start=np.zeros(3001, dtype=np.int64),
        picture_rows=np.full(3000, -1),
    )
    made = assign_splits(many, "product", seed=5)
    sizes = made.split_sizes
    assert abs(sizes["train"] - 2400) < 70
    assert abs(sizes["test"] - 300) < 50
    some = assign_splits(many.subset(np.arange(2999, 0, -2)), "product", seed=5)
    whole = dict(zip(made.ids, made.splits, strict=True))
    assert list(some.splits) == [whole[name] for name in some.ids]
    assert made.splits != assign_splits(many, "product", seed=6).splits
    assert made.notes[-1] == "split by product, seed 5: train 0.8, val 0.1, test 0.1"


@pytest.mark.parametrize("together", ["title", "title-picture"])
def test_the_same_product_twice_is_never_on_both_sides(shop: Catalogue, together: str) -> None:
    rows = np.repeat(np.arange(24), 4)
    twice = replace(
        shop,
        ids=[f"p{row:02d}-{copy}" for copy, row in enumerate(rows.tolist())],
        titles=[shop.titles[row] for row in rows],
        attributes=[()] * 96,
        splits=["x"] * 96,
        place_start=np.zeros(97, dtype=np.int64),
        places=np.zeros(0, dtype=np.int64),
        picture_rows=shop.picture_rows[rows],
    )
    made = assign_splits(twice, "product", together=together, shares={"train": 0.5, "test": 0.5})
    by_product = np.array(made.splits, dtype=object).reshape(24, 4)
    whole = np.array([len(set(four)) == 1 for four in by_product])
    alone = [row for row in range(24) if not whole[row]]
    allowed = {"p10"} if together == "title" else {"p10", "p05"}  # no title; no picture
    assert {shop.ids[row] for row in alone} <= allowed
    parted = assign_splits(twice, "product", shares={"train": 0.5, "test": 0.5})
    assert any(len(set(four)) > 1 for four in np.array(parted.splits, dtype=object).reshape(24, 4))


@pytest.mark.parametrize("setting", ["all", "most-specific"])
def test_a_held_out_category_is_in_test_alone(shop: Catalogue, setting: str) -> None:
    made = assign_splits(shop, "category", setting=setting, held_out=0.3, seed=1)
    assert list(made.ids) == list(shop.ids)
    assert [one for one in made.splits if one == "test"] == ["test"] * shop.split_sizes["test"]
    seen, before = (seen_nodes(one.split("train"), setting, epochs=50) for one in (made, shop))
    judged = judge(made.split("test"), setting, "path")
    unseen = judged.nodes[~seen[judged.nodes]]
    assert len(unseen)
    assert seen[judged.nodes].any()
    assert not (seen & ~before).any()
    moved = made.split("held-out")
    for row in range(len(moved)):
        line = {node for place in moved.places_of(row) for node in moved.tree.ancestors(place).tolist()}
        assert line & set(unseen.tolist())


def test_seen_is_what_was_paired(shop: Catalogue) -> None:
    train = shop.split("train")
    once = seen_nodes(train, "all", seed=4)
    often = seen_nodes(train, "all", seed=4, epochs=40)
    assert once.sum() < often.sum() == 12
    assert seen_nodes(train, "most-general").sum() == 2
    assert not seen_nodes(train.subset([]), "all").any()


@pytest.mark.parametrize(
    ("kind", "options", "error", "words"),
    [
        ("products", {}, UnknownNameError, "product"),
        ("given", {"seed": 1}, UnknownNameError, "known: none"),
        ("product", {"held_out": 0.1}, UnknownNameError, "seed, shares, together"),
        ("product", {"shares": {"train": 0.8}}, UsageError, "do not add up"),
        ("product", {"shares": {"train": float("nan"), "test": 0.5}}, UsageError, "do not add up"),
        ("product", {"together": "picture"}, UsageError, "one of none"),
        ("product", {"shares": {"train": 0.9999, "test": 0.0001}}, DataError, "no product fell to test"),
        ("category", {"held_out": 1.0}, UsageError, "between 0 and 1"),
        ("category", {"test": "tst"}, UnknownNameError, "test"),
        ("category", {"setting": "most-special"}, UnknownNameError, "most-specific"),
    ],
)
def test_what_cannot_be(
    shop: Catalogue, kind: str, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        assign_splits(shop, kind, **options)


def test_nothing_is_held_out_of_one_category(shop: Catalogue) -> None:
    men = shop.subset([row for row in range(24) if shop.titles[row].split(" ")[1:2] == ["belt"]])
    with pytest.raises(DataError, match="at least two"):
        assign_splits(men, "category")
