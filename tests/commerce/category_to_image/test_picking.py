"""The best pictures for every category."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tiny_catalogue import DRESSES, TWO_PATHS, tiny_catalogue

from diptych.commerce.catalogue import Catalogue, category_texts
from diptych.commerce.category_to_image.picking import Picks, pick
from diptych.core.errors import DataError, MismatchError, UsageError


def rows_of(shop: Catalogue, seed: int = 0, width: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Small whole numbers, so that many scores are equal."""
    random = np.random.default_rng(seed)
    return tuple(random.integers(-2, 3, (n, width)).astype(np.float32) for n in (len(shop.tree), len(shop)))  # type: ignore[return-value]


def picked(shop: Catalogue, categories: Any, products: Any, k: int = 3, **options: Any) -> Picks:
    options = {"beyond": True, "texts": category_texts(shop.tree, range(len(shop.tree))), **options}
    return pick(categories, products, shop, k, **options)


def slowly_pick(
    shop: Catalogue,
    categories: np.ndarray,
    products: np.ndarray,
    k: int,
    among: str,
    keys: list[list[object]],
) -> list[list[int]]:
    scores = categories.astype(np.float64) @ products.astype(np.float64).T
    found = []
    for node, mine in enumerate(scores):
        kept: list[int] = []
        seen: set[object] = set()
        for item in sorted(range(len(shop)), key=lambda one: (-mine[one], one)):
            below = any(node in shop.tree.ancestors(place) for place in shop.places_of(item))
            if not shop.pictured[item] or (among == "members" and not below) or len(kept) == k:
                continue
            if seen.isdisjoint(keys[item]):
                seen.update(keys[item])
                kept.append(item)
        found.append(kept)
    return found


def lists(picks: Picks) -> list[list[int]]:
    return [one.tolist() for one in np.split(picks.products, picks.start[1:-1])]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), k=st.integers(1, 30), among=st.sampled_from(["all", "members"]))
def test_agrees_with_a_slow_sort(shop: Catalogue, seed: int, k: int, among: str) -> None:
    categories, products = rows_of(shop, seed)
    picks = picked(shop, categories, products, k, among=among)
    nodes = np.repeat(np.arange(len(shop.tree)), np.diff(picks.start))
    keys: list[list[object]] = [[row] for row in shop.picture_rows.tolist()]
    assert lists(picks) == slowly_pick(shop, categories, products, k, among, keys)
    assert np.array_equal(picks.scores, np.vecdot(categories[nodes], products[picks.products]))


def test_nothing_is_shown_twice_on_one_category(shop: Catalogue) -> None:
    words = [title.split(" ")[0] for title in shop.titles]
    titles = [word.upper() if row % 2 else word for row, word in enumerate(words)]
    sources = shop.collection.source_rows.copy()
    sources[6:12] = 6  # six products have one picture
    odd = replace(shop, titles=titles, collection=replace(shop.collection, source_rows=sources))
    categories, products = rows_of(odd, 3)
    for among, by in product(("all", "members"), ((), ("title",), ("content",), ("title", "content"))):
        picks = picked(odd, categories, products, 6, among=among, distinct=by)
        own = [[title.lower()] if "title" in by and title else [] for title in titles]
        keys: list[list[object]] = [[int(sources[row]), *own[row]] for row in range(24)]
        assert lists(picks) == slowly_pick(odd, categories, products, 6, among, keys)


def test_equal_files_are_one_content(shop: Catalogue, tmp_path: Path) -> None:
    copied = tiny_catalogue(tmp_path)
    for row in range(8, 16):
        (tmp_path / f"p{row:02d}.png").write_bytes((tmp_path / "p08.png").read_bytes())
    picks = picked(copied, *rows_of(copied, 1), 20, distinct=("content",))
    assert all(sum(8 <= one < 16 for one in mine) == 1 for mine in lists(picks))
    assert all(len(mine) == 16 for mine in lists(picks))


def test_no_more_than_a_category_has(shop: Catalogue) -> None:
    for among in ("all", "members"):
        rows = rows_of(shop)
        capped, beyond = (picked(shop, *rows, 5, among=among, beyond=one) for one in (False, True))
        assert np.diff(capped.start).tolist() == np.minimum(capped.there, 5).tolist()
        assert capped.there.min() < 5 < capped.there.max()
        for some, more in zip(lists(capped), lists(beyond), strict=True):
            assert some == more[: len(some)]
        unsorted = replace(shop, place_start=np.zeros(25, np.int64), places=np.zeros(0, np.int64))
        assert len(picked(unsorted, *rows, 5, beyond=False).products) == 5 * len(shop.tree)


def test_sparse_rows_show_only_what_has_a_word_in_common(shop: Catalogue) -> None:
    node = shop.tree.node(DRESSES)
    categories = csr_array(np.eye(len(shop.tree), 4, -node, dtype=np.float32))
    products = csr_array(np.eye(len(shop), 4, -10, dtype=np.float32))
    picks = picked(shop, categories, products)
    assert lists(picks)[node] == [10]
    assert len(picks.products) == 1  # the other categories have no word
    members = picked(shop, categories, products, 9, among="members")
    assert not len(members.products)  # product 10 is of another category


def test_what_is_written(shop: Catalogue, tmp_path: Path) -> None:
    saved = json.loads(picked(shop, *rows_of(shop), 23).save(tmp_path / "picks").read_text("utf-8"))
    assert saved["counts"]["pictures"] == 23 * len(shop.tree)
    entry = saved["categories"][shop.tree.node(DRESSES)]
    assert (entry["path"], entry["query"], entry["code"]) == (list(DRESSES), "Dresses", None)
    two = next(one for one in entry["products"] if one["id"] == TWO_PATHS)
    assert two["of_the_category"] is True
    assert sorted(two["categories"]) == [["Women", "Clothing", "Coats"], list(DRESSES)]
    assert Path(two["file"]).name == "p00.png"
    scores = [one["score"] for one in entry["products"]]
    assert scores == sorted(scores, reverse=True)
    for entry in saved["categories"]:
        depth = len(entry["path"])
        for one in entry["products"]:
            below = any(path[:depth] == entry["path"] for path in one["categories"])
            assert one["of_the_category"] is (below if one["categories"] else None)


def test_what_cannot_be(shop: Catalogue) -> None:
    categories, products = rows_of(shop)
    bare = replace(shop, picture_rows=np.full(24, -1))
    for rows, catalogue, options, error, match in (
        (products, shop, {"distinct": ("colour",)}, UsageError, "distinct by 'colour'"),
        (products[:23], shop, {}, MismatchError, r"of products \(23, 5\) for .* 24 products"),
        (products[:, :4].copy(), shop, {}, MismatchError, r"of products \(24, 4\)"),
        (products, bare, {}, DataError, "none of 24 products has an image"),
    ):
        with pytest.raises(error, match=match):
            picked(catalogue, categories, rows, **options)
