"""What a newcomer brings: a folder of images, Parquet, a DataFrame, pairs without splits."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from miniatures import picture
from PIL import Image
from refusals import refused

from diptych.core.errors import DataError, ImageError, UnknownNameError, UsageError
from diptych.data import Collection, read_collection


def photo(path: Path, date: str = "", orientation: int = 1, size: tuple[int, int] = (6, 3)) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    if date:
        exif.get_ifd(0x8769)[0x9003] = date
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (200, 0, 0)).save(path, exif=exif)


def test_a_folder_of_images(tmp_path: Path) -> None:
    root = tmp_path / "photos"
    photo(root / "2024" / "beach.JPG", "2024:05:31 18:02:11", orientation=6)
    photo(root / "2023" / "snow.jpg", "not a date")
    picture(root / "a.png")
    (root / "notes.txt").write_text("no image")
    (root / "broken.jpg").write_text("not a JPEG at all")
    (root / "empty.png").write_bytes(b"")
    picture(root / ".thumbnails" / "a.png")
    picture(tmp_path / "secret.png")
    (root / "leaves.png").symlink_to(tmp_path / "secret.png")
    (root / "stays.png").symlink_to(root / "a.png")
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe.jpg")
    found = read_collection(root)
    assert found.image_ids == ["a.png", "stays.png", "2023/snow.jpg", "2024/beach.JPG"]
    assert found.describe() == "photos: 4 images, 0 captions (no captions); all 4"
    assert list(found.records or ()) == [
        *({"path": "a.png"}, {"path": "stays.png"}, {"path": "2023/snow.jpg"}),
        {"path": "2024/beach.JPG", "date": "2024-05-31 18:02:11"},
    ]
    assert found.image(3).size == (3, 6)  # turned as EXIF says
    assert found.notes == (
        *("images without captions", "1 empty files left out", "1 files that are no images left out"),
        *("1 files that cannot be opened left out", "1 files that hold no image left out"),
        *("1 links that leave the folder not followed", "1 links to folders not followed"),
    )
    part = found.subset([3, 0])
    assert [record["path"] for record in part.records or ()] == ["2024/beach.JPG", "a.png"]
    for name in found.image_ids:
        (root / name).unlink()
    refused(UsageError, "no reader recognises", read_collection, root / "2023")
    refused(DataError, "holds no image: .*1 files that hold no image", read_collection, root, "images")


def embedded(value: int) -> dict[str, Any]:
    held = io.BytesIO()
    Image.new("RGB", (4, 4), (value, 0, 0)).save(held, "PNG")
    return {"bytes": held.getvalue(), "path": None}


def test_parquet_with_embedded_images(tmp_path: Path) -> None:
    """As Hugging Face writes it: a struct of bytes and path, one file per split and shard, in row groups."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (tmp_path / "data").mkdir()
    for split, start in (("train", 0), ("test", 5)):
        rows = range(start, start + 5)
        columns = {
            "image": [embedded(row) for row in rows],
            "captions": [[f"{row} a", f"{row} b"] for row in rows],
            "label": list(rows),
        }
        table = pyarrow.table(columns)
        parquet.write_table(table, tmp_path / "data" / f"{split}-00000-of-00001.parquet", row_group_size=2)
    found = read_collection(tmp_path)
    assert found.split_sizes == {"test": 5, "train": 5}
    assert found.captions_of(0) == ["5 a", "5 b"]
    assert found.records is not None
    colours = [found.image(row).getpixel((0, 0))[0] for row in (9, 0, 4, 5)]  # type: ignore[index]
    assert colours == [found.records[row]["label"] for row in (9, 0, 4, 5)]
    assert found.source.content(0) != found.source.content(1)
    one = read_collection(tmp_path / "data" / "test-00000-of-00001.parquet")
    assert one.split("test").n_images == 5
    (tmp_path / "data" / "train-00000-of-00001.parquet").write_bytes(b"PAR1 nothing")
    refused(DataError, "train-00000-of-00001.parquet", read_collection, tmp_path)


ROWS = {"file": ["a.png", "b.png", "a.png"], "caption": ["red", "blue", None], "price": [1, 2, 3]}


def test_tables_of_paths(tmp_path: Path) -> None:
    for number, kind in enumerate(("parquet", "pandas", "polars")):
        folder = tmp_path / str(number)
        folder.mkdir()
        library = pytest.importorskip({"parquet": "pyarrow", "pandas": "pandas", "polars": "polars"}[kind])
        for name, colour in (("a.png", 1), ("b.png", 2)):
            picture(folder / "images" / name, colour)
        data: Any = library.table(ROWS) if kind == "parquet" else library.DataFrame(ROWS)
        if kind == "parquet":
            from pyarrow import parquet

            parquet.write_table(data, folder / "shop.parquet")
            data = folder / "shop.parquet"
        options = {"images": folder / "images", "image_column": "file", "skip_bad_captions": True}
        found = read_collection(data, **options)
        assert found.image_ids == ["a.png", "b.png"]
        assert found.captions == ["red", "blue"]
        assert found.splits == ["all", "all"]
        assert found.records == [{"price": 1}, {"price": 2}]
        assert found.image(1).getpixel((0, 0)) == (2, 0, 0)
        refused(
            DataError,
            r"row 2.*a\.png#1 is empty",
            read_collection,
            data,
            **{**options, "skip_bad_captions": False},
        )
        refused(UsageError, "no image column", read_collection, data, caption_column="caption")


