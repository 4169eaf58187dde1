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
    done = diptych(f"compare {evaluated}/good {evaluated}/worse --out {out}")
    done.shows("i2t R@1", "t2i R@10", "rsum", "good", "worse", "60 images, 120 texts", "Bonferroni over")
    row = next(line for line in done.out.splitlines() if line.strip().startswith("rsum"))
    assert row.split()[-1] == "worse"
    assert "next:" in done.out
    written = json.loads(out.read_text())
    total = next(one for one in written["differences"] if one["measure"] == "rsum")
    good, worse = (Result.open(evaluated / name) for name in ("good", "worse"))
    assert total["difference"] == pytest.approx(worse.value("rsum") - good.value("rsum"))
    assert total["verdict"] == "worse"
    assert written["tested"] == 11  # R@1, R@5, R@10, meanr and MRR both ways, and rsum; medr has no p


def test_nothing_is_written_unless_it_is_wanted(
    diptych: Command, evaluated: Path, stressed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folders in (f"{evaluated}/good {evaluated}/worse", f"{stressed}/letters {stressed}/words"):
        done = diptych(f"compare {folders} --samples 0 --flips 9")
        done.shows(f"next: diptych compare {folders} --out comparison.json")
    assert not list(tmp_path.iterdir())


def test_seeds_measures_and_baseline(diptych: Command, evaluated: Path, tmp_path: Path) -> None:
    done = diptych(
        f"compare {evaluated}/good {evaluated}/seeds {evaluated}/worse --measures R@1,rsum --baseline 2 "
        f"--samples 50 --correction none --test t --out {tmp_path}/c.json"
    )
    done.shows("±", "good against worse")
    done.hides("MRR", "Bonferroni")
    assert "say nothing of other seeds" in done.out
    written = json.loads((tmp_path / "c.json").read_text())
    assert {one["run"] for one in written["differences"]} == {"good", "seeds"}
    assert {one["verdict"] for one in written["differences"]} == {"better"}
    assert len(written["values"][0]["runs"]["seeds"]["values"]) == 2


def test_what_cannot_be_compared(diptych: Command, evaluated: Path, tmp_path: Path) -> None:
    line = f"compare --out {tmp_path}/c.json {evaluated}/good"
    diptych(f"{line} {evaluated}/other-ties", failed="tie rule expected and compat")
    diptych(line, refused="at least two are needed")
    diptych(f"{line} {tmp_path}", refused=("holds no evaluation", "diptych evaluate RUN"))
    assert not (tmp_path / "c.json").exists()


def test_runs_of_one_name_are_told_apart(diptych: Command, evaluated: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(evaluated / "good", tmp_path / name / "run")
    diptych(f"compare {tmp_path}/a/run {tmp_path}/b/run --out {tmp_path}/c.json")
    assert json.loads((tmp_path / "c.json").read_text())["runs"] == ["a/run", "b/run"]


def test_a_run_against_itself_after_evaluation(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    diptych(f"evaluate {run_folder} --out {tmp_path}/one")
    diptych(f"evaluate {run_folder} --out {tmp_path}/two --samples 0")
    done = diptych(f"compare {tmp_path}/one {tmp_path}/two --out {tmp_path}/c.json")
    assert "16 images, 80 texts" in done.out
    written = json.loads((tmp_path / "c.json").read_text())
    assert {one["p"] for one in written["differences"] if one["measure"] != "medr"} == {1.0}


def test_evaluate_with_extended_positives(diptych: Command, embedded: Path, tmp_path: Path) -> None:
    encoded = EncodedCollection.open(embedded)
    first, other = encoded.images.ids[0], encoded.texts.ids[-1]
    write_json(tmp_path / "more.json", {"i2t": {first: [*encoded.texts.ids[:5], other]}})
    done = diptych(
        f"evaluate {embedded} --positives pairs:{tmp_path}/more.json --positives-option "
        f"originals=true --measure R-precision --out {tmp_path}/e"
    )
    assert "positives pairs of more.json, originals kept (80 + 1 − 0 pairs)" in done.out
    result = Result.open(tmp_path / "e" / "evaluation-pairs")
    assert result.protocol.texts_per_image == (5, 6)
    assert result.protocol.images_per_text == (1, 2)


def test_order_embeddings_are_evaluated_but_not_indexed(
    diptych: Command, embedded: Path, tmp_path: Path
) -> None:
    other = shutil.copytree(embedded, tmp_path / "embedded")
    for side in ("images", "texts"):  # as a model trained with order similarity writes them
        rows = Embeddings.open(other / side)
        replace(rows, similarity="order").save(other / side)
    diptych(f"evaluate {other} --samples 0").shows("similarity order")
    diptych(
        f"index {other} --out {tmp_path}/i",
        refused=("rows compared by 'order' cannot be indexed", "diptych evaluate"),
    )
    assert not (tmp_path / "i").exists()
