"""One tiny WordNet in every form in which one is passed on: the same looked-up answers, and NLTK's."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from refusals import refused
from tiny_wordnet import SYNSETS, in_all_forms, write_database, write_json, write_json_lines

from diptych.core.errors import DataError, StorageError, UsageError
from diptych.data.language import PartOfSpeech
from diptych.data.language.open import open_wordnet
from diptych.data.language.table_wordnet import TableWordNet
from diptych.data.language.wordnet_files import wordnet_files

FORMS = ["database", "JSON lines", "JSON", "WN-LMF"]
FORMS_OF_WORDS: list[tuple[str, PartOfSpeech, list[str]]] = [
    *(("dogs", "noun", ["dog"]), ("Wolves", "noun", ["wolf"]), ("Paris", "noun", ["paris"])),
    *(("cities", "noun", ["city"]), ("dogs", "verb", ["dog"]), ("reddish", "adjective", ["reddish"])),
    *(("redder", "adjective", ["red"]), ("cat", "noun", []), ("", "noun", []), ("🙂", "noun", [])),
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIPTYCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "wordnet"


def words(net: TableWordNet, synsets: Sequence[str]) -> list[list[str]]:
    return [list(net.lemmas(synset)) for synset in synsets]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_answers(form: str, tmp_path: Path) -> None:
    path = in_all_forms(tmp_path)[form]
    assert wordnet_files(path).form == form
    for net in (open_wordnet(path), open_wordnet(path)):  # the second from the cache
        assert len(net) == len(SYNSETS)
        assert net.n_lemmas == len({lemma for made in SYNSETS.values() for lemma in made.lemmas})
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
        assert (net.lemmas(red), net.hypernyms(red), net.hypernyms(entity)) == (["red", "reddish"], [], [])
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
        file.write(
            "hounds pet dog canid\ncanid wolf\n"
        )  # out of the alphabet's order; a form that is a lemma
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
    compared = 0
    for made in SYNSETS.values():
        for lemma in made.lemmas:
            for part, letter in letters.items():
                their_senses = theirs.synsets(lemma.replace(" ", "_"), letter, check_exceptions=False)
                assert [one.name() for one in their_senses] == ours.senses(lemma, part)
                for one in their_senses:
                    compared += 1
                    name = one.name()
                    assert [word.replace("_", " ") for word in one.lemma_names()] == ours.lemmas(name)
                    above = [*one.hypernyms(), *one.instance_hypernyms()]
                    assert sorted(other.name() for other in above) == sorted(ours.hypernyms(name))
                    assert (one.min_depth(), one.max_depth()) == ours.depth(name)
    assert compared > len(SYNSETS)
    for form in ("dogs", "wolves", "cities", "dogged", "pets"):
        for part, letter in letters.items():
            assert theirs.morphy(form, letter) == next(iter(ours.base_forms(form, part)), None)
    forms = (
        "dog dogs Dogs hounds wolves red redder reddest cities dogged dogging citys pets reds wolfs cat _ ''"
    )
    for word in [lemma for made in SYNSETS.values() for lemma in made.lemmas] + forms.split():
        found = [
            synset
            for part in letters
            for form in ours.morphy(word, part)
            for synset in ours.senses(form, part)
        ]
        assert found == [one.name() for one in theirs.synsets(word.replace(" ", "_"))], word
    assert ours.senses("hounds") == []
    assert list(ours.morphy("hounds", "noun")) == ["pet", "dog", "canid"]
    assert (
        list(ours.morphy("canid", "noun"))
        == ["canid", "wolf"]
        == list(ours.base_forms("canid", "noun"))[::-1]
    )
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


def folders(cache: Path) -> list[Path]:
    """Of tables; locks lie beside them."""
    return [path for path in cache.iterdir() if path.is_dir()]


def test_where_there_is_none(tmp_path: Path) -> None:
    assert "data.noun" in refused(UsageError, "holds no WordNet", open_wordnet, tmp_path).fix
    refused(UsageError, "does not exist", open_wordnet, tmp_path / "nowhere")
    with zipfile.ZipFile(tmp_path / "release.zip", "w") as archive:
        archive.writestr("entries-a.json", "{}")
    assert "unpack" in refused(UsageError, "holds no WordNet", open_wordnet, tmp_path / "release.zip").fix


def test_files_that_are_damaged(tmp_path: Path, cache: Path) -> None:
    paths = in_all_forms(tmp_path)
    lines = paths["JSON lines"] / "oewn_lemmas.jsonl.gz"
    lines.write_bytes(lines.read_bytes()[:-20])
    (paths["JSON"] / "noun.all.json").write_text("{")
    paths["WN-LMF"].write_bytes(paths["WN-LMF"].read_bytes()[:-20])
    data = paths["database"] / "data.noun"
    data.write_text(data.read_text().replace(" 01 wolf 0", " ff wolf 0"))
    zipped = tmp_path / "wordnet.zip"
    zipped.write_bytes(b"PK, cut off")
    for path in (*paths.values(), zipped):
        refused(StorageError, "is corrupt|cannot be read|is not JSON", open_wordnet, path)
    assert folders(cache) == []


def test_synsets_that_are_named_and_not_there(tmp_path: Path) -> None:
    folder = write_json(tmp_path / "json")
    text = (folder / "noun.all.json").read_text()
    (folder / "noun.all.json").write_text(text.replace('"pet-n": {', '"pets-n": {'))
    refused(DataError, r"names a synset 'pet-n' that is not there", open_wordnet, folder)
    folder = write_json_lines(tmp_path / "lines")
    synsets = folder / "oewn_synsets.jsonl.gz"
    synsets.write_bytes(synsets.read_bytes() * 2)
    refused(DataError, "synset 'entity-n' occurs twice", open_wordnet, folder)
