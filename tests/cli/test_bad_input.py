"""What goes wrong is one line with its fix, exit code 1 or 2, no traceback, nothing lost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Command, Done
from PIL import Image


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


def train(
    diptych: Command, recipe_file: Path, data: Path, out: Path, *more: object, failed: Any = ()
) -> Done:
    line = f"train {recipe_file} --data {data} --out {out} --accelerator cpu"
    return diptych(f"{line} --set batches.size=5 --set stages.0.epochs=1", *more, failed=failed)


def test_a_missing_image(diptych: Command, recipe_file: Path, tmp_path: Path) -> None:
    data = dataset(tmp_path / "d")
    (data / "images" / "3.png").unlink()
    train(diptych, recipe_file, data, tmp_path / "r", failed=("3.png does not exist", "fix: "))


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
    for verb in ("embed", "evaluate --samples 0", "analyse cocos --batch-size 5"):
        diptych(*verb.split(), run, "--data", data, "--split", "../../x")
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(run)} == before
    assert len(list((run / "embeddings").iterdir())) == 1
    assert len(list((run / "embeddings").glob("*/images/embeddings.json"))) == 1


def test_a_corrupt_image_and_leaving_it_out(diptych: Command, recipe_file: Path, tmp_path: Path) -> None:
    data = dataset(tmp_path / "d")
    content = (data / "images" / "3.png").read_bytes()
    (data / "images" / "3.png").write_bytes(content[: len(content) // 2])
    train(diptych, recipe_file, data, tmp_path / "r", failed=("3.png is corrupt", "--skip-bad-images"))
    done = train(diptych, recipe_file, data, tmp_path / "r2", "--skip-bad-images")
    done.shows("1 pictures that cannot be read are left out", "29 images")


@pytest.mark.parametrize(("caption", "words"), [("  ", "is empty"), ("x" * 100_000, "100,000 characters")])
def test_an_impossible_caption(
    diptych: Command, recipe_file: Path, tmp_path: Path, caption: str, words: str
) -> None:
    data = dataset(tmp_path / "d", caption=caption)
    train(diptych, recipe_file, data, tmp_path / "r", failed=("caption 3 of 3.png", words))
    assert not (tmp_path / "r").exists()


def test_json_that_is_not_karpathys(diptych: Command, recipe_file: Path, tmp_path: Path) -> None:
    (tmp_path / "dataset.json").write_text('{"annotations": []}')
    train(diptych, recipe_file, tmp_path, tmp_path / "r", failed="is not Karpathy's JSON")


def test_a_run_of_another_version(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"format": 99}')
    diptych(f"train --resume {tmp_path}", failed="run.json holds something else, expected training")
    diptych(f"train --resume {tmp_path}/gone", refused="does not exist")
    (tmp_path / "best").mkdir()
    (tmp_path / "best" / "diptych.json").write_text('{"artifact": "diptych", "format": 99}')
    diptych(f"evaluate {tmp_path}/best --data x", failed="format 99")


def test_a_run_folder_is_not_overwritten(diptych: Command, run_folder: Path, recipe_file: Path) -> None:
    before = (run_folder / "metrics.jsonl").read_text()
    diptych(f"train {recipe_file} --out {run_folder}", refused=("already holds a run", "--resume"))
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
        diptych("train", *given, failed="another process is working in")
    assert not (tmp_path / "metrics.jsonl").exists()


def test_embeddings_do_not_replace_pictures(diptych: Command, run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "holiday.jpg").write_text("precious")
    diptych(f"embed {run_folder} --out {tmp_path}", refused="holds other things")
    assert (tmp_path / "images" / "holiday.jpg").read_text() == "precious"


def test_a_missing_library_names_its_line(
    diptych: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    (tmp_path / "dataset_info.json").write_text("{}")
    diptych(f"info {tmp_path}", refused=("needs datasets", "pip install 'diptych[datasets]'"))


@pytest.mark.parametrize(
    "verb", ["", "data scenes", "train", "embed", "evaluate", "index", "search", "report", "demo", "info"]
)
def test_help_can_be_followed(diptych: Command, verb: str) -> None:
    done = diptych(*verb.split(), "--help")
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
    hint = "--reader-option skip_bad_captions=true"
    train(diptych, recipe_file, data, tmp_path / "r", failed=hint)
    again = train(diptych, recipe_file, data, tmp_path / "r", *hint.split())
    assert "1 empty captions left out" in again.out
