"""NLTK's tagger on captions: how they are read, from which files, and what names it by content."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from tiny_tagger import CLASSES, TAGDICT, WEIGHTS, write_tagger

from diptych.core.errors import MissingExtraError, StorageError, UsageError
from diptych.data.language import nltk_tagger as nltk_folder
from diptych.data.language import words_of
from diptych.data.language.nltk_tagger import TAGGER, NltkTagger, as_newspaper, data_folders, find_resource


def tokens(text: str) -> list[str]:
    return [word.text for word in words_of(text, marks=True)]


def tags(tagger: NltkTagger, text: str) -> list[str]:
    return tagger.tag([tokens(text)])[0]


@pytest.mark.parametrize(
    ("text", "pieces", "firsts"),
    [
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
    ],
)
def test_captions_are_read_as_newspaper_text(text: str, pieces: list[str], firsts: list[int]) -> None:
    assert as_newspaper(tokens(text)) == (pieces, firsts)


def test_a_word_has_the_tag_of_its_first_part(tmp_path: Path) -> None:
    tagger = NltkTagger(write_tagger(tmp_path))
    assert tags(tagger, "The dog's bone.") == ["DT", "NN", "NN", "."]
    assert tags(tagger, "the dog isn't Jack") == ["DT", "NN", "VBZ", "NNP"]
    assert tags(tagger, "dog 's") == ["NN", "POS", "POS"]


def test_a_capital_at_the_beginning_is_no_name_and_one_within_is(tmp_path: Path) -> None:
    tagger = NltkTagger(write_tagger(tmp_path))
    assert tags(tagger, "Young Jack. Two cats") == ["NN", "NNP", ".", "CD", "NNS"]
    assert tags(tagger, "TWO CATS") == ["CD", "NNS"]


def test_it_is_nltks_tagger_on_those_pieces(tmp_path: Path) -> None:
    perceptron = pytest.importorskip("nltk.tag.perceptron")
    tagger = NltkTagger(write_tagger(tmp_path))
    plain = perceptron.PerceptronTagger(load=False)
    plain.decode_json_params((WEIGHTS, TAGDICT, CLASSES))
    for text in ("A dog's bone", "two dogs and Jack's ATV isn't here", "x " * 5000):
        pieces, firsts = as_newspaper(tokens(text))
        expected = [tag for _, tag in plain.tag(pieces)]
        assert tags(tagger, text) == [expected[first] for first in firsts]


def test_tokens_are_tagged_as_they_stand_where_that_is_asked(tmp_path: Path) -> None:
    perceptron = pytest.importorskip("nltk.tag.perceptron")
    tagger = NltkTagger(write_tagger(tmp_path))
    plain = perceptron.PerceptronTagger(load=False)
    plain.decode_json_params((WEIGHTS, TAGDICT, CLASSES))
    sentences = [["Young", "dog", "'s", "ATV", '"', "isn't", "."], [], ["TWO", "Cats"]]
    given = tagger.tag_as_given(sentences)
    assert given == [[tag for _, tag in plain.tag(tokens)] for tokens in sentences]
    assert given[0][0] == "NNP" != tagger.tag(sentences)[0][0]


def test_nothing_to_tag(tmp_path: Path) -> None:
    tagger = NltkTagger(write_tagger(tmp_path))
    assert tagger.tag([]) == []
    assert tagger.tag([[], ["the"]]) == [[], ["DT"]]


def test_content_names_it_not_its_place(tmp_path: Path) -> None:
    first = NltkTagger(write_tagger(tmp_path / "a"))
    again = NltkTagger(write_tagger(tmp_path / "b"))
    zipped = NltkTagger(write_tagger(tmp_path / "c", zipped=True))
    other = NltkTagger(write_tagger(tmp_path / "d", {"bias": {"NN": 2.0}}))
    assert first.fingerprint == again.fingerprint == zipped.fingerprint != other.fingerprint
    assert first.name == f"NLTK averaged perceptron {first.fingerprint[:8]}"
    assert zipped.tag([["the", "dog"]]) == [["DT", "NN"]]


def test_what_is_missing_or_damaged(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere does not exist"):
        NltkTagger(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"holds no taggers/averaged_perceptron_tagger_eng"):
        NltkTagger(tmp_path)
    folder = write_tagger(tmp_path / "a")
    (folder / TAGGER / "averaged_perceptron_tagger_eng.weights.json").write_text('{"bias": ')
    with pytest.raises(StorageError, match="is not JSON") as caught:
        NltkTagger(folder).tag([["the"]])
    assert "nltk.downloader" in caught.value.fix
    (folder / TAGGER / "averaged_perceptron_tagger_eng.tagdict.json").unlink()
    with pytest.raises(StorageError, match=r"tagdict\.json cannot be read"):
        NltkTagger(folder)
    zipped = write_tagger(tmp_path / "b", zipped=True) / f"{TAGGER}.zip"
    zipped.write_bytes(zipped.read_bytes()[:-30])
    with pytest.raises(StorageError, match="cannot be read"):
        NltkTagger(tmp_path / "b")


def test_a_zip_that_unpacks_to_too_much_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zipped = write_tagger(tmp_path, zipped=True) / f"{TAGGER}.zip"
    monkeypatch.setattr(nltk_folder, "_MOST", 40)
    with pytest.raises(StorageError, match=r"weights\.json cannot be read.* bytes unpacked, more than 40"):
        NltkTagger(tmp_path)
    monkeypatch.undo()
    with ZipFile(zipped, "w", ZIP_DEFLATED) as archive:
        archive.writestr(f"{zipped.stem}/{zipped.stem}.weights.json", "a" * 5000)
    packed = zipped.read_bytes()
    start = packed.index(b".json") + len(b".json")
    zipped.write_bytes(packed[:start] + b"\xff" * 8 + packed[start + 8 :])
    with pytest.raises(StorageError, match=r"weights\.json cannot be read: Error -3 while decompressing"):
        NltkTagger(tmp_path)


def test_without_nltk_the_pip_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = NltkTagger(write_tagger(tmp_path))
    monkeypatch.setitem(__import__("sys").modules, "nltk.tag.perceptron", None)
    with pytest.raises(MissingExtraError) as caught:
        tagger.tag([["the"]])
    assert caught.value.fix == "pip install 'diptych[language]'"


def test_the_real_one() -> None:
    found = find_resource(data_folders(), TAGGER)
    if found is None:
        pytest.skip("NLTK's tagger is in none of its data folders; set NLTK_DATA to one that has it")
    tagger = NltkTagger(found.parent.parent)
    assert tags(tagger, "Young dogs are in the man's garden.") == [
        *("JJ", "NNS", "VBP", "IN", "DT", "NN", "NN", "."),
    ]
    assert tags(tagger, "YOUNG GIRL ISN'T HAPPY") == ["JJ", "NN", "VBZ", "JJ"]
    assert len(tags(tagger, "dog " * 5000)) == 5000
