from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from diptych.core.errors import DataError, UnknownNameError
from diptych.data.collection import Collection


class Numbers:
    """Pictures whose colour is their row."""

    def read(self, row: int) -> Image.Image:
        return Image.new("RGB", (1, 1), (row, 0, 0))

    def content(self, row: int) -> str:
        return str(row)


def collection(**changes: object) -> Collection:
    values: dict[str, object] = {
        "name": "three",
        "image_ids": ["a", "b", "c"],
        "captions": ["a0", "a1", "c0"],
        "caption_ids": ["1", "2", "3"],
        "caption_image": np.array([0, 0, 2]),
        "splits": ["train", "test", "train"],
        "source": Numbers(),
        "source_rows": np.array([10, 20, 30]),
        "records": [{"n": 0}, {"n": 1}, {"n": 2}],
    }
    return Collection(**{**values, **changes})  # type: ignore[arg-type]


def test_which_caption_describes_which_image() -> None:
    three = collection()
    assert three.captions_of(0) == ["a0", "a1"]
    assert three.captions_of(1) == []
    assert three.captions_per_image.tolist() == [2, 0, 1]
    assert three.image(2).getpixel((0, 0)) == (30, 0, 0)
    assert three.split_sizes == {"train": 2, "test": 1}
    assert "3 images, 3 captions (0–2 captions per image); train 2, test 1" in three.describe()


def test_a_split_keeps_images_captions_and_records_together() -> None:
    train = collection().split("train")
    assert train.image_ids == ["a", "c"]
    assert train.captions == ["a0", "a1", "c0"]
    assert train.caption_image.tolist() == [0, 0, 1]
    assert train.records == [{"n": 0}, {"n": 2}]
    assert [picture.getpixel((0, 0))[0] for picture in train.images()] == [10, 30]


def test_a_subset_follows_the_order_asked_for() -> None:
    turned = collection().subset([2, 1, 0])
    assert turned.captions == ["c0", "a0", "a1"]
    assert turned.caption_image.tolist() == [0, 2, 2]
    assert turned.first_captions(1).captions == ["c0", "a0"]


def test_an_unknown_split_lists_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown split of three 'val' .*known: test, train"):
        collection().split("val")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"splits": ["train"]}, "3 splits expected, got 1"),
        ({"caption_image": np.array([0, 0, 3])}, r"must not decrease and lie in \[0, 3\)"),
        ({"caption_image": np.array([1, 0, 2])}, "must not decrease"),
        ({"image_ids": ["a", "b", "a"]}, "image id 'a' occurs twice"),
        ({"caption_ids": ["1", "1", "2"]}, "caption id '1' occurs twice"),
        ({"caption_records": []}, "3 caption records expected, got 0"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        collection(**changes)


def test_the_fingerprint_is_of_content() -> None:
    assert collection().text_fingerprint == collection(name="other").text_fingerprint
    assert collection().text_fingerprint != collection(captions=["a0", "a1", "c1"]).text_fingerprint
