from __future__ import annotations

from pathlib import Path

import pytest
from miniatures import BIRDS, cub, picture
from refusals import refused

from diptych.core.errors import DataError, UsageError
from diptych.data import read_collection
from diptych.data.products import paths_of


@pytest.mark.parametrize("inside", ["", "CUB_200_2011"])
def test_birds_with_species_splits_and_ten_captions(tmp_path: Path, inside: str) -> None:
    names = cub(tmp_path)
    found = read_collection(tmp_path / inside)
    assert found.describe() == (
        "cub: 6 images, 60 captions (10 captions per image); train 4, test 2; object-centric"
    )
    assert list(found.image_ids) == names
    assert list(found.splits) == ["train", "train", "test"] * 2
    assert found.captions_of(1) == [f"a bird 1 seen {i} times" for i in range(10)]
    assert found.records[0] == {"class": BIRDS[0], "species": "Black footed Albatross"}
    assert found.records[5] == {"class": BIRDS[1], "species": "Laysan Albatross"}
    assert found.caption_ids[10] == f"{names[1]}#0"
    assert found.image(4).size == (4, 4)
    fewer = read_collection(tmp_path, max_captions=2)
    assert fewer.captions[2:4] == ["a bird 1 seen 0 times", "a bird 1 seen 1 times"]
    file = tmp_path / "CUB_200_2011" / "images.txt"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert list(read_collection(tmp_path).image_ids) == names


def test_three_parts_from_a_table(tmp_path: Path) -> None:
    names, folder, file = cub(tmp_path), tmp_path / "CUB_200_2011", tmp_path / "parts.csv"
    refused(DataError, "does not exist", read_collection, folder, split_file=file)
    parts = ["train", "dev", "test"] * 2
    for written in (names, [name.split("/")[1] for name in names]):
        rows = [f"{name},{part}" for name, part in zip(written, parts, strict=True)]
        file.write_text("image_file,eval_status\n" + "\n".join(rows))
        assert list(read_collection(folder, split_file=file).splits) == ["train", "val", "test"] * 2
    for table, error, message in (
        ("image_file,eval_status\nBlack_footed_Albatross_0000_0.jpg,test\n", DataError, "no split to 5 of 6"),
        ("image_file,eval_status\nPenguin_0001.jpg,test\n", DataError, r"names 1 that are not there"),
        ("image_file,words\n", UsageError, "no column of the splits"),
        ("bird,eval_status\n", UsageError, "no column of the images"),
    ):
        file.write_text(table)
        refused(error, message, read_collection, folder, split_file=file)


def test_captions_and_pictures_elsewhere_or_missing(tmp_path: Path) -> None:
    refused(DataError, r"no images\.txt", read_collection, tmp_path, "cub")
    names = cub(tmp_path)
    said, seen = tmp_path / "said", tmp_path / "seen"
    (tmp_path / "cvpr2016_cub" / "text_c10").rename(said)
    (tmp_path / "CUB_200_2011" / "images").rename(seen)
    found = read_collection(tmp_path, captions=said, images=seen)
    assert found.n_captions == 60
    assert found.image(0).size == (4, 4)
    assert "diptych data show cub" in refused(DataError, "no captions near", read_collection, tmp_path).fix
    refused(DataError, r"folder .*gone does not exist", read_collection, tmp_path, captions=tmp_path / "gone")
    for name in names[4:]:
        (said / name).with_suffix(".txt").unlink()
    with pytest.raises(DataError, match=f"no captions for 2 of 6 images, first {names[4]}"):
        read_collection(tmp_path, captions=said)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("classes.txt", "1 001.Black_footed_Albatross\n", "labelled as class 2, None"),
        ("image_class_labels.txt", "1 1\n", "says nothing of 5 of 6 images"),
        ("train_test_split.txt", "1 1\n1 0\n", "line 2: number 1 twice"),
        ("images.txt", "1\n", "line 1: no value for 1"),
    ],
)
def test_lists_that_disagree(tmp_path: Path, file: str, content: str, message: str) -> None:
    cub(tmp_path)
    (tmp_path / "CUB_200_2011" / file).write_text(content)
    assert "CUB_200_2011.tgz" in refused(DataError, message, read_collection, tmp_path, "cub").fix


