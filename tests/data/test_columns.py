from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.data.columns import BLOCK, Column, Labels, first_duplicate


class Squares(Column[int]):
    """Values that are computed, and count what was read of them."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.largest_read = 0

    def read(self, rows: range | np.ndarray) -> list[int]:
        self.largest_read = max(self.largest_read, len(rows))
        return [int(row) ** 2 for row in rows]


class Words(Column[str]):
    def __init__(self, words: list[str]) -> None:
        super().__init__(len(words))
        self._words = words

    def read(self, rows: range | np.ndarray) -> list[str]:
        return [self._words[row] for row in rows]


@given(st.integers(0, 40), st.data())
def test_parts_of_parts_are_those_of_a_list(size: int, data: st.DataObject) -> None:
    column: Column[int] = Squares(size)
    plain = [row**2 for row in range(size)]
    for _ in range(3):
        rows = data.draw(st.lists(st.integers(0, len(plain) - 1), max_size=12)) if plain else []
        if data.draw(st.booleans()) and plain:
            first = data.draw(st.integers(0, len(plain) - 1))
            rows = list(range(first, data.draw(st.integers(first, len(plain)))))
        column, plain = column.take(rows), [plain[row] for row in rows]
        assert list(column) == plain
        assert len(column) == len(plain)
        assert column[1:-1] == plain[1:-1]
        assert column[::-2] == plain[::-2]
        assert [column[-1 - at] for at in range(len(plain))] == plain[::-1]


def test_a_column_reads_blocks_and_slices_are_lists() -> None:
    column = Squares(3 * BLOCK + 1)
    assert sum(column) == sum(row**2 for row in range(3 * BLOCK + 1))
    assert column.largest_read == BLOCK
    assert isinstance(column[:2], list)
    assert 9 in column


@pytest.mark.parametrize("row", [3, -4])
def test_rows_outside_are_refused(row: int) -> None:
    with pytest.raises(IndexError, match="column of 3"):
        Squares(3)[row]
    with pytest.raises(IndexError, match="column of 3"):
        Squares(3).take([row])


def test_labels_count_in_the_order_they_appear_in() -> None:
    labels = Labels(["train", "val", "test"], np.array([2, 0, 2, 0, 0], dtype=np.uint8))
    assert list(labels) == ["test", "train", "test", "train", "train"]
    assert list(labels.sizes().items()) == [("test", 2), ("train", 3)]
    assert labels.rows_of("train").tolist() == [1, 3, 4]
    assert labels.rows_of("val").tolist() == labels.rows_of("dev").tolist() == []
    part = labels.take([4, 0, 3])
    assert list(part.sizes().items()) == [("train", 2), ("test", 1)]
    assert part.rows_of("train").tolist() == [0, 2]
    assert Labels([], np.empty(0, dtype=np.uint8)).sizes() == {}


@given(st.lists(st.text("ab", max_size=3), max_size=12))
def test_the_first_duplicate_is_that_of_a_plain_search(words: list[str]) -> None:
    expected = next((word for at, word in enumerate(words) if word in words[:at]), None)
    assert first_duplicate(words) == expected
    assert first_duplicate(Words(words)) == expected


def test_equal_hashes_of_different_strings_are_no_duplicates(monkeypatch: pytest.MonkeyPatch) -> None:
    import diptych.data.columns as columns

    monkeypatch.setattr(columns, "hash", len, raising=False)
    assert first_duplicate(Words(["ab", "ba", "c"])) is None
    assert first_duplicate(Words(["ab", "ba", "c", "ab"])) == "ab"
