"""Evaluate: other data, given embeddings, captions, gains, judgements, folders that may only be read."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import Command
from PIL import Image

from diptych.core.files import write_json
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.evaluation import Result, evaluate
from diptych.evaluation.evaluate_encoder import ground_truth_of, relevance_of
from diptych.evaluation.sources import gains_beside
from diptych.metrics import SIMILARITIES
from diptych.metrics.correlation import Coefficient

QUICK = "--samples 0 --measure R@1 --measure rsum"


@pytest.fixture
def run(run_folder: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    shutil.copytree(run_folder, folder)
    return folder


@pytest.fixture
def other(scenes_folder: Path, tmp_path: Path) -> Path:
    """The same dataset by name and split, with other captions."""
    folder = tmp_path / "other"
    shutil.copytree(scenes_folder, folder)
    file = next(folder.glob("*.json"))
    given = json.loads(file.read_text())
    for image in given["images"]:
        for sentence in image["sentences"]:
            sentence["raw"] = f"well, {sentence['raw']}"
    file.write_text(json.dumps(given))
    return folder


def test_other_data_of_the_same_name_overwrites_nothing(diptych: Command, run: Path, other: Path) -> None:
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


def test_an_encoders_folder_keeps_evaluations_apart(
    diptych: Command, run: Path, scenes_folder: Path, other: Path
) -> None:
    for data in (scenes_folder, other):
        diptych(f"evaluate {run}/best --data {data} {QUICK}")
    assert len(list((run / "best" / "evaluation").iterdir())) == 2


def test_embeddings_that_exist_are_used_with_out(diptych: Command, run: Path, tmp_path: Path) -> None:
    diptych(f"evaluate {run} {QUICK}")
    diptych(f"evaluate {run} {QUICK} --out {tmp_path}/out")
    assert [folder.name for folder in (tmp_path / "out").iterdir()] == ["evaluation"]
    found = Result.open(tmp_path / "out" / "evaluation")
    assert found.values() == Result.open(run / "evaluation" / "scenes-test").values()


def test_data_is_looked_at_before_a_model_is_loaded(diptych: Command, run: Path, tmp_path: Path) -> None:
    """And all that is missing in it is named at once."""
    for weights in (run / "best").rglob("*.safetensors"):
        weights.write_bytes(weights.read_bytes()[:99])
    file = tmp_path / "own.csv"
    file.write_text("Bild,Text\na.png,a dog\n")
    for verb in ("evaluate", "embed", "adapt", "analyse stress", "analyse audit"):
        missing = ("no image column and no caption column", "image_column=NAME", "caption_column=NAME")
        diptych(f"{verb} {run} --data {file} --out {tmp_path}/out", refused=missing)
    diptych("evaluate nowhere --data nothing.csv", refused="'nowhere' is neither a folder nor a name")


def given_rows(encoded: EncodedCollection, folder: Path, seed: int = 0) -> Path:
    """The embeddings at other lengths, as another tool might have written them."""
    folder.mkdir()
    random = np.random.default_rng(seed)
    for name, side in (("images", encoded.images), ("texts", encoded.texts)):
        lengths = random.uniform(0.5, 3, (len(side), 1)).astype(np.float32)
        np.save(folder / f"{name}.npy", np.asarray(side.rows) * lengths)
        (folder / f"{name}.txt").write_text("".join(f"{one}\n" for one in side.ids))
    return folder


def test_python_and_the_command_line_agree_on_given_rows(
    diptych: Command, run: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    diptych(f"evaluate {run} {QUICK}")
    encoded = EncodedCollection.open(run / "embeddings" / "scenes-test")
    folder = given_rows(encoded, tmp_path / "rows")
    out = tmp_path / "out"
    diptych(f"evaluate rows:{folder} --data {scenes_folder} {QUICK} --out {out}")
    rows = [np.load(folder / f"{name}.npy") for name in ("images", "texts")]
    by_hand = evaluate(*rows, ground_truth_of(encoded), ("R@1", "rsum"), similarity="cosine")
    found = Result.open(out / "evaluation")
    assert found.values() == by_hand.values()
    for way, values in by_hand.ranks.items():
        assert found.ranks[way].tolist() == values.tolist()
    assert evaluate(*rows, ground_truth_of(encoded), ("rsum",), similarity="dot").values() != by_hand.values()
    both = diptych(f"compare {run} {out} --out {tmp_path}/comparison.json")
    assert "have the same ids; their data are pictures and rows" in both.out.replace("\n", " ")


@pytest.mark.parametrize("similarity", sorted(SIMILARITIES))
def test_python_and_the_command_line_agree_over_all_similarities(
    diptych: Command, similarity: str, tmp_path: Path
) -> None:
    random = np.random.default_rng(5)
    images, texts = (random.normal(size=(n, 6)).astype(np.float32) * 3 for n in (10, 20))
    home, folder = np.repeat(np.arange(10), 2), tmp_path / "embedded"
    about = {"dataset": "made", "split": "test", "data": "d", "encoder": {"name": "made"}}
    sides = [
        Embeddings([f"{kind}{n}" for n in range(len(rows))], rows, "e", "d", kind, about, similarity)
        for kind, rows in (("image", images), ("text", texts))
    ]
    EncodedCollection(*sides, home, about).save(folder)
    write_json(folder / "origin.json", {"model": "made", "data": {}, "split": "test"})
    diptych(f"evaluate {folder} {QUICK} --out {tmp_path}/out")
    encoded = EncodedCollection.open(folder)
    by_hand = evaluate(images, texts, ground_truth_of(encoded), ("R@1", "rsum"), similarity=similarity)
    found = Result.open(tmp_path / "out" / "evaluation")
    assert found.values() == by_hand.values()
    assert f"similarity {similarity}" in found.protocol_line()
    assert f"similarity {similarity}" in by_hand.protocol_line()


@pytest.fixture
def pairs_file(tmp_path: Path) -> Path:
    lines = ["image,caption"]
    (tmp_path / "pictures").mkdir()
    for number in range(4):
        Image.new("RGB", (20, 30), (60 * number, 0, 0)).save(tmp_path / "pictures" / f"{number}.jpg")
        lines.append(f"pictures/{number}.jpg,picture of shade {number}")
    (tmp_path / "shop.csv").write_text("\n".join(lines))
    return tmp_path / "shop.csv"


def test_a_caption_of_each_picture_is_embedded(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    whole, one, other = tmp_path / "all", tmp_path / "first", tmp_path / "random"
    diptych(f"embed {run_folder} --out {whole}")
    done = diptych(f"embed {run_folder} --captions first --out {one}")
    assert "16 images and 16 captions" in done.out
    diptych(f"embed {run_folder} --captions random:3 --out {other}")
    everything, first, drawn = map(EncodedCollection.open, (whole, one, other))
    assert list(first.texts.ids) == list(everything.texts.ids)[::5]
    assert np.allclose(first.texts.rows, everything.texts.rows[::5], atol=1e-6)
    assert list(drawn.texts.ids) != list(first.texts.ids)
    assert drawn.about["notes"][-1] == "1 caption of each image, drawn with seed 3"
    assert len({one.about["data"] for one in (everything, first, drawn)}) == 3


def test_numbers_say_which_captions_they_are_of(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    done = diptych(f"evaluate {run_folder} --captions random:3 --samples 0 --out {tmp_path}/one")
    said = done.out.replace("\n", " ")
    assert "captions random:3" in said
    result = json.loads((tmp_path / "one" / "evaluation" / "evaluation.json").read_text())["content"]
    assert result["protocol"]["about"]["captions"] == "random:3"
    again = diptych(f"evaluate {tmp_path}/one/embeddings --samples 0")
    assert "captions random:3" in again.out.replace("\n", " ")
    plain = diptych(f"evaluate {run_folder} --samples 0 --out {tmp_path}/all")
    assert "captions all" not in plain.out


def test_numbers_say_what_the_pictures_show(
    diptych: Command, run_folder: Path, pairs_file: Path, tmp_path: Path
) -> None:
    for centric in ("object", "scene"):
        out = tmp_path / centric
        done = diptych(
            f"evaluate {run_folder} --data {pairs_file} --reader-option centric={centric} --split all "
            f"--samples 0 --out {out}"
        )
        assert f"pictures {centric}-centric" in done.out.replace("\n", " ")
        again = diptych(f"evaluate {out}/embeddings --samples 0")
        assert f"pictures {centric}-centric" in again.out.replace("\n", " ")
    done = diptych(f"evaluate {run_folder} --data {pairs_file} --split all --out {tmp_path}/unsaid")
    assert "-centric" not in done.out


def test_each_choice_has_its_own_folder(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    run = shutil.copytree(run_folder, tmp_path / "run")
    for word, ending in (("all", ""), ("first", "-first"), ("random:3", "-random-3")):
        diptych(f"evaluate {run} --captions {word} --samples 0")
        for kind in ("embeddings", "evaluation"):
            names = [folder.name for folder in (run / kind).iterdir()]
            assert any(name.endswith(f"-test{ending}") for name in names), names


def test_the_explorer_finds_the_captions_that_were_drawn(
    diptych: Command, run_folder: Path, tmp_path: Path
) -> None:
    """``--captions random:1`` and ``captions = random, seed 1`` are the same captions."""
    one = tmp_path / "one"
    diptych(f"evaluate {run_folder} --captions random:1 --samples 0 --out {one}")
    scores = json.loads((one / "evaluation" / "evaluation.json").read_text())["content"]["scores"]
    targets = [
        part
        for side in ("i2t", "t2i")
        for k in (1, 5, 10)
        for part in ("--target", f"{side} R@{k}={100 * scores[side][f'R@{k}']['value']:.2f}")
    ]
    diptych(f"embed {run_folder} --out {tmp_path}/all")
    diptych(f"analyse protocol {tmp_path}/all --out {tmp_path}/out", *targets, "--changes", 1)
    found = json.loads((tmp_path / "out" / "protocol.json").read_text())
    exact = [one["changes"] for one in found["exact_explanations"]]
    assert "captions = random, seed 1" in exact


def tree(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize("embedded", [False, True])
def test_a_run_that_may_only_be_read_is_evaluated(
    diptych: Command, run_folder: Path, tmp_path: Path, embedded: bool
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    shutil.copytree(run_folder, run, ignore=shutil.ignore_patterns("embeddings", "evaluation"))
    if embedded:
        diptych(f"embed {run}")
    before = tree(run)
    diptych(f"evaluate {run} --out {out} --samples 0")
    assert tree(run) == before
    assert (out / "evaluation" / "evaluation.json").is_file() or list(out.rglob("evaluation.json"))


GAINS = "--measure R@1 --measure DCG_CM@10 --measure nDCG_CM@10 --measure nDCG@10"


@pytest.fixture
def judgements(embedded: Path, tmp_path: Path) -> Path:
    """Experts who found every picture's first caption right, and that of the picture after it wrong."""
    ids = list(EncodedCollection.open(embedded).images.ids)
    lines = []
    for place, name in enumerate(ids):
        other = ids[(place + 1) % len(ids)]
        lines += [f"{name}\t{name}#0\t4\t4\t3", f"{name}\t{other}#0\t1\t1\t1"]
    file = tmp_path / "ExpertAnnotations.txt"
    file.write_text("\n".join([*lines, "gone.png\tgone.png#0\t1\t1\t1", ""]))
    return file


