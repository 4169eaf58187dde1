from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from crash import crash_everywhere
from PIL import Image
from refusals import refused

from diptych.core.context import report_to, stop_when
from diptych.core.errors import CaptionError, ImageError, Interrupted, MismatchError, StorageError, UsageError
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.data.regions import RegionSource
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.encode import device_for, encode_collection, without_bad_images
from diptych.encoders.two_tower import TwoTowerEncoder

from .shades import BLOCK, Bars, Shades
from .tiny_towers import two_tower

STARS, TEXT = Vocabulary.build(["a red star"], 1), {"min_count": 1}


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


def test_bad_pictures_are_named_or_left_out(scenes_folder: Path, val: Collection, tmp_path: Path) -> None:
    shutil.copytree(scenes_folder, tmp_path / "data")
    files = sorted((tmp_path / "data" / "val").glob("*.png"))
    files[3].write_bytes(b"")
    collection = read_collection(tmp_path / "data").split("val")
    message = rf"{files[3].name} is empty \(0 bytes\)"
    refused(ImageError, message, encode_collection, Shades(), collection, tmp_path / "e", "val")
    files[5].unlink()
    good, problems = without_bad_images(collection)
    assert (good.n_images, good.n_captions, len(problems)) == (14, 70, 2)
    assert files[3].name in problems[0]
    assert files[5].name in problems[1]
    assert without_bad_images(good) == (good, [])
    (tmp_path / "own" / "images").mkdir(parents=True)
    (tmp_path / "own" / "images" / "mine.jpg").write_text("precious")
    refused(UsageError, "holds other things", encode_collection, Shades(), val, tmp_path / "own", "val")
    assert (tmp_path / "own" / "images" / "mine.jpg").read_text() == "precious"


def test_pictures_and_regions_are_not_taken_for_each_other(val: Collection, tmp_path: Path) -> None:
    for encoder, given, error, message in (
        (region_encoder(), val, MismatchError, "the encoder takes regions, scenes holds pictures"),
        (Shades(), featured(val), MismatchError, "the encoder takes pictures, scenes holds regions"),
        (
            region_encoder(4),
            featured(val),
            ImageError,
            r"val/000000.png has region features of shape \(2, 3\)",
        ),
    ):
        fix = refused(error, message, encode_collection, encoder, given, tmp_path / "e").fix
        assert given is not val or "regions=FILE.npy" in fix
    assert not (tmp_path / "e" / "embedded_collection.json").exists()


