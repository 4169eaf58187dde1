"""Training of heads, the trained model, and its run."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tiny_catalogue import tiny_catalogue

from diptych.commerce.catalogue import Catalogue, category_texts
from diptych.commerce.category_to_image.features import FeatureMaker, TrainOptions, learning_texts
from diptych.commerce.category_to_image.run import CategoryRun
from diptych.commerce.category_to_image.training import TrainedModel, batches_of, train
from diptych.core.context import stop_when
from diptych.core.errors import DataError, MismatchError, NumericalError
from diptych.encoders.inputs import save_tensors
from tests.support.category_rows import ABOUT, made_shop


@given(st.integers(2, 60), st.integers(2, 20), st.integers(0, 5))
def test_an_epoch_has_every_pair_once_and_no_batch_of_one(n: int, size: int, epoch: int) -> None:
    batches = list(batches_of(n, size, 0, epoch))
    assert sorted(np.concatenate(batches).tolist()) == list(range(n))
    assert min(map(len, batches)) > 1
    assert max(map(len, batches)) <= size + 1


SMALL = TrainOptions(hidden=12, width=6, epochs=3, batch_size=10, learning_rate=5e-3)


def same(one: TrainedModel, other: TrainedModel) -> bool:
    left, right = one.model.state_dict(), other.model.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_it_learns_what_the_rows_hold() -> None:
    shop = made_shop(150)
    before = train(*shop, SMALL.model_copy(update={"epochs": 1, "learning_rate": 1e-9}), validation=shop[0])
    after = train(*shop, SMALL.model_copy(update={"epochs": 10}), validation=shop[0])
    first, last = before.about["metrics"][0], after.about["metrics"][-1]
    assert last["loss"] < 0.6 * first["loss"]
    assert max(line["mAP@10"] for line in after.about["metrics"]) > first["mAP@10"] + 0.3


def test_a_finished_training_is_not_repeated(tmp_path: Path) -> None:
    shop = made_shop()
    one = train(*shop, SMALL, tmp_path / "run")
    with stop_when(lambda: True):
        assert same(one, train(*shop, SMALL, tmp_path / "run"))
    with pytest.raises(MismatchError, match="begun with epochs = 3, asked for is 5"):
        train(*shop, SMALL.model_copy(update={"epochs": 5}), tmp_path / "run")
    with pytest.raises(MismatchError, match="products"):
        train(*made_shop(70), SMALL, tmp_path / "run")
    mended = replace(shop[0], pictured=np.ones_like(shop[0].pictured))  # an image that came later
    with pytest.raises(MismatchError, match="begun with pictures = "):
        train(mended, shop[1], SMALL, tmp_path / "run")


def test_the_best_epoch_is_kept_and_patience_ends() -> None:
    shop = made_shop(80)
    hasty = SMALL.model_copy(update={"epochs": 40, "learning_rate": 0.05, "patience": 3})
    made = train(*shop, hasty, validation=shop[0])
    values = [line["mAP@10"] for line in made.about["metrics"]]
    best = made.about["best_epoch"]
    assert best == 1 + int(np.argmax(values))
    assert made.about["epochs"] in (best + 3, 40)
    assert made.about["temperature"] == made.about["metrics"][best - 1]["temperature"]
    shorter = train(*shop, hasty.model_copy(update={"epochs": best, "patience": None}), validation=shop[0])
    assert same(made, shorter)


def test_what_does_not_belong_together() -> None:
    features, categories = made_shop()
    other = replace(categories, about={**ABOUT, "text": {"fingerprint": "another"}})
    bare = replace(features, pictured=np.zeros(60, bool))
    place = features.catalogue.place
    some = features.part(np.flatnonzero(place == place[0]))
    rows = np.array(features.title)
    rows[7, 2] = np.nan
    titles = SMALL.model_copy(update={"modalities": ("image", "title")})
    for shop, options, error, match in (
        ((replace(features, title=rows), categories), SMALL, NumericalError, "the loss is nan"),
        ((features, other), SMALL, MismatchError, "made-text.*another"),
        ((bare, categories), SMALL, DataError, "no product has a row of image"),
        (made_shop(60, uncategorised=59), SMALL, DataError, "1 of 60 products have a category"),
        ((some, categories), titles, DataError, "ask with the words 'Long sleeves'"),
    ):
        with pytest.raises(error, match=match):
            train(*shop, options)


def test_rows_are_unit_rows_whatever_a_product_lacks(product_head: TrainedModel) -> None:
    features, categories = made_shop()
    bare = replace(
        features,
        pictured=np.zeros(60, bool),
        catalogue=replace(features.catalogue, titles=[""] * 60),
        attributes=csr_array(features.attributes.shape, dtype=np.float32),
    )
    made = [product_head.product_rows(one) for one in (features, bare)]
    for rows in (*made, product_head.category_rows(categories)):
        assert rows.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)


def test_a_share_of_zero_shot_is_that_share_of_every_score(product_head: TrainedModel) -> None:
    features, categories = made_shop()
    options = product_head.options.model_copy(update={"zero_shot": 0.3})
    mixed = TrainedModel(product_head.model, options, product_head.encoders, product_head.about)
    own = product_head.category_rows(categories) @ product_head.product_rows(features).T
    found = mixed.category_rows(categories) @ mixed.product_rows(features).T
    wanted = 0.7 * own + 0.3 * (categories.text @ features.title.T)
    there = features.present["title"]
    np.testing.assert_allclose(found[:, there], wanted[:, there], atol=1e-6)
    np.testing.assert_allclose(found[:, ~there], np.sqrt(0.7) * own[:, ~there], atol=1e-6)
    assert TrainOptions(modalities=("image",), zero_shot=0.3).share_of_zero_shot == 0


OPTIONS = TrainOptions(hidden=8, width=4, epochs=2, batch_size=8, query="path")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Catalogue, Path]:
    """A run over the shop of 24 products."""
    folder = tmp_path_factory.mktemp("run")
    catalogue = tiny_catalogue(folder / "pictures")
    part = catalogue.split("train")
    maker = FeatureMaker.of("grid", "lsa:8", learn_from=learning_texts(part), cache=folder / "cache")
    categories = maker.categories(category_texts(catalogue.tree, range(len(catalogue.tree)), "path"))
    model = train(maker.products(part), categories, OPTIONS, folder / "run")
    CategoryRun.finish(folder / "run", model, maker, catalogue, {"data": "tiny"})
    return catalogue, folder / "run"


def test_a_run_holds_all_that_using_it_takes(made: tuple[Catalogue, Path]) -> None:
    catalogue, folder = made
    run = CategoryRun.open(folder)
    assert (run.options, run.tree.paths) == (OPTIONS, catalogue.tree.paths)
    assert run.about["data"] == {"data": "tiny"}
    assert run.splits == dict(zip(catalogue.ids, catalogue.splits, strict=True))
    assert [line["epoch"] for line in run.model.about["metrics"]] == [1, 2]
    assert not (folder / "checkpoint").exists()
    with run.embeddings(catalogue) as embedded:
        assert np.array_equal(embedded.rows, run.model.product_rows(run.maker.products(catalogue)))
        assert (embedded.kind, list(embedded.ids)) == ("product", list(catalogue.ids))
    whole = run.category_rows(run.texts(run.tree))
    np.testing.assert_allclose(run.category_rows([run.tree.text(1), "Women > Hats"])[0], whole[1], atol=1e-6)


def test_weights_of_another_run(made: tuple[Catalogue, Path], tmp_path: Path) -> None:
    shutil.copytree(made[1], tmp_path / "run")
    run = CategoryRun.open(tmp_path / "run")
    other = train(*made_shop(image=768), OPTIONS)
    save_tensors(other.model.state_dict(), tmp_path / "run" / "model.safetensors")
    with pytest.raises(MismatchError, match=r"model.safetensors has the fingerprint"):
        _ = run.model
