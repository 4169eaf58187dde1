from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from diptych.commerce.category_to_image.features.rows import CategoryFeatures
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.training import TrainedModel, train
from diptych.commerce.category_to_image.training.feeding import Pairs
from diptych.core.context import stop_when
from diptych.core.errors import DataError, Interrupted, MismatchError, NumericalError, UsageError
from tests.support.category_rows import ABOUT, made_shop

SMALL = TrainOptions(hidden=12, width=6, epochs=3, batch_size=10, learning_rate=5e-3)


def weights(model: TrainedModel) -> dict[str, torch.Tensor]:
    return dict(model.model.state_dict())


def same(one: TrainedModel, other: TrainedModel) -> bool:
    left, right = weights(one), weights(other)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_it_learns_what_the_rows_hold() -> None:
    shop = made_shop(150)
    before = train(*shop, SMALL.model_copy(update={"epochs": 1, "learning_rate": 1e-9}), validation=shop[:2])
    after = train(*shop, SMALL.model_copy(update={"epochs": 12}), validation=shop[:2])
    first, last = before.about["metrics"][0], after.about["metrics"][-1]
    assert last["loss"] < 0.6 * first["loss"]
    assert max(line["mAP@10"] for line in after.about["metrics"]) > first["mAP@10"] + 0.3


def test_without_a_folder_nothing_is_kept() -> None:
    with (
        pytest.raises(Interrupted, match=r"stopped after step 1 of 18 \(nothing is kept"),
        stop_when(lambda: True),
    ):
        train(*made_shop(), SMALL)


def test_seeds_matter_and_threads_of_python_do_not(tmp_path: Path) -> None:
    shop = made_shop()
    one, again = train(*shop, SMALL), train(*shop, SMALL)
    torch.rand(3)  # somebody else draws
    assert same(one, again)
    assert not same(one, train(*shop, SMALL.model_copy(update={"seed": 1})))


def test_memory_mapped_rows_give_the_same_bits(tmp_path: Path) -> None:
    catalogue, features, categories = made_shop()
    np.save(tmp_path / "image.npy", features.image)
    np.save(tmp_path / "title.npy", features.title)
    mapped = replace(
        features,
        image=np.load(tmp_path / "image.npy", mmap_mode="r"),
        title=np.load(tmp_path / "title.npy", mmap_mode="r"),
    )
    assert same(train(catalogue, features, categories, SMALL), train(catalogue, mapped, categories, SMALL))


