"""Runs compared: two, seeds of a recipe, runs under stress."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from diptych.evaluation import Result, evaluate
from diptych.metrics import GroundTruth


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """Evaluations of a good model, a worse one, and two seeds of a recipe as good as the first."""
    folder = tmp_path_factory.mktemp("evaluated")
    images = np.random.default_rng(0).normal(size=(60, 12)).astype(np.float32)
    truth = GroundTruth.from_caption_image(np.repeat(np.arange(60), 2), 60)
    for name, noise, seed, ties in (
        ("good", 1.0, 1, "expected"),
        ("worse", 2.5, 2, "expected"),
        ("seeds/one/evaluation", 1.0, 3, "expected"),
        ("seeds/two/evaluation", 1.0, 4, "expected"),
        ("other-ties", 1.0, 1, "compat"),
    ):
        texts = np.repeat(images, 2, axis=0) + noise * np.random.default_rng(seed).normal(size=(120, 12))
        evaluate(images, texts.astype(np.float32), truth, ties=ties).save(folder / name)
    return folder


def test_two_runs(diptych, evaluated, tmp_path):
    out = tmp_path / "comparison.json"
    done = diptych(f"compare {evaluated}/good {evaluated}/worse --out {out}")
    done.shows("i2t R@1", "t2i R@10", "rsum", "good", "worse", "60 images, 120 texts", "Bonferroni over")
    done.shows("next:")
    row = next(line for line in done.out.splitlines() if line.strip().startswith("rsum"))
    assert row.split()[-1] == "worse"
    written = json.loads(out.read_text())
    total = next(one for one in written["differences"] if one["measure"] == "rsum")
    good, worse = (Result.open(evaluated / name) for name in ("good", "worse"))
    assert total["difference"] == pytest.approx(worse.value("rsum") - good.value("rsum"))
    assert total["verdict"] == "worse"
    assert written["tested"] == 11  # R@1, R@5, R@10, meanr and MRR both ways, and rsum; medr has no p
    diptych(f"compare {evaluated}/good {evaluated}/other-ties", failed="tie rule expected and compat")


def test_nothing_is_written_without_out(diptych, evaluated, stressed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folders in (f"{evaluated}/good {evaluated}/worse", f"{stressed}/letters {stressed}/words"):
        done = diptych(f"compare {folders} --samples 0 --flips 9")
        done.shows(f"next: diptych compare {folders} --out comparison.json")
    assert not list(tmp_path.iterdir())


def test_seeds_measures_and_baseline(diptych, evaluated, tmp_path):
    done = diptych(
        f"compare {evaluated}/good {evaluated}/seeds {evaluated}/worse --measures R@1,rsum --baseline 2 "
        f"--samples 50 --correction none --test t --out {tmp_path}/c.json"
    )
    done.shows("±", "good against worse", "say nothing of other seeds")
    done.hides("MRR", "Bonferroni")
    written = json.loads((tmp_path / "c.json").read_text())
    assert {one["run"] for one in written["differences"]} == {"good", "seeds"}
    assert {one["verdict"] for one in written["differences"]} == {"better"}
    assert len(written["values"][0]["runs"]["seeds"]["values"]) == 2


def test_runs_of_one_name_are_distinguished_and_equal(diptych, evaluated, tmp_path):
    for name in ("a", "b"):
        shutil.copytree(evaluated / "good", tmp_path / name / "run")
    diptych(f"compare {tmp_path}/a/run {tmp_path}/b/run --out {tmp_path}/c.json")
    written = json.loads((tmp_path / "c.json").read_text())
    assert written["runs"] == ["a/run", "b/run"]
    assert {one["p"] for one in written["differences"] if one["measure"] != "medr"} == {1.0}


def test_two_models_under_stress(diptych, stressed, tmp_path):
    out, page = tmp_path / "comparison.json", tmp_path / "stress-comparison.html"
    line = f"compare {stressed}/letters {stressed}/words --samples 50 --flips 199 --out {out}"
    done = diptych(line)
    done.shows("rsum: words against letters", "nDCG_CM@10: words against letters", f"open {page}")
    done.shows("Not run for all models", "words: not run", "not seen")
    done.shows("seeds 0, 1; compat none", "Holm over 4 comparisons")
    printed = next(text for text in done.out.splitlines() if text.strip().startswith("reversed"))
    rows = json.loads(out.read_text())["rows"]
    row = next(row for row in rows if (row["name"], row["measure"]) == ("reversed", "rsum"))
    one = row["differences"]["words"]
    assert f"{one['first']['difference']:+.1f} (of {one['first']['clean']:.1f}, " in printed
    assert f"{one['difference']:+.1f} (0 to {one['high']:+.1f})" in printed
    assert one["low"] == one["second"]["difference"] == 0
    before = page.read_bytes()
    assert diptych(line).out == done.out
    assert page.read_bytes() == before
    some = "--measures R@1,R@5 --baseline 1 --samples 0 --flips 99 --correction none --seed 3"
    done = diptych(f"compare {stressed}/letters {stressed}/words {some} --out {tmp_path}/c.json")
    done.shows("R@1: letters against words")
    done.hides("(95 %)", "Holm")
    written = json.loads((tmp_path / "c.json").read_text())
    assert written["baseline"] == "words"
    assert {row["measure"] for row in written["rows"]} == {"R@1", "R@5"}
    assert (tmp_path / "stress-c.html").is_file()


def test_a_model_under_stress_against_itself(diptych, stressed, tmp_path):
    twin, out = tmp_path / "twin", tmp_path / "comparison.json"
    shutil.copytree(stressed / "words", twin / "stress" / "painted-test")
    line = f"compare {stressed}/words --samples 50 --flips 199 --out {out}"
    diptych(f"{line} {twin}", refused=f"give {twin / 'stress' / 'painted-test'}")
    diptych(f"{line} {twin}/stress/painted-test")
    rows = [row["differences"]["painted-test"] for row in json.loads(out.read_text())["rows"]]
    assert {(row["difference"], row["p"]) for row in rows} == {(0, 1)}
