"""Stress runs side by side: what may be compared, what the numbers are, and what is said of them."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused
from stressed import LAST_WORD, REVERSED, Reader, painted

from diptych.analysis.perturbations import choose_perturbations
from diptych.core.errors import MismatchError, StorageError, UnknownNameError, UsageError
from diptych.data.language import Language
from diptych.evaluation.stress import StressResult, compare_stress, open_condition, stress
from diptych.evaluation.stress.conditions import Clean

SMALL: dict[str, Any] = {"samples": 20, "flips": 99, "split": "test", "seeds": (0, 1)}
QUICK: dict[str, Any] = {"samples": 50, "flips": 199}
TYPO, BRIGHT = choose_perturbations(["character-swap", "brightness"])


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A reader of letters and one of words; the second was not asked under brightness."""
    folder = tmp_path_factory.mktemp("compare_stress")
    some = [LAST_WORD, REVERSED, TYPO]
    stress(Reader("letters"), painted(), folder / "letters", perturbations=[*some, BRIGHT], **SMALL)
    stress(Reader("words"), painted(), folder / "words", perturbations=some, **SMALL)
    return {name: folder / name for name in ("letters", "words")}


def copied(folders: dict[str, Path], name: str, to: Path) -> dict[str, Path]:
    """The same folders, one of them a copy that may be changed."""
    shutil.copytree(folders[name], to)
    return {**folders, name: to}


def test_the_numbers_are_those_of_queries_held_against_each_other(folders: dict[str, Path]) -> None:
    found = compare_stress(folders, ["rsum", "R@1"], **QUICK)
    assert found.models == ("letters", "words")
    assert found.baseline == "letters"
    assert [(row.name, row.measure) for row in found.rows] == [
        (name, measure) for name in ("last-word", "reversed", "character-swap") for measure in ("rsum", "R@1")
    ]
    for row in found.rows:
        drops = {}
        for name, folder in folders.items():
            result = StressResult.open(folder)
            clean = Clean.open(folder / "clean.npz").values["t2i"][row.measure]
            seeds = [open_condition(folder, row.name, seed) for seed in (0, 1)]
            drops[name] = np.mean([one.values[row.measure] - clean for one in seeds], axis=0)
            own, drop = row.own(name), result.row(row.name).drop(row.measure)
            assert (own.clean, own.difference) == (drop.clean, pytest.approx(drop.difference))
            assert own.relative == (None if drop.relative is None else pytest.approx(drop.relative))
        one = row.differences["words"]
        assert one.difference == pytest.approx(float(np.mean(drops["words"] - drops["letters"])))
        assert (one.condition, one.measure) == (row.name, row.measure)


def test_what_only_one_has_is_listed_and_left_out(folders: dict[str, Path]) -> None:
    found = compare_stress(folders, **QUICK)
    assert found.left_out == {"brightness": "words: not run"}
    assert list(found.measures) == ["rsum", "nDCG_CM@10"]
    assert "nDCG_CM@10 by each model's own similarity: a difference may be one of scale" in found.notes
    assert "Holm over 6 comparisons" in found.method
    assert "differences of two models' drops, paired by query" in found.method
    assert found.protocol["seeds"] == "0, 1"
    assert "encoder" not in found.protocol
    assert found.encoders["words"].startswith("reader of words ")
    assert json.loads(json.dumps(asdict(found)))["baseline"] == "letters"


def test_the_same_call_adds_clean_values_to_an_older_run(folders: dict[str, Path], tmp_path: Path) -> None:
    changed = copied(folders, "words", tmp_path / "w")
    before = (tmp_path / "w" / "clean.npz").read_bytes()
    (tmp_path / "w" / "clean.npz").unlink()
    with pytest.raises(StorageError, match="clean.npz does not exist") as caught:
        compare_stress(changed)
    assert "once more" in caught.value.fix
    stress(Reader("words"), painted(), tmp_path / "w", perturbations=[LAST_WORD, REVERSED, TYPO], **SMALL)
    assert (tmp_path / "w" / "clean.npz").read_bytes() == before
    assert compare_stress(changed, **QUICK) == compare_stress(folders, **QUICK)


def protocol(key: str, value: str) -> Callable[[StressResult], dict[str, Any]]:
    return lambda given: {"protocol": {**given.protocol, key: value}}


def options(given: StressResult) -> dict[str, Any]:
    return {"rows": (*given.rows[:2], dataclasses.replace(given.rows[2], options={"edits": 2}))}


def other_names(given: StressResult) -> dict[str, Any]:
    return {"rows": tuple(dataclasses.replace(row, name=f"my-{row.name}") for row in given.rows)}


