from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unicodedata import normalize

from miniatures import karpathy, picture
from refusals import refused

from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.data.checking import Check, check_dataset
from diptych.data.checking_images import NamedCount, scan
from diptych.data.known import KNOWN, Form, KnownDataset, Reading, Size, known_by_name

TINY = KnownDataset(
    name="tiny",
    title="Tiny",
    description="for tests",
    centric="scene",
    citation="none",
    licence="none",
    where={"all": "here"},
    layout="tiny/\n",
    readings=(Reading("karpathy", "dataset_tiny.json"), Reading("cub", "birds")),
    forms=(
        Form("whole", {"train": Size(2, {5: "all", 4: "two of each"}), "test": Size(1, {3: "all"})}),
        Form(
            "halves", {"train": Size(1, {2: "all"}), "rest": Size(1, {3: "all"}), "test": Size(1, {3: "all"})}
        ),
    ),
)

IMAGES = {
    "in/a.png": ("train", ["one", "two"]),
    "in/b.png": ("train", ["three", "four", "five"]),
    "out/c.png": ("test", ["six", "seven", "eight"]),
}


def tiny(folder: Path, **changes: Any) -> Path:
    karpathy(folder, {**IMAGES, **changes}, "tiny")
    return folder


def problems_of(check: Check) -> str:
    return "\n".join(f"{problem.what} | {problem.fix}" for problem in check.problems)


def test_a_whole_dataset_has_nothing_to_be_done(tmp_path: Path) -> None:
    check = check_dataset(TINY, tiny(tmp_path), decode=True)
    assert check.complete, problems_of(check)
    assert (check.reader, check.form) == ("karpathy", "whole")
    splits = [(one.split, one.images, one.captions, one.verdict, one.meaning) for one in check.splits]
    assert splits == [("train", 2, 5, "as expected", "all"), ("test", 1, 3, "as expected", "all")]
    assert check.pictures.expected == 3
    assert check.pictures.missing == check.pictures.unused == NamedCount()
    assert check.pictures.empty == check.pictures.corrupt == NamedCount()


def test_what_is_wrong_with_pictures_is_said(tmp_path: Path) -> None:
    pictures = tiny(tmp_path) / "images"
    (pictures / "in" / "a.png").write_bytes(b"")
    check = check_dataset(TINY, tmp_path)
    assert check.complete, "not opened unless requested"
    assert check.pictures.empty is None
    check = check_dataset(TINY, tmp_path, decode=True)
    assert (check.pictures.empty, check.pictures.corrupt) == (NamedCount(1, ("in/a.png",)), NamedCount())
    assert "1 images cannot be read, 1 of them are empty files; in/a.png is empty (0 bytes)" in problems_of(
        check
    )
    (pictures / "in" / "a.png").write_text("no picture at all")
    (pictures / "out" / "c.png").write_bytes((pictures / "out" / "c.png").read_bytes()[:40])
    for workers in (0, 3):
        check = check_dataset(TINY, tmp_path, decode=True, workers=workers)
        assert check.pictures.corrupt == NamedCount(2, ("in/a.png", "out/c.png"))
        assert "--skip-bad-images" in problems_of(check)
    (pictures / "in" / "b.png").unlink()
    picture(pictures / "in" / "z.JPG")
    (pictures / "Thumbs.db").write_text("x")
    check = check_dataset(TINY, tmp_path)
    assert (check.pictures.missing, check.pictures.unused) == (
        NamedCount(1, ("in/b.png",)),
        NamedCount(1, ("in/z.JPG",)),
    )
    assert check.pictures.missing_by_folder == {"in": (1, 2)}
    assert "unpack the images' archive again" in problems_of(check)
    (pictures / "in.zip").write_bytes(b"PK")
    assert f"unpack in.zip in {pictures}" in problems_of(check_dataset(TINY, tmp_path))
    assert check_dataset(TINY, tmp_path, split="test").complete, "pictures of other splits are not missing"


