"""FeatureMaker: rows of products and categories, and the same rows from a saved one."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny_catalogue import NO_ATTRIBUTES, NO_PICTURE, NO_TITLE, tiny_catalogue

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.features import FeatureMaker, learning_texts
from diptych.core.errors import MismatchError, UsageError
from diptych.encoders import DualEncoder

from ....encoders.targets.tiny_sentence import sentence_folder
from ....encoders.tiny_pretrained import transformers_folder


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return tiny_catalogue(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return transformers_folder("clip", tmp_path_factory.mktemp("models") / "clip", limit=64)


@pytest.fixture(scope="module")
def maker(shop: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> FeatureMaker:
    texts = learning_texts(shop)
    return FeatureMaker.of("grid", "lsa:12", learn_from=texts, cache=tmp_path_factory.mktemp("cache"))


def test_products(maker: FeatureMaker, shop: Catalogue) -> None:
    made = maker.products(shop, missing="none")
    assert list(made.ids) == list(shop.ids)
    assert made.image is not None
    assert (made.width("image"), made.width("title"), made.attribute_rows.shape[1]) == (768, 12, 12)
    for present, odd in ((made.pictured, NO_PICTURE), (made.titled, NO_TITLE)):
        assert [name for name, there in zip(shop.ids, present, strict=True) if not there] == [odd]
    assert not made.title[10].any()
    assert not made.image[5].any()
    np.testing.assert_allclose(made.title[3], maker.text.encode([shop.titles[3]])[0], atol=1e-6)
    counts = {name: made.about[name] for name in made.about if name.startswith("without")}
    assert counts == {"without_picture": 1, "without_title": 1, "without_attributes": 1}
    assert made.about["unreadable_pictures"] == 0


def test_an_attribute_has_one_row(maker: FeatureMaker, shop: Catalogue) -> None:
    made = maker.products(shop, missing="none")
    texts = sorted({text for given in shop.attributes for text in given})
    assert len(made.attribute_rows) == len(texts) == made.about["distinct_attributes"] == 6
    for product, given in enumerate(shop.attributes):
        start, end = made.attribute_start[product : product + 2]
        rows = made.attribute_rows[made.attribute_items[start:end]]
        assert len(rows) == len(given)
        if given:
            np.testing.assert_allclose(rows, maker.text.encode(list(given)), atol=1e-6)
    assert not made.present("attributes")[list(shop.ids).index(NO_ATTRIBUTES)]


def test_a_part_has_the_rows_of_the_whole(maker: FeatureMaker, shop: Catalogue) -> None:
    whole = maker.products(shop, missing="none")
    test = maker.products(shop.split("test"))
    assert whole.image is not None
    assert test.image is not None
    places = [list(shop.ids).index(name) for name in test.ids]
    assert np.array_equal(test.image, whole.image[places])
    assert np.array_equal(test.title, whole.title[places])


def test_without_pictures(maker: FeatureMaker, shop: Catalogue) -> None:
    texts = FeatureMaker.of(None, "lsa:12", learn_from=learning_texts(shop), cache=maker.root.parent)
    made = texts.products(shop)  # nobody asks for pictures
    assert made.image is None
    assert not made.present("image").any()
    assert texts.categories(["Dresses"]).dual is None
    assert texts.describe()["image"] is None
    assert texts.fingerprint != maker.fingerprint


def test_categories(maker: FeatureMaker) -> None:
    made = maker.categories(["Dresses", "Zeppelins", "Dresses"])
    assert made.dual is None
    assert made.about == maker.describe()
    assert np.array_equal(made.text[0], made.text[2])
    assert not made.text[1].any()  # a word that nobody has seen
    assert np.linalg.norm(made.text[0]) == pytest.approx(1, abs=1e-6)


def test_a_dual_encoder_reads_both(clip: Path, shop: Catalogue, tmp_path: Path) -> None:
    maker = FeatureMaker.of(str(clip), str(clip), cache=tmp_path)
    some = shop.subset([0, 1, 2])
    made, asked = maker.products(some), maker.categories(["Dresses", "Coats"])
    encoder = DualEncoder.load(clip)
    assert made.image is not None
    assert asked.dual is not None
    pictures = [shop.collection.image(row) for row in range(3)]
    np.testing.assert_allclose(made.image, encoder.encode_images(pictures), atol=1e-5)
    np.testing.assert_allclose(made.title, encoder.encode_texts(list(some.titles)), atol=1e-5)
    np.testing.assert_allclose(asked.dual, encoder.encode_texts(["Dresses", "Coats"]), atol=1e-5)
    assert np.array_equal(asked.dual, asked.text)
    assert maker.image is not None
    assert maker.image.texts is maker.text  # loaded once
    maker.save(tmp_path / "maker")
    opened = FeatureMaker.open(tmp_path / "maker", cache=tmp_path)
    assert opened.image is not None
    assert opened.image.texts is opened.text


def test_a_dual_encoder_for_pictures_alone(clip: Path, tmp_path: Path) -> None:
    sentence = sentence_folder(tmp_path / "sentence")
    maker = FeatureMaker.of(str(clip), f"sentence:{sentence}", cache=tmp_path / "cache")
    asked = maker.categories(["a dog"])
    assert asked.dual is not None
    assert (asked.text.shape, asked.dual.shape) == ((1, 24), (1, 24))
    assert not np.allclose(asked.text, asked.dual)
    with pytest.raises(UsageError, match="precision bfloat16 with a dual encoder"):
        FeatureMaker.of(str(clip), f"sentence:{sentence}", cache=tmp_path, precision="bfloat16")


def test_a_saved_one_makes_the_same_rows(maker: FeatureMaker, shop: Catalogue, tmp_path: Path) -> None:
    maker.save(tmp_path / "maker")
    opened = FeatureMaker.open(tmp_path / "maker", cache=tmp_path / "another cache")
    assert opened.fingerprint == maker.fingerprint
    assert opened.describe() == maker.describe()
    ours, theirs = (one.products(shop, missing="none") for one in (maker, opened))
    for name in ("image", "title", "attribute_rows", "attribute_items", "pictured"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    texts = ["Dresses", "Coats"]
    assert np.array_equal(maker.categories(texts).text, opened.categories(texts).text)


def test_another_encoder_in_the_same_place(shop: Catalogue, tmp_path: Path) -> None:
    folder = tmp_path / "clip"
    transformers_folder("clip", folder, limit=64)
    texts = learning_texts(shop)
    FeatureMaker.of(str(folder), "lsa:4", learn_from=texts, cache=tmp_path).save(tmp_path / "maker")
    shutil.rmtree(folder)
    with pytest.raises(UsageError, match="neither a folder"):
        FeatureMaker.open(tmp_path / "maker", cache=tmp_path)
    transformers_folder("clip", folder, seed=1, limit=64)
    with pytest.raises(MismatchError, match="was .* when it was saved and is .* now"):
        FeatureMaker.open(tmp_path / "maker", cache=tmp_path)


def test_another_sentence_encoder_in_the_same_place(tmp_path: Path) -> None:
    folder = sentence_folder(tmp_path / "sentence")
    FeatureMaker.of("grid", f"sentence:{folder}", cache=tmp_path).save(tmp_path / "maker")
    sentence_folder(tmp_path / "other", seed=1)
    shutil.rmtree(folder)
    (tmp_path / "other").rename(folder)
    with pytest.raises(MismatchError):
        FeatureMaker.open(tmp_path / "maker", cache=tmp_path)


def test_another_picture_is_another_row(shop: Catalogue, maker: FeatureMaker, tmp_path: Path) -> None:
    mine = tiny_catalogue(tmp_path)
    before = maker.products(mine, missing="none")
    Image.new("RGB", (16, 16), (10, 200, 10)).save(tmp_path / "p00.png")
    after = maker.products(mine, missing="none")
    assert before.image is not None
    assert after.image is not None
    assert np.flatnonzero((before.image != after.image).any(axis=1)).tolist() == [0]
