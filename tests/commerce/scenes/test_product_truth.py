"""truth.json has the tree; the best possible observer knows as much as docs/datasets.md says."""

from __future__ import annotations

import re
from pathlib import Path

from product_observer import EFFECTS, MOST_SPECIFIC, SUBSETS, accuracies

from diptych.commerce.scenes.products import TRUTH, Leaf, ProductOptions, Products, grow
from diptych.core.reading import read_json
from diptych.data.collection import Collection

DATASETS = Path(__file__).parents[3] / "docs" / "datasets.md"


def test_the_truth_is_the_tree_that_products_are_in(shop: Path, products: Collection) -> None:
    truth = read_json(shop / TRUTH)
    leaves = [Leaf(tuple(one["path"]), one["values"], one["prior"]) for one in truth["leaves"]]
    assert leaves == grow(3)
    assert truth["effects"] == EFFECTS
    assert {tuple(record["belongs"]) for record in products.records or ()} <= {leaf.path for leaf in leaves}


def test_the_claims_of_the_thesis_hold_by_construction_as_the_documents_say() -> None:
    usual = Products(ProductOptions())
    share = accuracies(usual.leaves, [usual.line(number) for number in range(2000)])
    picture, title, attributes, _, picture_attributes, _, everything = SUBSETS
    assert (
        share[everything, MOST_SPECIFIC]
        > share[picture_attributes, MOST_SPECIFIC]
        > share[picture, MOST_SPECIFIC]
    )
    assert share[title, MOST_SPECIFIC] > share[picture, MOST_SPECIFIC]
    assert share[picture, 1] > max(share[title, 1], share[attributes, 1])
    for some in SUBSETS:
        row = rf"\| {re.escape(' + '.join(some))} \| {share[some, 1]:.1%} \| {share[some, MOST_SPECIFIC]:.1%} \|"
        assert re.search(row, DATASETS.read_text("utf-8")), row
