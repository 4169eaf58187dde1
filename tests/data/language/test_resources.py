"""What of a language is there, missing or damaged: said, not raised."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest
from tiny_tagger import write_tagger
from tiny_wordnet import write_json

from diptych.data.language.nltk_tagger import TAGGER
from diptych.data.language.resources import Resource, Resources, find_resources


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytest.importorskip("nltk.data"), "path", ["/no/such/folder"])
    monkeypatch.delenv("NLTK_DATA", raising=False)
    monkeypatch.delenv("DIPTYCH_WORDNET", raising=False)


def by_name(found: Resources) -> dict[str, Resource]:
    return {row.name: row for row in found.rows}


def test_all_is_there(tmp_path: Path) -> None:
    net = write_json(tmp_path / "json")
    found = find_resources(net, write_tagger(tmp_path / "data"))
    rows = by_name(found)
    assert not found.missing
    assert rows["NLTK"].what == metadata.version("nltk")
    assert rows["tagger"].path == str(tmp_path / "data" / TAGGER)
    assert rows["tagger"].size == sum(file.stat().st_size for file in (tmp_path / "data" / TAGGER).iterdir())
    assert rows["WordNet"].size == sum(file.stat().st_size for file in net.iterdir())
    assert ": 14 synsets, 19 lemmas (JSON, named)" in rows["WordNet"].what
    assert found.tagger is not None
    assert found.wordnet is not None


def test_nothing_is_there_but_the_language_of_scenes() -> None:
    found = find_resources()
    rows = by_name(found)
    assert [row.name for row in found.missing] == ["tagger", "WordNet"]
    assert found.folders == (Path("/no/such/folder"),)
    assert rows["tagger"].fix == "python -m nltk.downloader averaged_perceptron_tagger_eng wordnet"
    assert "en-word.net" in rows["WordNet"].fix
    assert rows["language of scenes"].state == "there"
    assert (found.tagger, found.wordnet) == (None, None)


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


def test_nltk_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("diptych.data.language.resources.metadata.version", none)
    found = find_resources(nltk_data=write_tagger(tmp_path))
    assert by_name(found)["NLTK"].fix == "pip install 'diptych[language]'"
    assert by_name(found)["tagger"].state == "there"
    assert found.tagger is None
