"""A shop is the same from the same seed; its records say what is planted, as documents say."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import every_byte
from hypothesis import given
from hypothesis import strategies as st
from product_observer import EFFECTS, MOST_SPECIFIC, SUBSETS, accuracies
from refusals import refused

from diptych.commerce.scenes.products import (
    PRODUCTS,
    TRUTH,
    WORDS,
    Leaf,
    ProductOptions,
    Products,
    grow,
    make_product_scenes,
    product_scenes,
    read_product_scenes,
    spoilt,
    title_of,
)
from diptych.core.errors import DataError, ImageError
from diptych.core.reading import read_json
from diptych.data.collection import Collection
from diptych.data.products import attributes_of, paths_of, plain_text

OPTIONS: dict[str, Any] = {
    "seed": 3,
    "size": 32,
    "without_picture": 0.1,
    "without_title": 0.1,
    "without_attributes": 0.1,
    "without_category": 0.1,
    "in_two_places": 0.1,
    "dirt": 0.3,
}


@pytest.fixture(scope="session")
def options() -> dict[str, Any]:
    """What ``shop`` is made with."""
    return OPTIONS


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 products that lack this and that."""
    return make_product_scenes(tmp_path_factory.mktemp("made") / "shop", 200, workers=1, **OPTIONS)


@pytest.fixture(scope="session")
def products(shop: Path) -> Collection:
    return read_product_scenes(shop)


Options = dict[str, Any]


def test_processes_change_no_byte(options: Options, tmp_path: Path) -> None:
    whole, few = (make_product_scenes(tmp_path / f"{n}", 12, workers=n, **options) for n in (1, 2))
    assert every_byte(whole) == every_byte(few)


def test_a_larger_shop_begins_with_the_smaller(shop: Path, options: Options, tmp_path: Path) -> None:
    fewer = make_product_scenes(tmp_path / "fewer", 70, workers=1, **options)
    assert (shop / PRODUCTS).read_bytes().startswith((fewer / PRODUCTS).read_bytes())
    many, few = every_byte(shop), every_byte(fewer)
    assert all(many[name] == content for name, content in few.items() if name.endswith(".png"))


def test_what_is_missing_changes_nothing_else(products: Collection, tmp_path: Path) -> None:
    whole = product_scenes(tmp_path / "whole", 200, seed=3, size=32, workers=1)
    assert whole.pictured.all()
    assert whole.n_captions == 200
    for row, (full, less) in enumerate(zip(whole.records, products.records, strict=True)):
        assert full["facts"] == less["facts"]
        assert full["belongs"] == less["belongs"] == full["category_paths"][0]
        assert less["title"] in ("", full["title"])
        assert {**full["told"], **less["told"]} == full["told"]
        told = dict(attributes_of(less))
        assert {**dict(attributes_of(full)), **told} == dict(attributes_of(full))
        if products.pictured[row]:
            assert np.array_equal(np.asarray(whole.image(row)), np.asarray(products.image(row)))


def test_records_are_products(shop: Path, products: Collection) -> None:
    assert products.split_sizes == {"train": 140, "test": 40, "val": 20}
    assert len(set(products.image_ids)) == 200
    lines = [json.loads(line) for line in (shop / PRODUCTS).read_text().splitlines()]
    spoilt = 0
    for row, (record, line) in enumerate(zip(products.records, lines, strict=True)):
        assert record["product"] == products.image_ids[row] == line["id"]
        assert products.captions_of(row) == ([record["title"]] if record["title"] else [])
        assert "<" not in record["title"]
        assert record["title"] == plain_text(line["title"] or "")
        spoilt += line["title"] not in (None, record["title"])
        for path in paths_of(record):
            assert 2 <= len(path) <= 9
        for name, value in attributes_of(record):
            assert record["told"]["attributes"].get(name, value) == value
        if not products.pictured[row]:
            refused(ImageError, "has no image", products.image, row)
    assert 25 <= spoilt <= 90


def test_what_is_damaged_is_said_to_be(tmp_path: Path) -> None:
    made = make_product_scenes(tmp_path / "made", 4, size=32)
    lines = (made / PRODUCTS).read_text().splitlines()
    for last, message in (
        *(([], "holds 3 products, 4 expected"), ([lines[3][:-20]], "line 4 is not JSON")),
        *((["[]"], "is corrupt"), (['{"id": "p000003"}'], "is corrupt")),
    ):
        (made / PRODUCTS).write_text("\n".join([*lines[:3], *last]) + "\n")
        refused(DataError, message, read_product_scenes, made)
    (made / "dataset.json").write_text('{"dataset":"product-scenes","version":0}')
    refused(DataError, "version 0", read_product_scenes, made)


@given(
    st.integers(0, 2**32),
    st.fixed_dictionaries(
        {}, optional={facet: st.sampled_from(sorted(said)) for facet, said in WORDS.items()}
    ),
)
def test_what_is_spoilt_can_be_read(seed: int, told: dict[str, str]) -> None:
    chance = random.Random(seed)
    title = title_of(told, chance, 0.4)
    assert plain_text(title) == title
    assert plain_text(spoilt(title, chance)) == title


def test_depths_are_uneven_and_as_the_thesis_has_them() -> None:
    cases: Any = range(6)
    for seed in cases:
        leaves = grow(seed)
        assert {len(leaf.path) for leaf in leaves} == set(range(2, 10))
        assert sum(leaf.prior for leaf in leaves) == pytest.approx(1)
        assert sum(leaf.prior * len(leaf.path) for leaf in leaves) == pytest.approx(4.6, abs=0.3)


DATASETS = Path(__file__).parents[3] / "docs" / "reference" / "datasets.md"


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
        named = " + ".join(some).replace("picture", "image")
        row = rf"\| {re.escape(named)} \| {share[some, 1]:.1%} \| {share[some, MOST_SPECIFIC]:.1%} \|"
        assert re.search(row, DATASETS.read_text("utf-8")), row
