from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from crash import crash_everywhere
from PIL import Image
from refusals import refused

from diptych.core.context import report_to, stop_when
from diptych.core.errors import (
    CaptionError,
    ImageError,
    Interrupted,
    MismatchError,
    NumericalError,
    StorageError,
    UsageError,
)
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.data.regions import RegionSource
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import encode_collection, without_bad_images
from diptych.encoders.two_tower import TwoTowerEncoder

from .shades import BLOCK, Bars, Shades
from .tiny_towers import two_tower


def test_nothing_is_encoded_twice_unless_something_changed(scenes_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(scenes_folder, tmp_path / "data")
    encoder = Shades()

    def encode() -> None:
        encode_collection(encoder, read_collection(tmp_path / "data").split("val"), tmp_path / "e", "val")

    encode()
    encode()
    assert encoder.seen == [16, 80]
    first, second = sorted((tmp_path / "data" / "val").glob("*.png"))[:2]
    first.write_bytes(second.read_bytes())
    encode()
    assert encoder.seen == [32, 160]


@pytest.mark.parametrize(
    ("file", "seen"),
    [
        ("embedded_collection.json", [0, 0]),
        ("caption_image.npy", [0, 0]),
        ("images/rows.npy", [16, 0]),
        ("images/ids.utf8", [16, 0]),
        ("images/embeddings.json", [16, 0]),
        ("texts/rows.npy", [0, 80]),
    ],
)
@pytest.mark.parametrize("how", ["gone", "short"])
def test_half_a_folder_is_completed(
    val: Collection, tmp_path: Path, file: str, seen: list[int], how: str
) -> None:
    whole = encode_collection(Shades(), val, tmp_path / "e", "val")
    rows = np.array(whole.images.rows), np.array(whole.texts.rows)
    path = tmp_path / "e" / file
    content = path.read_bytes()
    path.unlink()
    if how != "gone":
        path.write_bytes(content[: len(content) // 2 if how == "short" else 0])
    elif file == "images/embeddings.json":
        for other in ("rows.npy", "ids.utf8", "ids.ends"):  # else they are somebody else's
            (path.parent / other).unlink()
    with pytest.raises(StorageError):
        EncodedCollection.open(tmp_path / "e")
    encoder = Shades()
    found = encode_collection(encoder, val, tmp_path / "e", "val")
    assert encoder.seen == seen
    assert np.array_equal(found.images.rows, rows[0])
    assert np.array_equal(found.texts.rows, rows[1])


def test_a_folder_of_pictures_is_not_replaced(val: Collection, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "mine.jpg").write_text("precious")
    refused(UsageError, "holds other things", encode_collection, Shades(), val, tmp_path, "val")
    assert (tmp_path / "images" / "mine.jpg").read_text() == "precious"


def test_bad_pictures_are_named_or_left_out(scenes_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(scenes_folder, tmp_path / "data")
    files = sorted((tmp_path / "data" / "val").glob("*.png"))
    files[3].write_bytes(b"")
    collection = read_collection(tmp_path / "data").split("val")
    with pytest.raises(ImageError, match=rf"{files[3].name} is empty \(0 bytes\)"):
        encode_collection(Shades(), collection, tmp_path / "e", "val")
    files[5].unlink()
    good, problems = without_bad_images(collection)
    assert good.n_images == 14
    assert good.n_captions == 70
    assert [files[3].name in problems[0], files[5].name in problems[1], len(problems)] == [True, True, 2]
    same, none = without_bad_images(good)
    assert same is good
    assert none == []


STARS, TEXT = Vocabulary.build(["a red star"], 1), {"min_count": 1}


def region_encoder(regions: int = 2) -> TwoTowerEncoder:
    image = {"kind": "regions", "regions": regions, "feature_width": 3}
    return two_tower(STARS, 6, image=image, text=TEXT)


def featured(collection: Collection, scale: float = 1.0) -> Collection:
    """The collection with two regions of three features per picture instead of pictures."""
    values = np.random.default_rng(0).normal(size=(collection.n_images, 2, 3)).astype(np.float32) * scale
    return replace(
        collection, source=RegionSource([values], "r.npy"), source_rows=np.arange(collection.n_images)
    )


def test_pictures_and_regions_are_not_taken_for_each_other(val: Collection, tmp_path: Path) -> None:
    with pytest.raises(MismatchError, match="the encoder takes regions, scenes holds pictures") as caught:
        encode_collection(region_encoder(), val, tmp_path / "e")
    assert "regions=FILE.npy" in caught.value.fix
    with pytest.raises(MismatchError, match="the encoder takes pictures, scenes holds regions"):
        encode_collection(Shades(), featured(val), tmp_path / "e")
    with pytest.raises(ImageError, match="image 0 is a Image, not a matrix of region features"):
        region_encoder().encode_images([val.image(0)])
    with pytest.raises(ImageError, match=r"image val/000000.png has region features of shape \(2, 3\)"):
        encode_collection(region_encoder(4), featured(val), tmp_path / "e")
    assert not (tmp_path / "e" / "embedded_collection.json").exists()


def picture_encoder() -> TwoTowerEncoder:
    return two_tower(STARS, 6, text=TEXT)


@pytest.mark.parametrize(("threads", "card"), [(0, False), (1, False), (4, True)])
def test_pictures_prepared_ahead_have_the_same_rows(
    val: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, card: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: card)
    monkeypatch.setattr("diptych.encoders.encode._IMAGE_BLOCK", 5)
    monkeypatch.setattr("diptych.encoders.encode.default_workers", lambda: threads)
    encoder = picture_encoder()
    encoded = encode_collection(encoder, val, tmp_path / "e", "val")
    pictures = list(val.images())
    expected = [encoder.encode_images(pictures[start : start + 5]) for start in range(0, 16, 5)]
    assert np.array_equal(encoded.images.rows, np.concatenate(expected))
    # The prepared pixels are those of the tower, and a batch's rows those of the network on them.
    assert encoder.prepares
    prepared = [encoder.prepared(picture, "x") for picture in pictures[:5]]
    assert np.array_equal(encoder.encode_prepared(prepared, range(5)), expected[0])


def test_a_crash_at_any_call_resumes_to_the_same_bits(
    val: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diptych.encoders.encode._IMAGE_BLOCK", 3)
    monkeypatch.setattr("diptych.encoders.encode.default_workers", lambda: 0)
    monkeypatch.setattr("diptych.encoders.row_store._SECONDS", 0.0)
    collection = val.subset([0, 1, 2, 3, 4])
    other = collection.subset([4, 3, 2, 1, 0])
    whole = encode_collection(Shades(), collection, tmp_path / "whole")

    def begin(place: Path) -> None:  # an older version of other images, not to be taken for what is missing
        encode_collection(Shades(), other, place / "e")

    def check(place: Path) -> None:
        done = EncodedCollection.is_at(place / "e")
        if done:
            found = EncodedCollection.open(place / "e").about
            assert found["data"] in (whole.about["data"], fingerprint_of_other)
        encoder = Shades()
        stores = [place / "e" / "images", place / "e" / "images.unfinished"]
        kept = sum(
            int(np.fromfile(one / "finished.u1", np.uint8)[0])
            for one in stores
            if (one / "plan.json").exists()
        )
        encoded = encode_collection(encoder, collection, place / "e")
        assert np.array_equal(encoded.images.rows, whole.images.rows)
        assert np.array_equal(encoded.texts.rows, whole.texts.rows)
        assert (list(encoded.images.ids), encoded.about) == (list(whole.images.ids), whole.about)
        assert encoder.seen[0] <= 5 - 3 * min(1, kept)
        encode_collection(encoder, collection, place / "e")
        left = {file.name for file in (place / "e").iterdir()}
        assert left == {file.name for file in (tmp_path / "whole").iterdir()}

    begin(tmp_path / "other")
    fingerprint_of_other = EncodedCollection.open(tmp_path / "other" / "e").about["data"]
    act = lambda place: encode_collection(Shades(), collection, place / "e") and None  # noqa: E731
    assert crash_everywhere(begin, act, check, tmp_path, every=7) > 16


def test_asked_to_stop_it_keeps_what_it_has_and_says_so(
    val: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diptych.encoders.encode._IMAGE_BLOCK", BLOCK)
    encoder = Shades()
    with stop_when(lambda: True), pytest.raises(Interrupted, match="stopped while images were read"):
        encode_collection(encoder, val, tmp_path / "e")
    assert (encoder.seen, (tmp_path / "e").exists()) == ([0, 0], False)
    with (
        stop_when(lambda: encoder.seen[0] == 8),
        pytest.raises(Interrupted, match="8 of 16 images and 0 of 80 captions are embedded and kept"),
    ):
        encode_collection(encoder, val, tmp_path / "e")
    assert "resume" in refused(StorageError, "is not finished", EncodedCollection.open, tmp_path / "e").fix
    bars = Bars()
    with report_to(bars):
        encode_collection(encoder, val, tmp_path / "e")
    assert bars.told == [
        ["reading pictures", 16, 16],
        ["embedding images", 16, 16],
        ["embedding captions", 80, 80],
    ]
    assert encoder.seen == [16, 80]


class Wrong(Shades):
    """Names what is wrong as encoders do: by its place in the batch, or with the names it was given."""

    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        raise CaptionError("text 3 has no tokens", "leave it out")


class Nan(Shades):
    def encode_prepared(
        self, prepared: Sequence[Any], positions: Sequence[int] | Sequence[str]
    ) -> np.ndarray:
        raise NumericalError(f"the embedding of image {positions[1]} is not finite")


def test_what_is_wrong_is_named_by_its_id(
    val: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diptych.encoders.encode._IMAGE_BLOCK", BLOCK)
    ids = val.image_ids
    with pytest.raises(NumericalError, match=rf"^the embedding of image {ids[1]} is not finite"):
        encode_collection(Nan(), val, tmp_path / "a")
    with pytest.raises(CaptionError, match=rf"of the captions from {val.caption_ids[0]} on: text 3") as one:
        encode_collection(Wrong(), val, tmp_path / "b")
    assert one.value.fix == "leave it out"

    class Tall:
        """One picture of a shape that no encoder takes, and one that cannot be read."""

        def __init__(self, bad: int, unreadable: int) -> None:
            self.bad, self.unreadable = bad, unreadable

        def read(self, row: int) -> Image.Image:
            if row == self.unreadable:
                raise ImageError("the third table of the archive is damaged", "fetch it again")
            return Image.new("RGB", (1, 900) if row == self.bad else (32, 32))

        def content(self, row: int) -> str:
            return str(row)

    rows = np.arange(16)
    strange = replace(val, source=Tall(6, 9), source_rows=rows)
    with pytest.raises(ImageError, match=rf"image {ids[6]} is 1 × 900 pixels"):
        encode_collection(picture_encoder(), strange, tmp_path / "c")
    with pytest.raises(ImageError, match=f"among images {ids[4]} to {ids[7]}: image 2 is too small"):
        encode_collection(Shades(), strange, tmp_path / "d")
    damaged = replace(val, source=Tall(99, 9), source_rows=rows)
    with pytest.raises(ImageError, match=f"image {ids[9]}: the third table of the archive") as caught:
        encode_collection(Shades(), damaged, tmp_path / "d")
    assert caught.value.fix == "fetch it again"
