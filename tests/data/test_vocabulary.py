"""Words of captions, titles and products, and word vectors of others."""

from __future__ import annotations

import gzip
import html
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import DataError, StorageError
from diptych.data.products import attributes_of, paths_of, picture_name, plain_text, split_path
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
    published = [row_of(word, rows, published=True) for word in ("t-shirt", "man's", "and/or", "dog")]
    assert published == [0, 1, 2, None]


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
    for line, said in (
        ("blue 1", "line 7 is no word"),
        ("blue 1 x", "line 7"),
        ("blue nan 1", "line 7"),
        ("", "line 7"),
    ):
        (tmp_path / "v.txt").write_text("\n".join([*LINES, line, "last 1 2"]))
        with pytest.raises(DataError, match=said):
            convert_word_vectors(tmp_path / "v.txt", tmp_path / "v.npz")
        assert [path.name for path in tmp_path.iterdir()] == ["v.txt"]
        with pytest.raises(DataError, match="none of the 1 words"):
            (tmp_path / "v.txt").write_text("\n".join(LINES))
            convert_word_vectors(tmp_path / "v.txt", tmp_path / "v.npz", {"green"})


def test_plain_text_paths_and_names() -> None:
    for text, plain in (
        ("<b>Red</b> dress &amp; shoes", "Red dress & shoes"),
        ("&lt;b&gt;Red&lt;/b&gt;", "Red"),
        ("3 < 5 and <3", "3 < 5 and <3"),
        ("a<style>.b { c: d }</style> e<script>f()</script> /* g */ h", "a e h"),
        ("a\u00a0b\t\nc\u200b \u200ed\ufeff", "a b c d"),
        ("half \ud83d a character", "half a character"),
        ("<br>", ""),
        ("&amp;lt;b&amp;gt;Red &amp;amp; blue", "Red & blue"),
        ("a <!-- b", "a <!-- b"),
        ("a <!-- b /* c --> d */ e", "a d */ e"),
        ("a <SCRIPT x>b</script > c", "a c"),
        ("a<\u017fcript>b", "a< cript>b".replace(" ", "\u017f")),
        ("a &#" + "9" * 5000 + "; b", "a \ufffd b"),
        ("", ""),
    ):
        assert plain_text(text) == plain
    assert paths_of({"category_path": ["Home ", "", "<b>Lamps</b>"]}) == (("Home", "Lamps"),)
    assert paths_of({"category_paths": [["A"], ["B", "C"], ["A"], []], "category_path": ["Z"]}) == (
        ("A",),
        ("B", "C"),
    )
    assert paths_of({"category_path": []}) == paths_of(None) == paths_of({}) == ()
    assert split_path("Home > Bed, Bath & A>B > ") == ("Home", "Bed, Bath & A>B")
    assert attributes_of({"attributes": {"a": [" x", "x", None, ""], "b": 3, "c": None}}) == (
        ("a", "x"),
        ("b", "3"),
    )
    assert attributes_of({"attributes": {}}) == attributes_of(None) == ()
    names = {picture_name(one).lower() for one in ODD}
    assert len(names) == len(ODD)
    for name in names:
        assert 0 < len(name) <= 80
        assert os.path.basename(name) == name
        assert name.isascii()
        assert name not in (".", "..", "con", "com1")
    for opening in ("<!--", "/* ", "<script ", "<style>", "<a ", "&lt;!--"):
        given = opening * 200_000  # an hour's work, were each looked for to the end
        assert plain_text(given) in ("", given.strip(), "<!--" * 200_000)


_PIECES = (
    *("<!--", "-->", "/*", "*/", "<script", "<style>", "</script>", "</STYLE >", ">", "<b", "a", " "),
    *("&lt;", "&amp;"),
)


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_hidden_parts_are_those_of_one_slow_expression(text: str) -> None:
    hidden = r"(?is)<(script|style)\b.*?</\1\s*>|<!--.*?-->|/\*.*?\*/"
    slow = text
    for _ in range(20):
        slow = html.unescape(re.sub("</?[a-zA-Z][^<>]*>", " ", re.sub(hidden, " ", slow)))
    assert plain_text(text) == " ".join(slow.split())


@given(st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=3)), max_size=8).map("".join))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert plain_text(plain_text(text)) == plain_text(text)


ODD = (
    *("", ".", "..", "../x", "a/b", "a\\b", "abc", "ABC", "Abc", "CON"),
    *("COM1", "é", "e\u0301", "A" * 300, "\ud800", "A B"),
)
