"""Which product is relevant to which category, against a slow reading of the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_catalogue import tiny_catalogue

from diptych.commerce.catalogue import Catalogue, Judged, category_texts, judge, targets_of
from diptych.core.errors import DataError, UsageError
from diptych.data.collection import Collection
from diptych.data.images import FolderSource
from diptych.data.taxonomy import CategoryTree

SETTINGS = ("all", "most-general", "most-specific")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return tiny_catalogue(tmp_path_factory.mktemp("tiny") / "pictures")


def catalogue(products: list[list[tuple[str, ...]]]) -> Catalogue:
    """Products p0, p1, … with these places."""
    tree = CategoryTree({path for places in products for path in places} | {("empty",)})
    n = len(products)
    source = FolderSource("nowhere", [])
    nothing = np.zeros(0, dtype=np.int64)
    return Catalogue(
        name="shop",
        ids=[f"p{row}" for row in range(n)],
        titles=[""] * n,
        attributes=[()] * n,
        tree=tree,
        place_start=np.concatenate([[0], np.cumsum([len(one) for one in products])]).astype(np.int64),
        places=np.array([tree.node(path) for places in products for path in places], dtype=np.int64),
        splits=["test"] * n,
        collection=Collection("shop", [], [], [], nothing, [], source, nothing),
        picture_rows=np.full(n, -1),
    )


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


@pytest.mark.parametrize("relevance", ["label", "path"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_as_the_definition_says(shop: Catalogue, setting: str, relevance: Any) -> None:
    judged = judge(shop, setting, relevance)
    assert relevant(judged, shop) == slowly(shop, setting, relevance)
    assert judged.nodes.tolist() == sorted(judged.nodes.tolist())
    assert (len(judged.products), judged.without_category) == (23, 1)
    assert judged.truth.symmetric
    assert (judged.truth.text_image == -1).all()
    assert (judged.setting, judged.relevance, judged.seed) == (setting, relevance, 0)
    assert np.array_equal(judged.labels, targets_of(shop, setting)[judged.products])


PATHS = st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map(tuple)


@given(
    st.lists(st.lists(PATHS, max_size=3, unique=True), min_size=1, max_size=12),
    st.sampled_from(SETTINGS),
    st.sampled_from(["label", "path"]),
)
def test_any_tree_and_any_places(products: list[list[tuple[str, ...]]], setting: str, relevance: Any) -> None:
    shop = catalogue(products)
    if not len(shop.places):
        with pytest.raises(DataError, match="no category has a product"):
            judge(shop, setting, relevance)
        return
    judged = judge(shop, setting, relevance)
    assert relevant(judged, shop) == slowly(shop, setting, relevance)


def test_one_category_that_holds_half_of_all_products() -> None:
    shop = catalogue([[("big",)]] * 500 + [[("small", str(row))] for row in range(500)])
    for setting in SETTINGS:
        for relevance in ("label", "path"):
            judged = judge(shop, setting, relevance)  # type: ignore[arg-type]
            assert len(judged.truth.t2i.of(judged.nodes.tolist().index(shop.tree.node(("big",))))) == 500


def test_only_some_categories_ask(shop: Catalogue) -> None:
    women = shop.tree.node(("Women",))
    dresses = shop.tree.node(("Women", "Clothing", "Dresses"))
    judged = judge(shop, "all", "path", query_nodes=np.array([dresses, women, women]))
    assert judged.nodes.tolist() == [women, dresses]
    assert (
        len(judged.products) == 23
    )  # what is relevant to neither stays in the gallery, and asks for nothing
    asked = set(judged.truth.queries("i2t").tolist())
    assert asked == set(judged.truth.t2i.of(0).tolist())
    with pytest.raises(DataError, match="no category of the 1 asked for"):
        judge(shop, "most-general", query_nodes=np.array([dresses]))
    with pytest.raises(UsageError, match="12 categories"):
        judge(shop, "all", query_nodes=np.array([12]))
    with pytest.raises(UsageError, match="one of label, path"):
        judge(shop, "all", "tree")  # type: ignore[arg-type]


def test_the_node_with_the_last_number_asks_only_if_it_has_a_product() -> None:
    """Shorter rows of the lineage end in -1, which must not count as the last node."""
    judged = judge(catalogue([[("a",)], [("a", "b", "c")]]), "all", "path")
    assert judged.nodes.tolist() == [0, 1, 2]  # node 3 is "empty"


def test_texts(shop: Catalogue) -> None:
    nodes = shop.tree.named("Clothing")
    assert category_texts(shop.tree, nodes) == ["Clothing", "Clothing"]
    assert category_texts(shop.tree, nodes, "path") == ["Men > Clothing", "Women > Clothing"]
    with pytest.raises(UsageError):
        category_texts(shop.tree, nodes, "code")  # type: ignore[arg-type]
