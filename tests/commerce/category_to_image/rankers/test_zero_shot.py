"""Rankers that compare a frozen encoder's rows as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_catalogue import NO_TITLE, tiny_catalogue

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.features import FeatureMaker, learning_texts
from diptych.commerce.category_to_image.rankers import RANKERS, make_ranker
from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.encoders import DualEncoder

from ....encoders.tiny_pretrained import transformers_folder


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return tiny_catalogue(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def maker(shop: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> FeatureMaker:
    """CLIP for pictures, LSA for texts."""
    folder = tmp_path_factory.mktemp("models")
    clip = transformers_folder("clip", folder / "clip", limit=64)
    return FeatureMaker.of(str(clip), "lsa:12", learn_from=learning_texts(shop), cache=folder / "cache")


def test_sentence(maker: FeatureMaker, shop: Catalogue) -> None:
    products, categories = maker.products(shop, missing="none"), maker.categories(["Coats", "Zeppelins"])
    ranker = make_ranker("sentence", products)
    scores = ranker.category_rows(categories) @ ranker.product_rows(products).T
    expected = maker.text.encode(["Coats"]) @ maker.text.encode(list(shop.titles)).T
    expected[:, list(shop.ids).index(NO_TITLE)] = 0
    np.testing.assert_allclose(scores[:1], expected, atol=1e-5)
    assert ranker.unmatched == "unranked"
    assert not scores[1].any()  # the encoder knows no word of it: no ranking
    assert ranker.describe()["encoder"]["kind"] == "lsa"


def test_clip(maker: FeatureMaker, shop: Catalogue) -> None:
    some = shop.subset([0, 7, 23])
    products, categories = maker.products(some), maker.categories(["Coats", "Rings"])
    ranker = make_ranker("clip", products)
    encoder = DualEncoder.load(maker.describe()["image"]["source"])
    pictures = encoder.encode_images([shop.collection.image(int(row)) for row in some.picture_rows])
    scores = ranker.category_rows(categories) @ ranker.product_rows(products).T
    np.testing.assert_allclose(scores, encoder.encode_texts(["Coats", "Rings"]) @ pictures.T, atol=1e-5)


def test_rows_of_another_encoder(maker: FeatureMaker, shop: Catalogue, tmp_path: Path) -> None:
    other = FeatureMaker.of("grid", "lsa:5", learn_from=learning_texts(shop), cache=tmp_path)
    products = maker.products(shop, missing="none")
    for name in ("sentence", "clip"):
        ranker = make_ranker(name, products)
        with pytest.raises(MismatchError, match=f"{name} was made for rows of .* of the categories are of"):
            ranker.category_rows(other.categories(["Coats"]))
        with pytest.raises(MismatchError, match="of the products are of"):
            ranker.product_rows(other.products(shop, missing="none"))
    assert make_ranker("sentence", products).fingerprint != make_ranker("clip", products).fingerprint


def test_clip_needs_a_dual_encoder(shop: Catalogue, tmp_path: Path) -> None:
    texts = learning_texts(shop)
    grid = FeatureMaker.of("grid", "lsa:5", learn_from=texts, cache=tmp_path)
    with pytest.raises(UsageError, match="clip needs a dual encoder, and pictures were encoded by grid"):
        make_ranker("clip", grid.products(shop, missing="none"))
    none = FeatureMaker.of(None, "lsa:5", learn_from=texts, cache=tmp_path)
    with pytest.raises(UsageError, match="clip needs rows of pictures"):
        make_ranker("clip", none.products(shop))


def test_names() -> None:
    assert RANKERS.names() == ["bm25", "clip", "sentence"]
    with pytest.raises(UnknownNameError, match="unknown ranker 'bm52'"):
        RANKERS.get("bm52")
