from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import Command

from diptych.core.files import write_json
from diptych.encoders.embeddings import Embeddings, EncodedCollection
from diptych.evaluation import Result, evaluate
from diptych.metrics import GroundTruth


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evaluations of a good model, a worse one, and two seeds of a recipe as good as the first."""
    folder = tmp_path_factory.mktemp("evaluated")
    images = np.random.default_rng(0).normal(size=(60, 12)).astype(np.float32)
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(60), 2), 60)

    def run(name: str, noise: float, seed: int, ties: str = "expected") -> None:
        texts = np.repeat(images, 2, axis=0) + noise * np.random.default_rng(seed).normal(size=(120, 12))
        evaluate(images, texts.astype(np.float32), truth, ties=ties).save(folder / name)

    run("good", 1.0, 1)
    run("worse", 2.5, 2)
    run("seeds/one/evaluation", 1.0, 3)
    run("seeds/two/evaluation", 1.0, 4)
    run("other-ties", 1.0, 1, "compat")
    return folder


def test_two_runs(diptych: Command, evaluated: Path, tmp_path: Path) -> None:
    out = tmp_path / "comparison.json"
    done = diptych("compare", evaluated / "good", evaluated / "worse", "--out", out)
    assert done.code == 0, done.err
    for word in ("i2t R@1", "t2i R@10", "rsum", "good", "worse", "60 images, 120 texts", "Bonferroni over"):
        assert word in done.out, word
    row = next(line for line in done.out.splitlines() if line.strip().startswith("rsum"))
    assert row.split()[-1] == "worse"
    assert "next:" in done.out
    written = json.loads(out.read_text())
    total = next(one for one in written["differences"] if one["measure"] == "rsum")
    good, worse = (Result.open(evaluated / name) for name in ("good", "worse"))
    assert total["difference"] == pytest.approx(worse.value("rsum") - good.value("rsum"))
    assert total["verdict"] == "worse"
    assert written["tested"] == 11  # R@1, R@5, R@10, meanr and MRR both ways, and rsum; medr has no p


def test_seeds_measures_and_baseline(diptych: Command, evaluated: Path, tmp_path: Path) -> None:
    done = diptych(
        "compare",
        *(evaluated / name for name in ("good", "seeds", "worse")),
        *("--measures", "R@1,rsum", "--baseline", 2, "--samples", 50, "--correction", "none"),
        *("--test", "t", "--out", tmp_path / "c.json"),
    )
    assert done.code == 0, done.err
    assert "±" in done.out
    assert "good against worse" in done.out
    assert "MRR" not in done.out
    assert "Bonferroni" not in done.out
    assert "say nothing of other seeds" in done.out
    written = json.loads((tmp_path / "c.json").read_text())
    assert {one["run"] for one in written["differences"]} == {"good", "seeds"}
    assert {one["verdict"] for one in written["differences"]} == {"better"}
    assert len(written["values"][0]["runs"]["seeds"]["values"]) == 2


def test_what_cannot_be_compared(diptych: Command, evaluated: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "c.json")
    ties = diptych("compare", evaluated / "good", evaluated / "other-ties", *out)
    assert ties.code == 1
    assert "tie rule expected and compat" in ties.err
    alone = diptych("compare", evaluated / "good", *out)
    assert alone.code == 2
    assert "at least two are needed" in alone.err
    missing = diptych("compare", evaluated / "good", tmp_path, *out)
    assert missing.code == 2
    assert "holds no evaluation" in missing.err
    assert "diptych evaluate RUN" in missing.err
    assert not (tmp_path / "c.json").exists()


def test_runs_of_one_name_are_told_apart(diptych: Command, evaluated: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(evaluated / "good", tmp_path / name / "run")
    done = diptych("compare", tmp_path / "a/run", tmp_path / "b/run", "--out", tmp_path / "c.json")
    assert done.code == 0, done.err
    assert json.loads((tmp_path / "c.json").read_text())["runs"] == ["a/run", "b/run"]


def test_help_has_an_example(diptych: Command) -> None:
    done = diptych("compare", "--help")
    assert done.code == 0
    assert "diptych compare runs/triplet runs/infonce" in done.out


def test_a_run_against_itself_after_evaluation(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    assert diptych("evaluate", run_folder, "--out", tmp_path / "one").code == 0
    assert diptych("evaluate", run_folder, "--out", tmp_path / "two", "--samples", 0).code == 0
    done = diptych("compare", tmp_path / "one", tmp_path / "two", "--out", tmp_path / "c.json")
    assert done.code == 0, done.err
    assert "16 images, 80 texts" in done.out
    written = json.loads((tmp_path / "c.json").read_text())
    assert {one["p"] for one in written["differences"] if one["measure"] != "medr"} == {1.0}


def test_evaluate_with_extended_positives(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    embedded = tmp_path / "embedded"
    assert diptych("embed", run_folder, "--out", embedded).code == 0
    encoded = EncodedCollection.open(embedded)
    first, other = encoded.images.ids[0], encoded.texts.ids[-1]
    write_json(tmp_path / "more.json", {"i2t": {first: [*encoded.texts.ids[:5], other]}})
    done = diptych(
        "evaluate",
        embedded,
        *("--positives", f"pairs:{tmp_path / 'more.json'}", "--positives-option", "originals=true"),
        *("--measure", "R-precision", "--out", tmp_path / "e"),
    )
    assert done.code == 0, done.err
    assert "positives pairs of more.json, originals kept (80 + 1 − 0 pairs)" in done.out
    result = Result.open(tmp_path / "e" / "evaluation-pairs")
    assert result.protocol.texts_per_image == (5, 6)
    assert result.protocol.images_per_text == (1, 2)
    wrong = diptych("evaluate", embedded, "--positives", "cxc")
    assert wrong.code == 2
    assert "are not FORMAT:PATH" in wrong.err
    twice = diptych("evaluate", embedded, "--positives", "pairs:a", "--positives", "pairs:b")
    assert twice.code == 2
    assert "names one format twice" in twice.err


def test_order_embeddings_are_evaluated_but_not_indexed(
    diptych: Command, run_folder: Path, tmp_path: Path
) -> None:
    embedded = tmp_path / "embedded"
    assert diptych("embed", run_folder, "--out", embedded).code == 0
    for side in ("images", "texts"):  # as a model trained with order similarity writes them
        rows = Embeddings.open(embedded / side)
        replace(rows, similarity="order").save(embedded / side)
    done = diptych("evaluate", embedded, "--samples", 0)
    assert done.code == 0, done.err
    assert "similarity order" in done.out
    refused = diptych("index", embedded, "--out", tmp_path / "i")
    assert refused.code == 2
    assert "rows compared by 'order' cannot be indexed" in refused.err
    assert "diptych evaluate" in refused.err
    assert not (tmp_path / "i").exists()
