from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_catalogue import tiny_catalogue

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.catalogue.catalogue import category_texts
from diptych.commerce.category_to_image.features import FeatureMaker, learning_texts
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.runs import CategoryRun
from diptych.commerce.category_to_image.training import train
from diptych.core.errors import StorageError, UsageError

OPTIONS = TrainOptions(hidden=8, width=4, epochs=2, batch_size=8, query="path")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Catalogue, Path]:
    """A run over the shop of 24 products."""
    folder = tmp_path_factory.mktemp("run")
    catalogue = tiny_catalogue(folder / "pictures")
    part = catalogue.split("train")
    maker = FeatureMaker.of("grid", "lsa:8", learn_from=learning_texts(part), cache=folder / "cache")
    categories = maker.categories(category_texts(catalogue.tree, range(len(catalogue.tree)), "path"))
    model = train(part, maker.products(part, missing="none"), categories, OPTIONS, folder / "run")
    CategoryRun.finish(folder / "run", model, maker, catalogue, {"data": "tiny"})
    return catalogue, folder / "run"


def test_a_run_holds_all_that_using_it_takes(made: tuple[Catalogue, Path]) -> None:
    catalogue, folder = made
    run = CategoryRun.open(folder)
    assert run.options == OPTIONS
    assert run.tree.paths == catalogue.tree.paths
    assert run.splits == dict(zip(catalogue.ids, catalogue.splits, strict=True))
    assert run.about["data"] == {"data": "tiny"}
    assert run.about["fingerprint"] == run.model.fingerprint
    assert [line["epoch"] for line in run.metrics] == [1, 2]
    assert run.describe().startswith("clip-ita of most-specific categories by path")
    products = run.model.product_rows(run.features(catalogue))
    assert products.shape == (24, 4)
    by_node = run.category_features(np.arange(len(run.tree)))
    assert by_node.texts[0] == run.tree.text(0)
    by_text = run.category_features([run.tree.text(1), "Women > Hats"])
    assert np.array_equal(by_text.text[0], by_node.text[1])
    assert run.model.category_rows(by_text).shape == (2, 4)


def test_what_is_no_run(made: tuple[Catalogue, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no trained category model"):
        CategoryRun.open(tmp_path)
    (tmp_path / "training.json").write_text("{}")
    with pytest.raises(UsageError, match="has not ended"):
        CategoryRun.open(tmp_path)
    CategoryRun({}).save(tmp_path / "category_run.json")
    (tmp_path / "tree.json").write_text("[]")
    with pytest.raises(StorageError, match=r"tree\.json is corrupt"):
        _ = CategoryRun.open(tmp_path).tree
    (tmp_path / "splits.parquet").write_text("no table")
    with pytest.raises(StorageError, match=r"splits\.parquet is corrupt"):
        _ = CategoryRun.open(tmp_path).splits
