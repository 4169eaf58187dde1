"""What goes wrong is one line with its fix, exit code 1 or 2, no traceback, nothing lost."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time

from PIL import Image

from diptych.core.locking import exclusive_folder
from diptych.training.recipe import load_recipe
from diptych.training.run import Run


def dataset(folder, caption="a thing"):
    (folder / "images").mkdir(parents=True)
    entries = []
    for number in range(30):
        split = "train" if number < 20 else "val" if number < 25 else "test"
        Image.new("RGB", (32, 32), (8 * number, 0, 0)).save(folder / "images" / f"{number}.png")
        text = caption if number == 3 else f"a thing of shade {number}"
        sentence = {"raw": text, "sentid": number}
        entries.append({"filename": f"{number}.png", "split": split, "sentences": [sentence]})
    (folder / "dataset.json").write_text(json.dumps({"images": entries, "dataset": "things"}))
    return folder


def train(diptych, recipe_file, data, out, more="", failed=()):
    line = f"train {recipe_file} --data {data} --out {out} --accelerator cpu"
    return diptych(f"{line} --set batches.size=5 --set stages.0.epochs=1 {more}", failed=failed)


def test_the_name_of_a_dataset_leads_nowhere_else(diptych, run_folder, tmp_path):
    for number, name in enumerate(("../../../ESCAPED", f"{tmp_path}/ABSOLUTE")):
        home = tmp_path / str(number)
        data, run = dataset(home / "d"), home / "deep" / "run"
        content = json.loads((data / "dataset.json").read_text())
        content["dataset"] = name
        for entry in content["images"][25:]:
            entry["split"] = "../../x"
        (data / "dataset.json").write_text(json.dumps(content))
        shutil.copytree(run_folder, run, ignore=shutil.ignore_patterns("embeddings"))
        before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(run)}
        for verb in ("embed", "evaluate --samples 0", "analyse cocos --batch-size 5")[: 3 - 2 * number]:
            diptych(f"{verb} {run} --data {data} --split ../../x")
        assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(run)} == before
        assert len(list((run / "embeddings").iterdir())) == 1
        assert len(list((run / "embeddings").glob("*/images/embeddings.json"))) == 1


def test_images_that_are_missing_or_corrupt(diptych, recipe_file, tmp_path):
    data = dataset(tmp_path / "d")
    picture = data / "images" / "3.png"
    content = picture.read_bytes()
    picture.unlink()
    train(diptych, recipe_file, data, tmp_path / "r1", failed=("3.png does not exist", "fix: "))
    picture.write_bytes(content[: len(content) // 2])
    train(diptych, recipe_file, data, tmp_path / "r2", failed=("3.png is corrupt", "--skip-bad-images"))
    done = train(diptych, recipe_file, data, tmp_path / "r3", "--skip-bad-images")
    done.shows("1 pictures that cannot be read are left out", "29 images")


def test_captions_that_cannot_be(diptych, recipe_file, tmp_path):
    hint, out = "--reader-option skip_bad_captions=true", tmp_path / "r"
    for name, caption, words in (
        ("a", "  ", "is empty"),
        ("b", "x" * 100_000, "100,000 characters"),
        ("c", "...", hint),
    ):
        data = dataset(tmp_path / name, caption)
        train(diptych, recipe_file, data, out, failed=("caption 3 of 3.png", words))
        assert not out.exists()
    train(diptych, recipe_file, data, out, hint).shows("1 empty captions left out")
    (tmp_path / "dataset.json").write_text('{"annotations": []}')
    train(diptych, recipe_file, tmp_path, tmp_path / "n", failed="is not Karpathy's JSON")


def test_a_run_of_another_version(diptych, tmp_path):
    (tmp_path / "run.json").write_text('{"format": 99}')
    diptych(f"train --resume {tmp_path}", failed="run.json holds something else, expected training")
    (tmp_path / "best").mkdir()
    (tmp_path / "best" / "diptych.json").write_text('{"artifact": "diptych", "format": 99}')
    diptych(f"evaluate {tmp_path}/best --data x", failed="format 99")


def test_a_run_that_another_process_trains(diptych, recipe_file, tmp_path):
    Run.prepare(tmp_path / "begun", load_recipe(recipe_file)).begin({})
    (tmp_path / "new").mkdir()
    for folder, given in (("new", (recipe_file, "--out")), ("begun", ("--resume",))):
        with exclusive_folder(tmp_path / folder):
            diptych("train", *given, tmp_path / folder, failed="another process is working in")
        assert not (tmp_path / folder / "metrics.jsonl").exists()


def test_a_missing_library_names_its_line(diptych, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    (tmp_path / "dataset_info.json").write_text("{}")
    diptych(f"info {tmp_path}", refused=("needs datasets", "pip install 'diptych[datasets]'"))


def test_ctrl_c_saves_and_names_the_way_to_resume(recipe_file, tmp_path):
    run = tmp_path / "r"
    command = [sys.executable, "-m", "diptych", "train", str(recipe_file), "--out", str(run)]
    process = subprocess.Popen(
        [*command, "--set", "stages.0.epochs=5000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not (run / "metrics.jsonl").exists() or not (run / "metrics.jsonl").read_text():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    for words in ("stopping at the next safe point", "stopped after step", f"diptych train --resume {run}"):
        assert words in err
    assert "Traceback" not in err
