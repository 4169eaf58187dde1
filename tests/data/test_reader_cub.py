from __future__ import annotations

from pathlib import Path

import pytest
from miniatures import BIRDS, cub

from diptych.core.errors import CaptionError, DataError, DiptychError, UsageError
from diptych.data import read_collection


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


def test_fewer_captions(tmp_path: Path) -> None:
    cub(tmp_path)
    found = read_collection(tmp_path, max_captions=2)
    assert found.n_captions == 12
    assert found.captions[2:4] == ["a bird 1 seen 0 times", "a bird 1 seen 1 times"]


@pytest.mark.parametrize(
    "place", ["CUB_200_2011/text_c10", "text_c10", "cvpr2016_cub/text_c10", "birds/text_c10", "text"]
)
def test_captions_in_the_usual_places(tmp_path: Path, place: str) -> None:
    cub(tmp_path / "a")
    where = tmp_path / "a" / place
    where.parent.mkdir(exist_ok=True)
    (tmp_path / "a" / "cvpr2016_cub" / "text_c10").rename(where)
    assert read_collection(tmp_path / "a").n_captions == 60


def test_captions_and_pictures_elsewhere(tmp_path: Path) -> None:
    cub(tmp_path / "a")
    (tmp_path / "a" / "cvpr2016_cub" / "text_c10").rename(tmp_path / "said")
    (tmp_path / "a" / "CUB_200_2011" / "images").rename(tmp_path / "seen")
    found = read_collection(tmp_path / "a", captions=tmp_path / "said", images=tmp_path / "seen")
    assert found.n_captions == 60
    assert found.image(0).size == (4, 4)
    with pytest.raises(DataError, match=r"folder .*gone does not exist"):
        read_collection(tmp_path / "a", captions=tmp_path / "gone")


@pytest.mark.parametrize("whole_names", [True, False])
def test_three_parts_from_a_table(tmp_path: Path, whole_names: bool) -> None:
    names = cub(tmp_path)
    parts = ["train", "dev", "test", "train", "dev", "test"]
    rows = [
        f"{name if whole_names else name.split('/')[1]},{part}"
        for name, part in zip(names, parts, strict=True)
    ]
    (tmp_path / "parts.csv").write_text("image_file,eval_status\n" + "\n".join(rows))
    found = read_collection(tmp_path / "CUB_200_2011", split_file=tmp_path / "parts.csv")
    assert list(found.splits) == ["train", "val", "test"] * 2


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (
            "image_file,eval_status\nBlack_footed_Albatross_0000_0.jpg,test\n",
            DataError,
            "no split to 5 of 6 images",
        ),
        ("image_file,words\n", UsageError, "no column of splits"),
        ("bird,eval_status\n", UsageError, "no column of images"),
        (None, DataError, "does not exist"),
    ],
)
def test_a_table_of_splits_that_does_not_fit(
    tmp_path: Path, table: str | None, error: type[DiptychError], message: str
) -> None:
    cub(tmp_path)
    if table is not None:
        (tmp_path / "parts.csv").write_text(table)
    with pytest.raises(error, match=message):
        read_collection(tmp_path / "CUB_200_2011", split_file=tmp_path / "parts.csv")


def test_a_table_that_names_strangers(tmp_path: Path) -> None:
    names = cub(tmp_path)
    rows = [f"{name},test" for name in [*names, "Penguin_0001.jpg"]]
    (tmp_path / "parts.csv").write_text("image_file,eval_status\n" + "\n".join(rows))
    with pytest.raises(DataError, match=r"names 1 that are not there \(first Penguin_0001\)"):
        read_collection(tmp_path / "CUB_200_2011", split_file=tmp_path / "parts.csv")


def test_without_captions_it_says_where_they_are(tmp_path: Path) -> None:
    cub(tmp_path)
    (tmp_path / "cvpr2016_cub").rename(tmp_path / "away")
    with pytest.raises(DataError, match="no captions beside") as caught:
        read_collection(tmp_path)
    assert "diptych data cub" in caught.value.fix


def test_captions_half_unpacked(tmp_path: Path) -> None:
    names = cub(tmp_path)
    texts = tmp_path / "cvpr2016_cub" / "text_c10"
    for name in names[4:]:
        (texts / name).with_suffix(".txt").unlink()
    with pytest.raises(DataError, match=f"no captions for 2 of 6 images, first {names[4]}"):
        read_collection(tmp_path)


def test_an_empty_caption_is_named_or_left_out(tmp_path: Path) -> None:
    names = cub(tmp_path)
    text = (tmp_path / "cvpr2016_cub" / "text_c10" / names[0]).with_suffix(".txt")
    text.write_text("a bird\n\nanother bird\n")
    with pytest.raises(CaptionError, match=f"caption {names[0]}#1 is empty"):
        read_collection(tmp_path)
    found = read_collection(tmp_path, skip_bad_captions=True)
    assert found.captions_of(0) == ["a bird", "another bird"]
    assert found.notes == ("1 empty captions left out",)


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
    with pytest.raises(DataError, match=message) as caught:
        read_collection(tmp_path, "cub")
    assert "CUB_200_2011.tgz" in caught.value.fix


def test_another_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no images\.txt"):
        read_collection(tmp_path, "cub")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../../secret.jpg", "points outside"),
        ("/etc/secret.jpg", "points outside"),
        (".", "names '.'"),
    ],
)
def test_no_file_of_captions_is_looked_for_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    cub(tmp_path)
    file = tmp_path / "CUB_200_2011" / "images.txt"
    first, *rest = file.read_text().splitlines()
    file.write_text("\n".join([f"{first.split()[0]} {name}", *rest]))
    monkeypatch.setattr("diptych.data.readers.cub._captions", lambda file: pytest.fail(f"read {file}"))
    with pytest.raises(DataError, match=message):
        read_collection(tmp_path)


def test_lists_with_a_byte_order_mark(tmp_path: Path) -> None:
    cub(tmp_path)
    file = tmp_path / "CUB_200_2011" / "images.txt"
    before = read_collection(tmp_path)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert read_collection(tmp_path).image_ids == before.image_ids
