"""One tiny WordNet in every form in which one is passed on: the same looked-up answers, and NLTK's."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from refusals import refused
from tiny_wordnet import SYNSETS, in_all_forms, write_database, write_json_lines, write_lmf

from diptych.core.errors import DataError, StorageError, UsageError
from diptych.data.language import PartOfSpeech, WordNet
from diptych.data.language.open import open_wordnet

FORMS = ["database", "JSON lines", "WN-LMF"]
FORMS_OF_WORDS: list[tuple[str, PartOfSpeech, list[str]]] = [
    *(("dogs", "noun", ["dog"]), ("Wolves", "noun", ["wolf"]), ("Paris", "noun", ["paris"])),
    *(("cities", "noun", ["city"]), ("dogs", "verb", ["dog"]), ("reddish", "adjective", ["reddish"])),
    *(("redder", "adjective", ["red"]), ("cat", "noun", []), ("", "noun", []), ("🙂", "noun", [])),
]


def words(net: WordNet, synsets: Sequence[str]) -> list[list[str]]:
    return [list(net.lemmas(synset)) for synset in synsets]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_answers(form: str, tmp_path: Path) -> None:
    if form == "WN-LMF":
        pytest.importorskip("wn")
    net = open_wordnet(in_all_forms(tmp_path)[form])
    assert net.summary() == f"{net.name}: 14 synsets, 19 lemmas"
    for made in SYNSETS.values():
        for lemma in made.lemmas:
            assert list(made.lemmas) in words(net, net.senses(lemma))
    # the usual sense first, nouns before verbs, whatever the capitals and blanks
    dog, frump, pursue = net.senses("dog")
    assert net.senses("DOG", "noun") == [dog, frump]
    assert (net.senses("dog", "verb"), net.senses("dog", "adverb")) == ([pursue], [])
    assert net.senses("domestic_dog") == net.senses("canis familiaris") == [dog]
    assert net.senses("paris") == net.senses("Paris") != []
    # what is above and below: dog – pet – animal – entity, and dog – canine – carnivore – animal – entity
    assert words(net, [dog]) == [["dog", "domestic dog", "Canis familiaris"]]
    assert sorted(words(net, net.hypernyms(dog))) == [["canine", "canid"], ["pet"]]
    (canine,), (wolf,), (entity,) = map(net.senses, ("canid", "wolf", "entity"))
    assert sorted(words(net, net.hyponyms(canine))) == [list(SYNSETS["dog"].lemmas), ["wolf"]]
    assert words(net, net.hypernyms(net.senses("Paris")[0])) == [["city"]]
    assert [net.depth(one) for one in (dog, wolf, entity, pursue)] == [(3, 4), (4, 4), (0, 0), (0, 0)]
    (red,) = net.senses("red", "adjective")  # a satellite
    assert (net.lemmas(red), *map(list, map(net.hypernyms, (red, entity)))) == (["red", "reddish"], [], [])
    for word, part, lemmas in FORMS_OF_WORDS * 2:  # remembered
        assert list(net.base_forms(word, part)) == lemmas
    assert net.senses("cat") == [] == net.senses("")
    refused(UsageError, r"has no synset 'cat\.n\.01'", net.lemmas, "cat.n.01")


def test_nltk_reads_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Names, order, words, what is above and below, depths and forms, by NLTK's reader of the same files."""
    reader = pytest.importorskip("nltk.corpus.reader.wordnet")
    data = pytest.importorskip("nltk.data")
    folder = write_database(tmp_path / "corpora" / "wordnet")
    with (folder / "noun.exc").open("a") as file:
        file.write("hounds pet dog canid\ncanid wolf\n")  # out of order; a form that is a lemma
    for path in (tmp_path, *tmp_path.rglob("*")):  # NLTK reads nothing that others may write
        path.chmod(0o700 if path.is_dir() else 0o600)
    monkeypatch.setattr(data, "path", [str(tmp_path)])
    left_open = ExitStack()  # NLTK leaves its files open until they are collected
    request.addfinalizer(left_open.close)

    class Reader(reader.WordNetCorpusReader):  # type: ignore[misc, name-defined]
        def open(self, file: str) -> object:
            return left_open.enter_context(super().open(file))

    theirs = Reader(data.FileSystemPathPointer(str(folder)), object())
    ours = open_wordnet(folder)
    letters: dict[PartOfSpeech, str] = {"noun": "n", "verb": "v", "adjective": "a", "adverb": "r"}
    for made in SYNSETS.values():
        for lemma in made.lemmas:
            for part, letter in letters.items():
                their_senses = theirs.synsets(lemma.replace(" ", "_"), letter, check_exceptions=False)
                assert [one.name() for one in their_senses] == ours.senses(lemma, part)
                for one in their_senses:
                    name = one.name()
                    assert [word.replace("_", " ") for word in one.lemma_names()] == ours.lemmas(name)
                    above = [*one.hypernyms(), *one.instance_hypernyms()]
                    assert sorted(other.name() for other in above) == sorted(ours.hypernyms(name))
                    assert (one.min_depth(), one.max_depth()) == ours.depth(name)
    for form in ("dogs", "wolves", "cities", "dogged", "pets"):
        for part, letter in letters.items():
            assert theirs.morphy(form, letter) == next(iter(ours.base_forms(form, part)), None)
    forms = "dogs Dogs hounds wolves redder reddest cities dogged dogging citys pets reds wolfs cat _ ''"
    for word in [lemma for made in SYNSETS.values() for lemma in made.lemmas] + forms.split():
        bases = [(form, part) for part in letters for form in ours.morphy(word, part)]
        found = [synset for form, part in bases for synset in ours.senses(form, part)]
        assert found == [one.name() for one in theirs.synsets(word.replace(" ", "_"))], word
    assert ours.senses("hounds") == []
    assert list(ours.morphy("hounds", "noun")) == ["pet", "dog", "canid"]
    assert list(ours.morphy("canid", "noun")) == ["canid", "wolf"]
    assert list(ours.base_forms("canid", "noun")) == ["wolf", "canid"]
    assert list(ours.morphy("dogging", "verb")) == [] != list(ours.base_forms("dogging", "verb"))


