"""What goes wrong is one line with its fix, exit code 1 or 2, no traceback, nothing lost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Command, Done
from PIL import Image


def refused(done: Done, code: int, *words: str) -> None:
    assert done.code == code, (done.out, done.err)
    assert "Traceback" not in done.err
    assert any(line.startswith("error: ") for line in done.err.splitlines()) or "Usage:" in done.err, done.err
    for word in words:
        assert word in done.err, done.err


def dataset(folder: Path, *, caption: str = "a thing", images: int = 30) -> Path:
    (folder / "images").mkdir(parents=True)
    entries = []
    for number in range(images):
        split = "train" if number < 20 else "val" if number < 25 else "test"
        Image.new("RGB", (32, 32), (8 * number, 0, 0)).save(folder / "images" / f"{number}.png")
        text = caption if number == 3 else f"a thing of shade {number}"
        entries.append(
            {"filename": f"{number}.png", "split": split, "sentences": [{"raw": text, "sentid": number}]}
        )
    (folder / "dataset.json").write_text(json.dumps({"images": entries, "dataset": "things"}))
    return folder


def train(diptych: Command, recipe_file: Path, data: Path, out: Path, *more: object) -> Done:
    small = ("--set", "batches.size=5", "--set", "stages.0.epochs=1", "--accelerator", "cpu")
    return diptych("train", recipe_file, "--data", data, "--out", out, *small, *more)


def test_a_missing_image(diptych: Command, recipe_file: Path, tmp_path: Path) -> None:
    data = dataset(tmp_path / "d")
    (data / "images" / "3.png").unlink()
    refused(train(diptych, recipe_file, data, tmp_path / "r"), 1, "3.png does not exist", "fix: ")


@pytest.mark.parametrize("name", ["../../../ESCAPED", "{tmp}/ABSOLUTE", "..", "a/b"])
def test_the_name_of_a_dataset_leads_nowhere_else(
    diptych: Command, run_folder: Path, tmp_path: Path, name: str
) -> None:
    data = dataset(tmp_path / "d", images=30)
    content = json.loads((data / "dataset.json").read_text())
    content["dataset"] = name.format(tmp=tmp_path)
    for entry in content["images"][25:]:
        entry["split"] = "../../x"
    (data / "dataset.json").write_text(json.dumps(content))
    run = tmp_path / "deep" / "run"
    shutil.copytree(run_folder, run)
    shutil.rmtree(run / "embeddings", ignore_errors=True)
    before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(run)}
    for verb in (("embed",), ("evaluate", "--samples", "0"), ("cocos", "--batch-size", "5")):
        done = diptych(verb[0], run, "--data", data, "--split", "../../x", *verb[1:])
        assert done.code == 0, done.err
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(run)} == before
    assert len(list((run / "embeddings").iterdir())) == 1
    assert len(list((run / "embeddings").glob("*/images/embeddings.json"))) == 1


def test_a_corrupt_image_and_leaving_it_out(diptych: Command, recipe_file: Path, tmp_path: Path) -> None:
    data = dataset(tmp_path / "d")
    content = (data / "images" / "3.png").read_bytes()
    (data / "images" / "3.png").write_bytes(content[: len(content) // 2])
    refused(train(diptych, recipe_file, data, tmp_path / "r"), 1, "3.png is corrupt", "--skip-bad-images")
    done = train(diptych, recipe_file, data, tmp_path / "r2", "--skip-bad-images")
    assert done.code == 0, done.err
    assert "1 pictures that cannot be read are left out" in done.out
    assert "29 images" in done.out


@pytest.mark.parametrize(("caption", "words"), [("  ", "is empty"), ("x" * 100_000, "100,000 characters")])
def test_an_impossible_caption(
    diptych: Command, recipe_file: Path, tmp_path: Path, caption: str, words: str
) -> None:
    data = dataset(tmp_path / "d", caption=caption)
    refused(train(diptych, recipe_file, data, tmp_path / "r"), 1, "caption 3 of 3.png", words)
    assert not (tmp_path / "r").exists()


def test_json_that_is_not_karpathys(diptych: Command, recipe_file: Path, tmp_path: Path) -> None:
    (tmp_path / "dataset.json").write_text('{"annotations": []}')
    refused(train(diptych, recipe_file, tmp_path, tmp_path / "r"), 1, "is not Karpathy's JSON")


def test_a_split_that_does_not_exist(
    diptych: Command, run_folder: Path, recipe_file: Path, tmp_path: Path
) -> None:
    refused(diptych("evaluate", run_folder, "--split", "tset"), 2, "'tset'", "did you mean 'test'?")
    done = diptych("train", recipe_file, "--out", tmp_path / "r", "--set", "data.validation=dev")
    refused(done, 2, "unknown split of scenes 'dev'", "known: test, train, val")


def test_unknown_recipe_keys(diptych: Command, recipe_file: Path, tmp_path: Path) -> None:
    done = diptych("train", recipe_file, "--out", tmp_path / "r", "--set", "batches.sise=7")
    refused(done, 2, "unknown key 'batches.sise'", "known there: captions_per_image, chunk, plan, size")
    refused(diptych("train", "nonsense"), 2, "unknown recipe 'nonsense'")
    refused(diptych("train"), 2, "no recipe given")
    refused(diptych("train", recipe_file, "--set", "novalue"), 2, "is not KEY=VALUE")
    refused(
        diptych("train", recipe_file, "--set", "objective.name=fancy", "--out", tmp_path / "r"), 2, "'fancy'"
    )


def test_a_run_of_another_version(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"format": 99}')
    refused(diptych("train", "--resume", tmp_path), 1, "run.json holds something else, expected training")
    refused(diptych("train", "--resume", tmp_path / "gone"), 2, "holds no run")
    (tmp_path / "best").mkdir()
    (tmp_path / "best" / "diptych.json").write_text('{"artifact": "diptych", "format": 99}')
    refused(diptych("evaluate", tmp_path / "best", "--data", "x"), 1, "format 99")


def test_a_run_folder_is_not_overwritten(diptych: Command, run_folder: Path, recipe_file: Path) -> None:
    before = (run_folder / "metrics.jsonl").read_text()
    refused(diptych("train", recipe_file, "--out", run_folder), 2, "already holds a run", "--resume")
    assert (run_folder / "metrics.jsonl").read_text() == before


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_that_another_process_trains(
    diptych: Command, recipe_file: Path, tmp_path: Path, resume: bool
) -> None:
    from diptych.core.locking import exclusive_folder
    from diptych.training.recipe import load_recipe
    from diptych.training.run import Run

    if resume:
        Run.prepare(tmp_path, load_recipe(recipe_file)).begin({})
    given = ("--resume", tmp_path) if resume else (recipe_file, "--out", tmp_path)
    with exclusive_folder(tmp_path):
        refused(diptych("train", *given), 1, "another process is working in")
    assert not (tmp_path / "metrics.jsonl").exists()


def test_a_backbone_that_cannot_be_fetched_leaves_the_folder_free(
    diptych: Command, recipe_file: Path, tmp_path: Path
) -> None:
    given = ("train", recipe_file, "--out", tmp_path / "run", "--set", "model.image.pretrained=true")
    refused(diptych(*given), 2, "test_efficientnet could not be loaded", "model.image.weights")
    assert not (tmp_path / "run").exists()


def test_embeddings_do_not_replace_pictures(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "holiday.jpg").write_text("precious")
    refused(diptych("embed", run_folder, "--out", tmp_path), 2, "holds other things")
    assert (tmp_path / "images" / "holiday.jpg").read_text() == "precious"


def test_searches_that_cannot_be(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    assert diptych("index", run_folder, "--out", tmp_path / "i").code == 0
    refused(diptych("search", tmp_path / "i", "   "), 2, "the query is empty")
    refused(diptych("search", tmp_path / "i", "gone.jpg"), 1, "gone.jpg does not exist")
    refused(diptych("search", tmp_path / "gone", "a star"), 1, "gone")
    refused(diptych("search", tmp_path / "i", "a star", "-k", "0"), 2, "Usage:")
    refused(diptych("index", run_folder, "--engine", "magic"), 2, "unknown index engine 'magic'")
    refused(diptych("index", run_folder, "--of", "sounds"), 2, "images or texts")


def test_usage_errors_show_usage(diptych: Command) -> None:
    refused(diptych("trane"), 2, "No such command")
    refused(diptych("train", "--colour"), 2, "No such option")


def test_a_missing_library_names_its_line(
    diptych: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    (tmp_path / "dataset_info.json").write_text("{}")
    refused(diptych("info", tmp_path), 2, "needs datasets", "pip install 'diptych[datasets]'")


@pytest.mark.parametrize(
    "verb", ["", "scenes", "train", "embed", "evaluate", "index", "search", "report", "demo", "info"]
)
def test_help_can_be_followed(diptych: Command, verb: str) -> None:
    done = diptych(*filter(None, [verb]), "--help")
    assert done.code == 0
    assert "Usage: diptych" in done.out
    assert "diptych " + (verb or "demo") in done.out.split("Usage:")[1].split("\n", 1)[1], "no example"


def test_ctrl_c_saves_and_says_how_to_go_on(recipe_file: Path, tmp_path: Path) -> None:
    import signal
    import time

    command = [sys.executable, "-m", "diptych", "train", str(recipe_file), "--out", str(tmp_path / "r")]
    process = subprocess.Popen(
        [*command, "--set", "stages.0.epochs=5000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while (
        not (tmp_path / "r" / "metrics.jsonl").exists() or not (tmp_path / "r" / "metrics.jsonl").read_text()
    ):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopping at the next safe point" in err
    assert "stopped after step" in err
    assert f"diptych train --resume {tmp_path / 'r'}" in err
    assert "Traceback" not in err


def test_what_a_hint_names_exists(diptych: Command, recipe_file: Path, tmp_path: Path) -> None:
    data = dataset(tmp_path / "d", caption="...")
    done = train(diptych, recipe_file, data, tmp_path / "r")
    hint = "--reader-option skip_bad_captions=true"
    refused(done, 1, hint)
    again = train(diptych, recipe_file, data, tmp_path / "r", *hint.split())
    assert again.code == 0, again.err
    assert "1 empty captions left out" in again.out
