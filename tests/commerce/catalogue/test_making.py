"""From a collection of products to a catalogue: who is a product, and where in the tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_catalogue import COATS, DRESSES, NO_CATEGORY, NO_PICTURE, TWO_PATHS, tiny_catalogue, tiny_records

from diptych.commerce.catalogue import Catalogue, catalogue_of
from diptych.core.errors import DataError, UsageError
from diptych.data.collection import Collection
from diptych.data.images import FolderSource
from diptych.data.taxonomy import CategoryTree


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


def test_the_tiny_shop(tmp_path: Path) -> None:
    shop = tiny_catalogue(tmp_path)
    assert len(shop) == 24
    assert shop.split_sizes == {"train": 12, "val": 6, "test": 6}
    assert (
        "1 without a picture, 1 without a title, 1 without attributes, 1 without a category"
        in shop.describe()
    )
    assert "12 categories on 3 levels: 2 most general, 6 without children" in shop.describe()
    at = {name: row for row, name in enumerate(shop.ids)}
    assert paths(shop, at[TWO_PATHS]) == [DRESSES, COATS]
    assert paths(shop, at[NO_CATEGORY]) == []
    assert shop.picture_rows[at[NO_PICTURE]] == -1
    assert shop.attributes[1] == ("colour: blue", "material: cotton", "material: wool")
    assert len(shop.tree.named("Clothing")) == 2
    assert shop.collection.image(int(shop.picture_rows[0])).size == (16, 16)
    for row, record in enumerate(tiny_records()):
        assert shop.titles[row] == record["title"]


def test_items_of_one_product_are_one() -> None:
    shop = catalogue_of(
        collection(
            [
                {"product": "a", "category_path": ["X", "Y"], "attributes": {"size": "s"}},
                {"product": 7, "title": "seven", "category_path": ["X", "Z"]},
                {
                    "product": "a",
                    "title": "first <b>title</b>",
                    "category_path": ["X", "W"],
                    "attributes": {"size": ["s", "m"]},
                },
                {"product": "a", "title": "second", "category_path": ["X", "Y"]},
            ],
            pictured=[False, True, True, True],
            splits=["train", "test", "test", "train"],  # type: ignore[arg-type]
        )
    )
    assert list(shop.ids) == ["a", "7"]
    assert shop.titles == ["first title", "seven"]
    assert shop.attributes == [("size: s", "size: m"), ()]
    assert paths(shop, 0) == [("X", "Y"), ("X", "W")]
    assert shop.picture_rows.tolist() == [2, 1]
    assert shop.splits == ["train", "test"]
    assert "further items of products that had one already, their pictures left out: 2" in shop.notes
    assert "items in another split than their product's first item: 1" in shop.notes


def test_a_path_that_another_goes_on_from_is_dropped() -> None:
    records = [{"category_paths": [["A"], ["A", "B"], ["C"], ["A", "B", "D"]]}, {"category_path": ["A"]}]
    shop = catalogue_of(collection(records))
    assert paths(shop, 0) == [("C",), ("A", "B", "D")]
    assert paths(shop, 1) == [("A",)]
    assert "paths left out that another path of the same product goes on from: 2" in shop.notes


def test_forms_of_attributes() -> None:
    records = [
        {
            "title": "t",
            "attributes": {"base_colour": "Red &amp; blue", "": "x", "none": None},
            "category_path": ["A"],
        }
    ]
    assert catalogue_of(collection(records)).attributes == [("base colour: Red & blue", "x")]
    assert catalogue_of(collection(records), attribute_form="values").attributes == [("Red & blue", "x")]


def test_a_given_tree_holds_all_paths_or_the_choice_is_stated() -> None:
    tree = CategoryTree([("A", "B"), ("Z",)], codes={("A",): "1"})
    shop = collection(
        [{"category_path": ["A", "B"]}, {"category_path": ["A", "C"]}, {"category_path": ["Q"]}]
    )
    with pytest.raises(DataError, match=r"product i1 is in 'A > C'.*2 of 3 paths"):
        catalogue_of(shop, tree=tree)
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
    with pytest.raises(DataError, match="these are no products"):
        catalogue_of(collection([{}, {"colour": "red"}]))
    with pytest.raises(DataError, match="none of 2 products has a category"):
        catalogue_of(collection([{"title": "a"}, {"title": "b", "category_path": []}]))
    assert len(catalogue_of(collection([{"title": "a"}]), tree=CategoryTree([("A",)]))) == 1
    with pytest.raises(UsageError, match="one of named, values"):
        catalogue_of(collection([{"title": "a"}]), attribute_form="both")  # type: ignore[arg-type]


def test_names_repeated_under_roots_are_different_categories() -> None:
    records = [{"category_path": [root, "Accessories"]} for root in ("Men", "Women", "Men")]
    shop = catalogue_of(collection(records))
    assert shop.place[0] == shop.place[2] != shop.place[1]
