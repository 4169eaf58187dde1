"""``diptych data``: what is known, and whether a dataset is all there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command
from miniatures import karpathy, picture

from diptych.data.known import KNOWN

IMAGES = {
    f"{i}.png": ("test" if i > 2 else "train", [f"a thing {i} {k}" for k in range(2)]) for i in range(5)
}


def test_without_a_name_all_are_listed(diptych: Command) -> None:
    for verb in ((), ("list",)):
        done = diptych("data", *verb)
        assert done.code == 0, done.err
        assert all(name in done.out for name in KNOWN.names())
        assert "next: diptych data coco" in done.out


@pytest.mark.parametrize("name", KNOWN.names())
def test_a_name_shows_where_licence_layout_and_sizes(diptych: Command, name: str) -> None:
    done = diptych("data", name)
    assert done.code == 0, done.err
    one = KNOWN.get(name)
    assert one.title in done.out
    assert f"licence: {one.licence}" in done.out
    for form in one.forms:
        for size in form.sizes.values():
            assert f"{size.images:,}" in done.out
    for _, address in one.where:
        assert address in done.out
    for line in one.layout.splitlines():
        assert line in done.out
    assert f"next: diptych data check {name} FOLDER" in done.out
    assert diptych("data", "show", name).out == done.out


def test_a_name_that_nobody_knows(diptych: Command) -> None:
    done = diptych("data", "flickr30")
    assert done.code == 2
    assert "unknown dataset 'flickr30'" in done.err
    assert "did you mean 'flickr30k'?" in done.err


def test_a_check_that_finds_all(diptych: Command, tmp_path: Path) -> None:
    karpathy(tmp_path, IMAGES, "things")
    done = diptych("data", "check", "own", tmp_path, "--decode", "--out", tmp_path / "check.json")
    assert done.code == 0, done.err
    assert "things: 5 images, 10 captions" in done.out
    assert "5 of 5 are there" in done.out
    assert "pictures that cannot be decoded: 0" in done.out
    assert "complete: nothing has to be done" in done.out
    assert f"next: diptych evaluate MODEL --data {tmp_path} --reader karpathy" in done.out
    written = json.loads((tmp_path / "check.json").read_text())
    assert written["complete"] is True
    assert written["pictures"]["missing"] == {"count": 0, "first": []}


def test_a_check_that_finds_pieces_missing(diptych: Command, tmp_path: Path) -> None:
    karpathy(tmp_path, IMAGES, "coco")
    (tmp_path / "images" / "3.png").unlink()
    (tmp_path / "images" / "0.png").write_bytes(b"")
    picture(tmp_path / "images" / "extra.png")
    file = tmp_path / "check.json"
    done = diptych("data", "check", "coco", tmp_path, "--decode", "--workers", 0, "-o", file)
    assert done.code == 1
    assert "113,287" in done.out
    assert "pictures that no caption uses: 1 (extra.png)" in done.out
    assert "to do: 4 of 5 pictures are there, 1 are missing: 3.png" in done.out
    assert "empty files: 1 (0.png)" in done.out
    assert "fix: " in done.out
    assert "not complete: " in done.out
    assert "next: " not in done.out
    written = json.loads(file.read_text())
    assert written["complete"] is False
    assert written["pictures"]["missing"] == {"count": 1, "first": ["3.png"]}
    assert any(problem["what"].startswith("split val is not there") for problem in written["problems"])


def test_images_options_reader_and_split_are_handed_on(diptych: Command, tmp_path: Path) -> None:
    karpathy(tmp_path / "a", IMAGES, "things", pictures=False)
    for name in IMAGES:
        picture(tmp_path / "b" / name)
    arguments = ("data", "check", "own", tmp_path / "a", "--images", tmp_path / "b", "--reader", "karpathy")
    done = diptych(*arguments, "--reader-option", "max_captions=1", "--split", "test")
    assert done.code == 0, done.err
    assert "things: 2 images, 2 captions" in done.out
    assert diptych(*arguments, "--split", "dev").code == 2
    assert diptych(*arguments, "--reader-option", "colour=3").code == 2
    assert diptych(*arguments, "--workers", -1).code == 2
    done = diptych("data", "check", "own", tmp_path / "gone")
    assert done.code == 1
    assert "gone does not exist" in done.err


def test_the_folder_of_another_dataset_is_refused_with_what_it_is(diptych: Command, tmp_path: Path) -> None:
    (tmp_path / "Train_GCC-training.tsv").write_text("a dog\thttp://x/1.jpg\na cat\thttp://x/2.jpg\n")
    for name in ("fashion200k", "coco", "abo"):
        done = diptych("data", "check", name, tmp_path)
        assert done.code == 2
        said = done.err.replace("\n", " ")
        assert f"is not laid out as {name}: it looks like what the reader captions-tsv reads" in said
        assert f"diptych data {name} says how it is laid out" in said
        assert "no pictures that are called by a number" not in said


def test_info_lists_them(diptych: Command) -> None:
    done = diptych("info")
    assert done.code == 0, done.err
    for word in ("known datasets", "flickr30k-fg", "fashion200k", "what a protocol leaves open", "k_test"):
        assert word in done.out
