"""The stress run: what is encoded, what is kept, what goes on, and what the numbers are."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused
from stressed import LAST_WORD, REVERSED, Reader, painted

from diptych.analysis.perturbations import choose_perturbations, perturb_captions
from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.data.language import Language
from diptych.evaluation import evaluate
from diptych.evaluation.drops import Paired, drops
from diptych.evaluation.stress import obstacle, open_condition, stress
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


def test_an_encoder_of_regions_is_stressed_by_text_alone(tmp_path: Path) -> None:
    regions, none = Reader(takes="regions"), Language("none")
    assert all("takes regions" in str(obstacle(one, regions, painted(), none)) for one in PICTURES)
    assert obstacle(LAST_WORD, regions, painted(), none) is None
    with pytest.raises(MismatchError, match="takes regions"):  # of what the collection holds
        stress(regions, painted(), tmp_path / "x", perturbations=[LAST_WORD], **SMALL)


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


def test_a_drop_is_that_of_the_paired_comparison(tmp_path: Path) -> None:
    some: dict[str, Any] = {"perturbations": [REVERSED], "measures": ["rsum"], **SMALL}
    found = stress(Reader("letters"), painted(), tmp_path / "out", seeds=(0, 1), **some)
    part, encoder = painted().split("test"), Reader("letters")
    rows, images = encoder.encode_texts(list(part.captions)), encoder.encode_images(part.images())
    hits = [slow_recall(rows, images, part.caption_image, k) for k in (1, 5, 10)]
    perturbed = [open_condition(tmp_path / "out", "reversed", seed).values["rsum"] for seed in (0, 1)]
    pair = Paired("reversed", "rsum", 100.0 * np.sum(hits, axis=0), np.stack(perturbed), part.caption_image)
    assert found.row("reversed").drop("rsum") == drops([pair], samples=50, flips=99)[0]
    refused(UnknownNameError, "unknown perturbation of this run 'blur'", found.row, "blur")
    refused(UnknownNameError, "unknown measure 'R@3'", found.row("reversed").drop, "R@3")


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
