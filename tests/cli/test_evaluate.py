"""Evaluate: other data, given embeddings, captions, gains, judgements, folders that may only be read."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diptych.core.files import write_json
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.evaluation import Result, evaluate
from diptych.evaluation.evaluate_encoder import ground_truth_of, relevance_of
from diptych.evaluation.sources import gains_for_judgements
from diptych.metrics import SIMILARITIES

QUICK = "--samples 0 --measure R@1 --measure rsum"


@pytest.fixture
def run(run_folder, tmp_path):
    ignored = shutil.ignore_patterns("embeddings", "evaluation")
    return Path(shutil.copytree(run_folder, tmp_path / "run", ignore=ignored))


def times(folder):
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_other_data_of_the_same_name_overwrites_nothing(diptych, run, scenes_folder, tmp_path):
    other = Path(shutil.copytree(scenes_folder, tmp_path / "other"))
    file = next(other.glob("*.json"))
    given = json.loads(file.read_text())
    for image in given["images"]:
        for sentence in image["sentences"]:
            sentence["raw"] = f"well, {sentence['raw']}"
    file.write_text(json.dumps(given))
    diptych(f"evaluate {run} {QUICK}")
    own = Result.open(run / "evaluation" / "scenes-test")
    for _ in range(2):  # the second time its own folder is written again
        diptych(f"evaluate {run} --data {other} {QUICK}")
    names = sorted(folder.name for folder in (run / "evaluation").iterdir())
    assert len(names) == 2
    assert Result.open(run / "evaluation" / "scenes-test").protocol == own.protocol
    theirs = Result.open(run / "evaluation" / names[1]).protocol.about["data"]
    assert names == ["scenes-test", f"scenes-test-{theirs[:8]}"]
    assert theirs != own.protocol.about["data"]
    assert len(list((run / "embeddings").glob("scenes-test*"))) == 2
    for data in (scenes_folder, other):
        diptych(f"evaluate {run}/best --data {data} {QUICK}")
    assert len(list((run / "best" / "evaluation").iterdir())) == 2
    # what is embedded is used with --out, and nothing is written to the run
    for embedded in (True, False):
        out = tmp_path / f"out-{embedded}"
        if not embedded:
            shutil.rmtree(run / "embeddings")
        before = times(run)
        diptych(f"evaluate {run} {QUICK} --out {out}")
        assert times(run) == before
        kinds = {"evaluation"} if embedded else {"embeddings", "evaluation"}
        assert {folder.name for folder in out.iterdir()} == kinds
    assert Result.open(tmp_path / "out-True" / "evaluation").values() == own.values()


def test_data_is_looked_at_before_a_model_is_loaded(diptych, run, tmp_path):
    """And all that is missing in it is named at once."""
    for weights in (run / "best").rglob("*.safetensors"):
        weights.write_bytes(weights.read_bytes()[:99])
    file = tmp_path / "own.csv"
    file.write_text("Bild,Text\na.png,a dog\n")
    missing = ("no image column and no caption column", "image_column=NAME", "caption_column=NAME")
    for verb in ("evaluate", "embed", "adapt", "analyse stress", "analyse audit"):
        diptych(f"{verb} {run} --data {file} --out {tmp_path}/out", refused=missing)
    diptych("evaluate nowhere --data nothing.csv", refused="'nowhere' is neither a folder nor a name")


def test_python_and_the_command_line_agree_on_given_rows(diptych, embedded, scenes_folder, tmp_path):
    """The embeddings at other lengths, as another tool might have written them."""
    encoded, folder, rows = EncodedCollection.open(embedded), tmp_path / "rows", []
    folder.mkdir()
    for name, side in (("images", encoded.images), ("texts", encoded.texts)):
        lengths = np.random.default_rng(0).uniform(0.5, 3, (len(side), 1)).astype(np.float32)
        rows.append(np.asarray(side.rows) * lengths)
        np.save(folder / f"{name}.npy", rows[-1])
        (folder / f"{name}.txt").write_text("".join(f"{one}\n" for one in side.ids))
    diptych(f"evaluate rows:{folder} --data {scenes_folder} {QUICK} --out {tmp_path}/out")
    by_hand = evaluate(*rows, ground_truth_of(encoded), ("R@1", "rsum"), similarity="cosine")
    found = Result.open(tmp_path / "out" / "evaluation")
    assert found.values() == by_hand.values()
    for way, values in by_hand.ranks.items():
        assert found.ranks[way].tolist() == values.tolist()
    assert evaluate(*rows, ground_truth_of(encoded), ("rsum",), similarity="dot").values() != by_hand.values()
    diptych(f"evaluate {embedded} {QUICK} --out {tmp_path}/own")
    both = diptych(f"compare {tmp_path}/own {tmp_path}/out --out {tmp_path}/comparison.json")
    assert "have the same ids; their data are pictures and rows" in both.out.replace("\n", " ")


def test_python_and_the_command_line_agree_over_all_similarities(diptych, tmp_path):
    random, about = (
        np.random.default_rng(5),
        {"dataset": "made", "split": "test", "encoder": {"name": "made"}},
    )
    images, texts = (random.normal(size=(n, 6)).astype(np.float32) * 3 for n in (10, 20))
    for similarity in SIMILARITIES:
        folder, out = tmp_path / similarity, tmp_path / f"out-{similarity}"
        sides = [
            Embeddings([f"{kind}{n}" for n in range(len(rows))], rows, "e", "d", kind, about, similarity)
            for kind, rows in (("image", images), ("text", texts))
        ]
        EncodedCollection(*sides, np.repeat(np.arange(10), 2), {**about, "data": "d"}).save(folder)
        write_json(folder / "origin.json", {"model": "made", "data": {}, "split": "test"})
        diptych(f"evaluate {folder} {QUICK} --out {out}")
        truth = ground_truth_of(EncodedCollection.open(folder))
        by_hand = evaluate(images, texts, truth, ("R@1", "rsum"), similarity=similarity)
        found = Result.open(out / "evaluation")
        assert found.values() == by_hand.values()
        assert f"similarity {similarity}" in found.protocol_line()
    compared = ("rows compared by 'order' cannot be indexed", "diptych evaluate")
    diptych(f"index {tmp_path}/order --out {tmp_path}/i", refused=compared)


def test_chosen_captions_are_embedded_and_named(diptych, run, tmp_path):
    """``--captions random:1`` and ``captions = random, seed 1`` of the explorer are the same captions."""
    diptych(f"embed {run} --out {tmp_path}/all")
    for word, ending in (("all", ""), ("first", "-first"), ("random:1", "-random-1")):
        done = diptych(f"evaluate {run} --captions {word} --samples 0")
        assert (f"captions {word}" in done.out.replace("\n", " ")) == (word != "all")
        for kind in ("embeddings", "evaluation"):
            assert any(folder.name.endswith(f"-test{ending}") for folder in (run / kind).iterdir())
    everything, first, drawn = (
        EncodedCollection.open(next((run / "embeddings").glob(f"*-test{ending}")))
        for ending in ("", "-first", "-random-1")
    )
    assert list(first.texts.ids) == list(everything.texts.ids)[::5] != list(drawn.texts.ids)
    assert np.allclose(first.texts.rows, everything.texts.rows[::5], atol=1e-6)
    assert drawn.about["notes"][-1] == "1 caption of each image, drawn with seed 1"
    assert len({one.about["data"] for one in (everything, first, drawn)}) == 3
    result = Result.open(next((run / "evaluation").glob("*-random-1")))
    assert result.protocol.about["captions"] == "random:1"
    cells = [(f"{way} R@{k}", result.value(f"R@{k}", way)) for way in ("i2t", "t2i") for k in (1, 5, 10)]
    targets = [part for name, value in cells for part in ("--target", f"{name}={100 * value:.2f}")]
    diptych(f"analyse protocol {tmp_path}/all --out {tmp_path}/out", *targets, "--changes", 1)
    found = json.loads((tmp_path / "out" / "protocol.json").read_text())
    assert "captions = random, seed 1" in [one["changes"] for one in found["exact_explanations"]]


GAINS = "--measure R@1 --measure DCG_CM@10 --measure nDCG_CM@10 --measure nDCG@10"


def test_gains_by_the_evaluated_or_a_relevance_model(diptych, embedded, run_folder, tmp_path):
    done = diptych(f"evaluate {embedded} {GAINS} --samples 20 --out {tmp_path}/own")
    done.shows("gains of DCG_CM@10, nDCG_CM@10: 1 for a match, else the cosine by the evaluated model")
    own = Result.open(tmp_path / "own" / "evaluation")
    score = own.score("DCG_CM@10", "i2t")
    done.shows(f"{score.value:.3f} ({score.low:.3f}–{score.high:.3f})")
    compared = f"compare {tmp_path}/own/evaluation --out {tmp_path}/comparison.json"
    diptych(f"{compared} {tmp_path}/own/evaluation").shows("by each run's own cosines")
    rows = Path(shutil.copytree(embedded, tmp_path / "rows"))
    (rows / "origin.json").unlink()  # which only commands write
    whole = EncodedCollection.open(rows)
    for number, name in enumerate((run_folder, rows)):  # rows made now, and rows that are there
        done = diptych(
            f"evaluate {embedded} {GAINS} --samples 0 --relevance {name} --out {tmp_path}/{number}"
        )
        done.shows(f"the cosine by tiny {whole.images.encoder}, clamped to [0, 1]")
        found = Result.open(tmp_path / str(number) / "evaluation")  # the same model: the same values
        assert found.values() == pytest.approx(own.values())
    different = ("cannot be compared: gains of DCG_CM@10", "same --relevance")
    diptych(f"{compared} {tmp_path}/0/evaluation", failed=different)
    diptych(f"embed {run_folder} --split val --out {tmp_path}/val")
    line = f"evaluate {embedded} {GAINS} --out {tmp_path}/o --relevance"
    diptych(f"{line} {tmp_path}/val", failed=("has no row for image", "(16 of 16 are missing)"))
    replace(whole, about={**whole.about, "data": "0123456789abcdef"}).write_header(rows)
    other = "other images or captions of the same ids: of data 0123456789abcdef"
    diptych(f"{line} {rows}", failed=other)


def test_penalties_have_no_gains_beside_judgements(embedded):
    cosines = EncodedCollection.open(embedded)
    sides = [replace(side, similarity="order") for side in (cosines.images, cosines.texts)]
    penalties = replace(cosines, images=sides[0], texts=sides[1])
    assert gains_for_judgements(cosines, None) == ("nDCG@10", "DCG_CM@10", "nDCG_CM@10")
    assert gains_for_judgements(penalties, None) == ("nDCG@10",)
    judge = relevance_of(penalties, cosines)
    assert gains_for_judgements(penalties, judge) == ("nDCG@10", "DCG_CM@10", "nDCG_CM@10")


def test_agreement_with_judgements(diptych, embedded, tmp_path):
    """Experts found every image's first caption right, and that of the image after it wrong."""
    ids, out = list(EncodedCollection.open(embedded).images.ids), tmp_path / "judged"
    lines = ["gone.png\tgone.png#0\t1\t1\t1", ""]
    for name, other in zip(ids, [*ids[1:], ids[0]], strict=True):
        lines[:0] = [f"{name}\t{name}#0\t4\t4\t3", f"{name}\t{other}#0\t1\t1\t1"]
    file = tmp_path / "ExpertAnnotations.txt"
    file.write_text("\n".join(lines))
    line = f"evaluate {embedded} --judgements flickr8k-expert:{file} --samples"
    printed = diptych(f"{line} 20 --out {out}").out.replace("\n", " ")
    assert "agreement with people: gains of pairs" in printed
    assert "not in the collection: 1 images, 1 captions, 1 pairs" in printed
    assert "32 judged pairs of 16 images, 16 labelled" in printed
    found = json.loads((out / "evaluation" / "judgements.json").read_text())
    label = next(one for one in found["pairs"] if one["what"] == "label" and one["over"] == "all pairs")
    assert (label["n"], label["coefficients"]["tau_b"]["value"]) == (32, pytest.approx(1.0))
    measures = {(one["what"], one["over"]) for one in found["queries"]}
    assert {("R@1", "i2t queries"), ("nDCG_CM@10", "t2i queries"), ("nDCG@10", "i2t queries")} <= measures
    diptych(f"evaluate {embedded} --measure R@1 --samples 0 --out {out}")
    assert not (out / "evaluation" / "judgements.json").exists()
    file.write_text("a.png\ta.png#0\t1\t9\t1\n")
    diptych(f"{line} 0", failed="line 1: not image, caption and three ratings from 1 to 4")


