from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from diptych.data.collection import Collection
from diptych.data.overlay import OverlaidPicture, Overlay, Patch, pasted, split_overlay


@dataclass(frozen=True)
class Corner:
    key: str = "corner"

    def patches(self, width: int, height: int) -> Sequence[Patch]:
        return [
            Patch(0, 0, np.full((2, 3, 3), 9, np.uint8)),
            Patch(width - 2, height - 1, np.full((1, 2, 3), 7, np.uint8)),
            Patch(1, 1, np.full((1, 1, 3), 5, np.uint8)),
        ]


class Source:
    def read(self, row: int) -> Image.Image:
        return Image.new("RGB", (4, 3), (row, row, row))

    def content(self, row: int) -> str:
        return str(row)


class Overlaid(Source):
    def overlay(self, row: int) -> Overlay | None:
        return Corner() if row == 1 else None


def collection(source: Source) -> Collection:
    return Collection("c", ["a", "b"], [], [], np.zeros(0, np.int64), ["x", "x"], source, np.array([1, 0]))


def test_patches_are_pasted_in_order_on_a_copy() -> None:
    pixels = np.zeros((3, 4, 3), np.uint8)
    found = pasted(pixels, Corner())
    assert found[:, :, 1].tolist() == [[9, 9, 9, 0], [9, 5, 9, 0], [0, 0, 7, 7]]
    assert not pixels.any()


def test_items_carry_the_overlay_of_their_source_row() -> None:
    item = collection(Overlaid()).item(0)
    assert isinstance(item, OverlaidPicture)
    picture, overlay = split_overlay(item)
    assert (picture.getpixel((0, 0)), overlay) == ((1, 1, 1), Corner())
    bare = collection(Overlaid()).item(1)
    assert isinstance(bare, Image.Image)
    assert split_overlay(bare) == (bare, None)
    assert isinstance(collection(Source()).item(0), Image.Image)


def test_a_subset_keeps_its_overlays() -> None:
    part = collection(Overlaid()).subset([1, 0])
    assert [isinstance(part.item(row), OverlaidPicture) for row in range(2)] == [False, True]
    assert isinstance(replace(part, notes=("n",)).item(1), OverlaidPicture)
