"""Stress runs: what is encoded, what is kept, what resumes, what the numbers are; runs compared."""

from __future__ import annotations

import dataclasses
import gzip
import json
import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from stressed import LAST_WORD, REVERSED, Reader, painted

from diptych.analysis.perturbations import choose_perturbations, perturb_captions
from diptych.core.context import stop_when
from diptych.core.errors import Interrupted, MismatchError, StorageError, UnknownNameError, UsageError
from diptych.core.locking import exclusive_folder
from diptych.data.language import Language
from diptych.evaluation import evaluate
from diptych.evaluation.stress.comparison import compare_stress
from diptych.evaluation.stress.conditions import Clean, open_condition
from diptych.evaluation.stress.result import CHANGE_GROUPS, StressResult, jaccard
from diptych.evaluation.stress.stress import obstacle, stress
from diptych.evaluation.stress.tables import comparison_summary, comparison_tables
from diptych.metrics import GroundTruth

SMALL = {"samples": 50, "flips": 99, "split": "test"}
PICTURES = choose_perturbations(["brightness", "occlusion"])


def run(folder, encoder, *perturbations, collection=None, **options):
    return stress(
        encoder, collection or painted(), folder, perturbations=perturbations, **{**SMALL, **options}
    )


def test_a_bag_of_words_is_exactly_indifferent_to_order(tmp_path):
    encoder = Reader("words", noise=2e-8)
    found = run(tmp_path / "out", encoder, *choose_perturbations(["shuffle-all-words"]), REVERSED)
    assert sum(encoder.texts.values()) > 18  # it was asked, and its rows differ in their last digits
    for name in ("shuffle-all-words", "reversed"):
        row = found.row(name)
        assert sum(row.changed) > 0
        assert list(row.same) == list(row.changed)
        assert (row.same_share, row.examples) == (1.0, ())
        for drop in map(row.drop, found.measures):
            assert (drop.difference, drop.low, drop.high, drop.p, drop.corrected) == (0, 0, 0, 1, 1)
            assert drop.perturbed == drop.clean
        assert (row.preference.share, row.preference.ties, row.preference.corrected) == (0.5, 1.0, 1.0)
        assert dict(row.sizes) == {"decreased": 0.0, "increased": 0.0, "unchanged": 1.0}


def slow_recall(rows, gallery, home, k):
    scores = rows.astype(np.float64) @ gallery.astype(np.float64).T
    own = scores[np.arange(len(rows)), home]
    return np.sum(scores > own[:, None], axis=1) < k


def test_values_are_those_of_everything_encoded_and_ranked_anew(tmp_path):
    encoder, part = Reader("letters"), painted().split("test")
    found = run(tmp_path / "out", encoder, LAST_WORD, seeds=(3,))
    condition = open_condition(tmp_path / "out", "last-word", 3)
    perturbed = perturb_captions(LAST_WORD, part.captions, part.caption_ids, seed=3)
    assert 0 < perturbed.n_changed < part.n_captions
    assert np.array_equal(condition.changed, perturbed.changed)
    assert condition.reasons == {"the last word is short": part.n_captions - perturbed.n_changed}
    changed = {text for text, is_new in zip(perturbed.texts, perturbed.changed, strict=True) if is_new}
    assert encoder.texts == {**dict.fromkeys(part.captions, 1), **dict.fromkeys(changed, 1)}  # once each
    assert encoder.pictures == 6
    images, clean = encoder.encode_images(part.images()), encoder.encode_texts(list(part.captions))
    rows, row = encoder.encode_texts(perturbed.texts), found.row("last-word")
    for k in (1, 5):
        assert found.clean["t2i"][f"R@{k}"] == slow_recall(clean, images, part.caption_image, k).mean()
        expected = slow_recall(rows, images, part.caption_image, k)
        assert np.array_equal(condition.values[f"R@{k}"], expected)
        assert row.drop(f"R@{k}").perturbed == pytest.approx(expected.mean())
    truth = GroundTruth.from_caption_image(part.caption_image, part.n_images)
    again = evaluate(images, rows, truth, ["R@1", "R@5", "R@10", "DCG_CM@10"])
    assert np.allclose(condition.values["DCG_CM@10"], again.per_query["t2i"]["DCG_CM@10"], atol=1e-6)
    total = sum(100 * again.value(f"R@{k}", "t2i") for k in (1, 5, 10))
    assert row.drop("rsum").perturbed == pytest.approx(total)
    assert np.array_equal(condition.rank, again.ranks["t2i"])
    own, now = (np.sum(images[part.caption_image] * one, axis=1) for one in (clean, rows))
    assert np.array_equal(condition.preference[condition.changed], (own > now)[condition.changed])
    assert np.isnan(condition.preference[~condition.changed]).all()


