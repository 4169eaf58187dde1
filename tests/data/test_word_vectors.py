"""Word vectors of others: their text files, and the .npz that training reads."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from diptych.core.errors import DataError
from diptych.data.word_vectors import convert_word_vectors, read_word_vectors, row_of

LINES = ["3 2", "red 1 2", ". . . 3 4", "red 5 6", "tshirt 7 8", f"{'x' * 70} 9 9"]


@pytest.mark.parametrize("packed", [False, True])
def test_words_and_vectors_are_those_of_the_lines(tmp_path: Path, packed: bool) -> None:
    """The first line of word2vec is no word, words may have spaces, the first of two counts, long ones go."""
    file = tmp_path / ("v.txt.gz" if packed else "v.txt")
    text = "\n".join(LINES).encode()
    file.write_bytes(gzip.compress(text) if packed else text)
    assert convert_word_vectors(file, tmp_path / "v.npz") == 3
    rows, vectors = read_word_vectors(tmp_path / "v.npz", "the test")
    assert rows == {"red": 0, ". . .": 1, "tshirt": 2}
    np.testing.assert_array_equal(vectors, np.array([[1, 2], [3, 4], [7, 8]], dtype=np.float32))
    assert convert_word_vectors(file, tmp_path / "v.npz", {"tshirt", "blue"}) == 1
    assert [path.name for path in tmp_path.iterdir() if path.name not in (file.name, "v.npz")] == []


@pytest.mark.parametrize(
    ("line", "said"),
    [("blue 1", "line 7 is no word"), ("blue 1 x", "line 7"), ("blue nan 1", "line 7"), ("", "line 7")],
)
def test_a_line_that_is_no_vector_is_refused_and_nothing_is_written(
    tmp_path: Path, line: str, said: str
) -> None:
    (tmp_path / "v.txt").write_text("\n".join([*LINES, line, "last 1 2"]))
    with pytest.raises(DataError, match=said):
        convert_word_vectors(tmp_path / "v.txt", tmp_path / "v.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["v.txt"]
    with pytest.raises(DataError, match="none of the 1 words"):
        (tmp_path / "v.txt").write_text("\n".join(LINES))
        convert_word_vectors(tmp_path / "v.txt", tmp_path / "v.npz", {"green"})


def test_the_published_lookup_tries_a_word_without_its_marks() -> None:
    rows = {"tshirt": 0, "mans": 1, "and": 2}
    assert [row_of(word, rows) for word in ("t-shirt", "man's", "and/or", "tshirt")] == [None, None, None, 0]
    assert [row_of(word, rows, published=True) for word in ("t-shirt", "man's", "and/or", "dog")] == [
        0,
        1,
        2,
        None,
    ]
