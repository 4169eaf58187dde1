"""The stress run: what is encoded, what is kept, what goes on, and what the numbers are."""

from __future__ import annotations

import dataclasses
import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from stressed import LAST_WORD, REVERSED, Reader, painted

from diptych.analysis.perturbations import choose_perturbations, perturb_captions
from diptych.core.context import stop_when
from diptych.core.errors import Interrupted, MismatchError, StorageError, UnknownNameError, UsageError
from diptych.evaluation import evaluate
from diptych.evaluation.stress import StressResult, compare_stress, open_condition, stress
from diptych.evaluation.stress.conditions import Clean
from diptych.evaluation.stress.summary import CHANGE_GROUPS, jaccard
from diptych.metrics import GroundTruth

SMALL: dict[str, Any] = {"samples": 50, "flips": 99, "split": "test"}
PICTURES = choose_perturbations(["brightness", "occlusion"])


def test_a_bag_of_words_is_exactly_indifferent_to_order(tmp_path: Path) -> None:
    shuffles = choose_perturbations(["shuffle-all-words"])
    encoder = Reader("words", noise=2e-8)
    found = stress(encoder, painted(), tmp_path / "out", perturbations=[*shuffles, REVERSED], **SMALL)
    assert sum(encoder.texts.values()) > 18  # it was asked, and its rows differ in their last digits
    for name in ("shuffle-all-words", "reversed"):
        row = found.row(name)
        assert sum(row.changed) > 0
        assert list(row.same) == list(row.changed)
        assert row.same_share == 1.0
        for measure in found.measures:
            drop = row.drop(measure)
            assert drop.difference == 0.0
            assert (drop.low, drop.high) == (0.0, 0.0)
            assert drop.corrected == drop.p == 1.0
            assert drop.perturbed == drop.clean
        assert row.preference is not None
        assert (row.preference.share, row.preference.ties, row.preference.corrected) == (0.5, 1.0, 1.0)
        assert row.examples == ()
        assert dict(row.sizes) == {"decreased": 0.0, "increased": 0.0, "unchanged": 1.0}


def slow_recall(rows: np.ndarray, gallery: np.ndarray, home: np.ndarray, k: int) -> np.ndarray:
    scores = rows.astype(np.float64) @ gallery.astype(np.float64).T
    own = scores[np.arange(len(rows)), home]
    return np.sum(scores > own[:, None], axis=1) < k


def test_values_are_those_of_everything_encoded_and_ranked_anew(tmp_path: Path) -> None:
    encoder, part = Reader("letters"), painted().split("test")
    found = stress(encoder, painted(), tmp_path / "out", perturbations=[LAST_WORD], seeds=(3,), **SMALL)
    condition = open_condition(tmp_path / "out", "last-word", 3)
    perturbed = perturb_captions(LAST_WORD, part.captions, part.caption_ids, seed=3)
    assert 0 < perturbed.n_changed < part.n_captions
    assert np.array_equal(condition.changed, perturbed.changed)
    assert condition.reasons == {"the last word is short": part.n_captions - perturbed.n_changed}
    images = encoder.encode_images(part.images())
    for k in (1, 5):
        for captions, values in ((part.captions, None), (perturbed.texts, condition.values[f"R@{k}"])):
            rows = encoder.encode_texts(list(captions))
            expected = slow_recall(rows, images, part.caption_image, k)
            if values is None:
                assert found.clean["t2i"][f"R@{k}"] == pytest.approx(expected.mean())
            else:
                assert np.array_equal(values, expected)
                assert found.row("last-word").drop(f"R@{k}").perturbed == pytest.approx(expected.mean())
    truth = GroundTruth.from_caption_image(part.caption_image, part.n_images)
    rows = encoder.encode_texts(perturbed.texts)
    again = evaluate(images, rows, truth, ["R@1", "R@5", "R@10", "DCG_CM@10"])
    assert np.allclose(condition.values["DCG_CM@10"], again.per_query["t2i"]["DCG_CM@10"], atol=1e-6)
    total = sum(100 * again.value(f"R@{k}", "t2i") for k in (1, 5, 10))
    assert found.row("last-word").drop("rsum").perturbed == pytest.approx(total)
    assert np.array_equal(condition.rank, again.ranks["t2i"])
    own = np.sum(images[part.caption_image] * encoder.encode_texts(list(part.captions)), axis=1)
    now = np.sum(images[part.caption_image] * rows, axis=1)
    assert np.array_equal(condition.preference[condition.changed], (own > now)[condition.changed])
    assert np.isnan(condition.preference[~condition.changed]).all()


