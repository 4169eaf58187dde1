"""``diptych resources``: what is there, what is missing and how to get it, and a check of what is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command
from tiny_tagger import write_tagger
from tiny_wordnet import write_json


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytest.importorskip("nltk.data"), "path", [])
    monkeypatch.delenv("NLTK_DATA", raising=False)
    monkeypatch.delenv("DIPTYCH_WORDNET", raising=False)


def test_all_is_there_and_checked(diptych: Command, tmp_path: Path) -> None:
    net, data = write_json(tmp_path / "json"), write_tagger(tmp_path / "data")
    done = diptych(
        "resources", "--wordnet", net, "--nltk-data", data, "--check", "--out", tmp_path / "found.json"
    )
    assert done.code == 0, done.err
    assert "14 synsets, 19 lemmas" in done.out
    assert f"WordNet: {net}" in done.out
    assert "the tagger: Two/CD young/NNS" in done.out
    assert "dogs → dog, 2 senses; the usual one is dog-n (dog, domestic dog, Canis familiaris)" in done.out
    assert "a kind of canine or canid and of pet, 3 to 4 steps below the top" in done.out
    assert f"next: diptych perturb DATASET --wordnet {net} --nltk-data {data}" in done.out
    assert "to get" not in done.out
    rows = json.loads((tmp_path / "found.json").read_text())["resources"]
    assert {row["name"]: row["state"] for row in rows} == {
        name: "there" for name in ("NLTK", "tagger", "WordNet", "language of scenes")
    }


def test_what_is_missing_and_how_to_get_it(diptych: Command) -> None:
    done = diptych("resources")
    assert done.code == 0, done.err
    assert "looked in: no folder" in done.out
    assert "to get tagger: python -m nltk.downloader averaged_perceptron_tagger_eng wordnet" in done.out
    assert "or name Open English WordNet (https://en-word.net) with --wordnet or DIPTYCH_WORDNET" in done.out
    assert "language of scenes" in done.out
    assert "next: diptych resources --check" in done.out


def test_a_check_that_cannot_be_made_exits_1(diptych: Command, tmp_path: Path) -> None:
    done = diptych("resources", "--check", "--nltk-data", tmp_path)
    assert done.code == 1
    assert f"{tmp_path} holds no taggers" in done.out
    assert "the tagger: cannot be checked" in done.out
    assert "the WordNet: cannot be checked" in done.out


def test_a_wordnet_without_dogs(diptych: Command, tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "entries-a.json").write_text('{"ape": {"n": {"sense": [{"synset": "ape-n"}]}}}')
    (tmp_path / "net" / "noun.all.json").write_text('{"ape-n": {"partOfSpeech": "n", "members": ["ape"]}}')
    data = write_tagger(tmp_path / "data")
    done = diptych("resources", "--check", "--wordnet", tmp_path / "net", "--nltk-data", data)
    assert done.code == 0, done.err
    assert "1 synsets, 1 lemmas" in done.out
    assert "the WordNet: does not know 'dogs'" in done.out


def test_help_has_an_example(diptych: Command) -> None:
    done = diptych("resources", "--help")
    assert done.code == 0
    assert "diptych resources --check" in done.out


def test_info_names_nltk(diptych: Command) -> None:
    assert "nltk" in diptych("info").out
