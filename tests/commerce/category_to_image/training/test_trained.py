from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.training import TrainedModel, train
from diptych.core.errors import MismatchError, NumericalError, StorageError, UsageError
from tests.support.category_rows import ABOUT, made_shop

SMALL = TrainOptions(hidden=12, width=6, epochs=2, batch_size=10, normalise="after")


@pytest.fixture(scope="module")
def trained() -> TrainedModel:
    return train(*made_shop(), SMALL)


def test_rows_are_unit_rows_whatever_a_product_lacks(trained: TrainedModel) -> None:
    _, features, categories = made_shop()
    bare = replace(
        features,
        pictured=np.zeros(60, bool),
        titled=np.zeros(60, bool),
        attribute_start=np.zeros(61, np.int64),
        attribute_items=np.zeros(0, np.int64),
    )
    for rows in (
        trained.product_rows(features),
        trained.product_rows(bare),
        trained.category_rows(categories),
    ):
        assert rows.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)


def test_blocks_give_the_same_rows(trained: TrainedModel, tmp_path: Path) -> None:
    _, features, _ = made_shop()
    whole = trained.product_rows(features)
    blocks = list(trained.product_blocks(features, 7))
    assert [len(rows) for _, rows in blocks] == [7] * 8 + [4]
    np.testing.assert_allclose(np.concatenate([rows for _, rows in blocks]), whole, atol=1e-6)
    out = np.lib.format.open_memmap(tmp_path / "rows.npy", mode="w+", dtype="float32", shape=whole.shape)
    trained.product_rows(features, out)
    assert np.array_equal(out, whole)
    with pytest.raises(UsageError, match="a block of 0"):
        next(trained.product_blocks(features, 0))


def test_saved_and_opened_it_is_the_same(trained: TrainedModel, tmp_path: Path) -> None:
    _, features, categories = made_shop()
    trained.save(tmp_path / "model")
    opened = TrainedModel.open(tmp_path / "model")
    assert opened.fingerprint == trained.fingerprint
    assert opened.describe() == trained.describe()
    assert opened.name == "clip-ita"
    assert np.array_equal(opened.product_rows(features), trained.product_rows(features))
    assert np.array_equal(opened.category_rows(categories), trained.category_rows(categories))


def test_rows_of_other_encoders_are_refused(trained: TrainedModel) -> None:
    _, features, categories = made_shop()
    other = {**ABOUT, "image": {"fingerprint": "another"}}
    with pytest.raises(MismatchError, match="image encoder made-image, these are of another"):
        trained.product_rows(replace(features, about=other))
    trained.category_rows(replace(categories, about=other))  # it does not look at pictures
    with pytest.raises(MismatchError, match="text encoder made-text, these are of new"):
        trained.category_rows(replace(categories, about={**ABOUT, "text": {"fingerprint": "new"}}))


def test_a_model_without_pictures_takes_any_image_encoder() -> None:
    catalogue, features, categories = made_shop()
    made = train(catalogue, features, categories, SMALL.model_copy(update={"modalities": ("title",)}))
    other = {**ABOUT, "image": {"fingerprint": "another"}}
    assert made.name == "clip-t"
    assert np.array_equal(
        made.product_rows(replace(features, image=None, about=other)), made.product_rows(features)
    )


def test_rows_that_are_not_finite_are_named(trained: TrainedModel) -> None:
    _, features, categories = made_shop()
    title = np.array(features.title)
    title[11] = np.nan
    with pytest.raises(NumericalError, match="title row of product p11"):
        trained.product_rows(replace(features, title=title))
    text = np.array(categories.text)
    text[0] = np.nan
    with pytest.raises(NumericalError, match="category 'Clothes'"):
        trained.category_rows(replace(categories, text=text))


def test_weights_of_another_model_and_changed_ones_are_refused(trained: TrainedModel, tmp_path: Path) -> None:
    weights = trained.save(tmp_path / "model") / "model.safetensors"
    before = weights.read_bytes()
    changed = bytearray(before)
    changed[-2] ^= 1
    for content, error, match in (
        (before[:-3], StorageError, r"model\.safetensors"),
        (bytes(changed), MismatchError, "fingerprint"),
    ):
        weights.write_bytes(content)
        with pytest.raises(error, match=match):
            TrainedModel.open(tmp_path / "model")
    other = train(*made_shop(), SMALL.model_copy(update={"hidden": 13})).save(tmp_path / "other")
    shutil.copy(other / weights.name, weights)
    with pytest.raises(StorageError, match="of another model"):
        TrainedModel.open(tmp_path / "model")


def test_a_share_of_zero_shot_is_that_share_of_every_score(tmp_path: Path) -> None:
    _, features, categories = made_shop()
    plain = train(*made_shop(), SMALL)
    mixed = TrainedModel(
        plain.model, SMALL.model_copy(update={"zero_shot": 0.3}), plain.encoders, plain.about
    )
    own = plain.category_rows(categories) @ plain.product_rows(features).T
    found = mixed.category_rows(categories) @ mixed.product_rows(features).T
    wanted = 0.7 * own + 0.3 * (categories.text @ features.title.T)
    there = features.titled
    np.testing.assert_allclose(found[:, there], wanted[:, there], atol=1e-6)
    np.testing.assert_allclose(found[:, ~there], np.sqrt(0.7) * own[:, ~there], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(mixed.product_rows(features), axis=1), 1, rtol=1e-5)
    assert mixed.fingerprint != plain.fingerprint
    mixed.save(tmp_path / "mixed")
    again = TrainedModel.open(tmp_path / "mixed")
    assert np.array_equal(again.product_rows(features), mixed.product_rows(features))
    assert TrainOptions(modalities=("image",), zero_shot=0.3).share_of_zero_shot == 0