def test_only_what_changed_is_encoded_and_every_text_once(tmp_path: Path) -> None:
    encoder, part = Reader("letters"), painted().split("test")
    stress(encoder, painted(), tmp_path / "out", perturbations=[LAST_WORD], seeds=(0,), **SMALL)
    perturbed = perturb_captions(LAST_WORD, part.captions, part.caption_ids, seed=0)
    changed = {text for text, is_new in zip(perturbed.texts, perturbed.changed, strict=True) if is_new}
    assert encoder.texts == {**dict.fromkeys(part.captions, 1), **dict.fromkeys(changed, 1)}
    assert encoder.pictures == 6


def test_drops_over_what_was_changed_alone(tmp_path: Path) -> None:
    perturbations = [LAST_WORD, *choose_perturbations(["letter-change"])]
    found = stress(Reader("letters"), painted(), tmp_path / "out", perturbations=perturbations, **SMALL)
    part, encoder = painted().split("test"), Reader("letters")
    rows, images = encoder.encode_texts(list(part.captions)), encoder.encode_images(part.images())
    clean = slow_recall(rows, images, part.caption_image, 1).astype(float)
    for row in found.rows:
        assert 0 < row.changed_share < 1
        seeds = [open_condition(tmp_path / "out", row.name, seed) for seed in range(3)]
        before = np.concatenate([clean[one.changed] for one in seeds])
        after = np.concatenate([one.values["R@1"][one.changed] for one in seeds])
        drop = row.changed_drops["R@1"]
        assert drop.clean == pytest.approx(before.mean())
        assert drop.perturbed == pytest.approx(after.mean())
        assert drop.difference * row.changed_share == pytest.approx(row.drop("R@1").difference)
    assert any(row.changed_drops["rsum"].difference != 0 for row in found.rows)


def test_what_needs_a_language_is_left_out_or_refused(tmp_path: Path) -> None:
    asked = choose_perturbations(["typos", "synonym-noun", "distraction"])
    found = stress(Reader(), painted(), tmp_path / "out", perturbations=asked, seeds=(0,), **SMALL)
    assert set(found.left_out) == {"synonym-noun"}
    assert "WordNet" in found.left_out["synonym-noun"] or "tagger" in found.left_out["synonym-noun"]
    assert "diptych data resources" in found.left_out["synonym-noun"]
    assert "synonym-noun" not in [row.name for row in found.rows]
    with pytest.raises(UsageError, match="synonym-noun needs a"):
        stress(Reader(), painted(), tmp_path / "b", perturbations=asked, required=["synonym-noun"], **SMALL)
    with pytest.raises(UsageError, match="none of 1 perturbations can be run"):
        stress(
            Reader(), painted(), tmp_path / "b", perturbations=choose_perturbations(["synonym-noun"]), **SMALL
        )
    assert not (tmp_path / "b").exists()


