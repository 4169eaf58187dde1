from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from diptych.core.errors import DataError, ImageError, UnknownNameError
from diptych.data.collection import Collection
from diptych.data.contents import NO_PICTURE, picture_contents


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


def test_an_item_without_a_picture_is_nobody_elses() -> None:
    three = collection(source_rows=np.array([10, -1, 30]))
    assert three.pictured.tolist() == [True, False, True]
    for read in (three.image, three.item):
        with pytest.raises(ImageError, match="b has no picture"):
            read(1)
    assert picture_contents(three) == ["10", NO_PICTURE, "30"]
    assert "3 images (1 of them without a picture), 3 captions" in three.describe()


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


def with_captions(counts: list[int]) -> Collection:
    images = [f"image{i}" for i in range(len(counts))]
    return collection(
        image_ids=images,
        captions=[f"{name} {k}" for name, n in zip(images, counts, strict=True) for k in range(n)],
        caption_ids=[f"{name}#{k}" for name, n in zip(images, counts, strict=True) for k in range(n)],
        caption_image=np.repeat(np.arange(len(counts)), counts),
        splits=["test", "train"] * (len(counts) // 2) + ["test"] * (len(counts) % 2),
        source_rows=np.arange(len(counts)),
        records=None,
    )


def test_random_captions_are_a_function_of_seed_and_image() -> None:
    whole = with_captions([5, 0, 1, 2, 7] * 40)
    one = whole.random_captions(seed=3)
    assert one.image_ids == whole.image_ids
    assert one.captions_per_image.tolist() == [1, 0, 1, 1, 1] * 40
    assert one.notes == ("1 caption of each image, drawn with seed 3",)
    assert one.captions == whole.random_captions(1, seed=3).captions
    assert one.captions != whole.random_captions(1, seed=4).captions
    # The same draw in a part, and in another order.
    turned = whole.subset(np.arange(whole.n_images)[::-1]).random_captions(seed=3)
    assert sorted(turned.captions) == sorted(one.captions)
    assert one.split("test").captions == whole.split("test").random_captions(seed=3).captions


def test_several_random_captions_stay_in_order_without_repeats() -> None:
    whole = with_captions([5, 1, 3] * 30)
    some = whole.random_captions(2, seed=0)
    assert some.captions_per_image.tolist() == [2, 1, 2] * 30
    assert len(set(some.captions)) == some.n_captions
    places = [int(name.rsplit("#", 1)[1]) for name in some.caption_ids]
    for image in range(some.n_images):
        drawn = places[some.caption_start[image] : some.caption_start[image + 1]]
        assert drawn == sorted(drawn)
    assert whole.random_captions(9, seed=0).captions == whole.captions


def test_every_caption_is_drawn_about_as_often() -> None:
    whole = with_captions([5] * 2000)
    places = [int(name.rsplit("#", 1)[1]) for name in whole.random_captions(seed=1).caption_ids]
    counts = np.bincount(places, minlength=5)
    # 400 expected each, standard deviation 18: five of them.
    assert np.all(np.abs(counts - 400) < 90)


def test_what_the_pictures_show_is_said_and_kept() -> None:
    three = collection(centric="object")
    assert three.describe().endswith("; train 2, test 1; object-centric")
    assert three.split("train").random_captions(seed=0).centric == "object"