def test_drops_over_what_was_changed_alone(tmp_path):
    found = run(tmp_path / "out", Reader("letters"), LAST_WORD, *choose_perturbations(["letter-change"]))
    part, encoder = painted().split("test"), Reader("letters")
    rows, images = encoder.encode_texts(list(part.captions)), encoder.encode_images(part.images())
    clean = slow_recall(rows, images, part.caption_image, 1).astype(float)
    for row in found.rows:
        assert 0 < row.changed_share < 1
        seeds = [open_condition(tmp_path / "out", row.name, seed) for seed in range(3)]
        drop = row.changed_drops["R@1"]
        assert drop.clean == pytest.approx(np.concatenate([clean[one.changed] for one in seeds]).mean())
        after = np.concatenate([one.values["R@1"][one.changed] for one in seeds])
        assert drop.perturbed == pytest.approx(after.mean())
        assert drop.difference * row.changed_share == pytest.approx(row.drop("R@1").difference)


def test_what_cannot_be_run_is_left_out_or_refused(tmp_path):
    asked = choose_perturbations(["typos", "synonym-noun", "distraction"])
    found = run(tmp_path / "out", Reader(), *asked, seeds=(0,))
    assert set(found.left_out) == {"synonym-noun"}
    assert "diptych data resources" in found.left_out["synonym-noun"]
    refused(
        UsageError, "synonym-noun needs a", run, tmp_path / "b", Reader(), *asked, required=["synonym-noun"]
    )
    nothing = "none of 1 perturbations can be run"
    refused(UsageError, nothing, run, tmp_path / "b", Reader(), *choose_perturbations(["synonym-noun"]))
    assert not (tmp_path / "b").exists()
    regions, none = Reader(takes="regions"), Language("none")
    assert all("takes regions" in str(obstacle(one, regions, painted(), none)) for one in PICTURES)
    assert obstacle(LAST_WORD, regions, painted(), none) is None
    refused(MismatchError, "takes regions", run, tmp_path / "b", regions, LAST_WORD)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "letters.txt").write_text("dear")
    refused(UsageError, "holds other things", run, tmp_path / "c", Reader(), LAST_WORD)
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["letters.txt"]


def test_a_relevance_model_sees_the_clean_query_and_published_the_changed_one(tmp_path):
    def published(caption, seed, options):
        return " ".join(word.text for word in caption.words[::-1])

    both = dataclasses.replace(REVERSED, published=published)
    some = {"relevance": Reader("letters"), "measures": ["rsum", "DCG_CM@10"]}
    # The stressed model is blind to order, so its ranking stays; the relevance model is not.
    clean = run(tmp_path / "clean", Reader("words"), both, **some)
    assert clean.row("reversed").drop("DCG_CM@10").difference == 0.0
    changed = run(tmp_path / "published", Reader("words"), both, compat="published", **some)
    assert changed.row("reversed").drop("rsum").difference == 0.0
    assert changed.row("reversed").drop("DCG_CM@10").difference != 0.0
    assert "to the clean query by reader of letters" in clean.protocol["gain of DCG_CM"]
    assert "to the changed query by reader of letters" in changed.protocol["gain of DCG_CM"]
    assert (changed.protocol["seeds"], changed.protocol["compat"]) == ("42", "published")
    own = run(tmp_path / "own", Reader("words"), both, **{**some, "relevance": None})
    assert own.clean["t2i"]["DCG_CM@10"] != clean.clean["t2i"]["DCG_CM@10"]
    no_form = "last-word has no published form"
    refused(UsageError, no_form, run, tmp_path / "x", Reader(), LAST_WORD, compat="published")


def test_options_are_refused_before_anything_is_written(tmp_path):
    for options, error, message in (
        ({"perturbations": []}, UsageError, "no perturbation was requested"),
        *(({"seeds": seeds}, UsageError, "seeds are") for seeds in ((), (1, 1), (-1,))),
        ({"gallery": "half"}, UsageError, "gallery is 'half'"),
        ({"compat": "other"}, UsageError, "compat is 'other'"),
        ({"measures": []}, UsageError, "no measure"),
        ({"measures": ["medr"]}, UsageError, "medr is no mean of shares"),
        ({"measures": ["R@1", "nothing"]}, UnknownNameError, "nothing"),
        ({"split": "nowhere"}, UnknownNameError, "nowhere"),
        ({"options": {"blur": {}}}, UnknownNameError, "blur"),
        ({"options": {"last-word": {"edits": 2}}}, UsageError, "edits"),
    ):
        some = {"perturbations": [LAST_WORD], **SMALL, **options}
        refused(error, message, stress, Reader(), painted(), tmp_path / "out", **some)
        assert not (tmp_path / "out").exists()


