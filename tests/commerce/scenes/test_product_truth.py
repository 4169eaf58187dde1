"""truth.json has the tree; the best possible observer knows as much as docs/reference/datasets.md says."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from product_observer import EFFECTS, MOST_SPECIFIC, SUBSETS, accuracies, posteriors

from diptych.commerce.scenes.products import DEPARTMENTS, TRUTH, WORDS, Leaf, ProductOptions, Products, grow
from diptych.core.reading import read_json
from diptych.data.collection import Collection

SHOP = Products(ProductOptions(without_picture=0.05, without_title=0.05))
DATASETS = Path(__file__).parents[3] / "docs" / "reference" / "datasets.md"


def test_the_truth_is_the_tree_that_products_are_in(shop: Path, products: Collection) -> None:
    truth = read_json(shop / TRUTH)
    leaves = [Leaf(tuple(one["path"]), one["values"], one["prior"]) for one in truth["leaves"]]
    assert leaves == grow(3)
    assert truth["effects"] == EFFECTS
    assert {tuple(record["belongs"]) for record in products.records or ()} <= {leaf.path for leaf in leaves}


def probability_of(told: Mapping[str, str], leaf: Leaf, modality: str) -> float:
    """Of what a modality tells of a product of a leaf, term by term."""
    total = 1.0
    for facet, how in EFFECTS[modality].items():
        n = len(WORDS[facet])
        own = DEPARTMENTS[leaf.values["department"]]["noun"] if facet == "noun" else leaf.values.get(facet)
        share = how["told"] * (1 if own or modality == "picture" else EFFECTS["beside"])
        if facet not in told:
            total *= 1 - share
        elif own is None:
            total *= share / n
        else:
            total *= share * (how["right"] if told[facet] == own else (1 - how["right"]) / (n - 1))
    return total


def test_the_posterior_is_bayes_rule() -> None:
    few = [SHOP.line(number) for number in range(25)]
    for some, shares in posteriors(SHOP.leaves, few):
        for row, line in enumerate(few):
            weights = [
                leaf.prior
                * math.prod(probability_of(line["told"][m], leaf, m) for m in some if m in line["told"])
                for leaf in SHOP.leaves
            ]
            np.testing.assert_allclose(shares[row], np.array(weights) / sum(weights), atol=1e-8)


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
