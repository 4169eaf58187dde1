"""BM25: against a naive formula, against bm25s's own search, and where nothing is in common."""

from __future__ import annotations

import math
from typing import Any

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.commerce.category_to_image.features import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.rankers import BM25, RANKERS, make_ranker
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.data.title_words import folded_by

TITLES = [
    "Red summer dress",
    "Blue dress, blue belt",
    "Men's T-shirt",
    "Dresses for her",
    "",
    "Leather belt for men",
    "Red tshirt",
]


def products_of(titles: list[str]) -> ProductFeatures:
    n = len(titles)
    return ProductFeatures(
        ids=[f"p{row}" for row in range(n)],
        titles=titles,
        image=None,
        title=np.zeros((n, 2), dtype=np.float32),
        attribute_rows=np.zeros((0, 2), dtype=np.float32),
        attribute_start=np.zeros(n + 1, dtype=np.int64),
        attribute_items=np.zeros(0, dtype=np.int64),
        pictured=np.zeros(n, dtype=bool),
        titled=np.array([bool(title) for title in titles]),
        about={},
    )


def categories_of(texts: list[str]) -> CategoryFeatures:
    return CategoryFeatures(
        texts=texts, text=np.zeros((len(texts), 2), dtype=np.float32), dual=None, about={}
    )


def scores(ranker: BM25, products: ProductFeatures, texts: list[str]) -> np.ndarray:
    found: np.ndarray = (
        ranker.category_rows(categories_of(texts)) @ ranker.product_rows(products).T
    ).toarray()
    return found


def naive(titles: list[str], query: str, k1: float, b: float) -> list[float]:
    """Word by word, title by title."""
    split = folded_by("plural")
    bags = [split(title) for title in titles]
    mean = sum(map(len, bags)) / len(bags)
    found = []
    for bag in bags:
        score = 0.0
        for word in split(query):
            df, tf = sum(word in other for other in bags), bag.count(word)
            idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
            score += idf * tf / (tf + k1 * (1 - b + b * len(bag) / mean)) if tf else 0.0
        found.append(score)
    return found


QUERIES = ["Dresses", "Belts for men", "red red dress", "Zeppelins", "zeppelins and tshirts", ""]


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (1.2, 0.0), (0.0, 1.0), (2.0, 1.0)])
def test_against_the_formula(k1: float, b: float) -> None:
    products = products_of(TITLES)
    found = scores(BM25(products, k1=k1, b=b), products, QUERIES)
    expected = [naive(TITLES, query, k1, b) for query in QUERIES]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_by_hand() -> None:
    products = products_of(["red dress", "red coat"])
    # Both titles are of mean length: coat 1, red 2 of 2 titles.
    rare, common = math.log(1 + 1.5 / 1.5) / 2.5, math.log(1 + 0.5 / 2.5) / 2.5
    np.testing.assert_allclose(
        scores(BM25(products), products, ["coats", "red", "red coats"]),
        [[0, rare], [common, common], [common, common + rare]],
        rtol=1e-6,
    )


WORDS = ["red", "blue", "dress", "dresses", "belt", "men", "men's", "t-shirt", "for"]
texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


@settings(max_examples=30, deadline=None)
@given(st.lists(texts, min_size=1, max_size=8), st.lists(texts, min_size=1, max_size=4))
def test_against_the_library_and_the_formula(titles: list[str], queries: list[str]) -> None:
    if not any(title.strip() for title in titles):
        return
    products = products_of(titles)
    ranker = BM25(products)
    found = scores(ranker, products, queries)
    split = folded_by("plural")
    library = bm25s.BM25(method="lucene", k1=1.5, b=0.75, backend="numpy")
    library.index([split(title) for title in titles], show_progress=False)
    for query, row in zip(queries, found, strict=True):
        np.testing.assert_allclose(row, naive(titles, query, 1.5, 0.75), rtol=1e-4, atol=1e-6)
        known = [word for word in split(query) if word in library.vocab_dict]
        if known:
            np.testing.assert_allclose(row, library.get_scores(known), rtol=1e-5, atol=1e-6)
        # Nothing in common and a score of 0 are the same thing.
        common = [bool(set(split(title)) & set(split(query))) for title in titles]
        assert (row > 0).tolist() == common


def test_what_has_nothing_in_common_has_no_ranking() -> None:
    products = products_of(TITLES)
    ranker = BM25(products)
    assert ranker.unmatched == "unranked"
    rows = ranker.category_rows(categories_of(QUERIES))
    assert np.diff(rows.indptr).tolist() == [1, 3, 2, 0, 1, 0]
    assert rows[[2]].toarray().max() == 2  # "red" twice
    assert not ranker.product_rows(products)[[4]].nnz  # no title


def test_some_of_its_products() -> None:
    products = products_of(TITLES)
    ranker = BM25(products)
    whole = ranker.product_rows(products).toarray()
    some = products_of(TITLES)
    part = ProductFeatures(
        **{
            **{name: getattr(some, name) for name in ("title", "attribute_rows", "attribute_items", "about")},
            "title": some.title[:3],
            "ids": ["p5", "p0", "p3"],
            "titles": [TITLES[row] for row in (5, 0, 3)],
            "image": None,
            "attribute_start": np.zeros(4, dtype=np.int64),
            "pictured": np.zeros(3, dtype=bool),
            "titled": np.ones(3, dtype=bool),
        }
    )
    assert np.array_equal(ranker.product_rows(part).toarray(), whole[[5, 0, 3]])


def test_other_products_are_refused() -> None:
    ranker = BM25(products_of(TITLES))
    with pytest.raises(MismatchError, match="made for 7 products, 'p2' with this title"):
        ranker.product_rows(products_of([*TITLES[:2], "another title"]))


@pytest.mark.parametrize(
    ("titles", "options", "error"),
    [
        (TITLES, {"k1": -1.0}, UsageError),
        (TITLES, {"b": 1.5}, UsageError),
        (["", " - "], {}, DataError),
        ([], {}, DataError),
    ],
)
def test_what_cannot_be_made(titles: list[str], options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        BM25(products_of(titles), **options)


def test_it_says_what_it_is() -> None:
    products = products_of(TITLES)
    ranker = make_ranker("bm25", products)
    said = ranker.describe()
    assert said["k1"] == 1.5
    assert said["b"] == 0.75
    assert "fold plural" in said["words"]
    assert said["fingerprint"] == ranker.fingerprint == BM25(products).fingerprint
    assert (
        len({ranker.fingerprint, BM25(products, k1=1.2).fingerprint, BM25(products, fold="none").fingerprint})
        == 3
    )
    assert RANKERS.get("bm25").modalities == ("title",)
