from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from miniatures import flickr30k, karpathy, picture, retrieval_json
from refusals import refused

from diptych.core.errors import CaptionError, DataError, ImageError, UsageError
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


def test_ids_and_order_of_karpathys_sentences(tmp_path: Path) -> None:
    images = {
        f"val2014/COCO_val2014_0{i}.jpg": ("test", [f"{i} {k}" for k in range(n)])
        for i, n in ((1, 3), (2, 2))
    }
    reference = karpathy(tmp_path / "coco", {"val2014/COCO_val2014_00.jpg": ("train", ["zero"]), **images})
    found = read_collection(fine(tmp_path), karpathy=reference, images=tmp_path / "coco" / "images")
    assert found.image_ids == list(images)
    assert found.captions == ["a fine one 0", "a fine one 1", "a fine two 0", "a fine two 1"]
    # Sentence 103, the third of the first picture, has no fine-grained counterpart.
    assert found.caption_ids == ["101", "102", "104", "105"]
    assert found.image(0).size == (4, 4)


def test_a_reference_that_does_not_fit(tmp_path: Path) -> None:
    file = fine(tmp_path)
    other = karpathy(tmp_path / "other", {"COCO_val2014_01.jpg": ("test", ["one"])})
    with pytest.raises(DataError, match="no picture for 1 of 2 entries .*first COCO_val2014_02"):
        read_collection(file, karpathy=other)
    fewer = {"COCO_val2014_01.jpg": ("test", ["one"]), "COCO_val2014_02.jpg": ("test", ["a", "b"])}
    short = karpathy(tmp_path / "short", fewer)
    refused(DataError, "has 2 captions of COCO_val2014_01, .* has 1", read_collection, file, karpathy=short)


def test_other_json(tmp_path: Path) -> None:
    for content, message in (([1], "is not fine"), ({}, "is not fine"), ({"a": [1]}, "'a' has no list")):
        refused(DataError, message, read_collection, fine(tmp_path, content))


def test_empty_captions_and_too_many_files(tmp_path: Path) -> None:
    file = fine(tmp_path, {"a": ["one", ""]})
    refused(CaptionError, r"caption a\.jpg#1 is empty", read_collection, file)
    assert read_collection(file, skip_bad_captions=True).captions == ["one"]
    fine(tmp_path, name="Flickr30K_FG_ann.json")
    refused(
        DataError, r"2 candidates: Flickr30K_FG_ann\.json, MSCOCO_FG_ann\.json", read_collection, tmp_path
    )
    file.write_text('{"a": ["one"], "a": ["two"]}')
    refused(DataError, "has the key 'a' twice", read_collection, file)
    packed = tmp_path / "other" / "Flickr30K_FG_ann.json.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(json.dumps({"7": ["a", "b"]}).encode()))
    found = read_collection(packed.parent, ending=".webp")
    assert (found.name, found.image_ids) == ("flickr30k-fg", ["7.webp"])


SPLITS = {"train": ["1", "2", "3"], "val": ["4"], "test": ["5", "6"]}


def test_tokens_with_lists_of_splits(tmp_path: Path) -> None:
    file = flickr30k(tmp_path, SPLITS, unlisted=["7"])
    for path in (tmp_path, file):
        found = read_collection(path)
        assert found.describe() == (
            "flickr30k: 6 images, 30 captions (5 captions per image); train 3, val 1, test 2; scene-centric"
        )
        assert found.image_ids[0] == "1.jpg"
        assert found.caption_ids[:2] == ["1.jpg#0", "1.jpg#1"]
        assert found.captions[5] == "person 2 is said 0 times ."
        assert found.notes == ("1 images in no list of splits left out",)
        assert found.image(5).size == (4, 4)


def test_without_lists_every_image_is_in_one_split(tmp_path: Path) -> None:
    flickr30k(tmp_path, SPLITS)
    (tmp_path / "flickr30k_entities").rename(tmp_path / "away")
    found = read_collection(tmp_path)
    assert found.split_sizes == {"all": 6}
    assert found.divided().notes[-1].startswith("the data names no splits: train")
    given = read_collection(tmp_path, splits=tmp_path / "away")
    assert given.split_sizes == {"train": 3, "val": 1, "test": 2}


def test_the_widespread_table_with_its_broken_line(tmp_path: Path) -> None:
    lines = ["image_name| comment_number| comment", "1.jpg| 0| Two men , one | two ."]
    lines += ["1.jpg| 1   A dog runs across the grass .", "2.jpg| 0| A cat ."]
    (tmp_path / "results.csv").write_text("\n".join(lines) + "\n")
    picture(tmp_path / "flickr30k_images" / "1.jpg", 9)
    found = read_collection(tmp_path)
    assert found.captions == ["Two men , one | two .", "A dog runs across the grass .", "A cat ."]
    assert found.caption_ids == ["1.jpg#0", "1.jpg#1", "2.jpg#0"]
    assert found.image(0).size == (4, 4)
    (tmp_path / "results.csv").write_text("image,caption\na.png,one\n")  # another table
    assert read_collection(tmp_path).image_ids == ["a.png"]