@pytest.mark.parametrize(
    ("name", "message"),
    [("../../secret.jpg", "points outside"), ("/etc/secret.jpg", "points outside"), (".", "names '.'")],
)
def test_no_file_of_captions_is_looked_for_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    cub(tmp_path)
    file = tmp_path / "CUB_200_2011" / "images.txt"
    first, *rest = file.read_text().splitlines()
    file.write_text("\n".join([f"{first.split()[0]} {name}", *rest]))
    monkeypatch.setattr("diptych.data.readers.cub._captions", lambda file: pytest.fail(f"read {file}"))
    refused(DataError, message, read_collection, tmp_path)


CATEGORIES = ("dress", "jacket", "pants", "skirt", "top")


def name(product: int, number: int, category: str = "dress") -> str:
    return f"women/{category}/casual/{product}/{product}_{number}.jpeg"


def labels(folder: Path, **lines: list[str]) -> None:
    (folder / "labels").mkdir(exist_ok=True)
    for category in CATEGORIES:
        for split in ("train", "test"):
            content = "".join(f"{line}\n" for line in lines.get(f"{category}_{split}", []))
            (folder / "labels" / f"{category}_{split}_detect_all.txt").write_text(content)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    labels(
        tmp_path,
        dress_train=[f"{name(1, i)}\t-1.5\tred dress" for i in range(2)] + [f"{name(2, 0)}\t0.5\tblue dress"],
        top_train=[f"{name(3, 0, 'top')}\t2\tred dress"],
        dress_test=[f"{name(4, i)}\t1\tgreen dress" for i in range(2)],
    )
    picture(tmp_path / name(4, 1), 9)
    return tmp_path


def test_the_official_layout(dataset: Path) -> None:
    found = read_collection(dataset)
    assert found.image_ids == [name(1, 0), name(1, 1), name(2, 0), name(3, 0, "top"), name(4, 0), name(4, 1)]
    assert [text.split()[0] for text in found.captions] == ["red", "red", "blue", "red", "green", "green"]
    assert found.split_sizes == {"train": 4, "test": 2}
    assert found.records[0]["detection_score"] == -1.5
    assert found.image(5).getpixel((0, 0))[0] == pytest.approx(9, abs=2)
    assert (found.name, found.centric) == ("fashion200k", "object")
    assert found.notes[0].startswith("4 products, 3 different descriptions")
    assert read_collection(dataset / "labels").image_ids == found.image_ids
    assert paths_of(found.records[0]) == (("women", "dress", "casual"),)
    assert [record["product"] for record in found.records] == ["1", "1", "2", "3", "4", "4"]
    first = read_collection(dataset, pictures="first")
    assert first.image_ids == [name(1, 0), name(2, 0), name(3, 0, "top"), name(4, 0)]
    assert "2 further pictures of a product left out" in first.notes


def test_repeated_lines_and_pictures_of_both_splits(dataset: Path) -> None:
    labels(
        dataset,
        dress_train=[f"{name(1, 0)}\t1\tred dress", f"{name(1, 0)}\t1\tred dress", f"{name(2, 0)}\t1\tblue"],
        top_train=[f"{name(1, 0)}\t2\tred top"],
        top_test=[f"{name(2, 0)}\t3\tazure"],
    )
    found = read_collection(dataset)
    assert found.captions_of(0) == ["red dress", "red top"]
    assert found.captions_of(1) == ["azure"]
    assert found.splits == ["train", "test"]
    assert "1 pictures of both splits kept only in test" in found.notes


def test_half_a_dataset(dataset: Path) -> None:
    (dataset / "labels" / "top_test_detect_all.txt").unlink()
    refused(DataError, r"lacks 1 of 10 files of labels: top_test_detect_all\.txt", read_collection, dataset)
    labels(dataset)
    refused(DataError, "are empty", read_collection, dataset)
    (dataset / "women").rename(dataset / "men")
    caught = refused(DataError, "has no folder of pictures women/", read_collection, dataset)
    assert "women.tar.gz" in caught.fix


def test_other_encodings_empty_captions_and_options_that_are_none(dataset: Path) -> None:
    labels(dataset, dress_train=[f"{name(1, 0)}\t1\t."])
    kept = read_collection(dataset, skip_bad_captions=True)
    assert kept.captions_per_image.tolist() == [0]
    assert kept.notes[1:] == ("1 empty captions left out",)
    (dataset / "labels" / "dress_train_detect_all.txt").write_bytes(
        f"{name(1, 0)}\t1\t".encode() + b"caf\xe9\n"
    )
    refused(DataError, "line 1 is not utf-8", read_collection, dataset)
    assert read_collection(dataset, encoding="latin-1").captions == ["café"]
    refused(UsageError, "pictures is 'last'", read_collection, dataset, pictures="last")
