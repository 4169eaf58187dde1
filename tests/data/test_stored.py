from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import StorageError
from diptych.core.files import cache_root
from diptych.data.collection import Collection
from diptych.data.columns import write_strings
from diptych.data.stored import Stored, StoredWriter, stored


class NoPictures:
    def read(self, row: int) -> None:
        raise AssertionError

    def content(self, row: int) -> str:
        return str(row)


IMAGES = [("a", "train", ["one", "two"], 7), ("b", "test", [], -8), ("ç", "train", ["three"], 9)]


def write(writer: StoredWriter) -> None:
    for name, split, captions, place in IMAGES:
        writer.add(name, split, captions, [place], [f"of {name}"])
    writer.notes.append("three were found")


def of(found: Stored) -> Collection:
    return found.collection("three", NoPictures(), found.texts("more"))  # type: ignore[arg-type]


def in_lists() -> Collection:
    return Collection(
        name="three",
        image_ids=["a", "b", "ç"],
        captions=["one", "two", "three"],
        caption_ids=["a#0", "a#1", "ç#0"],
        caption_image=np.array([0, 0, 2]),
        splits=["train", "test", "train"],
        source=NoPictures(),  # type: ignore[arg-type]
        source_rows=np.arange(3),
        records=["of a", "of b", "of ç"],  # type: ignore[list-item]
    )


def same(stored_columns: Collection, lists: Collection) -> None:
    for name in ("image_ids", "captions", "caption_ids", "splits", "records", "caption_image", "source_rows"):
        assert list(getattr(stored_columns, name)) == list(getattr(lists, name)), name
    assert stored_columns.text_fingerprint == lists.text_fingerprint
    assert stored_columns.split_sizes == lists.split_sizes


def test_a_collection_of_columns_is_the_same_as_one_of_lists() -> None:
    columns, lists = of(stored("same", write, 1, ["more"])), in_lists()
    same(columns, lists)
    same(columns.split("train"), lists.split("train"))
    same(columns.subset([2, 0]).first_captions(1), lists.subset([2, 0]).first_captions(1))
    same(columns.subset([]), lists.subset([]))
    assert columns.captions_of(0) == ["one", "two"]
    assert columns.notes == ("three were found",)
    assert columns.describe() == lists.describe()


@pytest.mark.parametrize(
    "file",
    [
        *("captions.utf8", "captions.ends", "caption_ids.utf8", "image_ids.ends", "more.utf8"),
        *("caption_image.i8", "places.i8", "splits.u1", "columns.json"),
    ],
)
@pytest.mark.parametrize("damage", ["cut", "gone", "longer"])
def test_whatever_is_damaged_is_written(file: str, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    key = f"damaged-{file}-{damage}"
    same(of(stored(key, write, 1, ["more"])), in_lists())
    path = cache_root() / "collections" / key / file
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[:-1] if damage == "cut" else content + b"\0" * 8)
    same(of(stored(key, write, 1, ["more"])), in_lists())
    # Without its header a folder is not there; a header that lacks its last line end is whole.
    assert file == "columns.json" or "is corrupt and recreated" in caplog.text


def test_what_is_there_is_read_from_a_cache_that_nobody_may_write_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared cache is written by one and read by others, who cannot lock it either."""
    stored("shared", write, 1, ["more"])

    def denied(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", denied)
    same(of(stored("shared", write, 1, ["more"])), in_lists())
    refused(StorageError, "DIPTYCH_CACHE", stored, "not there", write, 1, ["more"])


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), max_size=30), data=st.data()
)
def test_what_was_written_is_read(
    texts: list[str], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = write_strings(tmp_path_factory.mktemp("table") / "captions", iter(texts))
    assert list(table) == texts
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=9)) if texts else []
    assert list(table.take(rows)) == [texts[row] for row in rows]
    assert table[2:5] == texts[2:5]


def test_going_through_a_table_holds_a_block_of_it(tmp_path: Path) -> None:
    peaks = []
    for size in (20_000, 100_000):
        table = write_strings(tmp_path / f"t{size}", (f"the caption of picture {row}" for row in range(size)))
        tracemalloc.start()
        assert sum(map(len, table)) == sum(len(f"the caption of picture {row}") for row in range(size))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] < 3_000_000


def test_a_file_that_shrinks_while_in_use_is_an_error(tmp_path: Path) -> None:
    table = write_strings(tmp_path / "t", ["one", "two"])
    (tmp_path / "t.utf8").write_bytes(b"on\xffone")
    refused(StorageError, r"t\.utf8 is no text", list, table)
    (tmp_path / "t.utf8").write_bytes(b"one")
    assert table[0] == "one"
    with pytest.raises(StorageError, match="ends at byte 3, 6 expected"):
        table[1]
    (tmp_path / "t.utf8").unlink()
    with pytest.raises(StorageError, match="cannot be read: No such file"):
        table[0]
