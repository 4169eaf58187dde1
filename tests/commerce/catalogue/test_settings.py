"""Which category stands for a product."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_catalogue import COATS, DRESSES, NO_CATEGORY, TWO_PATHS, tiny_catalogue

from diptych.commerce.catalogue import SETTINGS, Catalogue, targets_of
from diptych.core.errors import UnknownNameError


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return tiny_catalogue(tmp_path_factory.mktemp("tiny") / "pictures")


def test_there_are_three() -> None:
    assert SETTINGS.names() == ["all", "most-general", "most-specific"]


def test_the_ends_of_a_path(shop: Catalogue) -> None:
    general, specific = targets_of(shop, "most-general"), targets_of(shop, "most-specific")
    two, none = shop.ids.index(TWO_PATHS), shop.ids.index(NO_CATEGORY)
    assert shop.tree.paths[specific[two]] == DRESSES
    assert {shop.tree.paths[node] for node in general if node >= 0} == {("Men",), ("Women",)}
    assert general[none] == specific[none] == targets_of(shop, "all")[none] == -1
    assert np.array_equal(specific, shop.place)


def test_a_draw_belongs_to_seed_epoch_and_product(shop: Catalogue) -> None:
    whole = dict(zip(shop.ids, targets_of(shop, "all", seed=3, epoch=2).tolist(), strict=True))
    for part in (shop.split("test"), shop.subset([7, 2, 0, 19])):
        drawn = targets_of(part, "all", seed=3, epoch=2)
        assert drawn.tolist() == [whole[name] for name in part.ids]
    other = [targets_of(shop, "all", **given) for given in ({}, {"seed": 1}, {"epoch": 0}, {"epoch": 1})]
    assert len({one.tobytes() for one in other}) == 4


def test_every_category_of_a_product_is_as_likely(shop: Catalogue) -> None:
    """p00 is a dress and a coat: four categories, of which two are shared by both paths."""
    drawn = np.stack([targets_of(shop, "all", seed) for seed in range(2000)])
    nodes, counts = np.unique(drawn[:, shop.ids.index(TWO_PATHS)], return_counts=True)
    assert {shop.tree.paths[node] for node in nodes} == {DRESSES[:1], DRESSES[:2], DRESSES, COATS}
    assert np.abs(counts / 2000 - 0.25).max() < 0.04
    nodes, counts = np.unique(drawn[:, shop.ids.index("p01")], return_counts=True)
    assert {shop.tree.paths[node] for node in nodes} == {DRESSES[:1], DRESSES[:2], DRESSES}
    assert np.abs(counts / 2000 - 1 / 3).max() < 0.04


def test_an_unknown_setting_is_named(shop: Catalogue) -> None:
    with pytest.raises(UnknownNameError, match="most-specific"):
        targets_of(shop, "most-specifc")


def test_an_empty_part(tmp_path: Path, shop: Catalogue) -> None:
    assert targets_of(shop.subset([]), "all").tolist() == []