def test_a_relevance_model_sees_the_clean_query_and_published_the_changed_one(tmp_path: Path) -> None:
    def published(caption: Any, seed: int, options: Any) -> str:
        return " ".join(word.text for word in caption.words[::-1])

    both = dataclasses.replace(REVERSED, published=published)
    some: dict[str, Any] = {"perturbations": [both], "relevance": Reader("letters"), **SMALL}
    some["measures"] = ["rsum", "DCG_CM@10"]
    # The stressed model is blind to order, so its ranking stays; the relevance model is not.
    clean = stress(Reader("words"), painted(), tmp_path / "clean", **some)
    assert clean.row("reversed").drop("DCG_CM@10").difference == 0.0
    changed = stress(Reader("words"), painted(), tmp_path / "published", compat="published", **some)
    assert changed.row("reversed").drop("rsum").difference == 0.0
    assert changed.row("reversed").drop("DCG_CM@10").difference != 0.0
    assert "to the clean query by reader of letters" in clean.protocol["gain of DCG_CM"]
    assert "to the changed query by reader of letters" in changed.protocol["gain of DCG_CM"]
    assert (changed.protocol["seeds"], changed.protocol["compat"]) == ("42", "published")
    own = stress(Reader("words"), painted(), tmp_path / "own", **{**some, "relevance": None})
    assert own.clean["t2i"]["DCG_CM@10"] != clean.clean["t2i"]["DCG_CM@10"]
    with pytest.raises(UsageError, match="last-word has no published form"):
        stress(Reader(), painted(), tmp_path / "x", perturbations=[LAST_WORD], compat="published", **SMALL)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"perturbations": []}, UsageError, "no perturbation was asked for"),
        ({"seeds": ()}, UsageError, r"seeds are \[\]"),
        ({"seeds": (1, 1)}, UsageError, r"seeds are \[1, 1\]"),
        ({"seeds": (-1,)}, UsageError, r"seeds are \[-1\]"),
        ({"gallery": "half"}, UsageError, "gallery is 'half'"),
        ({"compat": "other"}, UsageError, "compat is 'other'"),
        ({"measures": []}, UsageError, "no measure"),
        ({"measures": ["medr"]}, UsageError, "medr is no mean of shares"),
        ({"measures": ["R@1", "nothing"]}, UnknownNameError, "nothing"),
        ({"split": "nowhere"}, UnknownNameError, "nowhere"),
        ({"options": {"blur": {}}}, UnknownNameError, "blur"),
        ({"options": {"last-word": {"edits": 2}}}, UsageError, "edits"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_written(
    options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    some: dict[str, Any] = {"perturbations": [LAST_WORD], **SMALL, **options}
    refused(error, message, stress, Reader(), painted(), tmp_path / "out", **some)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(UsageError, match="holds other things"):
        stress(Reader(), painted(), tmp_path, perturbations=[LAST_WORD], **SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


def test_a_gallery_of_all_is_asked_by_pictures_in_its_middle(tmp_path: Path) -> None:
    """The last two pictures ask: their rows in the gallery are not the first."""
    encoder, whole = Reader("letters"), painted()
    some: dict[str, Any] = {"perturbations": [REVERSED, *PICTURES], "seeds": (0,), **SMALL, "split": "train"}
    found = stress(encoder, whole, tmp_path / "out", gallery="all", **some)
    part = whole.split("train")
    gallery = encoder.encode_images(whole.images())
    home = np.repeat([6, 7], 3)
    texts = encoder.encode_texts(list(part.captions))
    assert found.clean["t2i"]["R@1"] == slow_recall(texts, gallery, home, 1).mean()
    scores = encoder.encode_images(part.images()).astype(np.float64) @ texts.T
    own = np.repeat([0, 1], 3)
    hits = [own[np.argmax(scores[row])] == row for row in range(2)]
    assert found.clean["i2t"]["R@1"] == np.mean(hits)
    for direction, right in (("t2i", {"p6", "p7"}), ("i2t", set(part.caption_ids))):
        for row in found.rows:
            if row.direction == direction:
                assert {one.expected for one in row.examples} <= right
    assert "8 pictures of the whole collection" in found.protocol["captions asking"]
    again = stress(encoder, whole, tmp_path / "split", **some)
    assert "2 pictures of the split" in again.protocol["captions asking"]
    assert found.clean["i2t"] == pytest.approx(again.clean["i2t"])
    assert found.clean["t2i"]["R@1"] <= again.clean["t2i"]["R@1"]


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


TWO_SEEDS: dict[str, Any] = {"samples": 20, "flips": 99, "split": "test", "seeds": (0, 1)}
QUICK: dict[str, Any] = {"samples": 50, "flips": 199}
TYPO, BRIGHT = choose_perturbations(["character-swap", "brightness"])


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A reader of letters and one of words; the second was not asked under brightness."""
    folder = tmp_path_factory.mktemp("compare_stress")
    some = [LAST_WORD, REVERSED, TYPO]
    stress(Reader("letters"), painted(), folder / "letters", perturbations=[*some, BRIGHT], **TWO_SEEDS)
    stress(Reader("words"), painted(), folder / "words", perturbations=some, **TWO_SEEDS)
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


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from([-1, 0, 1]), min_size=n, max_size=n), min_size=1, max_size=5
        )
    )
)
def test_as_sets_of_queries(groups: list[list[int]]) -> None:
    found = jaccard(np.array(groups))
    for name, number in CHANGE_GROUPS.items():
        sets = [{row for row, value in enumerate(one) if value == number} for one in groups]
        expected = [len(a & b) / len(a | b) if a | b else None for a, b in combinations(sets, 2)]
        assert found[name] == expected