def test_a_gallery_of_all_is_asked_by_pictures_in_its_middle(tmp_path):
    """The last two pictures ask: their rows in the gallery are not the first."""
    encoder, whole = Reader("letters"), painted()
    some = {"seeds": (0,), "split": "train"}
    found = run(tmp_path / "out", encoder, REVERSED, *PICTURES, gallery="all", **some)
    part = whole.split("train")
    gallery, texts = encoder.encode_images(whole.images()), encoder.encode_texts(list(part.captions))
    assert found.clean["t2i"]["R@1"] == slow_recall(texts, gallery, np.repeat([6, 7], 3), 1).mean()
    scores = encoder.encode_images(part.images()).astype(np.float64) @ texts.T
    own = np.repeat([0, 1], 3)
    assert found.clean["i2t"]["R@1"] == np.mean([own[np.argmax(scores[row])] == row for row in range(2)])
    right = {"t2i": {"p6", "p7"}, "i2t": set(part.caption_ids)}
    for row in found.rows:
        assert {one.expected for one in row.examples} <= right[row.direction]
    assert "8 pictures of the whole collection" in found.protocol["captions asking"]
    again = run(tmp_path / "split", encoder, REVERSED, *PICTURES, **some)
    assert "2 pictures of the split" in again.protocol["captions asking"]
    assert found.clean["i2t"] == pytest.approx(again.clean["i2t"])
    assert found.clean["t2i"]["R@1"] <= again.clean["t2i"]["R@1"]


def test_pictures_without_captions_count_and_are_said(tmp_path):
    whole = painted()
    kept = np.flatnonzero(whole.caption_image != 2)
    columns = {name: [getattr(whole, name)[row] for row in kept] for name in ("captions", "caption_ids")}
    some = dataclasses.replace(whole, **columns, caption_image=whole.caption_image[kept])
    found = run(tmp_path / "out", Reader("letters"), REVERSED, *PICTURES, collection=some, seeds=(0,))
    said = found.protocol["pictures asking"]
    assert said == "6 over a gallery of 15 captions, 1 without a caption of their own, which count as 0"
    assert found.clean["i2t"]["R@10"] <= 5 / 6
    assert found.row("reversed").queries == 15
    assert all((row.queries, row.preference) == (6, None) for row in found.rows if row.direction == "i2t")


def files_of(folder):
    found = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items()}


def test_a_kill_at_any_moment_loses_nothing_finished(tmp_path):
    some = (Reader("letters"), LAST_WORD, REVERSED, PICTURES[0])
    whole = run(tmp_path / "whole", *some, seeds=(0, 1))
    files = files_of(tmp_path / "whole")
    for stops in (1, 2, 4, 6):
        asked, broken = iter(range(stops)), tmp_path / str(stops)
        with pytest.raises(Interrupted), stop_when(lambda asked=asked: next(asked, None) is None):
            run(broken, *some, seeds=(0, 1))
        refused(StorageError, "holds no stress", StressResult.open, broken)
        kept = files_of(broken)
        assert run(broken, *some, seeds=(0, 1)) == whole
        assert files_of(broken) == files
        assert all(files[name] == kept[name] for name in kept if name.startswith("conditions"))