def other_mean(given: StressResult) -> dict[str, Any]:
    first = given.rows[0]
    drop = dataclasses.replace(first.drop("R@1"), perturbed=first.drop("R@1").perturbed + 0.25)
    return {"rows": (dataclasses.replace(first, drops={**first.drops, "R@1": drop}), *given.rows[1:])}


def rewrite(folder: Path, change: Callable[[StressResult], dict[str, Any]]) -> None:
    """Change fields of a stored result."""
    given = StressResult.open(folder)
    dataclasses.replace(given, **change(given)).write_header(folder, of=given.key)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (protocol("data", "0123"), MismatchError, r"letters and words cannot be compared: data \w+ and 0123"),
        (protocol("split", "val"), MismatchError, "split test and val"),
        (protocol("compat", "published"), MismatchError, "compat none and published"),
        (protocol("captions asking", "3 over 2"), MismatchError, "captions asking 18 over a gallery of 6"),
        (protocol("seeds", "0"), MismatchError, "seeds 0, 1 and 0"),
        (protocol("seeds", "all"), StorageError, "does not say which seeds it has"),
        (options, MismatchError, "character-swap with edits 1 and with edits 2"),
        (other_names, MismatchError, "no perturbation in common: last-word, .* and my-last-word"),
        (other_mean, StorageError, "last-word has R@1 .* they are of different runs"),
    ],
)
def test_mismatches(
    change: Callable[[StressResult], dict[str, Any]],
    error: type[Exception],
    message: str,
    folders: dict[str, Path],
    tmp_path: Path,
) -> None:
    changed = copied(folders, "words", tmp_path / "w")
    rewrite(tmp_path / "w", change)
    with pytest.raises(error, match=message) as caught:
        compare_stress(changed)
    assert getattr(caught.value, "fix", "")


class Halves:
    """A tagger to whom every second word is a noun, from the first or the second on."""

    def __init__(self, first: int) -> None:
        self.name, self.fingerprint, self._first = "halves", f"halves {first}", first

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        return [
            ["NN" if (place + self._first) % 2 == 0 else "VB" for place in range(len(words))]
            for words in sentences
        ]


def tagged_run(folder: Path, first: int, *which: str) -> Path:
    language = Language(f"halves {first}", tagger=Halves(first))
    stress(
        Reader("words"),
        painted(),
        folder,
        perturbations=choose_perturbations(list(which)),
        language=language,
        **SMALL,
    )
    return folder


def test_another_language_matters_where_it_makes_other_queries(tmp_path: Path) -> None:
    nouns = "shuffle-nouns-and-adjectives"
    one = tagged_run(tmp_path / "a", 0, nouns, "shuffle-all-words")
    other = tagged_run(tmp_path / "b", 1, nouns, "shuffle-all-words")
    with pytest.raises(MismatchError, match=f"{nouns}, seed 0, made other queries") as caught:
        compare_stress({"a": one, "b": other})
    assert "by language " in caught.value.message
    same = tagged_run(tmp_path / "c", 1, "shuffle-all-words")
    found = compare_stress({"a": one, "c": same}, **QUICK)
    assert [row.name for row in found.of("rsum")] == ["shuffle-all-words"]
    assert any(note.startswith("languages differ, the changed queries do not: a ") for note in found.notes)


def test_gains_of_other_models(folders: dict[str, Path], tmp_path: Path) -> None:
    changed = copied(folders, "words", tmp_path / "w")
    rewrite(tmp_path / "w", protocol("gain of DCG_CM", "similarity to the clean query by another"))
    found = compare_stress(changed, **QUICK)
    assert list(found.measures) == ["rsum"]
    assert found.notes[0].startswith(
        "left out nDCG_CM@10: gain of DCG_CM is the encoder's own similarity and"
    )
    refused(MismatchError, "cannot be compared by nDCG_CM@10", compare_stress, changed, ["nDCG_CM@10"])


def test_bad_input(folders: dict[str, Path], tmp_path: Path) -> None:
    refused(UsageError, "1 stress run: at least two", compare_stress, {"letters": folders["letters"]})
    refused(UsageError, "baseline 2 of 2 runs", compare_stress, folders, baseline=2)
    error = refused(UsageError, "letters was not stressed by MRR", compare_stress, folders, ["MRR"])
    assert "--measure MRR" in error.fix
    refused(UnknownNameError, "unknown correction 'sidak'", compare_stress, folders, correction="sidak")
    refused(StorageError, "holds no stress", compare_stress, {**folders, "none": tmp_path})
    changed = copied(folders, "words", tmp_path / "w")
    shutil.copy(folders["letters"] / "clean.npz", tmp_path / "w" / "clean.npz")
    refused(StorageError, "was made from other inputs", compare_stress, changed)
