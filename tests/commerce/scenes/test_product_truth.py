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
from hypothesis import given
from hypothesis import strategies as st

from diptych.commerce.scenes.categories import (
    DEPARTMENTS,
    MOST_SPECIFIC,
    SUBSETS,
    WORDS,
    Leaf,
    Observer,
    grow,
    planted,
    shared_precision,
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
    for modality, facets in truth["told"].items():
        for facet, said in facets.items():
            told = [r for r in records if facet in r["told"].get(modality, {})]
            assert said["told"] + said["told beside"] == len(told)
            assert said["right"] == sum(r["told"][modality][facet] == r["facts"][facet] for r in told)
            assert said["depend"] + said["free"] == sum(modality in r["told"] for r in records)


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


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=2, max_size=6), st.integers(1, 4))
def test_shared_places_are_the_mean_over_orders(items: list[tuple[int, bool]], k: int) -> None:
    from itertools import permutations

    found = []
    for order in permutations(items):
        ranked = sorted(order, key=lambda item: -item[0])  # stable: ties stay as they came
        found.append(sum(relevant for _, relevant in ranked[:k]) / k)
    scores = np.array([[float(score)] for score, _ in items])
    relevant = np.array([[right] for _, right in items])
    assert shared_precision(scores, relevant, k)[0] == pytest.approx(np.mean(found))


def test_precision_is_what_the_definition_says(lines: Lines) -> None:
    """Most specific, all three modalities: category by category, without ties."""
    few = lines[:200]
    test = [line for line in few if line["split"] == "test"]
    *_, (_, shares) = OBSERVER.posteriors(test)
    firsts = []
    for place, leaf in enumerate(SHOP.leaves):
        relevant = [tuple(line["belongs"]) == leaf.path for line in test]
        if any(relevant):
            top = np.round(shares[:, place], 12)
            tied = np.flatnonzero(top == top.max())
            firsts.append(np.mean([relevant[row] for row in tied]))
    said = next(
        row
        for row in OBSERVER.precisions(test)
        if row["model"] == "clip-ita" and row["setting"] == MOST_SPECIFIC
    )
    assert said["categories"] == len(firsts)
    assert said["p@1"] == pytest.approx(np.mean(firsts))


def test_what_is_on_disk_is_what_is_counted(shop: Path) -> None:
    lines = [json.loads(line) for line in (shop / PRODUCTS).read_text().splitlines()]
    counted = truth_of(grow(3), planted(), lines)
    assert json.loads(json.dumps(counted)) == read_json(shop / TRUTH)