def moved(folder: Path, name: Callable[[Path], str]) -> None:
    """Give each picture below ``images/`` another name."""
    for file in sorted((folder / "images").rglob("*.png")):
        other = folder / "images" / name(file.relative_to(folder / "images"))
        other.parent.mkdir(parents=True, exist_ok=True)
        file.rename(other)


def test_where_pictures_are_is_found_out(tmp_path: Path) -> None:
    for number, (name, fix) in enumerate(
        (
            (lambda file: f"unpacked/{file}", "they lie one folder further: give --images IMAGES/unpacked"),
            (lambda file: f"../in/{file}", "0 of 3 images are there, 3 are missing"),
            (
                lambda file: f"../in/{file}",
                "unpack the images into IMAGES, or give their folder with --images",
            ),
            (lambda file: f"../in/{file}", "diptych data show tiny says how it is laid out"),
            (lambda file: file.name, "the captions say in/a.png and the folder has a.png: move the images"),
            (lambda file: f"{file.stem}.webp", "the captions say in/a.png and the folder has a.webp"),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        moved(tiny(folder), name)
        assert fix.replace("IMAGES", str(folder / "images")) in problems_of(check_dataset(TINY, folder))
        if "unpacked" in fix:
            assert check_dataset(TINY, folder, images=folder / "images" / "unpacked").complete


def test_counts_and_splits_against_the_forms(tmp_path: Path) -> None:
    karpathy(tmp_path, {name: value for name, value in IMAGES.items() if name.startswith("in")}, "tiny")
    check = check_dataset(None, tmp_path, images=tmp_path / "images" / "in")
    assert f"give the folder above, --images {tmp_path / 'images'}" in problems_of(check)
    assert "split test is not there, 1 images are expected (whole)" in problems_of(
        check_dataset(TINY, tmp_path)
    )
    assert check_dataset(TINY, tmp_path, split="train").complete
    refused(UnknownNameError, "unknown split of tiny 'test'", check_dataset, TINY, tmp_path, split="test")
    check = check_dataset(TINY, tiny(tmp_path, **{"in/a.png": ("train", ["one"])}))
    assert check.complete, "four captions are in use"
    check = check_dataset(TINY, tiny(tmp_path, **{"in/b.png": ("train", ["1", "2", "3", "4", "5"])}))
    expected = "split train: 2 images and 5 (all) or 4 (two of each) captions expected (whole), "
    assert f"{expected}found 2 images and 7 captions" in problems_of(check)
    assert check_dataset(TINY, tmp_path, max_captions=1).complete
    loose = KnownDataset(**{**vars(TINY), "forms": (Form("guess", {"train": Size(9)}, binding=False),)})
    check = check_dataset(loose, tmp_path)
    assert check.complete
    assert [one.verdict for one in check.splits] == ["differs", "not expected"]


def test_captions_that_cannot_be_used_or_come_twice(tmp_path: Path) -> None:
    folder = tiny(tmp_path, **{"in/a.png": ("train", ["one", " ", "..."])})
    first = "the first: dataset_tiny.json, caption 101 of in/a.png is empty"
    assert f"2 empty captions left out; {first}" in problems_of(check_dataset(TINY, folder))
    assert check_dataset(TINY, folder, skip_bad_captions=True).complete
    check = check_dataset(None, tiny(tmp_path, **{"in/a.png": ("train", [])}))
    assert check.without_captions == NamedCount(1, ("in/a.png",))
    changes = {
        "in/a.png": ("train", ["A  dog", "a dog", "a cat"]),
        "out/c.png": ("test", ["a cat", "a cat", "a bird"]),
    }
    check = check_dataset(None, tiny(tmp_path, **changes))
    assert check.complete
    assert check.repeated == NamedCount(2, ("101", "107"))
    assert check.shared == NamedCount(3, ("102", "106", "107"))


def test_what_cannot_be_checked_or_is_another_dataset(tmp_path: Path) -> None:
    caught = refused(DataError, "gone does not exist", check_dataset, "coco", tmp_path / "gone")
    assert "diptych data show coco" in caught.fix
    unread = refused(UsageError, "no reader recognises .* as coco", check_dataset, "coco", tmp_path)
    assert "diptych data show coco says how it is laid out" in unread.fix
    refused(UnknownNameError, "unknown dataset 'cocoa'", check_dataset, "cocoa", tmp_path)
    refused(UsageError, "has no option 'colour'", check_dataset, "coco", tiny(tmp_path), colour=3)
    # Fashion200k's sizes do not bind, so anything that could be read used to be one.
    tiny(tmp_path)
    for name in ("fashion200k", "abo", "cub"):
        caught = refused(
            UsageError, f"is not laid out as {name}: it looks like .* karpathy", check_dataset, name, tmp_path
        )
        assert f"diptych data show {name} says how it is laid out" in caught.fix
        assert "--reader karpathy" in caught.fix
    assert check_dataset("fashion200k", tmp_path, reader="karpathy").reader == "karpathy"


def test_the_walk_follows_links_once_and_never_up(tmp_path: Path) -> None:
    picture(tmp_path / "elsewhere" / "a.png")
    root = tmp_path / "images"
    root.mkdir()
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    (root / "again").symlink_to(tmp_path / "elsewhere")
    (root / "up").symlink_to(tmp_path)
    (root / "self").symlink_to(root)
    found = scan(root, ["linked/a.png", "again/a.png"])
    assert found.there.sum() == 1  # the second link leads to the same pictures
    assert found.unused == []


def test_accents_written_otherwise(tmp_path: Path) -> None:
    for form, other in (("NFC", "NFD"), ("NFD", "NFC")):
        name = normalize(form, "café.png")
        karpathy(tmp_path / form, {name: ("test", ["one"])}, "mine")
        (tmp_path / form / "images" / name).rename(tmp_path / form / "images" / normalize(other, name))
        found = problems_of(check_dataset(None, tmp_path / form))
        assert "with its accents written otherwise (Unicode's NFC and NFD" in found
        assert f"--{form.lower()} " in found


def form(name: str, number: int = 0) -> Form:
    return KNOWN.get(name).forms[number]


def total(one: Form) -> int:
    return sum(size.images for size in one.sizes.values())


def test_known_sizes_and_names() -> None:
    # The numbers of the whole datasets, from the thesis and the publications, not from these files.
    for number in (0, 1):
        coco = form("coco", number)
        assert total(coco) == 123_287
        assert sum(max(size.captions, default=0) for size in coco.sizes.values()) == 616_767
    assert total(form("flickr30k", 0)) == 31_014
    assert total(form("flickr30k", 1)) == 31_783
    assert total(form("flickr8k")) == 8_000
    assert total(form("cub", 0)) == total(form("cub", 1)) == 11_788
    assert total(form("fashion200k")) == 201_838
    assert form("coco-fg").sizes["test"].images == 5_000
    assert form("flickr30k-fg").sizes["test"].captions == {5_000: "5 of each"}
    assert {split: size.images for split, size in form("abo").sizes.items()} == {
        "train": 48_693,
        "val": 10_127,
        "test": 10_210,
    }
    assert form("coco").sizes["test"].captions == {25_010: "all", 25_000: "the first five of each"}
    known = {"coco": "coco COCO_val2017 coco_mini coco_karpathy", "coco-fg": "coco-fg coco_fg"}
    known |= {"flickr30k": "f30k_precomp", "flickr8k": "flickr8k", "fashion200k": "fashion200k"}
    known |= {"fashion-products": "fashion_products_small", "conceptual-captions": "cc3m"}
    for dataset, names in known.items():
        assert [one and one.name for one in map(known_by_name, names.split())] == [dataset] * len(
            names.split()
        )
    assert [known_by_name(name) for name in ("cocoon", "my-coco", "shop", "")] == [None] * 4
