"""A dataset encoded in parts, and joined, is what one call writes."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from diptych.core.context import stop_when
from diptych.core.errors import DataError, Interrupted, MismatchError, StorageError, UsageError
from diptych.data.collection import Collection
from diptych.data.readers import read_collection
from diptych.encoders.embeddings import EncodedCollection, Origin
from diptych.encoders.encode import encode_collection
from diptych.encoders.encode_parts import EmbeddedPart, encode_share, join_parts, parse_part, share_of

from .shades import Shades
from .test_encode import picture_encoder


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diptych.encoders.encode._IMAGE_BLOCK", 3)
    monkeypatch.setattr("diptych.encoders.encode._TEXT_BLOCK", 16)


@pytest.fixture
def origin(scenes_folder: Path) -> Origin:
    return Origin("shades", {"path": str(scenes_folder)}, "val")


@pytest.fixture
def whole(scenes_folder: Path) -> Collection:
    return read_collection(scenes_folder).split("val")  # 16 images, 80 captions


def files_of(folder: Path) -> dict[str, bytes]:
    found = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file.relative_to(folder)): file.read_bytes() for file in found if "part-" not in str(file)}


@pytest.mark.parametrize("parts", [1, 2, 5, 6])
def test_shares_are_whole_blocks_and_everything_once(whole: Collection, parts: int) -> None:
    shares = [share_of(whole, number, parts) for number in range(1, parts + 1)]
    assert [name for one in shares for name in one.image_ids] == whole.image_ids
    assert [name for one in shares for name in one.caption_ids] == whole.caption_ids
    assert [text for one in shares for text in one.captions] == whole.captions
    assert all(len(one.image_ids) % 3 == 0 for one in shares[:-1])
    assert all(len(one.captions) % 16 == 0 for one in shares[:-1])


@pytest.mark.parametrize("make", [Shades, picture_encoder])
def test_joined_parts_are_the_bytes_of_one_call(
    whole: Collection, origin: Origin, tmp_path: Path, make: Callable[[], Shades]
) -> None:
    encoder = make()
    encode_collection(encoder, whole, tmp_path / "one", "val")
    for number in (3, 1, 2):  # in any order
        shutil.rmtree(tmp_path / "elsewhere", ignore_errors=True)
        found, place = encode_share(encoder, whole, tmp_path / "elsewhere", origin, f"{number}/3")
        assert len(found.images) in (4, 6)
        shutil.copytree(place, tmp_path / "out" / place.name)
    joined, of = join_parts(tmp_path / "out")
    assert of == origin
    assert files_of(tmp_path / "out") == files_of(tmp_path / "one")
    assert np.array_equal(joined.caption_image, whole.caption_image)
    before = (tmp_path / "out" / "images" / "rows.npy").stat().st_mtime_ns
    join_parts(tmp_path / "out")  # joined already
    assert (tmp_path / "out" / "images" / "rows.npy").stat().st_mtime_ns == before


def test_a_part_resumes_and_is_not_encoded_twice(whole: Collection, origin: Origin, tmp_path: Path) -> None:
    encoder = Shades()
    with stop_when(lambda: encoder.seen[0] == 3), pytest.raises(Interrupted, match="3 of 7 images"):
        encode_share(encoder, whole, tmp_path, origin, "2/2")
    refused(UsageError, "holds no finished part", join_parts, tmp_path)
    for _ in range(2):
        encode_share(encoder, whole, tmp_path, origin, "2/2")
    assert encoder.seen == [7, 48]
    error = refused(UsageError, "1 of 2 parts are missing or not finished: 1/2", join_parts, tmp_path)
    assert error.fix.endswith("--part 1/2")


def test_parts_that_do_not_belong_together(whole: Collection, origin: Origin, tmp_path: Path) -> None:
    for number in (1, 2):
        encode_share(Shades(), whole, tmp_path / "out", origin, f"{number}/2")
    header = EmbeddedPart.open(tmp_path / "out" / "part-2-of-2")
    for change, message in (
        ({"encoder": "other"}, "part 2 is of encoder other, expected shades"),
        ({"texts": "other"}, "part 2 is of texts other"),
        ({"number": 1}, "1 of 2 parts are missing"),
        ({"parts": 3}, "holds parts of 2 and of 3"),
    ):
        replace(header, **change).write_header(tmp_path / "out" / "part-2-of-2")
        kind = UsageError if "parts" in message else MismatchError
        refused(kind, message, join_parts, tmp_path / "out")
    header.write_header(tmp_path / "out" / "part-2-of-2")
    other = {"path": str(tmp_path / "none")}
    refused(DataError, "none does not exist", join_parts, tmp_path / "out", other)
    join_parts(tmp_path / "out")
    rows = tmp_path / "out" / "part-1-of-2" / "images" / "rows.npy"
    rows.write_bytes(rows.read_bytes()[:-4])
    (tmp_path / "out" / EncodedCollection.marker()).unlink()
    refused(StorageError, "rows.npy", join_parts, tmp_path / "out")


def test_parts_that_are_none(whole: Collection, origin: Origin, tmp_path: Path) -> None:
    for text in ("9/8", "0/8", "3", "3/", "-1/2", "a/b", "1/2/3", "٣/٨"):
        refused(UsageError, "is no part", parse_part, text)
    error = refused(UsageError, "part 1 of 7 has no images", share_of, whole, 1, 7)
    assert error.fix == "encode them in fewer parts"
    refused(UsageError, "holds no finished part", join_parts, tmp_path)


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray (the extra 'ray') is not installed")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_actors_of_ray_encode_what_one_process_does(whole: Collection, tmp_path: Path) -> None:
    encoder = picture_encoder()
    encode_collection(encoder, whole, tmp_path / "one", "val")
    encode_collection(encoder, whole, tmp_path / "ray", "val", processes=2, accelerator="cpu", ray=True)
    assert files_of(tmp_path / "ray") == files_of(tmp_path / "one")
    assert json.loads((tmp_path / "ray" / "embedded_collection.json").read_text())["content"]
