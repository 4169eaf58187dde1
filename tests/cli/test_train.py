"""The way through: scenes, train, fine-tune, adapt, evaluate, embed, index, search, report, info."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import torch
from PIL import Image

from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.two_tower import TwoTowerEncoder
from diptych.training.run import Run


def test_scenes_evaluation_and_report(diptych, run_folder, tmp_path):
    done = diptych(f"data scenes --train 6 --val 2 --test 2 --size 32 --out {tmp_path}/s")
    done.shows("10 images, 50 captions (5 captions per image); train 6, val 2, test 2")
    done.shows(f"diptych train scenes --data {tmp_path / 's'}")
    diptych(f"train --resume {run_folder}").shows("is finished")
    done = diptych(f"evaluate {run_folder}")
    done.shows("R@1", "R@10", "rsum", "chance", "16 images", "80 texts", "split test")
    done.hides("shortcuts")
    folder = run_folder / "evaluation" / "scenes-test"
    written = {path.name for path in folder.iterdir()}
    assert {"evaluation.json", "t2i.run", "t2i.qrels", "i2t.run", "i2t.qrels"} <= written
    assert json.loads((folder / "evaluation.json").read_text())["content"]
    done = diptych(f"evaluate {run_folder} --split val --measure R@3 --measure mAP@5 --out {tmp_path}/e")
    done.shows("R@3", "mAP@5")
    done.hides("R@10")
    assert (tmp_path / "e" / "evaluation" / "evaluation.json").is_file()
    diptych(f"report {run_folder}")
    page = (run_folder / "report.html").read_text()
    for word in ("R@1", "rsum", "chance", "Best", "Worst", "data:image/", "[[stages]]", "torch"):
        assert word.lower() in page.lower(), word
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_embed_index_search(diptych, run_folder, scenes_folder, embedded, tmp_path):
    done = diptych(f"embed {run_folder} --out {tmp_path}/e")
    done.shows("16 images and 80 captions, 16 numbers each")
    for engine in ("exact", "hnsw"):
        indexed = diptych(f"index {tmp_path}/e --engine {engine} --out {tmp_path}/{engine}")
        indexed.shows(f"16 images of scenes, engine {engine}")
        assert ("recall@10" in indexed.out) == (engine == "hnsw")
        found = diptych(f"search {tmp_path}/{engine} 'a red star' -k 3 --sheet {tmp_path}/sheet.png")
        starts = [line.split()[0] for line in found.out.splitlines() if line.strip()]
        assert [start for start in starts if start.isdigit()] == ["1", "2", "3"]
    with Image.open(tmp_path / "sheet.png") as picture:
        assert picture.size[0] > 300
    diptych(f"index {embedded} --of texts --out {tmp_path}/texts")
    picture_file = next((scenes_folder / "test").glob("*.png"))
    diptych(f"search {tmp_path}/texts {picture_file} -k 100").shows("80", "texts for")


def test_info_of_everything(diptych, run_folder, scenes_folder, embedded, index):
    for line, words in (
        ("", ("torch", "measures", "diptych index --engine")),
        ("readers", ("karpathy",)),
        ("objectives", ("infonce",)),
        ("engines", ("hnsw",)),
        ("measures", ("R@k",)),
        ("recipes", ("scenes",)),
        ("datasets", ("flickr30k-fg", "fashion200k")),
        ("protocols", ("k_test",)),
        (run_folder, ("training",)),
        (run_folder / "best", ("encoder",)),
        (scenes_folder, ("dataset",)),
        (embedded, ("embedded collection",)),
        (embedded / "images", ("embeddings",)),
        (index, ("index",)),
    ):
        diptych(f"info {line}").shows(*words)


def test_train_on_pairs_of_ones_own(diptych, tmp_path):
    """Training assigns splits and prints their sizes; a run is evaluated on its test split."""
    lines = ["picture,words"]
    (tmp_path / "pictures").mkdir()
    for number in range(40):
        Image.new("RGB", (20, 30), (6 * number, 0, 0)).save(tmp_path / "pictures" / f"{number}.jpg")
        lines.append(f"{number}.jpg,picture of shade {number % 5}")
    (tmp_path / "shop.csv").write_text("\n".join(lines))
    options = ("image_column=picture", "caption_column=words", "validation=0.2", "test=0.2")
    data = f"--data {tmp_path}/shop.csv --images {tmp_path}/pictures"
    data = " ".join([data, *(f"--reader-option {option}" for option in options)])
    small = "--set stages.0.epochs=1 --set batches.size=7 --set model.width=16"
    done = diptych(f"train scenes {data} {small} --out {tmp_path}/r")
    note = next(line for line in done.out.splitlines() if line.startswith("the data names no splits: train "))
    n_test = note.partition("test ")[2].partition(" ")[0]
    for given in ("", data):
        diptych(f"evaluate {tmp_path}/r {given}").shows("split test", f"{n_test} images")


def test_fine_tuned_from_a_folder(diptych, clip, scenes_folder, tmp_path):
    from transformers import CLIPModel

    run = tmp_path / "run"
    settings = (f"fine_tune={clip}", "batches.size=24", "stages.0.epochs=1", "stages.0.warmup=2")
    chosen = " ".join(f"--set {setting}" for setting in settings)
    line = f"train clip --data {scenes_folder} --accelerator cpu {chosen}"
    for number, (setting, message) in enumerate(
        {
            "model.width=8": "leave the section [model] out",
            "stages.0.train=['image.head.*', 'vision_model.*']": "fits no parameter",
            "fine_tune=nowhere": "'nowhere' is neither a folder nor a name",
        }.items()
    ):
        diptych(f"{line} --out {tmp_path}/{number} --set", setting, refused=message)
    diptych(f"{line} --out {run}").shows("best validation rsum")
    diptych(f"evaluate {run}").shows("R@1", "rsum", "16 images", "80 texts", "split test")
    done = diptych(f"info {run}")
    done.shows("fine_tune")
    done.hides("resnet")
    diptych(f"report {run}")
    assert "fine_tune" in (run / "report.html").read_text(encoding="utf-8")
    assert CLIPModel.from_pretrained(run / "best").config.projection_dim == 24
    zero_shot = next(line for line in Run.open(run).metrics() if "validation" in line)
    assert zero_shot["epoch"] == 0


def test_a_run_is_adapted_evaluated_and_adapted_again(diptych, run_folder, scenes_folder, tmp_path):
    out = tmp_path / "adapted"
    done = diptych(f"adapt {run_folder} --pairs 12 --seed 1 --out {out}")
    done.shows("adapted on 12 pairs of", "train (seed 1), gaussian, strength", "was trained on these pairs")
    done.shows(f"next: diptych evaluate {out} --data {scenes_folder}")
    diptych(f"evaluate {out} --data {scenes_folder}").shows("16 images")
    about = EncodedCollection.open(next((out / "embeddings").iterdir())).about
    assert about["encoder"]["adapted"]["pairs"] == 12
    diptych(f"info {out}").shows("adapted")
    twice = diptych(f"adapt {out} --data {scenes_folder} --pairs 4 --out {tmp_path}/twice")
    twice.hides("was trained on these pairs")
    none = diptych(f"adapt {run_folder} --data {scenes_folder} --pairs 0 --out {tmp_path}/none")
    none.shows("change nothing: the encoder stays as it is")


def save_digits(file, shade):
    """A file of ten digits, one picture each."""
    pictures = np.full((10, 28, 28), shade, dtype=np.uint8)
    pictures[:, ::3] = 255
    np.savez(file, x_train=pictures, y_train=np.arange(10))


def test_a_run_with_shortcuts(diptych, recipe_file, index, tmp_path, monkeypatch):
    """Trained with digits that are named by a relative path; measured with and without them, from anywhere."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    monkeypatch.chdir(here)
    save_digits(here / "digits.npz", 100)
    recipe = recipe_file.read_text().replace('train = ["*"]', "")
    (here / "cached.toml").write_text(f"{recipe}\n[features]\nviews = 0\n")
    shortcuts = {"setup": "unique", "digit_size": 5, "digits": "digits.npz"}
    line = "train cached.toml --out run --set stages.0.epochs=1 --accelerator cpu"
    line = " ".join([line, *(f"--set shortcuts.{name}={value}" for name, value in shortcuts.items())])
    diptych(line, refused="leave [features] out")
    done = diptych(f"{line} --set features=")  # an empty value takes a section out
    done.shows("best validation rsum", "next: diptych evaluate run")
    written = {path.name for path in (here / "run").iterdir()}
    assert {"recipe.toml", "environment.json", "metrics.jsonl", "checkpoint", "best", "run.json"} <= written
    before = set(here.iterdir())
    diptych("evaluate run --out out --samples 0")
    assert set(here.iterdir()) - before == {here / "out"}
    assert {path.name for path in (here / "out").iterdir()} == {"embeddings", "evaluation"}
    diptych("report run")
    assert "rsum with shortcuts" not in (here / "run" / "report.html").read_text()
    diptych("analyse cocos run").shows("shortcuts none, trained with unique")
    monkeypatch.chdir(there)
    done = diptych("evaluate ../here/run --samples 0")
    done.shows("with the shortcuts of training: a unique number on every image")
    assert (here / "run" / "evaluation" / "scenes-test-with-shortcuts" / "evaluation.json").is_file()
    diptych("report ../here/run")
    assert "rsum with shortcuts" in (here / "run" / "report.html").read_text()
    other = ("were made by encoder", "search with the encoder")
    diptych(f"search {index} 'a red star' --model {here}/run", failed=other)
    save_digits(here / "digits.npz", 50)
    done = diptych("evaluate ../here/run --samples 0 --out again", failed="the run was trained on digits")
    assert "rsum" in done.out, "what needs no digits is measured and printed first"
    diptych("analyse audit ../here/run --probe linear --samples 0", failed="the run was trained on digits")


