"""One tiny WordNet in every form in which one is passed on: the same looked-up answers, and NLTK's."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from tiny_tagger import write_tagger
from tiny_wordnet import SYNSETS, in_all_forms, write_database, write_json_lines

from diptych.core.errors import DataError, StorageError, UnknownNameError, UsageError
from diptych.data.collection import Collection
from diptych.data.language import PartOfSpeech, Synset, WordNet
from diptych.data.language.nltk_tagger import TAGGER
from diptych.data.language.open import LANGUAGES, find_resources, is_of_scenes, open_language, open_wordnet
from diptych.data.scenes import read_scenes

FORMS_OF_WORDS: list[tuple[str, PartOfSpeech, list[str]]] = [
    *(("dogs", "noun", ["dog"]), ("Wolves", "noun", ["wolf"]), ("Paris", "noun", ["paris"])),
    *(("cities", "noun", ["city"]), ("dogs", "verb", ["dog"]), ("reddish", "adjective", ["reddish"])),
    *(("redder", "adjective", ["red"]), ("cat", "noun", []), ("", "noun", []), ("🙂", "noun", [])),
]


def words(net: WordNet, synsets: Sequence[str]) -> list[list[str]]:
    return [list(net.lemmas(synset)) for synset in synsets]


def test_every_form_gives_the_same_answers(tmp_path: Path) -> None:
    for form, path in in_all_forms(tmp_path).items():
        if form == "WN-LMF":
            pytest.importorskip("wn")
        net = open_wordnet(path)
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
        assert (net.lemmas(red), *map(list, map(net.hypernyms, (red, entity)))) == (
            ["red", "reddish"],
            [],
            [],
        )
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


def test_files_that_are_corrupt(tmp_path: Path) -> None:
    for form, path in in_all_forms(tmp_path).items():
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


def net_above(above: Sequence[Sequence[int]]) -> WordNet:
    names = [[str(other) for other in others] for others in above]
    return WordNet("made", "content", [Synset(str(one), "noun", (), up) for one, up in enumerate(names)])


def depths(above: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    net = net_above(above)
    return [net.depth(str(one)) for one in range(len(above))]


def all_ways(above: Sequence[Sequence[int]], thing: int) -> list[int]:
    """The length of every way to a root, one by one."""
    if not above[thing]:
        return [0]
    return [1 + way for other in above[thing] for way in all_ways(above, other)]


@st.composite
def hierarchies(draw: st.DrawFn) -> list[list[int]]:
    """Things that lie above each other in one direction only, numbered in any order."""
    n = draw(st.integers(0, 7))
    order = draw(st.permutations(range(n)))
    above: list[list[int]] = [[] for _ in range(n)]
    for place, thing in enumerate(order):
        above[thing] = [other for other in order[:place] if draw(st.booleans())]
    return above


@given(hierarchies())
def test_the_shortest_and_the_longest_of_all_ways(above: list[list[int]]) -> None:
    found = depths(above)
    for thing in range(len(above)):
        ways = all_ways(above, thing)
        assert found[thing] == (min(ways), max(ways))


def test_depths_of_cycles_and_chains() -> None:
    for above in ([[0]], [[1], [0]], [[1], [2], [0, 3], []]):
        found = depths(above)
        assert all(low <= high < len(above) for low, high in found)
    n = 20_000
    assert net_above([[row + 1] for row in range(n - 1)] + [[]]).depth("0") == (n - 1, n - 1)


LEMMAS = {
    "noun": "dog box church dish fly fireman wolf leaf leave potato quiz knife bus hand hands glass glasses",
    "verb": "run rid ride try stop jump make die dye tie lie do",
    "adjective": "big large happy red good fine tall",
    "adverb": "well",
}


NET = WordNet(
    "made",
    "content",
    [Synset(part, part, lemmas.split()) for part, lemmas in LEMMAS.items()],  # type: ignore[arg-type]
)


def test_forms() -> None:
    for word, part, lemmas in (
        *(("dogs", "noun", ["dog"]), ("Dogs", "noun", ["dog"]), ("dog", "noun", ["dog"])),
        *(("boxes", "noun", ["box"]), ("churches", "noun", ["church"]), ("dishes", "noun", ["dish"])),
        *(("flies", "noun", ["fly"]), ("firemen", "noun", ["fireman"]), ("buses", "noun", ["bus"])),
        *(("knives", "noun", ["knife"]), ("leaves", "noun", ["leaf", "leave"])),
        *(("potatoes", "noun", ["potato"]), ("quizzes", "noun", ["quiz"])),
        *(("hands", "noun", ["hand", "hands"]), ("glasses", "noun", ["glasses", "glass"])),
        *(("cats", "noun", []), ("s", "noun", []), ("", "noun", [])),
        *(("rides", "verb", ["ride", "rid"]), ("running", "verb", ["run"])),
        *(("stopped", "verb", ["stop"]), ("tried", "verb", ["try"]), ("made", "verb", ["make"])),
        *(("lying", "verb", ["lie"]), ("goes", "verb", []), ("does", "verb", ["do"])),
        *(("bigger", "adjective", ["big"]), ("largest", "adjective", ["large"])),
        *(("happiest", "adjective", ["happy"]), ("reddest", "adjective", ["red"])),
        *(("finer", "adjective", ["fine"]), ("taller", "adjective", ["tall"])),
        *(("best", "adjective", ["good"]), ("best", "adverb", ["well"]), ("dogs", "verb", [])),
    ):
        assert NET.base_forms(word, part) == lemmas


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine is found."""
    monkeypatch.setattr(pytest.importorskip("nltk.data"), "path", [])
    monkeypatch.delenv("NLTK_DATA", raising=False)
    monkeypatch.delenv("DIPTYCH_WORDNET", raising=False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of NLTK data with a tagger and a WordNet."""
    write_database(tmp_path / "nltk_data" / "corpora" / "wordnet")
    return write_tagger(tmp_path / "nltk_data")


def test_scenes_have_their_own_language(scenes_folder: Path) -> None:
    scenes: Collection = read_scenes(scenes_folder)
    language = open_language(collection=scenes.split("test"))
    assert language.line() == f"scenes: scenes tagger, {language.need_wordnet('this').name}"
    assert open_language("scenes").line() == language.line()
    assert not is_of_scenes(None)
    assert not is_of_scenes(replace(scenes, records=None))
    assert not is_of_scenes(replace(scenes, caption_records=[{}] * scenes.n_captions))


@pytest.mark.usefixtures("nowhere")
def test_nothing_is_there() -> None:
    language = open_language()
    assert language.line() == "nltk: nothing"
    caught = refused(UsageError, "a test needs a part-of-speech tagger", language.need_tagger, "a test")
    assert caught.fix == "python -m nltk.downloader averaged_perceptron_tagger_eng wordnet"
    refused(UsageError, "a test needs a WordNet", language.need_wordnet, "a test")


@pytest.mark.usefixtures("nowhere")
def test_nltk_data_in_its_search_path(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nltk.data.path", ["/no/such/folder", str(data)])
    language = open_language()
    assert language.tagger is not None
    assert "WordNet 3.0" in language.line()
    monkeypatch.setattr("nltk.data.path", [])
    monkeypatch.setenv("NLTK_DATA", f"/no/such/folder:{data}")
    assert open_language("nltk").line() == language.line()


@pytest.mark.usefixtures("nowhere")
def test_a_named_path_must_be_there_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(UsageError, "holds no taggers", open_language, nltk_data=tmp_path)
    refused(UsageError, "holds no WordNet", open_language, wordnet=tmp_path)
    monkeypatch.setenv("DIPTYCH_WORDNET", str(tmp_path / "gone"))
    refused(UsageError, "gone does not exist", open_language)
    caught = refused(UnknownNameError, "unknown language 'nlkt'", open_language, "nlkt")
    assert caught.known == sorted(LANGUAGES)
    states = {row["name"]: row["state"] for row in find_resources(tmp_path, tmp_path)}
    assert states == {"language of scenes": "there", "tagger": "missing", "WordNet": "missing"}
    data, net = write_tagger(tmp_path / "data"), write_json_lines(tmp_path / "lines")
    (data / TAGGER / "averaged_perceptron_tagger_eng.classes.json").unlink()
    (net / "oewn_lemmas.jsonl.gz").write_text("[")
    assert [row["state"] for row in find_resources(net, data)][1:] == ["corrupt", "corrupt"]