def test_nltk_data_has_it_in_a_folder_or_in_its_zip(tmp_path: Path) -> None:
    folder = write_database(tmp_path / "one" / "corpora" / "wordnet")
    zipped = tmp_path / "two" / "corpora" / "wordnet.zip"
    zipped.parent.mkdir(parents=True)
    with zipfile.ZipFile(zipped, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"wordnet/{file.name}")
    for path in (tmp_path / "one", tmp_path / "two", zipped):
        assert open_wordnet(path).senses("wolf") == ["wolf.n.01"]


def test_where_there_is_none(tmp_path: Path) -> None:
    assert "data.noun" in refused(UsageError, "holds no WordNet", open_wordnet, tmp_path).fix
    refused(UsageError, "does not exist", open_wordnet, tmp_path / "nowhere")


@pytest.mark.parametrize("form", FORMS)
def test_files_that_are_corrupt(tmp_path: Path, form: str) -> None:
    path = in_all_forms(tmp_path)[form]
    if form == "WN-LMF":
        pytest.importorskip("wn")
    if form == "database":
        file = path / "data.noun"
        file.write_text(file.read_text().replace(" 01 wolf 0", " ff wolf 0"))
    else:
        file = path if path.is_file() else path / "oewn_lemmas.jsonl.gz"
        file.write_bytes(file.read_bytes()[:-20])
    refused(StorageError, "is corrupt|is not a WordNet|is not JSON", open_wordnet, path)


def test_zips_and_synsets_that_are_corrupt(tmp_path: Path) -> None:
    for content in (b"PK, cut off", b""):
        (tmp_path / "wordnet.zip").write_bytes(content)
        refused(StorageError, "is not", open_wordnet, tmp_path / "wordnet.zip")
    synsets = write_json_lines(tmp_path / "lines") / "oewn_synsets.jsonl.gz"
    whole = gzip.decompress(synsets.read_bytes())
    synsets.write_bytes(gzip.compress(whole * 2))
    refused(DataError, "synset 'entity-n' occurs twice", open_wordnet, synsets.parent)
    synsets.write_bytes(gzip.compress(whole.replace(b'"pet-n", "p"', b'"pets-n", "p"')))
    refused(DataError, "no synset 'pet-n', which others name", open_wordnet, synsets.parent)


def test_lmf_that_does_not_list_members(tmp_path: Path) -> None:
    pytest.importorskip("wn")
    net = open_wordnet(write_lmf(tmp_path / "t.xml", members=False))
    assert sorted(net.lemmas(net.senses("wolf")[0])) == ["wolf"]
