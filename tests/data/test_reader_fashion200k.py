from __future__ import annotations

from pathlib import Path

import pytest
from miniatures import picture

from diptych.core.errors import CaptionError, DataError, DiptychError, UsageError
from diptych.data.products import paths_of
from diptych.data.readers import read_collection

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


def test_what_products_say_of_their_categories(dataset: Path) -> None:
    records = read_collection(dataset).records
    assert [paths_of(record) for record in records[:2]] == [(("women", "dress", "casual"),)] * 2
    assert [record["product"] for record in records] == ["1", "1", "2", "3", "4", "4"]


def test_the_official_layout(dataset: Path) -> None:
    found = read_collection(dataset)
    assert found.image_ids == [name(1, 0), name(1, 1), name(2, 0), name(3, 0, "top"), name(4, 0), name(4, 1)]
    assert found.captions == [
        "red dress",
        "red dress",
        "blue dress",
        "red dress",
        "green dress",
        "green dress",
    ]
    assert found.captions_per_image.tolist() == [1] * 6
    assert found.split_sizes == {"train": 4, "test": 2}
    assert found.records[0] == {
        "category": "dress",
        "category_path": ("women", "dress", "casual"),
        "product": "1",
        "detection_score": -1.5,
    }
    assert found.image(5).getpixel((0, 0))[0] == pytest.approx(9, abs=2)
    assert (found.name, found.centric) == ("fashion200k", "object")
    assert found.notes[0].startswith(
        "4 products, 3 different descriptions: pictures of a product share theirs"
    )
    assert read_collection(dataset / "labels").image_ids == found.image_ids


def test_one_picture_per_product(dataset: Path) -> None:
    found = read_collection(dataset, pictures="first")
    assert found.image_ids == [name(1, 0), name(2, 0), name(3, 0, "top"), name(4, 0)]
    assert "2 further pictures of a product left out" in found.notes


def test_products_to_validate_on_keep_their_pictures_together(tmp_path: Path) -> None:
    labels(tmp_path, skirt_train=[f"{name(p, i)}\t1\tskirt {p}" for p in range(60) for i in range(3)])
    (tmp_path / "women").mkdir()
    found = read_collection(tmp_path, validation=0.3)
    assert set(found.split_sizes) == {"train", "val"}
    splits: dict[str, set[str]] = {}
    for image, split in zip(found.image_ids, found.splits, strict=True):
        splits.setdefault(image.split("/")[-2], set()).add(split)
    assert all(len(one) == 1 for one in splits.values())
    assert read_collection(tmp_path, validation=0.0).split_sizes == {"train": 180}


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
    assert found.notes[1:] == (
        "1 lines that repeat a picture and its description left out",
        "1 pictures of both splits kept in test alone",
    )


def test_half_a_dataset(dataset: Path) -> None:
    (dataset / "labels" / "top_test_detect_all.txt").unlink()
    with pytest.raises(DataError, match=r"lacks 1 of 10 files of labels: top_test_detect_all\.txt"):
        read_collection(dataset)
    labels(dataset)
    with pytest.raises(DataError, match="are empty"):
        read_collection(dataset)
    (dataset / "women").rename(dataset / "men")
    with pytest.raises(DataError, match="has no folder of pictures women/") as caught:
        read_collection(dataset)
    assert "women.tar.gz" in caught.value.fix


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("a.jpeg\t1", DataError, r"dress_train_detect_all\.txt, line 1 has 2 fields"),
        ("a.jpeg 1 red dress", DataError, "has 1 fields"),
        ("a.jpeg\tscore\tred", DataError, "'score' is no score"),
        ("\t1\tred", DataError, "line 1 has 3 fields, not a picture"),
        ("a.jpeg\t1\t ", CaptionError, r"dress_train_detect_all\.txt, line 1 is empty"),
        ("../a.jpeg\t1\tred", DataError, "points outside"),
    ],
)
def test_bad_lines(dataset: Path, line: str, error: type[DiptychError], message: str) -> None:
    labels(dataset, dress_train=[line])
    with pytest.raises(error, match=message):
        read_collection(dataset)


def test_other_encodings_empty_captions_and_options_that_are_none(dataset: Path) -> None:
    labels(dataset, dress_train=[f"{name(1, 0)}\t1\t."])
    kept = read_collection(dataset, skip_bad_captions=True)
    assert kept.captions_per_image.tolist() == [0]
    assert kept.notes[1:] == ("1 empty captions left out",)
    (dataset / "labels" / "dress_train_detect_all.txt").write_bytes(
        f"{name(1, 0)}\t1\t".encode() + b"caf\xe9\n"
    )
    with pytest.raises(DataError, match="line 1 is not utf-8"):
        read_collection(dataset)
    assert read_collection(dataset, encoding="latin-1").captions == ["café"]
    with pytest.raises(UsageError, match="pictures is 'last'"):
        read_collection(dataset, pictures="last")
