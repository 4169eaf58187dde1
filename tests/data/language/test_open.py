from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refused
from tiny_tagger import write_tagger
from tiny_wordnet import write_database, write_json, write_json_lines

from diptych.core.errors import UnknownNameError, UsageError
from diptych.data.collection import Collection
from diptych.data.language.nltk_tagger import TAGGER
from diptych.data.language.open import LANGUAGES, is_of_scenes, open_language
from diptych.data.language.resources import Resource, Resources, find_resources
from diptych.data.scenes import read_scenes


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine is found."""
    monkeypatch.setattr(pytest.importorskip("nltk.data"), "path", [])
    monkeypatch.delenv("NLTK_DATA", raising=False)
    monkeypatch.delenv("DIPTYCH_WORDNET", raising=False)


@pytest.fixture(scope="module")
def scenes(scenes_folder: Path) -> Collection:
    return read_scenes(scenes_folder)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of NLTK data with a tagger and a WordNet."""
    write_database(tmp_path / "nltk_data" / "corpora" / "wordnet")
    return write_tagger(tmp_path / "nltk_data")


def test_scenes_have_their_own_language(scenes: Collection) -> None:
    language = open_language(collection=scenes.split("test"))
    assert language.name == "scenes"
    assert language.line() == f"scenes: scenes tagger, {language.need_wordnet('this').name}"
    assert open_language("scenes").line() == language.line()
    assert not is_of_scenes(None)
    assert not is_of_scenes(replace(scenes, records=None))
    assert not is_of_scenes(replace(scenes, caption_records=[{}] * scenes.n_captions))


def test_nothing_is_there() -> None:
    language = open_language()
    assert language.line() == "nltk: nothing"
    caught = refused(UsageError, "a test needs a part-of-speech tagger", language.need_tagger, "a test")
    assert caught.fix == "python -m nltk.downloader averaged_perceptron_tagger_eng wordnet"
    refused(UsageError, "a test needs a WordNet", language.need_wordnet, "a test")


def test_nltk_data_in_its_search_path(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nltk.data.path", ["/no/such/folder", str(data)])
    language = open_language()
    assert [type(part).__name__ for part in (language.tagger, language.wordnet)] == [
        "NltkTagger",
        "TableWordNet",
    ]
    assert "WordNet 3.0" in language.line()
    monkeypatch.setattr("nltk.data.path", [])
    monkeypatch.setenv("NLTK_DATA", f"/no/such/folder:{data}")
    assert open_language("nltk").line() == language.line()


def test_a_wordnet_that_is_named_goes(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, environments = write_json(tmp_path / "json"), write_json_lines(tmp_path / "lines")
    nltks = open_language(nltk_data=data).need_wordnet("this").name
    monkeypatch.setenv("DIPTYCH_WORDNET", str(environments))
    from_environment = open_language(nltk_data=data).need_wordnet("this").name
    named = open_language(nltk_data=data, wordnet=ours).need_wordnet("this").name
    assert nltks.startswith("WordNet 3.0")
    assert from_environment.startswith("Open English WordNet")
    assert named.startswith("Open English WordNet")
    assert named != from_environment


def test_one_part_without_the_other(tmp_path: Path) -> None:
    language = open_language(nltk_data=write_tagger(tmp_path / "tagger"))
    assert language.wordnet is None
    assert "DIPTYCH_WORDNET" in language.missing
    assert language.line() == f"nltk: {language.need_tagger('this').name}"
    write_database(tmp_path / "corpora" / "wordnet")
    language = open_language(nltk_data=tmp_path)
    assert language.tagger is None
    assert "WordNet 3.0" in language.line()
    assert language.missing.startswith("python -m nltk.downloader")


def test_what_was_named_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(UsageError, "holds no taggers", open_language, nltk_data=tmp_path)
    refused(UsageError, "holds no WordNet", open_language, wordnet=tmp_path)
    monkeypatch.setenv("DIPTYCH_WORDNET", str(tmp_path / "gone"))
    refused(UsageError, "gone does not exist", open_language)
    caught = refused(UnknownNameError, "unknown language 'nlkt'", open_language, "nlkt")
    assert "'nltk'" in caught.fix
    assert caught.known == sorted(LANGUAGES)


def by_name(found: Resources) -> dict[str, Resource]:
    return {row.name: row for row in found.rows}


def test_what_was_named_and_is_not_there_or_damaged(tmp_path: Path) -> None:
    rows = by_name(find_resources(tmp_path, tmp_path))
    assert (rows["tagger"].state, rows["WordNet"].state) == ("missing", "missing")
    assert rows["tagger"].what == f"{tmp_path} holds no {TAGGER}"
    data, net = write_tagger(tmp_path / "data"), write_json(tmp_path / "json")
    (data / TAGGER / "averaged_perceptron_tagger_eng.classes.json").unlink()
    (net / "entries-d.json").write_text("[")
    found = find_resources(net, data)
    assert [row.state for row in found.missing] == ["damaged", "damaged"]
    assert all(row.fix and row.path and row.size == 0 for row in found.missing)
