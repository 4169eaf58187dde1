from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from miniatures import karpathy, retrieval_json

from diptych.core.errors import CaptionError, DataError, DiptychError, ImageError, UsageError
from diptych.data import read_collection


def test_a_folder_of_lists(tmp_path: Path) -> None:
    retrieval_json(tmp_path)
    found = read_collection(tmp_path)
    assert found.describe() == (
        "coco_karpathy: 4 images, 14 captions (2–5 captions per image); train 2, val 1, test 1; scene-centric"
    )
    assert found.image_ids == [f"val2014/{name}.jpg" for name in "abcd"]
    assert found.captions_of(0) == ["a 0", "a 1"]
    assert found.captions_of(3) == [f"d {i}" for i in range(5)]
    assert found.caption_ids[:3] == ["val2014/a.jpg#0", "val2014/a.jpg#1", "val2014/b.jpg#0"]
    assert found.records[1] == {"image_id": "coco_b"}
    assert found.image(2).size == (4, 4)


@pytest.mark.parametrize(
    ("name", "split", "dataset"),
    [
        ("coco_karpathy_test.json", "test", "coco_karpathy"),
        ("flickr30k_val.json", "val", "flickr30k"),
        ("cub-dev.json", "val", "cub"),
        ("abo_test_small.json", "test", "abo_small"),
        ("train.json", "train", "lists"),
    ],
)
def test_the_split_is_in_the_files_name(tmp_path: Path, name: str, split: str, dataset: str) -> None:
    folder = tmp_path / "lists"
    folder.mkdir()
    (folder / name).write_text(json.dumps([{"image": "a.jpg", "caption": "one"}]))
    found = read_collection(folder / name)
    assert (found.name, found.split_sizes) == (dataset, {split: 1})
    assert read_collection(folder).split_sizes == {split: 1}


def test_a_file_whose_name_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "birds.json"
    file.write_text(json.dumps([{"image": "a.jpg", "caption": ["one"]}]))
    with pytest.raises(UsageError, match="does not say of which split"):
        read_collection(file)
    found = read_collection(file, split="test", centric="object")
    assert (found.name, found.centric, found.split_sizes) == ("birds", "object", {"test": 1})


def test_lists_of_several_datasets(tmp_path: Path) -> None:
    retrieval_json(tmp_path)
    (tmp_path / "flickr30k_test.json").write_text(json.dumps([{"image": "z.jpg", "caption": ["one"]}]))
    (tmp_path / "vqa_test.json").write_text(json.dumps([{"image": "z.jpg", "question": "who?"}]))
    with pytest.raises(UsageError, match="lists of 2 datasets: coco_karpathy, flickr30k"):
        read_collection(tmp_path)
    assert read_collection(tmp_path, dataset="flickr30k").image_ids == ["z.jpg"]
    with pytest.raises(UsageError, match="no lists of 'vqa'"):
        read_collection(tmp_path, dataset="vqa")
    (tmp_path / "flickr30k_dev.json").write_text(json.dumps([{"image": "y.jpg", "caption": ["one"]}]))
    (tmp_path / "flickr30k_val.json").write_text(json.dumps([{"image": "y.jpg", "caption": ["one"]}]))
    with pytest.raises(DataError, match=r"2 lists of val: flickr30k_dev\.json, flickr30k_val\.json"):
        read_collection(tmp_path, dataset="flickr30k")
    with pytest.raises(UsageError, match="split 'test' with the folder"):
        read_collection(tmp_path, dataset="flickr30k", split="test")


def test_whole_paths_and_fewer_captions(tmp_path: Path) -> None:
    file = tmp_path / "shop_test.json"
    file.write_text(json.dumps([{"image": "/export/shop/a.jpg", "caption": ["one", "two"]}]))
    with pytest.raises(ImageError, match="points outside"):
        read_collection(file)
    found = read_collection(file, remove_prefix="/export/shop/", max_captions=1)
    assert (found.image_ids, found.captions) == (["a.jpg"], ["one"])


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (
            [{"image": "a.jpg", "caption": "one"}, {"image": 3, "caption": "x"}],
            DataError,
            "entry 1 has no image and",
        ),
        (
            [{"image": "a.jpg", "caption": "one"}, {"image": "b.jpg"}],
            DataError,
            "entry 1 has no image and caption",
        ),
        ([{"image": "a.jpg", "caption": [1]}], DataError, "entry 0 has no image and caption"),
        ([{"image": "a.jpg", "caption": "one"}, 7], DataError, "entry 1 has no image and caption"),
        ([{"image": "a.jpg", "caption": "  "}], CaptionError, r"a_test\.json, caption a\.jpg#0 is empty"),
        ({"image": "a.jpg", "caption": "one"}, DataError, "is not a list"),
        ([], DataError, "lists no pictures"),
    ],
)
def test_bad_lists(tmp_path: Path, content: Any, error: type[DiptychError], message: str) -> None:
    file = tmp_path / "a_test.json"
    file.write_text(json.dumps(content))
    with pytest.raises(error, match=message):
        read_collection(file, "retrieval-json")


def test_a_picture_in_two_splits(tmp_path: Path) -> None:
    retrieval_json(tmp_path)
    (tmp_path / "coco_karpathy_val.json").write_text(
        json.dumps([{"image": "val2014/d.jpg", "caption": ["x"]}])
    )
    with pytest.raises(
        DataError, match=r"d\.jpg is in coco_karpathy_val\.json \(val\) and in coco_karpathy_test"
    ):
        read_collection(tmp_path)


def test_it_leaves_other_json_to_others(tmp_path: Path) -> None:
    file = karpathy(tmp_path, {"a.jpg": ("test", ["one"])})
    retrieval_json(tmp_path)
    assert read_collection(file).name == "coco"
    assert read_collection(tmp_path).name == "coco"
    assert read_collection(tmp_path, "retrieval-json").name == "coco_karpathy"
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="no lists of pictures and captions"):
        read_collection(empty, "retrieval-json")


def test_half_characters_and_byte_order_marks(tmp_path: Path) -> None:
    """JSON can say half a character, which no file can hold; nothing after the reader has to care."""
    path = tmp_path / "mine_test.json"
    path.write_bytes(b'\xef\xbb\xbf[{"image": "a.jpg", "caption": ["whole", "half \\ud800"]}]')
    with pytest.raises(CaptionError, match=r"a\.jpg#1 holds half a character"):
        read_collection(path)
    found = read_collection(path, skip_bad_captions=True)
    assert list(found.captions) == ["whole"]
    assert found.text_fingerprint
    path.write_text('[{"image": "a\\ud800.jpg", "caption": "one"}]')
    with pytest.raises(ImageError, match="holds half a character"):
        read_collection(path)
