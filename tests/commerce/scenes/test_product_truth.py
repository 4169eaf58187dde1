"""truth.json is what anyone counts, and the best possible observer is as good as it says."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.commerce.scenes.categories import (
    DEPARTMENTS,
    MOST_SPECIFIC,
    SUBSETS,
    WORDS,
    Leaf,
    Observer,
    grow,
    planted,
    truth_of,
)
from diptych.commerce.scenes.products import PRODUCTS, TRUTH, ProductOptions, Products
from diptych.core.reading import read_json
from diptych.data.collection import Collection
from diptych.data.products import paths_of

Lines = list[dict[str, Any]]
SHOP = Products(ProductOptions(without_picture=0.05, without_title=0.05), planted())
OBSERVER = Observer(SHOP.leaves, SHOP.effects)


@pytest.fixture(scope="module")
def lines() -> Lines:
    """2,000 products, undrawn."""
    return [SHOP.line(number) for number in range(2000)]


@pytest.fixture(scope="module")
def truth(lines: Lines) -> dict[str, Any]:
    return truth_of(SHOP.leaves, SHOP.effects, lines)


def test_counts_are_what_the_records_say(shop: Path, products: Collection) -> None:
    truth = read_json(shop / TRUTH)
    records = products.records
    counts = truth["counts"]
    assert counts["products"] == 200
    assert counts["splits"] == products.split_sizes
    assert counts["without picture"] == int((~products.pictured).sum())
    assert counts["without title"] == sum(not record["title"] for record in records)
    assert counts["without category"] == sum(not paths_of(record) for record in records)
    assert counts["in two places"] == sum(len(paths_of(record)) == 2 for record in records)
    levels = Counter(len(record["belongs"]) for record in records)
    assert counts["levels"] == {str(level): count for level, count in sorted(levels.items())}
    assert counts["mean level"] == pytest.approx(np.mean([len(record["belongs"]) for record in records]))


def probability_of(told: Mapping[str, str], leaf: Leaf, modality: str) -> float:
    """Of what a modality tells of a product of a leaf, term by term."""
    total = 1.0
    for facet, how in SHOP.effects[modality].items():
        n = len(WORDS[facet])
        own = DEPARTMENTS[leaf.values["department"]]["noun"] if facet == "noun" else leaf.values.get(facet)
        share = how["told"] * (1 if own or modality == "picture" else SHOP.effects["beside"])
        if facet not in told:
            total *= 1 - share
        elif own is None:
            total *= share / n
        else:
            total *= share * (how["right"] if told[facet] == own else (1 - how["right"]) / (n - 1))
    return total


def test_the_posterior_is_bayes_rule(lines: Lines) -> None:
    few = lines[:25]
    for some, (model, shares) in zip(SUBSETS, OBSERVER.posteriors(few), strict=True):
        assert model["modalities"] == list(some)
        for row, line in enumerate(few):
            weights = [
                leaf.prior
                * math.prod(probability_of(line["told"][m], leaf, m) for m in some if m in line["told"])
                for leaf in SHOP.leaves
            ]
            np.testing.assert_allclose(shares[row], np.array(weights) / sum(weights), atol=1e-8)


def shares_of(truth: dict[str, Any]) -> dict[tuple[str, Any], float]:
    return {(row["model"], row["level"]): row["share"] for row in truth["ideal"]["accuracy"]}


def test_the_claims_of_the_thesis_hold_by_construction(truth: dict[str, Any]) -> None:
    share = shares_of(truth)
    assert share["clip-ita", MOST_SPECIFIC] > share["clip-ia", MOST_SPECIFIC] > share["clip-i", MOST_SPECIFIC]
    assert share["clip-t", MOST_SPECIFIC] > share["clip-i", MOST_SPECIFIC]
    assert share["clip-i", 1] > max(share["clip-t", 1], share["clip-a", 1])


def test_what_is_on_disk_is_what_is_counted(shop: Path) -> None:
    lines = [json.loads(line) for line in (shop / PRODUCTS).read_text().splitlines()]
    counted = truth_of(grow(3), planted(), lines)
    assert json.loads(json.dumps(counted)) == read_json(shop / TRUTH)