def test_gains_by_the_evaluated_model(diptych: Command, embedded: Path, tmp_path: Path) -> None:
    done = diptych(f"evaluate {embedded} {GAINS} --samples 20 --out {tmp_path}/own")
    assert "gains of DCG_CM@10, nDCG_CM@10: 1 for a match, else the cosine by the evaluated model" in done.out
    result = Result.open(tmp_path / "own" / "evaluation")
    score = result.score("DCG_CM@10", "i2t")
    assert f"{score.value:.3f} ({score.low:.3f}–{score.high:.3f})" in done.out
    assert 0 < result.value("nDCG_CM@10", "t2i") <= 1
    same = tmp_path / "own" / "evaluation"
    again = diptych(f"compare {same} {same} --out {tmp_path}/comparison.json")
    assert "by each run's own cosines" in again.out


def test_gains_by_a_relevance_model(
    diptych: Command, embedded: Path, run_folder: Path, tmp_path: Path
) -> None:
    diptych(f"evaluate {embedded} {GAINS} --samples 0 --out {tmp_path}/own")
    own = Result.open(tmp_path / "own" / "evaluation")
    fingerprint = EncodedCollection.open(embedded).images.encoder
    for number, name in enumerate((embedded, run_folder)):  # rows that are there, and rows made now
        out = tmp_path / str(number)
        done = diptych(f"evaluate {embedded} {GAINS} --samples 0 --relevance {name} --out {out}")
        assert f"the cosine by tiny {fingerprint}, clamped to [0, 1]" in done.out
        found = Result.open(out / "evaluation")  # the same model: the same values
        assert found.values() == pytest.approx(own.values())
    line = f"compare {tmp_path}/own/evaluation {tmp_path}/0/evaluation --out {tmp_path}/comparison.json"
    diptych(line, failed=("cannot be compared: gains of DCG_CM@10", "same --relevance"))