def test_pictures_prepared_ahead_have_the_same_rows(
    val: Collection, tmp_path: Path, blocks: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks(5)
    encoder, pictures = picture_encoder(), list(val.images())
    expected = [encoder.encode_images(pictures[start : start + 5]) for start in range(0, 16, 5)]
    for threads, card in ((0, False), (4, True)):
        monkeypatch.setattr(torch.cuda, "is_available", lambda card=card: card)
        monkeypatch.setattr("diptych.encoders.encode.default_workers", lambda threads=threads: threads)
        encoded = encode_collection(encoder, val, tmp_path / str(threads), "val")
        assert np.array_equal(encoded.images.rows, np.concatenate(expected))
    refused(UsageError, "0 processes", encode_collection, encoder, val, tmp_path, processes=0)
    # The prepared pixels are those of the tower, and a batch's rows those of the network on them.
    assert encoder.prepares
    prepared = [encoder.prepared(picture, "x") for picture in pictures[:5]]
    assert np.array_equal(encoder.encode_prepared(prepared, range(5)), expected[0])


def test_a_crash_at_any_call_resumes_to_the_same_bits(
    val: Collection, tmp_path: Path, blocks: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks(3)
    monkeypatch.setattr("diptych.encoders.encode.default_workers", lambda: 0)
    monkeypatch.setattr("diptych.data.row_store._SECONDS", 0.0)
    collection = val.subset([0, 1, 2, 3, 4])
    older = collection.subset([4, 3, 2, 1, 0])  # of other images, not to be taken for what is missing
    whole, other = (
        encode_collection(Shades(), given, tmp_path / name)
        for given, name in ((collection, "whole"), (older, "other"))
    )

    def begin(place: Path) -> None:
        encode_collection(Shades(), older, place / "e")

    def check(place: Path) -> None:
        if EncodedCollection.is_at(place / "e"):
            found = EncodedCollection.open(place / "e").about
            assert found["data"] in (whole.about["data"], other.about["data"])
        encoder = Shades()
        stores = [place / "e" / "images", place / "e" / "images.unfinished"]
        finished = [one / "finished.u1" for one in stores if (one / "plan.json").exists()]
        kept = sum(int(np.fromfile(one, np.uint8)[0]) for one in finished)
        encoded = encode_collection(encoder, collection, place / "e")
        assert np.array_equal(encoded.images.rows, whole.images.rows)
        assert np.array_equal(encoded.texts.rows, whole.texts.rows)
        assert (list(encoded.images.ids), encoded.about) == (list(whole.images.ids), whole.about)
        assert encoder.seen[0] <= 5 - 3 * min(1, kept)
        left = {file.name for file in (place / "e").iterdir()}
        assert left == {file.name for file in (tmp_path / "whole").iterdir()}

    def act(place: Path) -> None:
        encode_collection(Shades(), collection, place / "e")

    assert crash_everywhere(begin, act, check, tmp_path, every=29) > 16


def test_stopped_it_keeps_what_it_has_and_says_so(
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
    assert bars.bars == [
        ["reading images", 16, 16],
        ["embedding images", 16, 16],
        ["embedding captions", 80, 80],
    ]
    assert encoder.seen == [16, 80]


def test_two_processes_write_what_one_does(collection: Collection, tmp_path: Path) -> None:
    whole = encode_collection(region_encoder(), collection, tmp_path / "one")
    bars, folder = Bars(), tmp_path / "two"
    with report_to(bars):
        found = encode_collection(region_encoder(), collection, folder, processes=2, accelerator="cpu")
    assert np.array_equal(found.images.rows, whole.images.rows)
    assert np.array_equal(found.texts.rows, whole.texts.rows)
    assert found.about == whole.about
    assert bars.bars == [
        ["reading images", 48, 48],
        ["embedding images", 48, 48],
        ["embedding captions", 240, 240],
    ]
    assert {file.name for file in folder.iterdir()} == {file.name for file in (tmp_path / "one").iterdir()}


def test_a_collection_that_cannot_be_handed_on_is_named(val: Collection, tmp_path: Path) -> None:
    class Locked(Tall):
        def __init__(self) -> None:
            super().__init__(99, 99)
            self.lock = threading.Lock()

    pictures, message = replace(val, source=Locked()), "the collection cannot be sent to other processes"
    options = {"processes": 2, "accelerator": "cpu"}
    error = refused(
        UsageError, message, encode_collection, picture_encoder(), pictures, tmp_path / "e", **options
    )
    assert error.fix == "use one process"
    wrapped = DualEncoder.wrap(torch.nn.Identity(), torch.nn.Identity())
    message = "wrapped is made of functions given in Python, which other processes do not have"
    error = refused(UsageError, message, encode_collection, wrapped, val, tmp_path / "w", **options)
    assert (error.fix, (tmp_path / "w").exists()) == ("use one process", False)


def test_devices_are_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert [device_for(name, 8) for name in ("auto", "cpu")] == ["cpu", "cpu"]
    refused(UsageError, "8 processes for 0 GPUs", device_for, "cuda", 8)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert [device_for(name, 4) for name in ("auto", "cuda", "gpu", "cpu")] == ["cuda", "cuda", "cuda", "cpu"]
    refused(UsageError, "5 processes for 4 GPUs", device_for, "auto", 5)
    refused(UsageError, "accelerator 'tpu' with 2 processes", device_for, "tpu", 2)


def region_encoder(regions: int = 2) -> TwoTowerEncoder:
    image = {"kind": "regions", "regions": regions, "feature_width": 3}
    return two_tower(STARS, 6, image=image, text=TEXT)


def picture_encoder() -> TwoTowerEncoder:
    return two_tower(STARS, 6, text=TEXT)


def featured(collection: Collection) -> Collection:
    """The collection with two regions of three features instead of each picture."""
    count = collection.n_images
    values = np.random.default_rng(0).normal(size=(count, 2, 3)).astype(np.float32)
    return replace(collection, source=RegionSource([values], "r.npy"), source_rows=np.arange(count))


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Set how many pictures and captions a block holds."""

    def change(images: int, texts: int = 4096) -> None:
        monkeypatch.setattr("diptych.encoders.encode._IMAGE_BLOCK", images)
        monkeypatch.setattr("diptych.encoders.encode._TEXT_BLOCK", texts)

    return change


@pytest.fixture
def collection(scenes_folder: Path, blocks: Callable[[int, int], None]) -> Collection:
    blocks(5, 30)
    return featured(read_collection(scenes_folder).split("train"))


def test_half_a_folder_is_completed(val: Collection, tmp_path: Path) -> None:
    whole = encode_collection(Shades(), val, tmp_path / "whole", "val")
    for file, seen, how in (
        ("embedded_collection.json", [0, 0], "short"),
        ("caption_image.npy", [0, 0], "gone"),
        ("images/rows.npy", [16, 0], "short"),
        ("images/ids.utf8", [16, 0], "gone"),
        ("images/embeddings.json", [16, 0], "gone"),
        ("texts/rows.npy", [0, 80], "short"),
    ):
        folder = Path(shutil.copytree(tmp_path / "whole", tmp_path / f"half-{Path(file).name}-{seen}"))
        path = folder / file
        content = path.read_bytes()
        path.unlink()
        if how == "short":
            path.write_bytes(content[: len(content) // 2])
        elif file == "images/embeddings.json":
            for other in ("rows.npy", "ids.utf8", "ids.ends"):  # else they are other data
                (path.parent / other).unlink()
        refused(StorageError, ".", EncodedCollection.open, folder)
        encoder = Shades()
        found = encode_collection(encoder, val, folder, "val")
        assert encoder.seen == seen, file
        assert np.array_equal(found.images.rows, whole.images.rows)
        assert np.array_equal(found.texts.rows, whole.texts.rows)


class Tall:
    """One picture of a shape that no encoder takes, and one that cannot be read."""

    def __init__(self, bad: int, unreadable: int) -> None:
        self.bad, self.unreadable = bad, unreadable

    def read(self, row: int) -> Image.Image:
        if row == self.unreadable:
            raise ImageError("the third table of the archive is corrupt", "fetch it again")
        return Image.new("RGB", (1, 900) if row == self.bad else (32, 32))

    def content(self, row: int) -> str:
        return str(row)


def test_what_is_wrong_is_named_by_its_id(
    val: Collection, tmp_path: Path, blocks: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks(BLOCK)
    ids, wrong, rows = val.image_ids, Shades(), np.arange(16)

    def no_tokens(texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        raise CaptionError("text 3 has no tokens", "leave it out")

    monkeypatch.setattr(wrong, "encode_texts", no_tokens)
    message = rf"of the captions from {val.caption_ids[0]} on: text 3"
    assert refused(CaptionError, message, encode_collection, wrong, val, tmp_path / "b").fix == "leave it out"
    both, one = (replace(val, source=Tall(bad, 9), source_rows=rows) for bad in (6, 99))
    for encoder, given, message in (
        (picture_encoder(), both, rf"image {ids[6]} is 1 × 900 pixels"),
        (Shades(), both, f"among images {ids[4]} to {ids[7]}: image 2 is too small"),
        (Shades(), one, f"image {ids[9]}: the third table of the archive"),
    ):
        error = refused(ImageError, message, encode_collection, encoder, given, tmp_path / message[-9:])
    assert error.fix == "fetch it again"