def test_extended_and_graded_positives(diptych, embedded, tmp_path):
    encoded = EncodedCollection.open(embedded)
    images, captions, home = list(encoded.images.ids), list(encoded.texts.ids), encoded.caption_image.tolist()
    write_json(tmp_path / "more.json", {"i2t": {images[0]: [*captions[:5], captions[-1]]}})
    more = f"--positives pairs:{tmp_path}/more.json --positives-option originals=true"
    done = diptych(f"evaluate {embedded} {more} --measure R-precision --out {tmp_path}/e")
    done.shows("positives pairs of more.json, originals kept (80 + 1 − 0 pairs)")
    result = Result.open(tmp_path / "e" / "evaluation-pairs")
    assert (result.protocol.texts_per_image, result.protocol.images_per_text) == ((5, 6), (1, 2))
    rows = [f"{caption},{images[home[c]]},{4 + c % 2}" for c, caption in enumerate(captions)]
    rows += [f"{captions[c]},{images[(home[c] + 1) % len(images)]},2.5" for c in range(0, len(captions), 5)]
    file, line = (
        tmp_path / "sits_test.csv",
        f"evaluate {embedded} --measure nDCG@10 --samples 0 --out {tmp_path}",
    )
    file.write_text("\n".join(["caption,image,agg_score", *rows, ""]))
    done = diptych(f"{line}/graded --positives cxc:{file} --measure nDCG-exponential@10")
    done.shows("gains of nDCG@10: the grade of cxc")
    diptych(f"{line}/plain")
    graded, own = (
        Result.open(next((tmp_path / name).glob("evaluation*"))).value("nDCG@10", "t2i")
        for name in ("graded", "plain")
    )
    assert graded != pytest.approx(own, rel=1e-3)
