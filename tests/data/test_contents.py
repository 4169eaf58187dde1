from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import pytest

from diptych.core.errors import ImageError
from diptych.core.fingerprint import fingerprint, fingerprint_file
from diptych.data.contents import each_picture_content, picture_contents
from diptych.data.readers import read_collection


def test_contents_are_those_of_the_files_in_order(scenes_folder: Path) -> None:
    collection = read_collection(scenes_folder).split("val")
    contents = picture_contents(collection)
    assert contents == [fingerprint_file(scenes_folder / name) for name in collection.image_ids]
    assert len(set(contents)) == 16
    assert fingerprint("x", each_picture_content(collection)) == fingerprint("x", contents)


def test_files_are_read_as_they_are_asked_for(scenes_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(scenes_folder, tmp_path / "data")
    collection = read_collection(tmp_path / "data").subset(range(80))
    (tmp_path / "data" / collection.image_ids[79]).unlink()
    whole = picture_contents(collection.subset(range(79)))
    some = each_picture_content(collection.subset([*range(79), 79]))
    assert list(islice(some, 5)) == whole[:5]
    with pytest.raises(ImageError, match=collection.image_ids[79]):
        list(some)