def test_flickr8k_in_its_authors_form(tmp_path: Path) -> None:
    lines = [
        f"{name}#{i}\tit {name} {i}\n" for name in ("1.jpg", "2.jpg", "3.jpg", "4.jpg.1") for i in range(5)
    ]
    (tmp_path / "Flickr8k.token.txt").write_text("".join(lines))
    for name, part in enumerate(("train", "dev", "test"), 1):
        (tmp_path / f"Flickr_8k.{part}Images.txt").write_text(f"{name}.jpg\n")
        picture(tmp_path / "Flicker8k_Dataset" / f"{name}.jpg")
    found = read_collection(tmp_path)
    assert found.name == "flickr8k"
    assert found.split_sizes == {"train": 1, "val": 1, "test": 1}
    assert found.notes == ("1 images in no list of splits left out",)
    assert found.image(2).size == (4, 4)


def test_what_is_wrong_with_it(tmp_path: Path) -> None:
    file = flickr30k(tmp_path, SPLITS)
    content = file.read_text()
    file.write_text(content + "nonsense\n")
    refused(DataError, "line 31: 'nonsense' is no file name", read_collection, tmp_path)
    file.write_text("".join(line for line in content.splitlines(keepends=True) if not line.startswith("6")))
    refused(DataError, "no captions for 1 of 6 listed images, first 6", read_collection, tmp_path)
    file.write_text(content)
    lists = tmp_path / "flickr30k_entities"
    (lists / "test.txt").write_text("5\n4\n")
    refused(DataError, "4 is listed in val and in test", read_collection, tmp_path)
    (lists / "test.txt").unlink()
    refused(DataError, "no list of test", read_collection, tmp_path)
    file.write_text("")
    refused(DataError, "has no captions", read_collection, tmp_path)
    refused(DataError, r"no results_20130124\.token in", read_collection, lists, "flickr30k")
    file.write_bytes(b"\xef\xbb\xbf1.jpg#0\tone\r\n1.jpg#0\ttwo\r\n")
    refused(DataError, r"results_20130124\.token has 1\.jpg#0 twice", read_collection, tmp_path)


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


def test_the_split_is_in_the_files_name(tmp_path: Path) -> None:
    def listed(name: str) -> Path:
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text(json.dumps([{"image": "a.jpg", "caption": "one"}]))
        return tmp_path / name / name

    for name, split, dataset in (
        *(("coco_karpathy_test.json", "test", "coco_karpathy"), ("flickr30k_val.json", "val", "flickr30k")),
        *(("cub-dev.json", "val", "cub"), ("abo_test_small.json", "test", "abo_small")),
    ):
        found = read_collection(listed(name))
        assert (found.name, found.split_sizes) == (dataset, {split: 1})
        assert read_collection(tmp_path / name).split_sizes == {split: 1}
    assert read_collection(listed("birds.json")).split_sizes == {"all": 1}
    found = read_collection(tmp_path / "birds.json" / "birds.json", split="test", centric="object")
    assert (found.name, found.centric, found.split_sizes) == ("birds", "object", {"test": 1})


def test_lists_of_several_datasets(tmp_path: Path) -> None:
    retrieval_json(tmp_path)
    (tmp_path / "flickr30k_test.json").write_text(json.dumps([{"image": "z.jpg", "caption": ["one"]}]))
    (tmp_path / "vqa_test.json").write_text(json.dumps([{"image": "z.jpg", "question": "who?"}]))
    refused(UsageError, "lists of 2 datasets: coco_karpathy, flickr30k", read_collection, tmp_path)
    assert read_collection(tmp_path, dataset="flickr30k").image_ids == ["z.jpg"]
    refused(UsageError, "no lists of 'vqa'", read_collection, tmp_path, dataset="vqa")
    (tmp_path / "flickr30k_dev.json").write_text(json.dumps([{"image": "y.jpg", "caption": ["one"]}]))
    (tmp_path / "flickr30k_val.json").write_text(json.dumps([{"image": "y.jpg", "caption": ["one"]}]))
    with pytest.raises(DataError, match=r"2 lists of val: flickr30k_dev\.json, flickr30k_val\.json"):
        read_collection(tmp_path, dataset="flickr30k")
    with pytest.raises(UsageError, match="split 'test' with the folder"):
        read_collection(tmp_path, dataset="flickr30k", split="test")


def test_whole_paths_and_fewer_captions(tmp_path: Path) -> None:
    file = tmp_path / "shop_test.json"
    file.write_text(json.dumps([{"image": "/export/shop/a.jpg", "caption": ["one", "two"]}]))
    refused(ImageError, "points outside", read_collection, file)
    found = read_collection(file, remove_prefix="/export/shop/", max_captions=1)
    assert (found.image_ids, found.captions) == (["a.jpg"], ["one"])


def test_it_leaves_other_json_to_others(tmp_path: Path) -> None:
    file = karpathy(tmp_path, {"a.jpg": ("test", ["one"])})
    retrieval_json(tmp_path)
    assert read_collection(file).name == read_collection(tmp_path).name == "coco"
    assert read_collection(tmp_path, "retrieval-json").name == "coco_karpathy"


def test_half_characters_and_byte_order_marks(tmp_path: Path) -> None:
    """JSON can say half a character, which no file can hold; nothing after the reader has to care."""
    path = tmp_path / "mine_test.json"
    path.write_bytes(b'\xef\xbb\xbf[{"image": "a.jpg", "caption": ["whole", "half \\ud800"]}]')
    refused(CaptionError, r"a\.jpg#1 holds half a character", read_collection, path)
    found = read_collection(path, skip_bad_captions=True)
    assert list(found.captions) == ["whole"]
    assert found.text_fingerprint
    path.write_text('[{"image": "a\\ud800.jpg", "caption": "one"}]')
    refused(ImageError, "holds half a character", read_collection, path)