def test_a_finished_training_is_not_repeated(tmp_path: Path) -> None:
    shop = made_shop()
    one = train(*shop, SMALL, tmp_path / "run")
    before = (tmp_path / "run/model/model.safetensors").stat().st_mtime_ns
    with stop_when(lambda: True):
        assert same(one, train(*shop, SMALL, tmp_path / "run"))
    assert (tmp_path / "run/model/model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(MismatchError, match="begun with epochs = 3, asked for is 5"):
        train(*shop, SMALL.model_copy(update={"epochs": 5}), tmp_path / "run")
    with pytest.raises(MismatchError, match="products"):
        train(*made_shop(70), SMALL, tmp_path / "run")


def test_a_picture_that_came_later_is_another_training(tmp_path: Path) -> None:
    catalogue, features, categories = made_shop()
    train(catalogue, features, categories, SMALL, tmp_path / "run")
    pictured = features.pictured.copy()
    pictured[~pictured] = True
    mended = replace(features, pictured=pictured)
    with pytest.raises(MismatchError, match="products without a picture = 12 missing .* None"):
        train(catalogue, mended, categories, SMALL, tmp_path / "run")


def test_margins_of_categories_drawn_anew_stay_within_the_strength() -> None:
    catalogue, _, categories = made_shop()
    options = SMALL.model_copy(update={"setting": "all", "resample": True, "tree_distance": 0.3})
    texts = [f"category {node}" for node in range(len(categories))]
    for seed in range(20):
        pairs = Pairs(catalogue, texts, options.model_copy(update={"seed": seed}))
        margins = pairs.margins(np.arange(len(catalogue.tree)))
        assert margins is not None
        assert margins.max() <= np.float32(0.3)


def test_products_without_a_category_are_counted_and_change_nothing_else() -> None:
    catalogue, features, categories = made_shop(60, uncategorised=5)
    made = train(catalogue, features, categories, SMALL)
    assert (made.about["products"], made.about["without_category"]) == (55, 5)


def test_the_best_epoch_is_kept_and_patience_ends() -> None:
    shop = made_shop(80)
    hasty = SMALL.model_copy(update={"epochs": 40, "learning_rate": 0.05, "patience": 3})
    made = train(*shop, hasty, validation=shop[:2])
    values = [line["mAP@10"] for line in made.about["metrics"]]
    best = made.about["best_epoch"]
    assert best == 1 + int(np.argmax(values))
    assert made.about["epochs"] in (best + 3, 40)
    assert made.about["temperature"] == made.about["metrics"][best - 1]["temperature"]
    shorter = train(*shop, hasty.model_copy(update={"epochs": best, "patience": None}), validation=shop[:2])
    assert same(made, shorter)


@pytest.mark.parametrize("modality", ["image", "title", "attribute"])
def test_a_row_that_is_not_finite_is_named(modality: str) -> None:
    catalogue, features, categories = made_shop()
    field = {"image": "image", "title": "title", "attribute": "attribute_rows"}[modality]
    rows = np.array(getattr(features, field))
    place = int(features.attribute_items[features.attribute_start[7]]) if modality == "attribute" else 7
    rows[place, 2] = np.nan
    spoiled = replace(features, **{field: rows})
    owners = np.repeat(np.arange(60), np.diff(features.attribute_start))[features.attribute_items == place]
    with pytest.raises(
        NumericalError, match=rf"the {modality}s? row of product p(\d+) is not finite"
    ) as caught:
        train(catalogue, spoiled, categories, SMALL)
    named = int(caught.value.message.split("product p")[1].split()[0])
    assert named in (owners.tolist() if modality == "attribute" else [7])


def test_a_category_that_is_not_finite_is_named() -> None:
    catalogue, features, categories = made_shop()
    text = np.array(categories.text)
    text[catalogue.tree.node(("Home", "Lamps"))] = np.inf
    with pytest.raises(NumericalError, match="category 'Lamps'"):
        train(catalogue, features, replace(categories, text=text), SMALL)


def test_what_does_not_belong_together() -> None:
    catalogue, features, categories = made_shop()
    with pytest.raises(MismatchError, match=r"features of 60 products, 59 in the catalogue"):
        train(catalogue.subset(range(59)), features, categories, SMALL)
    half = CategoryFeatures(categories.texts[:5], categories.text[:5], None, ABOUT)
    with pytest.raises(MismatchError, match="rows of 5 categories, the tree has 10"):
        train(catalogue, features, half, SMALL)
    other = replace(categories, about={**ABOUT, "text": {"fingerprint": "another"}})
    with pytest.raises(MismatchError, match="made-text.*another"):
        train(catalogue, features, other, SMALL)
    with pytest.raises(DataError, match="no product has a row of image"):
        train(catalogue, replace(features, pictured=np.zeros(60, bool)), categories, SMALL)
    with pytest.raises(DataError, match="1 of 60 products have a category"):
        train(*made_shop(60, uncategorised=59), SMALL)
    one = catalogue.subset(np.flatnonzero(catalogue.place == catalogue.place[0]))
    rows = [catalogue.ids.index(name) for name in one.ids]
    some = replace(
        features,
        ids=one.ids,
        titles=one.titles,
        image=None if features.image is None else features.image[rows],
        title=features.title[rows],
        attribute_start=np.zeros(len(rows) + 1, dtype=np.int64),
        attribute_items=np.zeros(0, dtype=np.int64),
        pictured=features.pictured[rows],
        titled=features.titled[rows],
    )
    with pytest.raises(DataError, match="ask with the words 'Long sleeves'"):
        train(one, some, categories, SMALL.model_copy(update={"modalities": ("image", "title")}))


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "holiday.txt").write_text("sun")
    with pytest.raises(UsageError, match="holds other things"):
        train(*made_shop(), SMALL, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["holiday.txt"]