def test_ctrl_c_keeps_what_is_done_and_the_same_command_resumes(
    diptych, run_folder, embedded, tmp_path, monkeypatch
):
    monkeypatch.setattr("diptych.encoders.encode._IMAGE_BLOCK", 4)
    out, encode, seen = tmp_path / "out", TwoTowerEncoder.encode_prepared, 0

    def interrupted(self, prepared, positions):
        nonlocal seen
        seen += len(prepared)
        if seen == 8:
            os.kill(os.getpid(), signal.SIGINT)
        return encode(self, prepared, positions)

    monkeypatch.setattr(TwoTowerEncoder, "encode_prepared", interrupted)
    stopped = diptych(f"embed {run_folder} --out {out}", code=130)
    stopped.says("stopped: 8 of 16 images and 0 of 80 captions are embedded and kept")
    stopped.says("the same command resumes")
    diptych(f"evaluate {out}", refused="is not finished")
    diptych(f"embed {run_folder} --out {out}").shows("16 images and 80 captions")
    assert seen == 16
    found, expected = EncodedCollection.open(out), EncodedCollection.open(embedded)
    np.testing.assert_allclose(found.images.rows, expected.images.rows, atol=1e-6)
    np.testing.assert_allclose(found.texts.rows, expected.texts.rows, atol=1e-6)


def test_devices_that_are_not_there_are_refused(diptych, run_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    line = f"embed {run_folder} --out {tmp_path}/e --processes 2 --accelerator"
    diptych(f"{line} cuda", refused="2 processes for 0 GPUs")
    diptych(f"{line} mps", refused="accelerator 'mps' with 2 processes")
