"""The built-in language: it knows every word of the captions of generated scenes, and no other."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from tiny_tagger import CLASSES, TAGDICT, WEIGHTS, write_tagger

from diptych.core.errors import DataError, MissingExtraError, StorageError, UsageError
from diptych.data.language import ADJECTIVE_TAGS, NOUN_TAGS, is_word, tagged, words_of
from diptych.data.language import nltk_tagger as nltk_folder
from diptych.data.language.nltk_tagger import TAGGER, NltkTagger, as_newspaper
from diptych.data.language.scenes_language import ScenesTagger, scenes_wordnet
from diptych.data.language.tagged import Tags, tag_captions
from diptych.data.scenes.captions import write_captions
from diptych.data.scenes.world import world_of


def test_words_and_newspaper_text() -> None:
    for text, words in (
        ("Two small dogs run.", ["Two", "small", "dogs", "run"]),
        ("a medium-sized dog's toy, isn't it?", ["a", "medium-sized", "dog's", "toy", "isn't", "it"]),
        ("३ कुत्ते दौड़ते हैं।", ["३", "कुत्ते", "दौड़ते", "हैं"]),
        ("cafe\u0301 au lait", ["cafe\u0301", "au", "lait"]),
        ("كلب صغير", ["كلب", "صغير"]),
        ("🐶 12 🐱", ["12"]),
        ("- ' … !", []),
        ("", []),
    ):
        assert [word.text for word in words_of(text)] == words
    for text, pieces, firsts in (
        ("A dog's bone", ["a", "dog", "'s", "bone"], [0, 1, 3]),
        ("He isn’t, I'll", ["he", "is", "n't", ",", "I", "'ll"], [0, 1, 3, 4]),
        ("a dog 's bone", ["a", "dog", "'s", "bone"], [0, 1, 2, 2, 3]),
        ("Young Jack. Two ATVs", ["young", "Jack", ".", "two", "ATVs"], [0, 1, 2, 3, 4]),
        ("ATV on a hill", ["ATV", "on", "a", "hill"], [0, 1, 2, 3]),
        ("A DOG'S LIFE!", ["a", "dog", "'s", "life", "!"], [0, 1, 3, 4]),
        ('he "sits" "', ["he", "``", "sits", "''", "``"], [0, 1, 2, 3, 4]),
        ("'s n't", ["'s", "n't"], [0, 0, 1]),
        ("犬 كلب 🐕 12", ["犬", "كلب", "🐕", "12"], [0, 1, 2, 3]),
        ("", [], []),
    ):
        assert as_newspaper(tokens(text)) == (pieces, firsts)


@given(st.text())
def test_places_are_places_and_nothing_but_blanks_is_left_out(text: str) -> None:
    found = words_of(text, marks=True)
    assert all(text[word.start : word.end] == word.text for word in found)
    assert [word for word in found if is_word(word.text)] == words_of(text)
    left = list(text)
    for word in found:
        left[word.start : word.end] = [""] * (word.end - word.start)
    assert not re.search(r"\S", "".join(left)) or all(
        unicodedata.category(letter)[0] in "MZC" for letter in "".join(left).strip()
    )


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


def tokens(text: str) -> list[str]:
    return [word.text for word in words_of(text, marks=True)]


def tags(tagger: NltkTagger, text: str) -> list[str]:
    return tagger.tag([tokens(text)])[0]


def test_it_is_nltks_tagger_on_those_pieces(tmp_path: Path) -> None:
    perceptron = pytest.importorskip("nltk.tag.perceptron")
    tagger = NltkTagger(write_tagger(tmp_path))
    plain = perceptron.PerceptronTagger(load=False)
    plain.decode_json_params((WEIGHTS, TAGDICT, CLASSES))
    for text in ("A dog's bone", "two dogs and Jack's ATV isn't here", "x " * 5000):
        pieces, firsts = as_newspaper(tokens(text))
        expected = [tag for _, tag in plain.tag(pieces)]
        assert tags(tagger, text) == [expected[first] for first in firsts]


def test_content_names_it_not_its_place(tmp_path: Path) -> None:
    first = NltkTagger(write_tagger(tmp_path / "a"))
    again = NltkTagger(write_tagger(tmp_path / "b"))
    zipped = NltkTagger(write_tagger(tmp_path / "c", zipped=True))
    other = NltkTagger(write_tagger(tmp_path / "d", {"bias": {"NN": 2.0}}))
    assert first.fingerprint == again.fingerprint == zipped.fingerprint != other.fingerprint
    assert first.name == f"NLTK averaged perceptron {first.fingerprint[:8]}"
    assert zipped.tag([["the", "dog"]]) == [["DT", "NN"]]


def test_what_is_missing_corrupt_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(UsageError, "nowhere does not exist", NltkTagger, tmp_path / "nowhere")
    refused(UsageError, r"holds no taggers/averaged_perceptron_tagger_eng", NltkTagger, tmp_path)
    folder = write_tagger(tmp_path / "a")
    (folder / TAGGER / "averaged_perceptron_tagger_eng.weights.json").write_text('{"bias": ')
    assert "nltk.downloader" in refused(StorageError, "is not JSON", NltkTagger(folder).tag, [["the"]]).fix
    (folder / TAGGER / "averaged_perceptron_tagger_eng.tagdict.json").unlink()
    refused(StorageError, r"tagdict\.json does not exist", NltkTagger, folder)
    zipped = write_tagger(tmp_path / "b", zipped=True) / f"{TAGGER}.zip"
    zipped.write_bytes(zipped.read_bytes()[:-30])
    refused(StorageError, "is not NLTK data", NltkTagger, tmp_path / "b")
    write_tagger(tmp_path, zipped=True)
    monkeypatch.setattr(nltk_folder, "_MOST", 40)
    refused(StorageError, r"weights\.json is not NLTK data.* unpacked, more than 40", NltkTagger, tmp_path)
    tagger = NltkTagger(write_tagger(tmp_path))
    monkeypatch.setitem(__import__("sys").modules, "nltk.tag.perceptron", None)
    with pytest.raises(MissingExtraError) as caught:
        tagger.tag([["the"]])
    assert caught.value.fix == "pip install 'diptych[language]'"


NET = scenes_wordnet()


def captions_of(index: int) -> list[str]:
    facts = world_of(3, "train", index, (1, 4)).facts()
    return [caption.text for caption in write_captions(facts, random.Random(index), 5)]


def tags_of(text: str) -> dict[str, str]:
    (tags,) = tag_captions([text], ScenesTagger())
    return {word.text.lower(): tag for word, tag in zip(words_of(text), tags, strict=True)}


@given(st.integers(0, 10_000))
def test_captions_of_scenes_are_tagged_and_their_words_known(index: int) -> None:
    for caption in captions_of(index):
        for word, tag in tags_of(caption).items():
            part = "noun" if tag in NOUN_TAGS else "adjective" if tag in ADJECTIVE_TAGS else None
            if part and word not in ("something", "plus"):  # "plus" is half of "plus sign"
                assert NET.base_forms(word, part), (caption, word)


def test_scenes_by_hand() -> None:
    assert tags_of("There is a small, crimson star near the left edge.") == {
        **{"there": "EX", "is": "VBZ", "a": "DT", "small": "JJ", "crimson": "JJ", "star": "NN"},
        **{"near": "IN", "the": "DT", "left": "JJ", "edge": "NN"},
    }
    assert tags_of("to the left of two things")["left"] == "NN"
    assert tags_of("Two PLANKS, 12 007") == {**{"two": "CD", "planks": "NNS", "12": "CD", "007": "CD"}}
    assert ScenesTagger().tag([["A", "star", ",", "🙂", "."], []]) == [["DT", "NN", ",", "🙂", "."], []]
    for word in ("dog", "sta", "stars2", "étoile", "_"):
        assert is_word(word)
        with pytest.raises(
            DataError, match=f"'{word}' is no word of the captions of generated scenes"
        ) as caught:
            tag_captions([f"a {word}"], ScenesTagger())
        assert "NLTK" in caught.value.fix