def test_pairs_in_python(tmp_path: Path) -> None:
    picture(tmp_path / "a.png", 3)
    found = Collection.from_pairs(["a.png", "a.png"], ["one", "two"], tmp_path, name="mine")
    assert (found.name, found.captions_of(0)) == ("mine", ["one", "two"])
    assert found.image(0).getpixel((0, 0)) == (3, 0, 0)
    refused(ImageError, "points outside", Collection.from_pairs, ["../a.png"], ["one"])


def test_splits_are_assigned_where_they_are_used(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("image,caption\n" + "".join(f"{i}.png,text\n" for i in range(200)))
    found = read_collection(tmp_path)
    assert found.split_sizes == {"all": 200}
    assert found.part(None) == (found, "all")
    refused(UnknownNameError, "known: all", found.split, "dev")
    divided = found.divided()
    shares = {name: size / 200 for name, size in divided.split_sizes.items()}
    assert 0.7 < shares["train"] < 0.9
    assert 0.05 < min(shares["val"], shares["test"]) < max(shares["val"], shares["test"]) < 0.16
    sizes = ", ".join(f"{name} {size}" for name, size in divided.split_sizes.items())
    assert divided.notes[-1] == f"the data names no splits: {sizes} by a hash of names"
    assert divided.divided() is divided
    test = found.split("test")
    assert test.image_ids == divided.split("test").image_ids
    assert test.notes == divided.notes
    some = found.subset(np.arange(0, 200, 7)).divided()
    assert all(
        divided.splits[int(name[:-4])] == split
        for name, split in zip(some.image_ids, some.splits, strict=True)
    )
    (tmp_path / "pairs.csv").write_text("image,caption,split\na.png,one,test\nb.png,two,\n")
    mixed = read_collection(tmp_path, test=0.0, validation=1.0)
    assert mixed.split_sizes == {"test": 1, "all": 1}
    assert mixed.split("val").image_ids == ["b.png"]


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
    with pytest.raises(DataError, match=r"1 lines have no image, 3 images have one; the first: .*line 2"):
        read_collection(tmp_path)
    found = read_collection(tmp_path, missing="skip")
    assert list(found.image_ids) == ["00000/000000000.png", "00000/000000002.png", "3.png"]
    assert list(found.captions) == ['the "0" of it', 'the "2" of it', 'the "3" of it']
    assert [found.image(row).getpixel((0, 0))[0] for row in range(3)] == [0, 2, 3]
    assert found.split_sizes == {"train": 3}
    assert found.records[1] == {"line": 3, "url": "http://example.org/2.jpg"}
    assert found.subset([2]).records[0]["line"] == 4  # type: ignore[index]
    assert found.notes == (
        "1 lines without an image left out",
        "1 images whose names are no numbers not used",
    )
    assert found.centric is None


def test_a_column_of_files_with_several_lines_of_one(tmp_path: Path) -> None:
    lines = [
        *("title\tfilepath\turl", "one\ta.png\tu1", "two\ta.png\tu2"),
        *("three\tb/c.png\t", "four\tgone.png\t"),
    ]
    table(tmp_path / "pairs.tsv", *lines, "five\t\tu")
    pictures(tmp_path / "images", "a.png", "b/c.png")
    with pytest.raises(DataError, match=r"2 lines have no image, 2 images have one; .*line 5 \(gone\.png"):
        read_collection(tmp_path, "captions-tsv")
    found = read_collection(tmp_path, "captions-tsv", missing="skip")
    assert list(found.image_ids) == ["a.png", "b/c.png"]
    assert found.captions_of(0) == ["one", "two"]
    assert list(found.caption_ids) == ["a.png#0", "a.png#1", "b/c.png#0"]
    assert set(found.splits) == {"all"}
    table(tmp_path / "pairs.tsv", *lines[:4], "again\ta.png\tu")
    refused(DataError, r"image id 'a\.png' occurs twice", read_collection, tmp_path, "captions-tsv")


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


def test_captions_that_are_not_utf8_and_pictures_that_share_a_number(tmp_path: Path) -> None:
    file = table(tmp_path / "train.tsv", *captions(0), "...\thttp://b")
    pictures(tmp_path / "images", "0.png", "1.png")
    found = read_collection(tmp_path, skip_bad_captions=True)
    assert found.captions_per_image.tolist() == [1, 0]
    assert found.notes == ("1 empty captions left out",)
    file.write_bytes(b"fine\thttp://a\ncaf\xe9\thttp://b\n")
    refused(DataError, r"train\.tsv is not .* Row #2: .* invalid UTF8", read_collection, tmp_path)


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


def test_pictures_that_cannot_be_told_apart(tmp_path: Path) -> None:
    table(tmp_path / "train.tsv", *captions(0))
    (tmp_path / "images").mkdir()
    refused(DataError, r"no images that are called by a number", read_collection, tmp_path)
    pictures(tmp_path / "images", "0.png", "a/000.png")
    refused(DataError, "both number 0", read_collection, tmp_path)
