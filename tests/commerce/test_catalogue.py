"""Catalogues: made of collections, their settings, judgements and splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from tiny_catalogue import DRESSES

from diptych.commerce.catalogue import (
    Catalogue,
    Judged,
    assign_splits,
    catalogue_of,
    category_texts,
    judge,
    seen_nodes,
    targets_of,
)
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import DataError, DiptychError, UnknownNameError, UsageError
from diptych.data.collection import Collection
from diptych.data.images import FolderSource


def collection(
    records: Sequence[dict[str, Any]], pictured: Sequence[bool] = (), splits: str = ""
) -> Collection:
    """Items i0, i1, … without captions."""
    n = len(records)
    return Collection(
        name="shop",
        image_ids=[f"i{row}" for row in range(n)],
        captions=[],
        caption_ids=[],
        caption_image=np.zeros(0, dtype=np.int64),
        splits=list(splits) or ["train"] * n,
        source=FolderSource("nowhere", [f"{row}.png" for row in range(n)]),
        source_rows=np.where(list(pictured) or [True] * n, np.arange(n), -1),
        records=records,
    )


def paths(catalogue: Catalogue, product: int) -> list[tuple[str, ...]]:
    return [catalogue.tree.paths[node] for node in catalogue.places_of(product)]


def test_items_of_one_product_are_one() -> None:
    records = [
        {"product": "a", "category_path": ["X", "Y"], "attributes": {"size": "s"}},
        {"product": 7, "title": "seven", "category_path": ["X", "Z"]},
        {"product": "a", "title": "first <b>title</b>", "category_path": ["X", "W"]},
        {"product": "a", "title": "second", "category_path": ["X", "Y"], "attributes": {"size": ["s", "m"]}},
    ]
    splits = ["train", "test", "test", "train"]
    shop = catalogue_of(collection(records, [False, True, True, True], splits))  # type: ignore[arg-type]
    assert list(shop.ids) == ["a", "7"]
    assert shop.titles == ["first title", "seven"]
    assert shop.attributes == [("size: s", "size: m"), ()]
    assert paths(shop, 0) == [("X", "Y"), ("X", "W")]
    assert shop.picture_rows.tolist() == [2, 1]
    assert shop.splits == ["train", "test"]
    assert "further items of products that had one already, their images left out: 2" in shop.notes
    assert "items in another split than their product's first item: 1" in shop.notes


def test_forms_of_attributes() -> None:
    attributes = {"base_colour": "Red &amp; blue", "": "x", "none": None}
    records = [{"title": "t", "attributes": attributes, "category_path": ["A"]}]
    assert catalogue_of(collection(records)).attributes == [("base colour: Red & blue", "x")]
    assert catalogue_of(collection(records), attribute_form="values").attributes == [("Red & blue", "x")]


def test_a_given_tree_holds_all_paths_or_the_choice_is_stated() -> None:
    tree = CategoryTree([("A", "B"), ("Z",)], codes={("A",): "1"})
    shop = collection([{"category_path": path} for path in (["A", "B"], ["A", "C"], ["Q"])])
    refused(DataError, r"product i1 is in 'A > C'.*2 of 3 paths", catalogue_of, shop, tree=tree)
    added = catalogue_of(shop, tree=tree, unknown="add")
    assert added.tree.paths == (("A",), ("A", "B"), ("A", "C"), ("Q",), ("Z",))
    assert added.tree.codes == {("A",): "1"}
    assert paths(added, 2) == [("Q",)]
    left = catalogue_of(shop, tree=tree, unknown="none")
    assert left.tree is tree
    assert left.place.tolist() == [1, -1, -1]
    assert "categories added to the tree: 2" in added.notes
    assert "paths left out that the tree does not have: 2" in left.notes


def test_what_is_no_shop_is_an_error() -> None:
    refused(DataError, "these are no products", catalogue_of, collection([{}, {"colour": "red"}]))
    none = collection([{"title": "a"}, {"title": "b", "category_path": []}])
    refused(DataError, "none of 2 products has a category", catalogue_of, none)
    assert len(catalogue_of(collection([{"title": "a"}]), tree=CategoryTree([("A",)]))) == 1


def test_a_draw_belongs_to_seed_epoch_and_product(shop: Catalogue) -> None:
    whole = dict(zip(shop.ids, targets_of(shop, "all", seed=3, epoch=2).tolist(), strict=True))
    for part in (shop.split("test"), shop.subset([7, 2, 0, 19])):
        drawn = targets_of(part, "all", seed=3, epoch=2)
        assert drawn.tolist() == [whole[name] for name in part.ids]
    other = [targets_of(shop, "all", **given) for given in ({}, {"seed": 1}, {"epoch": 0}, {"epoch": 1})]
    assert len({one.tobytes() for one in other}) == 4


NAMES = ("all", "most-general", "most-specific")
NAN = {"train": float("nan"), "test": 0.5}


def catalogue(places: list[list[tuple[str, ...]]]) -> Catalogue:
    """Products p0, p1, … with these places."""
    tree = CategoryTree({path for own in places for path in own} | {("empty",)})
    n = len(places)
    start = np.concatenate([[0], np.cumsum([len(one) for one in places])]).astype(np.int64)
    nodes = np.array([tree.node(path) for own in places for path in own], dtype=np.int64)
    ids, none = [f"p{row}" for row in range(n)], np.full(n, -1)
    return Catalogue("shop", ids, [""] * n, [()] * n, tree, start, nodes, ["test"] * n, collection([]), none)


def relevant(judged: Judged, shop: Catalogue) -> dict[int, set[int]]:
    """Category → products, by node and row of the catalogue."""
    return {
        int(node): {int(judged.products[row]) for row in judged.truth.t2i.of(text)}
        for text, node in enumerate(judged.nodes)
    }


def slowly(shop: Catalogue, setting: str, relevance: str) -> dict[int, set[int]]:
    """The definition, product by product."""
    found: dict[int, set[int]] = {}
    asking: set[int] = set()
    for row in range(len(shop)):
        for node in shop.places_of(row).tolist():
            line = shop.tree.ancestors(node).tolist()
            asking |= set({"all": line, "most-general": line[:1], "most-specific": line[-1:]}[setting])
    labels = targets_of(shop, setting)
    for row in range(len(shop)):
        line = {one for node in shop.places_of(row).tolist() for one in shop.tree.ancestors(node).tolist()}
        for node in {int(labels[row])} - {-1} if relevance == "label" else line & asking:
            found.setdefault(node, set()).add(row)
    return found


PATHS = st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map(tuple)


@given(
    st.lists(st.lists(PATHS, max_size=3, unique=True), min_size=1, max_size=12),
    st.sampled_from(NAMES),
    st.sampled_from(["label", "path"]),
)
def test_any_tree_and_any_places(products: list[list[tuple[str, ...]]], setting: str, relevance: Any) -> None:
    shop = catalogue(products)
    if not len(shop.places):
        refused(DataError, "no category has a product", judge, shop, setting, relevance)
        return
    judged = judge(shop, setting, relevance)
    assert relevant(judged, shop) == slowly(shop, setting, relevance)


def test_texts(shop: Catalogue) -> None:
    nodes = shop.tree.meant("clothing")
    assert category_texts(shop.tree, nodes) == ["Clothing", "Clothing"]
    both = ["Men > Clothing", "Women > Clothing"]
    assert category_texts(shop.tree, nodes, "path") == category_texts(shop.tree, nodes, "unique") == both
    assert category_texts(shop.tree, [shop.tree.node(DRESSES)], "unique") == ["Dresses"]


def test_by_product_follows_the_id(shop: Catalogue) -> None:
    many = products(3000, shop)
    made = assign_splits(many, "product", seed=5)
    assert made.split_sizes["train"] == pytest.approx(2400, abs=70)
    assert made.split_sizes["test"] == pytest.approx(300, abs=50)
    some = assign_splits(many.subset(np.arange(2999, 0, -2)), "product", seed=5)
    whole = dict(zip(made.ids, made.splits, strict=True))
    assert list(some.splits) == [whole[name] for name in some.ids]
    assert made.splits != assign_splits(many, "product", seed=6).splits
    assert made.notes[-1] == "split by product, seed 5: train 0.8, val 0.1, test 0.1"


def test_the_same_product_twice_is_never_on_both_sides(shop: Catalogue) -> None:
    twice = products(96, shop, titles=[shop.titles[row] for row in np.repeat(np.arange(24), 4)])

    def parted(**options: Any) -> set[str]:
        made = assign_splits(twice, "product", shares={"train": 0.5, "test": 0.5}, **options)
        of_product = zip(shop.ids, np.array(made.splits, dtype=object).reshape(24, 4), strict=True)
        return {name for name, four in of_product if len(set(four)) > 1}

    assert parted(together="title") <= {"p10"}  # it has no title
    assert len(parted()) > 5


def test_a_held_out_category_is_in_test_alone(shop: Catalogue) -> None:
    cases: Any = ["all", "most-specific"]
    for setting in cases:
        made = assign_splits(shop, "category", setting=setting, held_out=0.3, seed=0)
        assert list(made.ids) == list(shop.ids)
        assert [one for one in made.splits if one == "test"] == ["test"] * shop.split_sizes["test"]
        seen, before = (seen_nodes(one.split("train"), setting, epochs=50) for one in (made, shop))
        judged = judge(made.split("test"), setting, "path")
        unseen = judged.nodes[~seen[judged.nodes]]
        assert len(unseen) >= int(made.notes[-1].split(": ")[1].split()[0]) > 0  # all that were held out
        assert seen[judged.nodes].any()
        assert not (seen & ~before).any()
        moved = made.split("held-out")
        for row in range(len(moved)):
            line = {node for place in moved.places_of(row) for node in moved.tree.ancestors(place).tolist()}
            assert line & set(unseen.tolist())


def test_what_cannot_be(shop: Catalogue) -> None:
    cases: list[tuple[str, dict[str, Any], type[DiptychError], str]] = [
        ("products", {}, UnknownNameError, "product"),
        ("given", {"seed": 1}, UsageError, "unknown key 'seed'.*known there: none"),
        ("product", {"held_out": 0.1}, UsageError, "seed, shares, together"),
        *(("product", {"shares": one}, UsageError, "do not add up") for one in ({"train": 0.8}, {}, NAN)),
        ("product", {"together": "picture"}, UsageError, "together"),
        ("product", {"shares": {"train": 0.9999, "test": 0.0001}}, DataError, "no product fell to test"),
        ("category", {"held_out": 1.0}, UsageError, "held_out: .*less than 1"),
        ("category", {"setting": "most-special"}, UsageError, "most-specific"),
    ]
    for kind, options, error, words in cases:
        refused(error, words, assign_splits, shop, kind, **options)
    no_test = shop.subset([row for row, name in enumerate(shop.splits) if name != "test"])
    refused(
        DataError,
        "0 of the 'most-specific' categories have products in test",
        assign_splits,
        no_test,
        "category",
    )


def products(n: int, shop: Catalogue, **changed: Any) -> Catalogue:
    """Products p0, p1, … that have no place, title, attribute or picture."""
    return replace(catalogue([[]] * n), collection=shop.collection, **changed)
