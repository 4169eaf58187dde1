"""An index that images are added to and deleted from, on the command line."""

from __future__ import annotations

import os
import shutil

import pytest
from PIL import Image

from diptych.index import open_index
from diptych.index.journal import JOURNAL
from diptych.service.indexing import settled_changes


@pytest.fixture
def photos(run_folder, scenes_folder, diptych, tmp_path):
    """A folder of images without captions, others that are no part of it yet, and an index of it."""
    files = sorted(scenes_folder.rglob("*.png"))[:14]
    folder, others = tmp_path / "photos", tmp_path / "more"
    for file, place in zip(files, [folder] * 8 + [others] * 6, strict=True):
        place.mkdir(exist_ok=True)
        shutil.copy(file, place / file.name)
    diptych(f"index {run_folder} --data {folder} --split all --out {tmp_path}/index").shows(
        "8 images of photos"
    )
    return folder, others, tmp_path / "index"


def test_only_what_is_new_is_encoded(photos, diptych):
    folder, others, index = photos
    before = open_index(index)
    first, second, *_ = sorted(folder.iterdir())
    again = diptych(f"index add {index} {folder}")
    again.shows("0 images added", "8 were there; 8 in all")
    assert not (index / JOURNAL).exists()
    shutil.copy(first, others / "copy.png")
    (others / first.name).write_bytes(
        next(others.glob("[!c]*.png")).read_bytes()[:-1] + b"x"
    )  # a clash of names
    (others / "broken.png").write_bytes(b"\x89PNG\r\n nothing")
    done = diptych(f"index add {index} {others}")
    done.shows("7 images added", "0 of them replace others; 0 were there; 15 in all")
    done.shows(f"1 files are copies of others and left out, the first: {others / 'copy.png'} of {first}")
    done.shows("broken.png")
    opened = open_index(index)
    assert f"more/{first.name}" in opened
    paths = {record["path"] for record in opened.records.values()}
    assert paths == {str(file) for place in (folder, others) for file in place.iterdir()} - {
        str(others / "copy.png"),
        str(others / "broken.png"),
    }
    assert opened.search_exact(before._take([0]), 1).ids == before.search_exact(before._take([0]), 1).ids
    os.utime(others / first.name)  # known by its content
    Image.new("RGB", (32, 32), "red").save(second)
    diptych(f"index add {index} {others}").shows("0 images added", "7 were there")
    diptych(f"index add {index} {folder}").shows(
        "1 images added", "1 of them replace others; 7 were there; 15 in all"
    )
    assert open_index(index).ids[-1] == second.name
    shown = diptych(f"search {index} 'a red star' --where", f"path={second}")
    shown.shows(second.name)
    shown.hides(first.name)


def test_deleting_and_compacting(photos, diptych):
    folder, _, index = photos
    first, second, third, *_ = sorted(folder.iterdir())
    first.unlink()
    diptych(f"index delete {index} --missing").shows("1 items deleted", "7 are left", "index compact")
    diptych(f"index delete {index} {second.name}").shows("6 are left")
    diptych(f"index delete {index} --where", f"path={third}").shows("5 are left")
    assert (index / JOURNAL).exists()
    diptych(f"index compact {index}").shows("5 items, written anew")
    assert not (index / JOURNAL).exists()
    diptych(f"index compact {index}").shows("no changes")
    diptych(f"index add {index} {folder}").shows("2 images added", "5 were there; 7 in all")
    for line, message in (
        (f"index delete {index}", "one choice of items"),
        (f"index delete {index} a --missing", "one choice of items"),
        (f"index delete {index} nobody", "'nobody' is not in the index"),
        (f"index delete {index} --where shape=round", "no item has a field 'shape'"),
    ):
        diptych(line, refused=message)


def test_what_takes_no_images(photos, index, embedded, diptych, tmp_path):
    folder, _, own = photos
    diptych(f"index {embedded} --of texts --out {tmp_path}/texts")
    diptych(f"index add {tmp_path}/texts {folder}", refused="an index of texts takes no images")
    opened = open_index(own)
    del opened.about["origin"]
    opened.save(tmp_path / "bare")
    diptych(f"index add {tmp_path}/bare {folder}", refused="name the encoder with --model")
    diptych(f"index add {own} {tmp_path}/none", failed="none")
    diptych(f"index ./add --out {tmp_path}/x", code=None)


def test_photos_that_are_the_same(photos, run_folder, diptych, tmp_path):
    folder, *_ = photos
    first, second, *_ = sorted(folder.iterdir())
    shutil.copy(first, folder / "copy.png")
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees to the right
    Image.open(second).transpose(Image.Transpose.ROTATE_90).save(folder / "turned.png", exif=exif)
    done = diptych(f"index {run_folder} --data {folder} --out {tmp_path}/index")
    done.shows(f"1 files are copies of others, the first: {folder / 'copy.png'} of {folder / first.name}")
    found = diptych(f"index duplicates {tmp_path}/index --least 0.99999 --sheet {tmp_path}/same.png")
    found.shows("4 of 10 images in 2 groups")
    rows = [line.split() for line in found.out.splitlines() if line.strip()[:1].isdigit()]
    groups = {frozenset(row[1] for row in rows if row[0] == number) for number in "12"}
    assert groups == {frozenset({first.name, "copy.png"}), frozenset({second.name, "turned.png"})}
    assert (tmp_path / "same.png").is_file()
    diptych(f"index delete {tmp_path}/index copy.png turned.png")
    diptych(f"index duplicates {tmp_path}/index --least 0.99999").shows("0 of 8 images in 0 groups")


def test_an_index_follows_its_folder(photos, diptych, monkeypatch):
    folder, others, index = photos
    first, second, third, *_ = sorted(folder.iterdir())
    line = f"watch {folder} --index {index} --every 0.01 --once"
    diptych(line).shows("0 images added", "8 were there")
    first.unlink()
    second.write_bytes(third.read_bytes() + b"\0")
    new = next(others.iterdir())
    shutil.copy(new, folder / "below.png")
    diptych(line).shows(
        "1 images deleted", "2 images added", "1 of them replace others; 6 were there; 8 in all"
    )
    assert open_index(index).ids[-2:] == [second.name, "below.png"]
    monkeypatch.setattr("diptych.cli.updating._LARGE", 0)
    diptych(line).shows("0 images added", "written anew")
    shutil.rmtree(folder)
    diptych(line, refused="is no folder")
    folder.mkdir()
    diptych(f"index compact {index}").shows("no changes")
    assert len(open_index(index)) == 8
    diptych(f"watch {folder} --index {index}/none --once", failed="does not exist")


def test_changes_are_reported_once_they_have_settled(tmp_path):
    """A file that is being written is waited for."""
    writes = [b"a", b"ab", b"", b"", b"", b"abc", b"", b""]

    def wait(seconds):
        assert seconds == 5
        if not writes:
            raise TimeoutError
        if content := writes.pop(0):
            (tmp_path / "file").write_bytes(content)

    seen = []
    with pytest.raises(TimeoutError):
        for _ in settled_changes(tmp_path, 5, wait):
            seen.append([file.read_bytes() for file in tmp_path.iterdir()])
    assert seen == [[], [b"ab"], [b"abc"]]
