"""Rows of products, a block at a time: the same whatever the block, in memory and on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from category_rows import made_shop
from scipy.sparse import csr_array

from diptych.commerce.category_to_image import rankers as module
from diptych.commerce.category_to_image.features.rows import CategoryFeatures, ProductFeatures
from diptych.commerce.category_to_image.picking import pick
from diptych.commerce.category_to_image.rankers import Ranker, features_part, product_embeddings, product_rows
from diptych.core.errors import MismatchError, UsageError


class Sums(Ranker):
    """Titles' rows, and the first four numbers of all attributes' rows added up."""

    name = "sums"

    def __init__(self, sparse: bool = False) -> None:
        self.sparse = sparse

    @property
    def fingerprint(self) -> str:
        return "sums-1"

    def describe(self) -> dict[str, Any]:
        return {"name": self.name}

    def product_rows(self, products: ProductFeatures) -> np.ndarray | csr_array:
        added = np.zeros((len(products), products.attribute_rows.shape[1]), dtype=np.float32)
        owner = np.repeat(np.arange(len(products)), np.diff(products.attribute_start))
        np.add.at(added, owner, products.attribute_rows[products.attribute_items])
        rows = np.hstack([np.asarray(products.title), added[:, :4]]).astype(np.float32)
        return csr_array(rows) if self.sparse else rows

    def category_rows(self, categories: CategoryFeatures) -> np.ndarray | csr_array:
        rows = np.hstack([categories.text, categories.text[:, :4]]).astype(np.float32)
        return csr_array(rows) if self.sparse else rows


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("block", [1, 7, 60])
def test_blocks_do_not_matter(sparse: bool, block: int) -> None:
    _, features, _ = made_shop(60)
    ranker = Sums(sparse)
    whole, made = ranker.product_rows(features), product_rows(ranker, features, block)
    if sparse:
        assert not isinstance(made, np.ndarray)
        assert np.array_equal(made.toarray(), whole.toarray())
    else:
        assert np.array_equal(made, whole)


def test_a_part_is_that_part() -> None:
    _, features, _ = made_shop(20)
    part = features_part(features, 3, 9)
    assert list(part.ids) == list(features.ids[3:9])
    assert np.array_equal(part.present("attributes"), features.present("attributes")[3:9])
    assert np.array_equal(Sums().product_rows(part), Sums().product_rows(features)[3:9])


def test_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 7)
    catalogue, features, _ = made_shop(30)
    made = product_embeddings(
        Sums(), features, tmp_path / "rows", data=catalogue.fingerprint, about={"split": "all"}
    )
    assert np.array_equal(made.rows, Sums().product_rows(features))
    assert isinstance(made.rows, np.memmap)
    assert (made.kind, made.encoder, list(made.ids)) == ("product", "sums-1", list(catalogue.ids))
    assert made.about == {"ranker": {"name": "sums"}, "split": "all"}
    with pytest.raises(UsageError, match="sums has no dense rows of 30 products"):
        product_embeddings(Sums(sparse=True), features, tmp_path / "other", data="d", about={})
    assert not (tmp_path / "other").exists()


def test_picking_by_a_ranker() -> None:
    catalogue, features, categories = made_shop(60)
    dense, sparse = (pick(Sums(kind), features, catalogue, categories, 5) for kind in (False, True))
    assert dense.about["ranker"] == {"name": "sums"}
    assert list(dense.texts) == list(categories.texts)
    for mine, values, theirs in zip(
        np.split(dense.products, dense.start[1:-1]),
        np.split(dense.scores, dense.start[1:-1]),
        np.split(sparse.products, sparse.start[1:-1]),
        strict=True,
    ):
        assert mine[values > 0].tolist() == theirs.tolist()
    scores = (
        np.asarray(Sums().category_rows(categories), np.float64)
        @ np.asarray(Sums().product_rows(features), np.float64).T
    )
    scores[:, ~catalogue.pictured] = -np.inf
    best = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    assert np.array_equal(dense.products.reshape(-1, 5), best)
    with pytest.raises(MismatchError, match="not the same products"):
        pick(Sums(), features_part(features, 0, 59), catalogue, categories)
