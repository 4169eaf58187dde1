from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from miniatures import picture
from refusals import refused

from diptych.core.errors import DataError
from diptych.data.readers import read_collection


def table(file: Path, *lines: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def captions(*numbers: int) -> list[str]:
    return [f'the "{number}" of it\thttp://example.org/{number}.jpg' for number in numbers]


def pictures(folder: Path, *names: str) -> None:
    for name in names:
        picture(folder / name, int("0" + "".join(filter(str.isdigit, Path(name).stem))) % 256)


def test_numbered_pictures_of_a_table_without_headings(tmp_path: Path) -> None:
    table(tmp_path / "Train_GCC-training.tsv", *captions(0, 1, 2, 3))
    pictures(tmp_path / "images", "00000/000000000.png", "00000/000000002.png", "3.png", "logo.png")
    (tmp_path / "images" / "00000" / "000000000.json").write_text("{}")
    with pytest.raises(DataError, match=r"1 lines have no picture, 3 images have one; the first: .*line 2"):
        read_collection(tmp_path)
    found = read_collection(tmp_path, missing="skip")
    assert list(found.image_ids) == ["00000/000000000.png", "00000/000000002.png", "3.png"]
    assert list(found.captions) == ['the "0" of it', 'the "2" of it', 'the "3" of it']
    assert [found.image(row).getpixel((0, 0))[0] for row in range(3)] == [0, 2, 3]
    assert found.split_sizes == {"train": 3}
    assert found.records[1] == {"line": 3, "url": "http://example.org/2.jpg"}
    assert found.subset([2]).records[0]["line"] == 4  # type: ignore[index]
    assert found.notes == (
        "1 lines without picture left out",
        "1 pictures whose names are no numbers not used",
    )
    assert found.centric is None


def test_the_address_first_and_lines_that_count_from_one(tmp_path: Path) -> None:
    table(tmp_path / "cc12m.tsv", *("\t".join(reversed(line.split("\t"))) for line in captions(1, 2)))
    pictures(tmp_path / "images", "1.png", "2.png")
    with pytest.raises(DataError, match=r"2\.png belongs to no line: those of .* count from 0 to") as caught:
        read_collection(tmp_path, missing="skip")
    assert "first_number=1" in caught.value.fix
    found = read_collection(tmp_path / "cc12m.tsv", first_number=1, split="train", centric="scene")
    assert list(found.captions) == ['the "1" of it', 'the "2" of it']
    assert (found.name, found.centric) == ("cc12m", "scene")
    with pytest.raises(DataError, match=r"1\.png belongs to no line: those of .* count from 2"):
        read_collection(tmp_path, first_number=2, missing="skip")


def test_a_column_of_files_with_several_lines_of_one(tmp_path: Path) -> None:
    lines = [
        *("title\tfilepath\turl", "one\ta.png\tu1", "two\ta.png\tu2"),
        *("three\tb/c.png\t", "four\tgone.png\t"),
    ]
    table(tmp_path / "pairs.tsv", *lines, "five\t\tu")
    pictures(tmp_path / "images", "a.png", "b/c.png")
    with pytest.raises(DataError, match=r"2 lines have no picture, 2 images have one; .*line 5 \(gone\.png"):
        read_collection(tmp_path, "captions-tsv")
    found = read_collection(tmp_path, "captions-tsv", missing="skip")
    assert list(found.image_ids) == ["a.png", "b/c.png"]
    assert found.captions_of(0) == ["one", "two"]
    assert list(found.caption_ids) == ["a.png#0", "a.png#1", "b/c.png#0"]
    assert set(found.splits) == {"all"}
    table(tmp_path / "pairs.tsv", *lines[:4], "again\ta.png\tu")
    refused(DataError, r"image id 'a\.png' occurs twice", read_collection, tmp_path, "captions-tsv")


def test_csv_with_quotation_marks_and_other_columns(tmp_path: Path) -> None:
    table(tmp_path / "shop.csv", "words,where,price", '"a ""red"", thing",a.png,3')
    pictures(tmp_path, "a.png")
    given = {"caption_column": "words", "image_column": "where", "images": tmp_path}
    found = read_collection(tmp_path / "shop.csv", "captions-tsv", **given)
    assert list(found.captions) == ['a "red", thing']
    table(tmp_path / "shop.tsv", "words\twhere", "'a \"red thing\ta.png", '"so\ta.png')
    assert list(read_collection(tmp_path / "shop.tsv", "captions-tsv", **given).captions) == [
        "'a \"red thing",
        '"so',
    ]
    with pytest.raises(DataError, match="Row #3: Expected 2 columns, got 1"):
        read_collection(tmp_path / "shop.tsv", "captions-tsv", quotes=True, **given)


def test_several_tables_have_a_folder_each(tmp_path: Path) -> None:
    table(tmp_path / "Train_GCC-training.tsv", *captions(0, 1))
    table(tmp_path / "Validation_GCC-1.1.0-Validation.tsv", *captions(0))
    pictures(tmp_path / "images", "0.png", "1.png")
    refused(DataError, "are numbered, and could be those of Train_.*, Validation", read_collection, tmp_path)
    (tmp_path / "images" / "train").mkdir()
    for name in ("0.png", "1.png"):
        (tmp_path / "images" / name).rename(tmp_path / "images" / "train" / name)
    pictures(tmp_path / "images" / "Validation_GCC-1.1.0-Validation", "000.png")
    found = read_collection(tmp_path)
    assert list(found.image_ids) == ["train/0.png", "train/1.png", "Validation_GCC-1.1.0-Validation/000.png"]
    assert found.split_sizes == {"train": 2, "val": 1}
    (tmp_path / "val.tsv.gz").write_bytes(gzip.compress(captions(0)[0].encode()))
    pictures(tmp_path / "images" / "val", "0.png")
    assert read_collection(tmp_path / "val.tsv.gz", "captions-tsv").split_sizes == {"val": 1}


def test_captions_that_are_not_utf8_and_empty_ones(tmp_path: Path) -> None:
    file = table(tmp_path / "train.tsv", *captions(0), "...\thttp://b")
    pictures(tmp_path / "images", "0.png", "1.png")
    found = read_collection(tmp_path, skip_bad_captions=True)
    assert found.captions_per_image.tolist() == [1, 0]
    assert found.notes == ("1 empty captions left out",)
    file.write_bytes(b"fine\thttp://a\ncaf\xe9\thttp://b\n")
    refused(DataError, r"train\.tsv is not .* Row #2: .* invalid UTF8", read_collection, tmp_path)


def test_pictures_that_cannot_be_told_apart(tmp_path: Path) -> None:
    table(tmp_path / "train.tsv", *captions(0))
    (tmp_path / "images").mkdir()
    refused(DataError, r"no pictures that are called by a number", read_collection, tmp_path)
    pictures(tmp_path / "images", "0.png", "a/000.png")
    refused(DataError, "both number 0", read_collection, tmp_path)
