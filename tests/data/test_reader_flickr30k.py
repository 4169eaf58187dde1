from __future__ import annotations

from pathlib import Path

import pytest
from miniatures import flickr30k, karpathy, picture

from diptych.core.errors import DataError
from diptych.data import read_collection

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
    assert "every image is in split all" in found.notes[0]
    assert read_collection(tmp_path, splits=tmp_path / "away").split_sizes == {
        "train": 3,
        "val": 1,
        "test": 2,
    }


def test_the_widespread_table_with_its_broken_line(tmp_path: Path) -> None:
    lines = [
        "image_name| comment_number| comment",
        "1.jpg| 0| Two men , one | two .",
        "1.jpg| 1   A dog runs across the grass .",
        "2.jpg| 0| A cat .",
    ]
    (tmp_path / "results.csv").write_text("\n".join(lines) + "\n")
    picture(tmp_path / "flickr30k_images" / "1.jpg", 9)
    found = read_collection(tmp_path)
    assert found.captions == ["Two men , one | two .", "A dog runs across the grass .", "A cat ."]
    assert found.caption_ids == ["1.jpg#0", "1.jpg#1", "2.jpg#0"]
    assert found.image(0).size == (4, 4)


def test_another_table_is_read_as_pairs(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("image,caption\na.png,one\n")
    assert read_collection(tmp_path).image_ids == ["a.png"]


def test_flickr8k_in_its_authors_form(tmp_path: Path) -> None:
    names = ("1_a", "2_b", "3_c", "4_d.jpg.1")
    lines = [
        f"{name.removesuffix('.jpg.1')}.jpg#{i}\tit {name} {i}\n" for name in names[:3] for i in range(5)
    ]
    lines += [f"4_d.jpg.1#{i}\tit d {i}\n" for i in range(5)]
    (tmp_path / "Flickr8k.token.txt").write_text("".join(lines))
    for name, part in zip(names, ("train", "dev", "test"), strict=False):
        (tmp_path / f"Flickr_8k.{part}Images.txt").write_text(f"{name}.jpg\n")
        picture(tmp_path / "Flicker8k_Dataset" / f"{name}.jpg")
    found = read_collection(tmp_path)
    assert found.name == "flickr8k"
    assert found.split_sizes == {"train": 1, "val": 1, "test": 1}
    assert found.notes == ("1 images in no list of splits left out",)
    assert found.image(2).size == (4, 4)


def test_beside_karpathys_json_it_is_asked_for_by_name(tmp_path: Path) -> None:
    flickr30k(tmp_path, SPLITS)
    karpathy(tmp_path, {"1.jpg": ("test", ["one"])}, "flickr30k", pictures=False)
    assert read_collection(tmp_path).n_images == 1
    assert read_collection(tmp_path, "flickr30k").n_images == 6


def test_what_is_wrong_with_it(tmp_path: Path) -> None:
    file = flickr30k(tmp_path, SPLITS)
    content = file.read_text()
    file.write_text(content + "nonsense\n")
    with pytest.raises(DataError, match="line 31: 'nonsense' is no file name"):
        read_collection(tmp_path)
    file.write_text("".join(line for line in content.splitlines(keepends=True) if not line.startswith("6")))
    with pytest.raises(DataError, match="no captions for 1 of 6 listed images, first 6"):
        read_collection(tmp_path)
    file.write_text(content)
    lists = tmp_path / "flickr30k_entities"
    (lists / "test.txt").write_text("5\n4\n")
    with pytest.raises(DataError, match="4 is listed in val and in test"):
        read_collection(tmp_path)
    (lists / "test.txt").unlink()
    with pytest.raises(DataError, match="no list of test"):
        read_collection(tmp_path)
    file.write_text("")
    with pytest.raises(DataError, match="has no captions"):
        read_collection(tmp_path)
    with pytest.raises(DataError, match=r"no results_20130124\.token in"):
        read_collection(lists, "flickr30k")


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    (tmp_path / "results_20130124.token").write_bytes(b"\xef\xbb\xbf1.jpg#0\tone\r\n1.jpg#1\ttwo\r\n")
    found = read_collection(tmp_path)
    assert found.image_ids == ["1.jpg"]
    assert found.captions == ["one", "two"]


def test_a_caption_that_is_there_twice_is_named(tmp_path: Path) -> None:
    (tmp_path / "results_20130124.token").write_text("1.jpg#0\tone\n1.jpg#0\ttwo\n")
    with pytest.raises(DataError, match=r"results_20130124\.token has 1\.jpg#0 twice"):
        read_collection(tmp_path)