def test_what_is_finished_is_opened(tmp_path):
    out = tmp_path / "out"
    first = run(out, Reader("letters"), LAST_WORD, *PICTURES)
    encoder = Reader("letters")
    assert run(out, encoder, LAST_WORD, *PICTURES) == first
    assert (encoder.texts, encoder.pictures) == ({}, 0)
    with exclusive_folder(out):
        refused(StorageError, "another process is working in", run, out, encoder, LAST_WORD, *PICTURES)
    # one perturbation more: only that one is made
    more = run(out, encoder, LAST_WORD, REVERSED)
    assert [row.name for row in more.rows] == ["last-word", "reversed"]
    assert sum(encoder.texts.values()) == 18
    # another version of it is another experiment
    forth = dataclasses.replace(REVERSED, version=2, apply=lambda caption, draws, options: caption.text[::-1])
    assert not run(out, encoder, LAST_WORD, forth).opened
    assert sum(encoder.texts.values()) == 36
    lines = gzip.decompress((out / "conditions/units/reversed-0/texts.jsonl.gz").read_bytes()).splitlines()
    turned = [text[::-1] for text in painted().split("test").captions]
    assert [json.loads(line)["text"] for line in lines] == turned
    # other measures and other draws are other results of the same conditions
    few = run(out, encoder, LAST_WORD, measures=["R@1"])
    assert (list(few.measures), few.opened) == (["R@1"], False)
    assert run(out, encoder, LAST_WORD, measures=["R@1"]).opened
    assert not run(out, encoder, LAST_WORD, measures=["R@1"], samples=20).opened
    # another encoder: nothing of the first is taken
    other = Reader("words")
    run(out, other, LAST_WORD, *PICTURES)
    assert sum(other.texts.values()) > 18


def test_what_is_corrupt_or_missing_is_made_again(tmp_path):
    out = tmp_path / "out"
    first = run(out, Reader("letters"), LAST_WORD, seeds=(0, 1))
    files = files_of(out)
    for result in ("kept", "corrupt"):
        (out / "conditions" / "units" / "last-word-0" / "arrays.npz").write_bytes(b"PK\x03\x04 corrupt")
        (out / "conditions" / "units" / "last-word-1" / "texts.jsonl.gz").unlink()
        if result == "corrupt":
            (out / "stress.json").write_text("{")
        again = run(out, Reader("letters"), LAST_WORD, seeds=(0, 1))
        assert (again, again.opened, files_of(out)) == (first, result == "kept", files)


# Runs compared.

