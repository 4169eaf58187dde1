"""``diptych evaluate`` with measures of gains, a relevance model and what people said."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import Command

from diptych.cli.evaluate import coefficient, gains_beside
from diptych.encoders.embeddings import EncodedCollection
from diptych.evaluation import Result
from diptych.evaluation.evaluate_encoder import relevance_of
from diptych.metrics.correlation import Coefficient

GAINS = ("--measure", "R@1", "--measure", "DCG_CM@10", "--measure", "nDCG_CM@10", "--measure", "nDCG@10")


@pytest.fixture(scope="module")
def embedded(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test split as the run embeds it."""
    from diptych.cli.sources import DataChoice, encoded_of

    folder = tmp_path_factory.mktemp("embedded") / "test"
    encoded_of(str(run_folder), DataChoice(), None, folder)
    return folder


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
    done = diptych("evaluate", embedded, *GAINS, "--samples", 20, "--out", tmp_path / "own")
    assert done.code == 0, done.err
    assert "gains of DCG_CM@10, nDCG_CM@10: 1 for a match, else the cosine by the evaluated model" in done.out
    result = Result.open(tmp_path / "own" / "evaluation")
    score = result.score("DCG_CM@10", "i2t")
    assert f"{score.value:.3f} ({score.low:.3f}–{score.high:.3f})" in done.out
    assert 0 < result.value("nDCG_CM@10", "t2i") <= 1
    same = tmp_path / "own" / "evaluation"
    again = diptych("compare", same, same, "--out", tmp_path / "comparison.json")
    assert again.code == 0, again.err
    assert "by each run's own cosines" in again.out


def test_gains_by_a_relevance_model(
    diptych: Command, embedded: Path, run_folder: Path, tmp_path: Path
) -> None:
    plain = diptych("evaluate", embedded, *GAINS, "--samples", 0, "--out", tmp_path / "own")
    assert plain.code == 0, plain.err
    own = Result.open(tmp_path / "own" / "evaluation")
    fingerprint = EncodedCollection.open(embedded).images.encoder
    for number, name in enumerate((embedded, run_folder)):  # rows that are there, and rows made now
        out = tmp_path / str(number)
        done = diptych("evaluate", embedded, *GAINS, "--samples", 0, "--relevance", name, "--out", out)
        assert done.code == 0, done.err
        assert f"the cosine by tiny {fingerprint}, clamped to [0, 1]" in done.out
        found = Result.open(out / "evaluation")  # the same model: the same values
        assert found.values() == pytest.approx(own.values())
    folders = [tmp_path / name / "evaluation" for name in ("own", "0")]
    both = diptych("compare", *folders, "--out", tmp_path / "comparison.json")
    assert both.code == 1
    assert "cannot be compared by DCG_CM@10" in both.err
    assert "same --relevance" in both.err


def test_rows_that_python_wrote_are_a_relevance_model(
    diptych: Command, embedded: Path, tmp_path: Path
) -> None:
    rows = shutil.copytree(embedded, tmp_path / "rows")
    (rows / "origin.json").unlink()  # which only commands write
    done = diptych("evaluate", embedded, *GAINS, "--samples", 0, "--relevance", rows, "--out", tmp_path / "o")
    assert done.code == 0, done.err
    assert "the cosine by tiny" in done.out


def test_a_measure_that_does_not_exist_is_refused_before_the_work(diptych: Command, tmp_path: Path) -> None:
    done = diptych("evaluate", "hf:nobody/nothing", "--data", tmp_path, "--measure", "DCG_CM")
    assert done.code == 2
    assert "unknown measure 'DCG_CM'" in done.err
    assert "did you mean 'DCG_CM@k'" in done.err
    plain = diptych("evaluate", "hf:nobody/nothing", "--data", tmp_path, "--measure", "DCG_CM@k")
    assert (plain.code, "for example DCG_CM@10" in plain.err) == (2, True)