def test_rows_that_python_wrote_are_a_relevance_model(
    diptych: Command, embedded: Path, tmp_path: Path
) -> None:
    rows = shutil.copytree(embedded, tmp_path / "rows")
    (rows / "origin.json").unlink()  # which only commands write
    done = diptych(f"evaluate {embedded} {GAINS} --samples 0 --relevance {rows} --out {tmp_path}/o")
    assert "the cosine by tiny" in done.out


def test_a_relevance_model_of_other_data_is_refused(
    diptych: Command, embedded: Path, run_folder: Path, tmp_path: Path
) -> None:
    diptych(f"embed {run_folder} --split val --out {tmp_path}/val")
    diptych(
        f"evaluate {embedded} {GAINS} --relevance {tmp_path}/val --out {tmp_path}/o",
        failed=("has no row for image", "(16 of 16 are missing)"),
    )
    other = shutil.copytree(embedded, tmp_path / "other")
    whole = EncodedCollection.open(other)
    replace(whole, about={**whole.about, "data": "0123456789abcdef"}).write_header(other)
    diptych(
        f"evaluate {embedded} {GAINS} --relevance {other} --out {tmp_path}/o",
        failed="other images or captions of the same ids: of data 0123456789abcdef",
    )


def test_penalties_have_no_gains_beside_judgements(embedded: Path) -> None:
    cosines = EncodedCollection.open(embedded)
    sides = [replace(side, similarity="order") for side in (cosines.images, cosines.texts)]
    penalties = replace(cosines, images=sides[0], texts=sides[1])
    assert gains_beside(cosines, None) == ("nDCG@10", "DCG_CM@10", "nDCG_CM@10")
    assert gains_beside(penalties, None) == ("nDCG@10",)
    judge = relevance_of(penalties, cosines)
    assert gains_beside(penalties, judge) == ("nDCG@10", "DCG_CM@10", "nDCG_CM@10")


