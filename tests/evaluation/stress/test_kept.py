"""What a stress run keeps: what is opened, what is made again, and after a kill."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refused
from stressed import LAST_WORD, REVERSED, Reader, Tags, painted

from diptych.analysis.perturbations import choose_perturbations
from diptych.core.context import stop_when
from diptych.core.errors import Interrupted, StorageError
from diptych.data.language import Language
from diptych.evaluation.stress import StressResult, open_condition, stress

SMALL: dict[str, Any] = {"samples": 50, "flips": 99, "split": "test"}
PICTURES = choose_perturbations(["brightness", "occlusion"])


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_kill_at_any_moment_loses_nothing_finished(tmp_path: Path) -> None:
    some: dict[str, Any] = {"perturbations": [LAST_WORD, REVERSED, PICTURES[0]], "seeds": (0, 1), **SMALL}
    whole = stress(Reader("letters"), painted(), tmp_path / "whole", **some)
    files = files_of(tmp_path / "whole")
    for stops in (1, 2, 4, 6):
        asked = iter(range(stops))
        broken = tmp_path / str(stops)
        with pytest.raises(Interrupted), stop_when(lambda asked=asked: next(asked, None) is None):
            stress(Reader("letters"), painted(), broken, **some)
        refused(StorageError, "holds no stress", StressResult.open, broken)
        kept = files_of(broken)
        assert stress(Reader("letters"), painted(), broken, **some) == whole
        assert files_of(broken) == files
        assert all(files[name] == kept[name] for name in kept if name.startswith("conditions"))


def test_what_is_finished_is_opened(tmp_path: Path) -> None:
    some: dict[str, Any] = {"perturbations": [LAST_WORD, *PICTURES], **SMALL}
    first = stress(Reader("letters"), painted(), tmp_path / "out", **some)
    encoder = Reader("letters")
    assert stress(encoder, painted(), tmp_path / "out", **some) == first
    assert (encoder.texts, encoder.pictures) == ({}, 0)
    # one perturbation more: only that one is made
    more = stress(encoder, painted(), tmp_path / "out", **{**some, "perturbations": [LAST_WORD, REVERSED]})
    assert [row.name for row in more.rows] == ["last-word", "reversed"]
    assert sum(encoder.texts.values()) == 18
    # another encoder: nothing of the first is taken
    other = Reader("words")
    stress(other, painted(), tmp_path / "out", **some)
    assert sum(other.texts.values()) > 18


@pytest.mark.parametrize("result", ["kept", "damaged"])
def test_what_is_damaged_or_missing_is_made_again(tmp_path: Path, result: str) -> None:
    some: dict[str, Any] = {"perturbations": [LAST_WORD], "seeds": (0, 1), **SMALL}
    out = tmp_path / "out"
    first = stress(Reader("letters"), painted(), out, **some)
    assert not first.opened
    files = files_of(out)
    (out / "conditions" / "units" / "last-word-0" / "arrays.npz").write_bytes(b"PK\x03\x04 damaged")
    (out / "conditions" / "units" / "last-word-1" / "texts.jsonl.gz").unlink()
    if result == "damaged":
        (out / "stress.json").write_text("{")
    again = stress(Reader("letters"), painted(), out, **some)
    assert again == first
    assert again.opened is (result == "kept")
    assert files_of(out) == files


def test_another_version_of_a_perturbation_is_another_experiment(tmp_path: Path) -> None:
    encoder = Reader("letters")
    some: dict[str, Any] = {"seeds": (0,), **SMALL}
    stress(encoder, painted(), tmp_path / "out", perturbations=[LAST_WORD, REVERSED], **some)
    before = encoder.texts.total()
    forth = dataclasses.replace(REVERSED, version=2, apply=lambda caption, draws, options: caption.text[::-1])
    found = stress(encoder, painted(), tmp_path / "out", perturbations=[LAST_WORD, forth], **some)
    assert not found.opened
    assert encoder.texts.total() == before + 18  # the changed one's, and nothing of the other
    texts = gzip.decompress(
        (tmp_path / "out" / "conditions" / "units" / "reversed-0" / "texts.jsonl.gz").read_bytes()
    ).decode()
    assert [json.loads(line)["text"] for line in texts.splitlines()] == [
        text[::-1] for text in painted().split("test").captions
    ]


def test_other_questions_in_one_folder_are_other_results(tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = dataclasses.replace(REVERSED, published=lambda caption, seed, options: caption.text.upper())

    def run(**changes: Any) -> StressResult:
        options: dict[str, Any] = {"perturbations": [asked], "seeds": (42,), **SMALL, **changes}
        return stress(Reader("letters"), painted(), out, **options)

    first, content = run(), open_condition(out, "reversed", 42).content
    assert run(compat="published").key != first.key
    assert open_condition(out, "reversed", 42).content != content
    few = run(measures=["R@1"])
    assert (list(few.measures), few.opened) == (["R@1"], False)
    assert run(measures=["R@1"]).opened
    assert run() == first  # more measures than the conditions there hold
    other = run(measures=["R@1"], samples=20, flips=50)
    assert not other.opened
    assert "20 resamples" in other.method
    assert "50 random swaps" in other.method


def test_another_language_is_another_experiment_where_it_is_asked(tmp_path: Path) -> None:
    from diptych.data.language.open import open_language

    wordnet = open_language("scenes").wordnet

    class Renamed:
        """The same words under another fingerprint."""

        fingerprint = "another"

        def __getattr__(self, name: str) -> Any:
            return getattr(wordnet, name)

    other = Tags()
    other.fingerprint = "another"  # type: ignore[misc]
    names, keys = ("synonym-noun", "shuffle-nouns-and-adjectives", "character-swap"), []
    for tagger, given in ((Tags(), wordnet), (Tags(), Renamed()), (other, wordnet)):
        language = Language("by hand", tagger=tagger, wordnet=given)  # type: ignore[arg-type]
        asked: dict[str, Any] = {"perturbations": choose_perturbations(list(names)), "language": language}
        stress(Reader(), painted(), tmp_path / "out", seeds=(0,), **asked, **SMALL)
        keys.append([open_condition(tmp_path / "out", name, 0).key for name in names])
    first, words, tags = keys
    assert [one == another for one, another in zip(first, words, strict=True)] == [False, True, True]
    assert [one == another for one, another in zip(first, tags, strict=True)] == [False, False, True]
