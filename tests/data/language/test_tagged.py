"""Tags of many captions: each distinct one once, kept in the cache by content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from diptych.data.language import tagged, words_of
from diptych.data.language.tagged import Tags, tag_captions


class Counting:
    """Tags a word by its length and a mark by itself, and counts what it was given."""

    name = "counting"

    def __init__(self, fingerprint: str = "f") -> None:
        self.fingerprint = fingerprint
        self.seen: list[list[str]] = []

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        self.seen += [list(tokens) for tokens in sentences]
        return [[f"T{len(token)}" for token in tokens] for tokens in sentences]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIPTYCH_CACHE", str(tmp_path))
    return tmp_path / "tags"


MANY = [f"a dog, number {number}!" for number in range(1200)]


def expected(captions: Sequence[str]) -> list[list[str]]:
    return [[f"T{len(word.text)}" for word in words_of(caption)] for caption in captions]


def test_marks_are_read_and_left_out(cache: Path) -> None:
    tagger = Counting()
    assert tag_captions(["A dog, here.", "", "?!", "🙂"], tagger) == [["T1", "T3", "T4"], [], [], []]
    assert tagger.seen == [["A", "dog", ",", "here", "."], [], ["?", "!"], ["🙂"]]
    assert tag_captions([], tagger) == []


def test_each_distinct_caption_is_tagged_once(cache: Path) -> None:
    tagger = Counting()
    assert tag_captions(["b", "aa", "b", "b"], tagger) == [["T1"], ["T2"], ["T1"], ["T1"]]
    assert tagger.seen == [["b"], ["aa"]]


def test_few_are_not_kept(cache: Path) -> None:
    tag_captions(["a dog"], Counting())
    assert not cache.exists()


def test_many_are_kept_by_content(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = Counting()
    captions = [*MANY, "", MANY[3]]
    assert tag_captions(captions, tagger) == expected(captions)
    assert len(tagger.seen) == 1201
    assert tag_captions(captions, tagger) == expected(captions)
    assert tag_captions(captions[:-1], tagger) == expected(captions[:-1])  # the same distinct captions
    assert len(tagger.seen) == 1201
    (file,) = cache.glob("*.npz")
    tag_captions(captions, Counting("another"))
    tag_captions(captions[:1100], tagger)
    assert len(tagger.seen) == 1201 + 1100
    assert len(list(cache.glob("*.npz"))) == 3
    monkeypatch.setattr(tagged, "unidata_version", "1.1.5")  # another Python has other tables of characters
    tag_captions(captions, tagger)
    assert len(tagger.seen) == 2 * 1201 + 1100
    assert Tags.open(file).codes.dtype == np.uint8


def test_more_kinds_of_tags_than_a_byte_has(cache: Path) -> None:
    captions = ["x" * number for number in range(1, 1200)]
    for _ in range(2):
        assert tag_captions(captions, Counting()) == expected(captions)


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_damaged_file_is_made_again(cache: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    tagger = Counting()
    tag_captions(MANY, tagger)
    (file,) = cache.glob("*.npz")
    whole = file.read_bytes()
    if damage == "cut":
        file.write_bytes(whole[: len(whole) // 2])
    else:
        file.write_bytes(b"no such file")
    tagger.seen = []
    assert tag_captions(MANY, tagger) == expected(MANY)
    assert len(tagger.seen) == len(MANY)
    assert "is corrupt and recreated" in caplog.text
    assert file.read_bytes() == whole
