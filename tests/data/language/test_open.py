from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refused
from tiny_tagger import write_tagger
from tiny_wordnet import write_database, write_json_lines

from diptych.core.errors import UnknownNameError, UsageError
from diptych.data.collection import Collection
from diptych.data.language.nltk_tagger import TAGGER
from diptych.data.language.open import LANGUAGES, find_resources, is_of_scenes, open_language
from diptych.data.scenes import read_scenes


@pytest.fixture(autouse=True)
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


def test_nothing_is_there() -> None:
    language = open_language()
    assert language.line() == "nltk: nothing"
    caught = refused(UsageError, "a test needs a part-of-speech tagger", language.need_tagger, "a test")
    assert caught.fix == "python -m nltk.downloader averaged_perceptron_tagger_eng wordnet"
    refused(UsageError, "a test needs a WordNet", language.need_wordnet, "a test")


def test_nltk_data_in_its_search_path(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nltk.data.path", ["/no/such/folder", str(data)])
    language = open_language()
    assert language.tagger is not None
    assert "WordNet 3.0" in language.line()
    monkeypatch.setattr("nltk.data.path", [])
    monkeypatch.setenv("NLTK_DATA", f"/no/such/folder:{data}")
    assert open_language("nltk").line() == language.line()


def test_a_wordnet_that_is_named_goes(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, other = write_json_lines(tmp_path / "lines"), write_database(tmp_path / "other")
    monkeypatch.setenv("DIPTYCH_WORDNET", str(ours))
    titles = [
        open_language(nltk_data=data, wordnet=named).need_wordnet("this").name[:12] for named in (None, other)
    ]
    assert titles == ["Open English", "WordNet 3.0 "]


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
