from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from miniatures import karpathy, picture

from diptych.core.errors import CaptionError, DataError
from diptych.data import read_collection

FINE = {
    "COCO_val2014_02": [f"a fine two {i}" for i in range(2)],
    "COCO_val2014_01": ["a fine one 0", "a fine one 1"],
}


def fine(folder: Path, content: Any = FINE, name: str = "MSCOCO_FG_ann.json") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(content))
    return folder / name


def test_captions_of_the_test_split(tmp_path: Path) -> None:
    file = fine(tmp_path)
    picture(tmp_path / "images" / "COCO_val2014_01.jpg", 7)
    for path in (file, tmp_path):
        found = read_collection(path)
        assert found.describe() == (
            "coco-fg: 2 images, 4 captions (2 captions per image); test 2; scene-centric"
        )
        assert found.image_ids == ["COCO_val2014_02.jpg", "COCO_val2014_01.jpg"]
        assert found.captions_of(1) == FINE["COCO_val2014_01"]
        assert found.image(1).size == (4, 4)


def test_gzipped_flickr_with_another_ending(tmp_path: Path) -> None:
    (tmp_path / "Flickr30K_FG_ann.json.gz").write_bytes(gzip.compress(json.dumps({"7": ["a", "b"]}).encode()))
    found = read_collection(tmp_path, ending=".webp")
    assert found.name == "flickr30k-fg"
    assert found.image_ids == ["7.webp"]


def test_ids_and_order_of_karpathys_sentences(tmp_path: Path) -> None:
    file = fine(tmp_path)
    reference = karpathy(
        tmp_path / "coco",
        {
            "val2014/COCO_val2014_00.jpg": ("train", ["zero"]),
            "val2014/COCO_val2014_01.jpg": ("test", ["one a", "one b", "one c"]),
            "val2014/COCO_val2014_02.jpg": ("test", ["two a", "two b"]),
        },
    )
    found = read_collection(file, karpathy=reference, images=tmp_path / "coco" / "images")
    assert found.image_ids == ["val2014/COCO_val2014_01.jpg", "val2014/COCO_val2014_02.jpg"]
    assert found.captions == ["a fine one 0", "a fine one 1", "a fine two 0", "a fine two 1"]
    # Sentence 103, the third of the first picture, has no fine-grained counterpart.
    assert found.caption_ids == ["101", "102", "104", "105"]
    assert found.image(0).size == (4, 4)
    plain = read_collection(reference).split("test")
    assert plain.image_ids == found.image_ids


def test_beside_karpathys_json_it_is_asked_for_by_name(tmp_path: Path) -> None:
    fine(tmp_path)
    karpathy(tmp_path, {"a.jpg": ("test", ["one"])})
    assert read_collection(tmp_path).name == "coco"
    assert read_collection(tmp_path, "fine-grained").name == "coco-fg"


def test_a_reference_that_does_not_fit(tmp_path: Path) -> None:
    file = fine(tmp_path)
    other = karpathy(tmp_path / "other", {"COCO_val2014_01.jpg": ("test", ["one"])})
    with pytest.raises(DataError, match="no picture for 1 of 2 entries .*first COCO_val2014_02"):
        read_collection(file, karpathy=other)
    fewer = {"COCO_val2014_01.jpg": ("test", ["one"]), "COCO_val2014_02.jpg": ("test", ["a", "b"])}
    short = karpathy(tmp_path / "short", fewer)
    with pytest.raises(DataError, match="has 2 captions of COCO_val2014_01, .* has 1"):
        read_collection(file, karpathy=short)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "is not fine-grained captions"),
        ({}, "is not fine-grained"),
        ({"a": "one"}, "'a' has no list"),
        ({"a": [1]}, "'a' has no list"),
    ],
)
def test_other_json(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_collection(fine(tmp_path, content))


def test_empty_captions_and_too_many_files(tmp_path: Path) -> None:
    file = fine(tmp_path, {"a": ["one", ""]})
    with pytest.raises(CaptionError, match=r"caption a\.jpg#1 is empty"):
        read_collection(file)
    assert read_collection(file, skip_bad_captions=True).captions == ["one"]
    fine(tmp_path, name="Flickr30K_FG_ann.json")
    with pytest.raises(DataError, match=r"found: Flickr30K_FG_ann\.json, MSCOCO_FG_ann\.json"):
        read_collection(tmp_path)


def test_a_picture_named_twice_is_no_picture_with_the_last_captions(tmp_path: Path) -> None:
    (tmp_path / "MSCOCO_FG_ann.json").write_text('{"a": ["one"], "a": ["two"]}')
    with pytest.raises(DataError, match="has the key 'a' twice"):
        read_collection(tmp_path)