def test_a_correlation_with_its_interval() -> None:
    assert Coefficient(-0.5, -0.6, 0.1).cell.line == "-0.500 (-0.600 to +0.100)"
    assert Coefficient(0.25, few=True).cell.line == "+0.250 (–)"
    assert Coefficient(None, few=True).cell.line == "–"


def test_what_people_said(diptych: Command, embedded: Path, judgements: Path, tmp_path: Path) -> None:
    out = tmp_path / "judged"
    done = diptych(f"evaluate {embedded} --judgements flickr8k-expert:{judgements} --samples 20 --out {out}")
    assert "agreement with people: gains of pairs" in done.out
    assert "not in the collection: 1 images, 1 captions, 1 pairs" in done.out.replace("\n", " ")
    assert "32 judged pairs of 16 images, 16 labelled" in done.out.replace("\n", " ")
    said = json.loads((out / "evaluation" / "judgements.json").read_text())
    label = next(one for one in said["pairs"] if one["what"] == "label" and one["over"] == "all pairs")
    assert label["n"] == 32
    assert label["coefficients"]["tau_b"]["value"] == pytest.approx(1.0)
    measures = {(one["what"], one["over"]) for one in said["queries"]}
    assert {("R@1", "i2t queries"), ("nDCG_CM@10", "t2i queries"), ("nDCG@10", "i2t queries")} <= measures
    assert not any(what in ("medr", "meanr") for what, _ in measures)
    diptych(f"evaluate {embedded} --measure R@1 --samples 0 --out {out}")
    assert not (out / "evaluation" / "judgements.json").exists()


def test_judgements_with_a_bad_line(diptych: Command, embedded: Path, judgements: Path) -> None:
    judgements.write_text("a.png\ta.png#0\t1\t9\t1\n")
    diptych(
        f"evaluate {embedded} --judgements flickr8k-expert:{judgements} --samples 0",
        failed="line 1: not image, caption and three ratings from 1 to 4",
    )


def test_grades_of_cxc_and_what_they_change(diptych: Command, embedded: Path, tmp_path: Path) -> None:
    encoded = EncodedCollection.open(embedded)
    images, captions = list(encoded.images.ids), list(encoded.texts.ids)
    home = np.asarray(encoded.caption_image)
    rows = [f"{captions[c]},{images[home[c]]},{4 + (c % 2)}" for c in range(len(captions))]
    rows += [f"{captions[c]},{images[(home[c] + 1) % len(images)]},2.5" for c in range(0, len(captions), 5)]
    file = tmp_path / "sits_test.csv"
    file.write_text("\n".join(["caption,image,agg_score", *rows, ""]))
    out = tmp_path / "graded"
    done = diptych(
        f"evaluate {embedded} --positives cxc:{file} --measure nDCG@10 --measure "
        f"nDCG-exponential@10 --samples 0 --out {out}"
    )
    assert "gains of nDCG@10: the grade of cxc" in done.out
    folder = next(path for path in out.iterdir() if path.name.startswith("evaluation"))
    graded = Result.open(folder)
    diptych(f"evaluate {embedded} --measure nDCG@10 --samples 0 --out {tmp_path}/plain")
    own = Result.open(tmp_path / "plain" / "evaluation")
    assert graded.value("nDCG@10", "t2i") != pytest.approx(own.value("nDCG@10", "t2i"), rel=1e-3)
