from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych.core.errors import DataError, UsageError
from diptych.data.collection import Collection
from diptych.data.images import FolderSource
from diptych.evaluation.stress.queries import part_of
from diptych.studies.brittleness_measuring import BESIDE, with_whole_folder


def collection(root: Path) -> Collection:
    """Two pictures in one folder and one in another; beside them two more, a text and a subfolder's."""
    names = ["val/b.jpg", "val/a.jpg", "other/c.jpg"]
    for name in (*names, "val/e.JPG", "other/d.jpg", "val/deep/f.jpg", "train/g.jpg"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(root / name)
    (root / "val" / "notes.txt").write_text("no picture")
    return Collection(
        name="shop",
        image_ids=["two", "one", "three"],
        captions=["a", "b", "c", "d"],
        caption_ids=["c1", "c2", "c3", "c4"],
        caption_image=np.array([0, 0, 1, 2]),
        splits=["test", "test", "val"],
        source=FolderSource(root, names),
        source_rows=np.arange(3),
        records=[{"x": 1}, {}, {}],
    )


def test_every_jpg_beside_the_parts_pictures(tmp_path: Path) -> None:
    whole = with_whole_folder(collection(tmp_path).split("test"))
    assert list(whole.image_ids) == ["two", "one", "val/e.JPG"]
    assert list(whole.splits) == ["test", "test", BESIDE]
    assert list(whole.captions) == ["a", "b", "c"]
    assert whole.captions_per_image.tolist() == [2, 1, 0]
    assert whole.image(2).size == (4, 4)
    assert whole.records == [{"x": 1}, {}, {}]
    assert "1 more pictures of its folder are searched" in whole.notes
    everything = with_whole_folder(collection(tmp_path))
    assert list(everything.image_ids) == ["two", "one", "three", "other/d.jpg", "val/e.JPG"]


def test_the_part_asks_and_all_are_searched(tmp_path: Path) -> None:
    part = part_of(with_whole_folder(collection(tmp_path).split("test")), "test", "all")
    assert part.encoded.n_images == 3
    assert list(part.asking.image_ids) == ["two", "one"]
    assert part.rows.tolist() == [0, 1]


def test_without_a_folder_there_is_nothing_beside(tmp_path: Path) -> None:
    class Drawn:
        def read(self, row: int) -> Image.Image:
            return Image.new("RGB", (4, 4))

        def content(self, row: int) -> str:
            return str(row)

    given = replace(collection(tmp_path), source=Drawn())
    with pytest.raises(UsageError, match="pictures of shop are no files.*measure.gallery=split"):
        with_whole_folder(given)


def test_a_file_that_is_called_as_a_picture_is(tmp_path: Path) -> None:
    given = replace(collection(tmp_path), image_ids=["two", "one", "val/e.JPG"])
    with pytest.raises(DataError, match=r"'val/e\.JPG' occurs twice"):
        with_whole_folder(given)
