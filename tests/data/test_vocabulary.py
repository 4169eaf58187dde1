from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from diptych.core.errors import DataError
from diptych.data.vocabulary import END, SPECIAL, START, UNKNOWN, Vocabulary, first_words, words


def test_words_keep_inner_marks_and_split_others() -> None:
    assert words("A man's T-shirt, red!") == ["a", "man's", "t-shirt", ",", "red", "!"]
    assert words("café 3.5 “x”") == ["café", "3", ".", "5", "“", "x", "”"]
    assert words("  ") == []


def test_frequent_words_come_first_and_rare_ones_not_at_all() -> None:
    vocabulary = Vocabulary.build(["b a b", "c b a", "d"], min_count=2)
    assert vocabulary.entries == (*SPECIAL, "b", "a")
    assert vocabulary.encode("A b zebra") == [START, 5, 4, UNKNOWN, END]
    assert vocabulary.encode("a a a a", max_tokens=4) == [START, 5, 5, END]
    assert vocabulary.encode("") == [START, END]


def test_all_captions_end_to_end() -> None:
    vocabulary = Vocabulary.build(["a b"], min_count=1)
    flat, starts = vocabulary.encode_all(["a", "", "b a"])
    assert starts.tolist() == [0, 3, 5, 9]
    assert flat.tolist() == [1, 4, 2, 1, 2, 1, 5, 4, 2]
    assert flat.dtype == np.int32


def test_no_word_is_frequent_enough() -> None:
    with pytest.raises(DataError, match="no word occurs 4 times"):
        Vocabulary.build(["a b c"])


@pytest.mark.parametrize("entries", [["a"], [*SPECIAL, "a", "a"]])
def test_entries_that_are_no_vocabulary(entries: list[str]) -> None:
    with pytest.raises(DataError):
        Vocabulary(entries)


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


def test_words_that_are_always_known_come_first() -> None:
    vocabulary = Vocabulary.build(["a b a", "a 7 7 7", "b c 1"], min_count=2, always=tuple("0123456789"))
    assert vocabulary.entries == (*SPECIAL, *"0123456789", "a", "b")
    assert vocabulary.encode("a 0 9 c 7") == [START, 14, 4, 13, UNKNOWN, 11, END]
    without = Vocabulary.build(["a b a", "a 7 7 7", "b c 1"], min_count=2)
    assert without.entries == (*SPECIAL, "7", "a", "b")


@pytest.mark.parametrize("word", ["two words", "Upper", "", "0."])
def test_words_that_captions_cannot_have_are_refused(word: str) -> None:
    with pytest.raises(DataError, match="not as itself"):
        Vocabulary.build(["a a"], min_count=1, always=[word])


def test_first_words_keep_the_text_as_it_is_written() -> None:
    text = "A man's T-shirt, red!"
    assert [first_words(text, count) for count in range(6)] == [
        "",
        "A",
        "A man's",
        "A man's T-shirt",
        "A man's T-shirt,",
        "A man's T-shirt, red",
    ]
    assert first_words(text, 6) is text


@given(st.text(max_size=30), st.integers(0, 12))
@example("İstanbul 3 men", 4)
@example("İİ", 2)
def test_first_words_are_the_first_words(text: str, count: int) -> None:
    assert words(first_words(text, count)) == words(text)[:count]
