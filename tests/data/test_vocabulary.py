"""Word vectors of others: their text files, and the .npz that training reads."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import DataError, StorageError
from diptych.data.title_words import fold_plural, title_words
from diptych.data.vocabulary import END, SPECIAL, START, UNKNOWN, Vocabulary, first_words, words
from diptych.data.word_vectors import convert_word_vectors, read_word_vectors, row_of


def test_words_by_hand() -> None:
    assert words("A man's T-shirt, red!") == ["a", "man's", "t-shirt", ",", "red", "!"]
    assert words("café 3.5 “x”") == ["café", "3", ".", "5", "“", "x", "”"]
    assert words("  ") == []
    vocabulary = Vocabulary.build(["b a b", "c b a", "d"], min_count=2)
    assert vocabulary.entries == (*SPECIAL, "b", "a")
    assert vocabulary.encode("A b zebra") == [START, 5, 4, UNKNOWN, END]
    assert vocabulary.encode("a a a a", max_tokens=4) == [START, 5, 5, END]
    assert vocabulary.encode("") == [START, END]
    for word in ("two words", "Upper", "", "0."):
        refused(DataError, "not as itself", Vocabulary.build, ["a a"], min_count=1, always=[word])
    for text, expected in (
        ("Men's T-shirt & Tops", ["mens", "tshirt", "tops"]),
        ("For Her", ["for", "her"]),  # no word is dropped
        ("A > B/C, 3.5", ["a", "b", "c", "3", "5"]),
        ("Größe XL – Über", ["größe", "xl", "über"]),
        ("  -- ' ", []),
    ):
        assert title_words(text) == expected
    for plural, singular in (
        *(("dresses", "dress"), ("watches", "watch"), ("brushes", "brush"), ("boxes", "box")),
        *(("shoes", "shoe"), ("accessories", "accessory"), ("hoodies", "hoodie")),
        *(("tshirts", "tshirt"), ("jeans", "jean"), ("glasses", "glass")),
    ):
        assert fold_plural(plural) == fold_plural(singular)
    rows = {"tshirt": 0, "mans": 1, "and": 2}
    assert [row_of(word, rows) for word in ("t-shirt", "man's", "and/or", "tshirt")] == [None, None, None, 0]
    assert [row_of(word, rows, published=True) for word in ("t-shirt", "man's", "and/or", "dog")] == [
        0,
        1,
        2,
        None,
    ]


@given(st.lists(st.text(max_size=20), min_size=1, max_size=8))
def test_saved_and_loaded_it_encodes_the_same(captions: list[str]) -> None:
    import tempfile

    if not any(words(caption) for caption in captions):
        return
    vocabulary = Vocabulary.build(captions, min_count=1)
    with tempfile.TemporaryDirectory() as folder:
        vocabulary.save(Path(folder) / "v.json")
        loaded = Vocabulary.load(Path(folder) / "v.json")
    for caption in captions:
        ids = loaded.encode(caption)
        assert ids == vocabulary.encode(caption)
        assert UNKNOWN not in ids
        assert [loaded.entries[i] for i in ids[1:-1]] == words(caption)


@given(st.text(max_size=30), st.integers(0, 12))
@example("İstanbul 3 men", 4)
@example("İİ", 2)
def test_first_words_are_the_first_words(text: str, count: int) -> None:
    assert words(first_words(text, count)) == words(text)[:count]


def test_files_that_are_missing_or_no_archives(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    refused(StorageError, r"v\.npz does not exist", read_word_vectors, path, "the setting")
    one = np.array(["a"])
    for content, message in (
        ({"numbers": np.zeros(3)}, "is not a file of word vectors"),
        ({"words": one, "vectors": np.zeros(3)}, r"1 words, vectors of shape \(3,\)"),
        ({"words": one, "vectors": np.zeros((2, 3))}, r"1 words, vectors of shape \(2, 3\)"),
        ({"words": one.astype(object), "vectors": np.zeros((1, 3))}, "is not a file of word vectors"),
    ):
        np.savez(path, **content)
        refused(StorageError, message, read_word_vectors, path, "the setting")
    for cut in (b"", b"dog 1 2\n", path.read_bytes()[:200]):
        path.write_bytes(cut)
        refused(StorageError, "is not a file of word vectors", read_word_vectors, path, "the setting")


LINES = ["3 2", "red 1 2", ". . . 3 4", "red 5 6", "tshirt 7 8", f"{'x' * 70} 9 9"]


def test_words_and_vectors_are_those_of_the_lines(tmp_path: Path) -> None:
    """The first line of word2vec is no word, words may have spaces, the first of two counts, long ones go."""
    for number, packed in enumerate((False, True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        file = folder / ("v.txt.gz" if packed else "v.txt")
        text = "\n".join(LINES).encode()
        file.write_bytes(gzip.compress(text) if packed else text)
        assert convert_word_vectors(file, folder / "v.npz") == 3
        rows, vectors = read_word_vectors(folder / "v.npz", "the test")
        assert rows == {"red": 0, ". . .": 1, "tshirt": 2}
        np.testing.assert_array_equal(vectors, np.array([[1, 2], [3, 4], [7, 8]], dtype=np.float32))
        assert convert_word_vectors(file, folder / "v.npz", {"tshirt", "blue"}) == 1
        assert [path.name for path in folder.iterdir() if path.name not in (file.name, "v.npz")] == []


def test_a_line_that_is_no_vector_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    for number, (line, said) in enumerate(
        (("blue 1", "line 7 is no word"), ("blue 1 x", "line 7"), ("blue nan 1", "line 7"), ("", "line 7"))
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "v.txt").write_text("\n".join([*LINES, line, "last 1 2"]))
        with pytest.raises(DataError, match=said):
            convert_word_vectors(folder / "v.txt", folder / "v.npz")
        assert [path.name for path in folder.iterdir()] == ["v.txt"]
        with pytest.raises(DataError, match="none of the 1 words"):
            (folder / "v.txt").write_text("\n".join(LINES))
            convert_word_vectors(folder / "v.txt", folder / "v.npz", {"green"})