QUICK = {"samples": 50, "flips": 199}
TYPO, BRIGHT = choose_perturbations(["character-swap", "brightness"])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A reader of letters and one of words; the second was not asked under brightness."""
    folder, some = tmp_path_factory.mktemp("compare_stress"), (LAST_WORD, REVERSED, TYPO)
    for name, perturbations in (("letters", (*some, BRIGHT)), ("words", some)):
        run(folder / name, Reader(name), *perturbations, samples=20, seeds=(0, 1))
    return {name: folder / name for name in ("letters", "words")}


def changed(folders, to, change):
    """The same folders, with fields of the stored result of the second changed in a copy."""
    shutil.copytree(folders["words"], to)
    found = StressResult.open(to)
    dataclasses.replace(found, **change(found)).write_header(to, of=found.key)
    return {**folders, "words": to}


def test_the_numbers_are_those_of_queries_held_against_each_other(folders):
    found = compare_stress(folders, ["rsum", "R@1"], **QUICK)
    assert (found.models, found.baseline) == (("letters", "words"), "letters")
    names = ("last-word", "reversed", "character-swap")
    assert [(row.name, row.measure) for row in found.rows] == [(n, m) for n in names for m in ("rsum", "R@1")]
    for row in found.rows:
        drops = {}
        for name, folder in folders.items():
            clean = Clean.open(folder / "clean.npz").values["t2i"][row.measure]
            seeds = [open_condition(folder, row.name, seed) for seed in (0, 1)]
            drops[name] = np.mean([one.values[row.measure] - clean for one in seeds], axis=0)
            own, drop = row.own(name), StressResult.open(folder).row(row.name).drop(row.measure)
            assert (own.clean, own.difference) == (drop.clean, pytest.approx(drop.difference))
            assert own.relative == (None if drop.relative is None else pytest.approx(drop.relative))
        apart = float(np.mean(drops["words"] - drops["letters"]))
        assert row.differences["words"].difference == pytest.approx(apart)
        if row.name == "reversed":
            assert (row.unseen["words"], row.own("words").difference) == (1, 0)
            assert row.unseen["letters"] < 1


def test_what_only_one_has_is_listed_and_left_out(folders, tmp_path):
    found = compare_stress(folders, **QUICK)
    assert found.left_out == {"brightness": "words: not run"}
    assert list(found.measures) == ["rsum", "nDCG_CM@10"]
    assert "nDCG_CM@10 by each model's own similarity: a difference may be one of scale" in found.notes
    assert "Holm over 6 comparisons" in found.method
    assert (found.protocol["seeds"], "encoder" in found.protocol) == ("0, 1", False)
    shutil.copytree(folders["letters"], tmp_path / "again")
    three = compare_stress({**folders, "again": tmp_path / "again"}, ["rsum"], baseline=-1, **QUICK)
    assert (three.baseline, three.others) == ("again", ["letters", "words"])
    for row in three.rows:
        one = row.differences["letters"]
        assert (one.difference, one.low, one.high, one.p, one.verdict) == (0, 0, 0, 1, "")
    assert "letters loses significantly less than again under none of 3" in comparison_summary(three)
    told = dataclasses.replace(found.rows[2].differences["words"], verdict="more robust", difference=3.0)
    better = dataclasses.replace(
        found, rows=[dataclasses.replace(found.rows[2], differences={"words": told})]
    )
    assert "words loses significantly less than letters under 1 of 1" in comparison_summary(better)
    cells = comparison_tables(better)[0].rows[0]
    assert (cells[0].line, cells[-1].text) == ("reversed (other meaning)", "more robust")
    assert cells[2].note.endswith("not seen")


def protocol(key, value):
    return lambda found: {"protocol": {**found.protocol, key: value}}


def other_options(found):
    return {"rows": (*found.rows[:2], dataclasses.replace(found.rows[2], options={"edits": 2}))}


def other_names(found):
    return {"rows": tuple(dataclasses.replace(row, name=f"my-{row.name}") for row in found.rows)}


def other_mean(found):
    first, *others = found.rows
    drop = dataclasses.replace(first.drop("R@1"), perturbed=first.drop("R@1").perturbed + 0.25)
    return {"rows": (dataclasses.replace(first, drops={**first.drops, "R@1": drop}), *others)}


def test_what_cannot_be_compared(folders, tmp_path):
    for number, (change, error, message) in enumerate(
        (
            (protocol("data", "01"), MismatchError, r"letters and words cannot be compared: data \w+ and 01"),
            (protocol("split", "val"), MismatchError, "split test and val"),
            (protocol("compat", "published"), MismatchError, "compat none and published"),
            (protocol("captions asking", "3"), MismatchError, "captions asking 18 over a gallery of 6"),
            (protocol("seeds", "0"), MismatchError, "seeds 0, 1 and 0"),
            (protocol("seeds", "all"), StorageError, "does not say which seeds it has"),
            (other_options, MismatchError, "character-swap with edits 1 and with edits 2"),
            (other_names, MismatchError, "no perturbation in common: last-word, .* and my-last-word"),
            (other_mean, StorageError, "last-word has R@1 .* they are of different runs"),
        )
    ):
        assert refused(error, message, compare_stress, changed(folders, tmp_path / str(number), change)).fix
    gains = protocol("gain of DCG_CM", "similarity to the clean query by another")
    others = changed(folders, tmp_path / "gains", gains)
    found = compare_stress(others, **QUICK)
    assert list(found.measures) == ["rsum"]
    text = "left out nDCG_CM@10: gain of DCG_CM is the encoder's own similarity and"
    assert found.notes[0].startswith(text)
    refused(MismatchError, "cannot be compared by nDCG_CM@10", compare_stress, others, ["nDCG_CM@10"])
    refused(UsageError, "1 stress run: at least two", compare_stress, {"letters": folders["letters"]})
    refused(UsageError, "baseline 2 of 2 runs", compare_stress, folders, baseline=2)
    error = refused(UsageError, "letters was not stressed by MRR", compare_stress, folders, ["MRR"])
    assert "--measure MRR" in error.fix
    refused(UnknownNameError, "unknown correction 'sidak'", compare_stress, folders, correction="sidak")
    refused(StorageError, "holds no stress", compare_stress, {**folders, "none": tmp_path})
    clean = shutil.copy(folders["letters"] / "clean.npz", tmp_path / "gains")
    refused(StorageError, "was made from other inputs", compare_stress, others)
    Path(clean).unlink()
    assert "once more" in refused(StorageError, "clean.npz does not exist", compare_stress, others).fix


@given(st.data(), st.integers(1, 6), st.integers(1, 5))
def test_agreement_is_of_sets_of_queries(data, queries, models):
    one = st.lists(st.sampled_from([-1, 0, 1]), min_size=queries, max_size=queries)
    groups = [data.draw(one) for _ in range(models)]
    found = jaccard(np.array(groups))
    for name, number in CHANGE_GROUPS.items():
        sets = [{row for row, value in enumerate(group) if value == number} for group in groups]
        assert found[name] == [len(a & b) / len(a | b) if a | b else None for a, b in combinations(sets, 2)]