def test_a_relevance_model_of_other_data_is_refused(
    diptych: Command, embedded: Path, run_folder: Path, tmp_path: Path
) -> None:
    assert diptych("embed", run_folder, "--split", "val", "--out", tmp_path / "val").code == 0
    done = diptych("evaluate", embedded, *GAINS, "--relevance", tmp_path / "val", "--out", tmp_path / "o")
    assert done.code == 1
    assert "has no row for image" in done.err
    assert "(16 of 16 are missing)" in done.err
    # The same ids, and other pictures or captions.
    other = shutil.copytree(embedded, tmp_path / "other")
    whole = EncodedCollection.open(other)
    replace(whole, about={**whole.about, "data": "0123456789abcdef"}).write_header(other)
    done = diptych("evaluate", embedded, *GAINS, "--relevance", other, "--out", tmp_path / "o")
    assert done.code == 1
    assert "other images or captions of the same ids: of data 0123456789abcdef" in done.err
    idle = diptych("evaluate", embedded, "--measure", "R@1", "--relevance", embedded)
    assert idle.code == 2
    assert "none of R@1 asks how relevant an item is" in idle.err
    graded = diptych("evaluate", embedded, "--measure", "nDCG@10", "--relevance", embedded)
    assert "none of nDCG@10 asks how relevant an item is" in graded.err


def test_penalties_have_no_gains_beside_judgements(embedded: Path) -> None:
    cosines = EncodedCollection.open(embedded)
    sides = [replace(side, similarity="order") for side in (cosines.images, cosines.texts)]
    penalties = replace(cosines, images=sides[0], texts=sides[1])
    assert gains_beside(cosines, None) == ("nDCG@10", "DCG_CM@10", "nDCG_CM@10")
    assert gains_beside(penalties, None) == ("nDCG@10",)
    judge = relevance_of(penalties, cosines)
    assert gains_beside(penalties, judge) == ("nDCG@10", "DCG_CM@10", "nDCG_CM@10")


def test_a_negative_correlation_has_a_minus_that_is_no_dash() -> None:
    assert coefficient(Coefficient(-0.5, -0.6, 0.1)) == "−0.500 (−0.600–0.100)"
    assert (coefficient(Coefficient(None)), coefficient(Coefficient(0.25))) == ("–", "0.250")


def test_what_people_said(diptych: Command, embedded: Path, judgements: Path, tmp_path: Path) -> None:
    out = tmp_path / "judged"
    done = diptych(
        *("evaluate", embedded, "--judgements", f"flickr8k-expert:{judgements}"),
        *("--samples", 20, "--out", out),
    )
    assert done.code == 0, done.err
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
    # Without judgements the folder is written anew, and holds none.
    assert diptych("evaluate", embedded, "--measure", "R@1", "--samples", 0, "--out", out).code == 0
    assert not (out / "evaluation" / "judgements.json").exists()


def test_judgements_with_a_bad_line(diptych: Command, embedded: Path, judgements: Path) -> None:
    judgements.write_text("a.png\ta.png#0\t1\t9\t1\n")
    done = diptych("evaluate", embedded, "--judgements", f"flickr8k-expert:{judgements}", "--samples", 0)
    assert done.code == 1
    assert "line 1: the ratings are 1, 9, 1" in done.err
    unknown = diptych("evaluate", embedded, "--judgements", "flickr:x", "--samples", 0)
    assert unknown.code == 2
    assert "flickr8k-expert" in unknown.err


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
        *("evaluate", embedded, "--positives", f"cxc:{file}", "--measure", "nDCG@10"),
        *("--measure", "nDCG-exponential@10", "--samples", 0, "--out", out),
    )
    assert done.code == 0, done.err
    assert "gains of nDCG@10: the grade of cxc" in done.out
    folder = next(path for path in out.iterdir() if path.name.startswith("evaluation"))
    graded = Result.open(folder)
    plain = diptych("evaluate", embedded, "--measure", "nDCG@10", "--samples", 0, "--out", tmp_path / "plain")
    assert plain.code == 0
    own = Result.open(tmp_path / "plain" / "evaluation")
    assert graded.value("nDCG@10", "t2i") != pytest.approx(own.value("nDCG@10", "t2i"), rel=1e-3)


def test_candidates_alone_are_refused_before_the_work(diptych: Command, tmp_path: Path) -> None:
    done = diptych("evaluate", "hf:nobody/nothing", "--data", tmp_path, *GAINS, "--rerank", 4)
    assert done.code == 2
    assert "DCG_CM@10 looks at the first places of the whole gallery" in done.err
