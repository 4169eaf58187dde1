from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import DataError, StorageError
from diptych.data import string_table
from diptych.data.string_table import NumberTable, StringTable, read_at, write_strings


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


def test_rows_far_apart_and_long_strings_are_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{row} " * (row % 7) for row in range(500)]
    table = write_strings(tmp_path / "t", texts)
    sizes: list[int] = []

    def counted(path: Path, start: int, size: int) -> bytes:
        if path.suffix == ".utf8":  # numbers say where a text begins
            sizes.append(size)
        return read_at(path, start, size)

    monkeypatch.setattr(string_table, "read_at", counted)
    assert list(table.take([499, 0])) == [texts[499], texts[0]]
    assert sum(sizes) == sum(len(texts[row]) for row in (499, 0))
    monkeypatch.setattr(string_table, "_PIECE_BYTES", 50)
    sizes.clear()
    assert list(table) == texts
    assert max(sizes) == max(map(len, texts))


def test_going_through_a_table_holds_a_block_of_it(tmp_path: Path) -> None:
    peaks = []
    for size in (20_000, 100_000):
        table = write_strings(tmp_path / f"t{size}", (f"the caption of picture {row}" for row in range(size)))
        tracemalloc.start()
        assert sum(map(len, table)) == sum(len(f"the caption of picture {row}") for row in range(size))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] < 3_000_000


def test_half_a_character_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="half a character"):
        write_strings(tmp_path / "t", ["\ud800"])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda file: file.with_suffix(".utf8").write_bytes(b"on"), "2 bytes, 6 expected"),
        (lambda file: file.with_suffix(".utf8").unlink(), "-1 bytes, 6 expected"),
        (lambda file: file.with_suffix(".ends").write_bytes(bytes(9)), "1 rows and 1 bytes"),
        (lambda file: file.with_suffix(".ends").write_bytes(b""), "is empty"),
        (lambda file: file.with_suffix(".ends").unlink(), "cannot be read"),
    ],
)
def test_damaged_tables_are_refused(tmp_path: Path, damage: object, message: str) -> None:
    write_strings(tmp_path / "t", ["one", "two"])
    damage(tmp_path / "t")  # type: ignore[operator]
    with pytest.raises(StorageError, match=message):
        StringTable(tmp_path / "t")


def test_a_file_that_shrinks_while_in_use_is_an_error(tmp_path: Path) -> None:
    table = write_strings(tmp_path / "t", ["one", "two"])
    (tmp_path / "t.utf8").write_bytes(b"one")
    assert table[0] == "one"
    with pytest.raises(StorageError, match="ends at byte 3, 6 expected"):
        table[1]
    (tmp_path / "t.utf8").unlink()
    with pytest.raises(StorageError, match="cannot be read: No such file"):
        table[0]


def test_rows_of_numbers(tmp_path: Path) -> None:
    numbers = np.arange(12, dtype="<i8").reshape(4, 3) - 5
    numbers.tofile(tmp_path / "n.i8")
    table = NumberTable(tmp_path / "n.i8", 3)
    assert list(table) == [tuple(row) for row in numbers.tolist()]
    assert list(table.take([3, 1])) == [(4, 5, 6), (-2, -1, 0)]
    assert table[::2] == [(-5, -4, -3), (1, 2, 3)]
    assert table[4:] == []
    with pytest.raises(StorageError, match="holds 4 rows and 0 bytes, 5 rows expected"):
        NumberTable(tmp_path / "n.i8", 3, 5)


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    table = write_strings(tmp_path / "t", ["one", "two"])
    (tmp_path / "t.utf8").write_bytes(b"on\xffone"[:6])
    with pytest.raises(StorageError, match=r"t\.utf8 is no text"):
        list(table)
    with pytest.raises(StorageError, match=r"t\.utf8 is no text"):
        table[0]
