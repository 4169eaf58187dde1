"""Rows of pictures: each picture once, what a kill leaves, and products without a picture that can be read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from tiny_catalogue import NO_PICTURE, tiny_catalogue

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.features.pictures import PictureEncoder, picture_rows
from diptych.core.errors import ImageError, MismatchError


class Shades(PictureEncoder):
    """A picture's mean colour, and a record of what was asked."""

    kind: ClassVar[str] = "shades"
    source = "shades"
    width = 3
    fingerprint = "0123456789abcdef"

    def __init__(self, patience: int = 1000) -> None:
        self.options: dict[str, Any] = {}
        self.seen: list[str] = []
        self.patience = patience

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def prepared(self, item: Any, name: str) -> np.ndarray:
        return np.asarray(item, dtype=np.float32).mean(axis=(0, 1))

    def encode(self, prepared: Sequence[Any], names: Sequence[str]) -> np.ndarray:
        if len(self.seen) + len(names) > self.patience:
            raise KeyboardInterrupt
        self.seen += names
        rows = np.stack(prepared)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Regions(Shades):
    @property
    def takes(self) -> Literal["pictures", "regions"]:
        return "regions"


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return tmp_path / "pictures"


@pytest.fixture
def shop(pictures: Path) -> Catalogue:
    return tiny_catalogue(pictures)


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "diptych.commerce.category_to_image.features.pictures.contract"
    monkeypatch.setattr(f"{rows}._BATCH", 2)


def means(shop: Catalogue) -> np.ndarray:
    """What the rows should be, one picture at a time."""
    expected = np.zeros((len(shop), 3))
    for product, row in enumerate(shop.picture_rows.tolist()):
        if row >= 0:
            mean = np.asarray(shop.collection.image(row), dtype=np.float64).mean(axis=(0, 1))
            expected[product] = mean / np.linalg.norm(mean)
    return expected


def test_rows_are_the_encoders_own(shop: Catalogue, tmp_path: Path) -> None:
    encoder = Shades()
    found = picture_rows(encoder, shop, tmp_path, "none")
    assert isinstance(found.rows, np.memmap)
    np.testing.assert_allclose(found.rows, means(shop), atol=1e-6)
    assert [name for name, there in zip(shop.ids, found.pictured, strict=True) if not there] == [NO_PICTURE]
    assert (found.without, found.unreadable) == (1, 0)
    assert sorted(encoder.seen) == sorted(set(shop.ids) - {NO_PICTURE})


def test_a_picture_is_encoded_once(shop: Catalogue, tmp_path: Path) -> None:
    train = shop.split("train")
    picture_rows(Shades(), train, tmp_path, "none")
    second = Shades()
    whole = picture_rows(second, shop, tmp_path, "none")
    assert sorted(second.seen) == sorted(set(shop.ids) - set(train.ids))
    third = Shades()
    reversed_ = picture_rows(third, shop.subset(np.arange(len(shop))[::-1]), tmp_path, "none")
    assert third.seen == []
    assert np.array_equal(reversed_.rows, whole.rows[::-1])


def test_pictures_of_equal_bytes_share_a_row(shop: Catalogue, pictures: Path, tmp_path: Path) -> None:
    (pictures / "p01.png").write_bytes((pictures / "p00.png").read_bytes())
    encoder = Shades()
    rows = picture_rows(encoder, shop, tmp_path, "none").rows
    assert len(encoder.seen) == 22
    assert np.array_equal(rows[0], rows[1])


def test_what_a_kill_leaves_is_used(shop: Catalogue, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        picture_rows(Shades(patience=11), shop, tmp_path / "killed", "none")
    after = Shades()
    found = picture_rows(after, shop, tmp_path / "killed", "none")
    assert len(after.seen) == 23 - 10  # five batches of two were whole
    assert np.array_equal(found.rows, picture_rows(Shades(), shop, tmp_path / "whole", "none").rows)


def test_a_product_without_a_picture_is_named(shop: Catalogue, tmp_path: Path) -> None:
    encoder = Shades()
    with pytest.raises(ImageError, match="1 of the 24 products of tiny have no picture, 'p05' the first"):
        picture_rows(encoder, shop, tmp_path)
    assert encoder.seen == []  # before any work


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_picture_that_cannot_be_read(
    damage: str, shop: Catalogue, pictures: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    some = shop.subset(np.flatnonzero(shop.pictured))
    path = pictures / "p07.png"
    path.unlink() if damage == "gone" else path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ImageError, match="picture of product 'p07' cannot be used"):
        picture_rows(Shades(), some, tmp_path)
    found = picture_rows(Shades(), some, tmp_path, "none")
    assert (found.without, found.unreadable) == (0, 1)
    assert [name for name, there in zip(some.ids, found.pictured, strict=True) if not there] == ["p07"]
    assert not found.rows[list(some.ids).index("p07")].any()
    assert "'p07'" in caplog.text
    # Its row of zeros is in the cache now, and is still no picture.
    with pytest.raises(ImageError, match="picture of product 'p07' cannot be used"):
        picture_rows(Shades(), some, tmp_path)


def test_a_mended_picture_is_read(shop: Catalogue, pictures: Path, tmp_path: Path) -> None:
    good = (pictures / "p07.png").read_bytes()
    (pictures / "p07.png").write_bytes(good[:60])
    picture_rows(Shades(), shop, tmp_path, "none")
    (pictures / "p07.png").write_bytes(good)
    after = Shades()
    assert picture_rows(after, shop, tmp_path, "none").unreadable == 0
    assert after.seen == ["p07"]


def test_regions_are_not_pictures(shop: Catalogue, tmp_path: Path) -> None:
    with pytest.raises(MismatchError, match="takes regions, tiny holds pictures"):
        picture_rows(Regions(), shop, tmp_path)


def test_no_products(shop: Catalogue, tmp_path: Path) -> None:
    assert picture_rows(Shades(), shop.subset([]), tmp_path).rows.shape == (0, 3)
