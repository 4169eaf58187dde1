"""Rankers by hand, and their rows block by block."""

from __future__ import annotations

from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tiny_catalogue import NO_TITLE

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.features import (
    CategoryFeatures,
    FeatureMaker,
    ProductFeatures,
    learning_texts,
)
from diptych.commerce.category_to_image.rankers import (
    BM25,
    RANKERS,
)
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.data.title_words import folded_by
from tests.support.category_rows import titled

from ...encoders.tiny_pretrained import transformers_folder

TITLES = [
    "Red summer dress",
    "Blue dress, blue belt",
    "Men's T-shirt",
    "Dresses for her",
    "",
    "Leather belt for men",
    "Red tshirt",
]


def categories_of(texts: list[str]) -> CategoryFeatures:
    return CategoryFeatures(texts, np.zeros((len(texts), 2), dtype=np.float32), None, {})


def scores(ranker: BM25, products: ProductFeatures, texts: list[str]) -> np.ndarray:
    found: np.ndarray = (
        ranker.category_rows(categories_of(texts)) @ ranker.product_rows(products).T
    ).toarray()
    return found


QUERIES = ["Dresses", "Belts for men", "red red dress", "Zeppelins", "zeppelins and tshirts", ""]


WORDS = ["red", "blue", "dress", "dresses", "belt", "men", "men's", "t-shirt", "for"]

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


def test_what_has_nothing_in_common_has_no_ranking() -> None:
    products = titled(TITLES)
    ranker = BM25(products)
    assert ranker.unranked
    rows = ranker.category_rows(categories_of(QUERIES))
    assert np.diff(rows.indptr).tolist() == [1, 3, 2, 0, 1, 0]
    assert rows[[2]].toarray().max() == 2  # "red" twice
    assert not ranker.product_rows(products)[[4]].nnz  # no title


def test_what_cannot_be_made() -> None:
    for titles in (["", " - "], []):
        with pytest.raises(DataError):
            BM25(titled(titles))


@pytest.fixture(scope="module")
def maker(shop: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> FeatureMaker:
    """CLIP for pictures, LSA for texts."""
    folder = tmp_path_factory.mktemp("models")
    clip = transformers_folder("clip", folder / "clip", limit=64)
    return FeatureMaker.of(str(clip), "lsa:12", learn_from=learning_texts(shop), cache=folder / "cache")


def test_sentence(maker: FeatureMaker, shop: Catalogue) -> None:
    products, categories = maker.products(shop), maker.categories(["Coats", "Zeppelins"])
    ranker = RANKERS["sentence"](products)
    scores = ranker.category_rows(categories) @ ranker.product_rows(products).T
    expected = maker.text.encode(["Coats"]) @ maker.text.encode(list(shop.titles)).T
    expected[:, list(shop.ids).index(NO_TITLE)] = 0
    np.testing.assert_allclose(scores[:1], expected, atol=1e-5)
    assert ranker.unranked
    assert not scores[1].any()  # the encoder knows no word of it: no ranking
    assert ranker.describe()["encoder"]["kind"] == "lsa"


def test_rows_of_another_encoder(maker: FeatureMaker, shop: Catalogue, tmp_path: Path) -> None:
    other = FeatureMaker.of("grid", "lsa:5", learn_from=learning_texts(shop), cache=tmp_path)
    products = maker.products(shop)
    for name in ("sentence", "clip"):
        ranker = RANKERS[name](products)
        with pytest.raises(MismatchError, match=f"{name} was made for rows of .* encoder"):
            ranker.category_rows(other.categories(["Coats"]))
        with pytest.raises(MismatchError, match="these are of"):
            ranker.product_rows(other.products(shop))
    sentence, clip = (RANKERS[name](products) for name in ("sentence", "clip"))
    assert sentence.fingerprint != clip.fingerprint


def test_clip_needs_a_dual_encoder(shop: Catalogue, tmp_path: Path) -> None:
    texts = learning_texts(shop)
    grid = FeatureMaker.of("grid", "lsa:5", learn_from=texts, cache=tmp_path)
    with pytest.raises(UsageError, match="clip needs a dual encoder, and pictures were encoded by grid"):
        RANKERS["clip"](grid.products(shop))
    none = FeatureMaker.of(None, "lsa:5", learn_from=texts, cache=tmp_path)
    with pytest.raises(UsageError, match="clip needs a dual encoder, and pictures were encoded by none"):
        RANKERS["clip"](none.products(shop))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(texts, min_size=1, max_size=8),
    st.lists(texts, min_size=1, max_size=4),
)
def test_against_the_library(titles: list[str], queries: list[str]) -> None:
    assume(any(titles))
    products, split = titled(titles), folded_by("plural")
    found = scores(BM25(products), products, queries)
    library = bm25s.BM25(method="lucene", k1=1.5, b=0.75, backend="numpy")
    library.index([split(title) for title in titles], show_progress=False)
    for query, row in zip(queries, found, strict=True):
        known = [word for word in split(query) if word in library.vocab_dict]
        if known:
            np.testing.assert_allclose(row, library.get_scores(known), rtol=1e-5, atol=1e-6)
        # Nothing in common and a score of 0 are the same thing.
        assert (row > 0).tolist() == [bool(set(split(title)) & set(split(query))) for title in titles]
