"""The way through: scenes, train, fine-tune, adapt, evaluate, embed, index, search, report, info."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import Command
from PIL import Image

from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.two_tower import TwoTowerEncoder
from diptych.training.run import Run
from tests.encoders.tiny_pretrained import transformers_folder


def test_scenes(diptych: Command, tmp_path: Path) -> None:
    done = diptych(f"data scenes --train 6 --val 2 --test 2 --size 32 --out {tmp_path}/s")
    done.shows("10 images, 50 captions (5 captions per image); train 6, val 2, test 2")
    done.shows(f"diptych train scenes --data {tmp_path / 's'}")
    assert len(list((tmp_path / "s").rglob("*.png"))) == 10


def test_train_then_resume_a_finished_run(diptych: Command, tmp_path: Path, recipe_file: Path) -> None:
    done = diptych(f"train {recipe_file} --out {tmp_path}/r --set stages.0.epochs=1 --accelerator cpu")
    done.shows("best validation rsum", f"next: diptych evaluate {tmp_path / 'r'}")
    assert {"recipe.toml", "environment.json", "metrics.jsonl", "checkpoint", "best", "run.json"} <= {
        path.name for path in (tmp_path / "r").iterdir()
    }
    again = diptych(f"train --resume {tmp_path}/r")
    assert "is finished" in again.out


def test_evaluate_a_run(diptych: Command, run_folder: Path) -> None:
    done = diptych(f"evaluate {run_folder}")
    done.shows("R@1", "R@10", "rsum", "chance", "16 images", "80 texts", "split test")
    folder = run_folder / "evaluation" / "scenes-test"
    assert {"evaluation.json", "t2i.run", "t2i.qrels", "i2t.run", "i2t.qrels"} <= {
        p.name for p in folder.iterdir()
    }
    assert json.loads((folder / "evaluation.json").read_text())["content"]


def test_evaluate_another_split_with_chosen_measures(
    diptych: Command, run_folder: Path, tmp_path: Path
) -> None:
    done = diptych(f"evaluate {run_folder} --split val --measure R@3 --measure mAP@5 --out {tmp_path}/e")
    done.shows("R@3", "mAP@5")
    assert "R@10" not in done.out
    assert (tmp_path / "e" / "evaluation" / "evaluation.json").is_file()


@pytest.mark.parametrize("engine", ["exact", "hnsw"])
def test_embed_index_search(diptych: Command, run_folder: Path, tmp_path: Path, engine: str) -> None:
    embedded = diptych(f"embed {run_folder} --out {tmp_path}/e")
    assert "16 images and 80 captions, 16 numbers each" in embedded.out
    indexed = diptych(f"index {tmp_path}/e --engine {engine} --out {tmp_path}/i")
    assert f"16 images of scenes, engine {engine}" in indexed.out
    assert ("recall@10" in indexed.out) == (engine == "hnsw")
    found = diptych(f"search {tmp_path}/i 'a red star' -k 3 --sheet {tmp_path}/sheet.png")
    starts = [line.split()[0] for line in found.out.splitlines() if line.strip()]
    assert [start for start in starts if start.isdigit()] == ["1", "2", "3"]
    with Image.open(tmp_path / "sheet.png") as picture:
        assert picture.size[0] > 300


def test_search_captions_with_a_picture(
    diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    diptych(f"index {run_folder} --of texts --out {tmp_path}/i")
    picture = next((scenes_folder / "test").glob("*.png"))
    found = diptych(f"search {tmp_path}/i {picture} -k 100")
    found.shows("80", "texts for")


def test_another_encoder_is_refused(
    diptych: Command, run_folder: Path, recipe_file: Path, tmp_path: Path
) -> None:
    diptych(f"index {run_folder} --out {tmp_path}/i")
    diptych(f"train {recipe_file} --out {tmp_path}/r --set seed=5 --set stages.0.epochs=1")
    diptych(
        f"search {tmp_path}/i 'a red star' --model {tmp_path}/r",
        failed=("were made by encoder", "search with the encoder"),
    )


def test_report(diptych: Command, run_folder: Path) -> None:
    diptych(f"report {run_folder}")
    page = (run_folder / "report.html").read_text()
    for word in ("R@1", "rsum", "chance", "Best", "Worst", "data:image/", "[[stages]]", "torch"):
        assert word.lower() in page.lower(), word
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_info_of_everything(diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path) -> None:
    diptych("info").shows("torch", "measures", "diptych index --engine")
    for topic, name in (
        ("readers", "karpathy"),
        ("objectives", "infonce"),
        ("engines", "hnsw"),
        ("measures", "R@k"),
    ):
        diptych(f"info {topic}").shows(name)
    diptych("info recipes").shows("scenes")
    diptych(f"embed {run_folder} --out {tmp_path}/e")
    diptych(f"index {tmp_path}/e --out {tmp_path}/i")
    for path, word in (
        (run_folder, "training"),
        (run_folder / "best", "encoder"),
        (scenes_folder, "dataset"),
        (tmp_path / "e", "embedded collection"),
        (tmp_path / "e" / "images", "embeddings"),
        (tmp_path / "i", "index"),
    ):
        done = diptych(f"info {path}")
        assert word in done.out


def test_train_on_pairs_of_ones_own(diptych: Command, recipe_file: Path, tmp_path: Path) -> None:
    """Training assigns splits and prints their sizes; a run is evaluated on its test split."""
    lines = ["picture,words"]
    (tmp_path / "pictures").mkdir()
    for number in range(40):
        Image.new("RGB", (20, 30), (6 * number, 0, 0)).save(tmp_path / "pictures" / f"{number}.jpg")
        lines.append(f"{number}.jpg,picture of shade {number % 5}")
    (tmp_path / "shop.csv").write_text("\n".join(lines))
    done = diptych(
        f"train scenes --data {tmp_path}/shop.csv --images {tmp_path}/pictures --reader-option "
        "image_column=picture --reader-option caption_column=words --reader-option validation=0.2 "
        "--reader-option test=0.2 --set stages.0.epochs=1 --set batches.size=7 --set model.width=16 "
        f"--out {tmp_path}/r"
    )
    note = next(line for line in done.out.splitlines() if line.startswith("the data names no splits: train "))
    n_test = note.partition("test ")[2].partition(" ")[0]
    for data in (
        "",
        f"--data {tmp_path}/shop.csv --images {tmp_path}/pictures --reader-option image_column=picture "
        "--reader-option caption_column=words --reader-option validation=0.2 --reader-option test=0.2",
    ):
        diptych(f"evaluate {tmp_path}/r {data}").shows("split test", f"{n_test} images")


def test_from_a_folder_to_a_report(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    clip, run = transformers_folder("clip", tmp_path / "clip", limit=48), tmp_path / "run"
    settings = (f"fine_tune={clip}", "batches.size=24", "stages.0.epochs=1", "stages.0.warmup=2")
    chosen = [part for setting in settings for part in ("--set", setting)]
    done = diptych(f"train clip --data {scenes_folder} --out {run} --accelerator cpu", *chosen)
    assert "best validation rsum" in done.out
    done = diptych(f"evaluate {run}")
    done.shows("R@1", "rsum", "16 images", "80 texts", "split test")
    done = diptych(f"info {run}")
    assert "fine_tune" in done.out
    assert "resnet" not in done.out
    diptych(f"report {run}")
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "fine_tune" in page
    from transformers import CLIPModel

    assert CLIPModel.from_pretrained(run / "best").config.projection_dim == 24
    zero_shot = next(line for line in Run.open(run).metrics() if "validation" in line)
    assert zero_shot["epoch"] == 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.width=8", "leave the section [model] out"),
        ("stages.0.train=['image.head.*', 'vision_model.*']", "fits no parameter"),
        ("fine_tune=nowhere", "'nowhere' is neither a folder nor a name"),
    ],
)
def test_what_cannot_be_is_a_usage_error(
    diptych: Command, scenes_folder: Path, tmp_path: Path, setting: str, message: str
) -> None:
    clip = transformers_folder("clip", tmp_path / "clip")
    diptych(
        f"train clip --data {scenes_folder} --out {tmp_path}/run --accelerator cpu --set "
        f"fine_tune={clip} --set batches.size=24 --set",
        setting,
        refused=message,
    )


def test_a_run_is_adapted_evaluated_and_adapted_again(
    diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "adapted"
    done = diptych(f"adapt {run_folder} --pairs 12 --seed 1 --out {out}")
    done.shows("adapted on 12 pairs of", "train (seed 1), gaussian, strength", "was trained on these pairs")
    done.shows(f"next: diptych evaluate {out} --data {scenes_folder}")
    done = diptych(f"evaluate {out} --data {scenes_folder}")
    assert "16 images" in done.out
    about = EncodedCollection.open(next((out / "embeddings").iterdir())).about
    assert about["encoder"]["adapted"]["pairs"] == 12
    done = diptych(f"info {out}")
    assert "adapted" in done.out
    twice = diptych(f"adapt {out} --data {scenes_folder} --pairs 4 --out {tmp_path}/twice")
    assert "was trained on these pairs" not in twice.out


def test_no_pairs_leave_the_encoder_as_it_is(
    diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    done = diptych(f"adapt {run_folder} --data {scenes_folder} --pairs 0 --out {tmp_path}/none")
    assert "change nothing: the encoder stays as it is" in done.out


def test_rows_of_nobody_cannot_be_adapted(diptych: Command, scenes_folder: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    for kind in ("images", "texts"):
        np.save(rows / f"{kind}.npy", np.ones((1, 2), np.float32))
        (rows / f"{kind}.txt").write_text("a\n")
    diptych(
        f"adapt rows:{rows} --data {scenes_folder} --out {tmp_path}/out",
        refused="no encoder that could be adapted",
    )


SHORTCUTS = "--set shortcuts.setup=unique --set shortcuts.digit_size=5"


def save_digits(file: Path, shade: int) -> None:
    """A file of ten digits, one picture each."""
    pictures = np.full((10, 28, 28), shade, dtype=np.uint8)
    pictures[:, ::3] = 255
    np.savez(file, x_train=pictures, y_train=np.arange(10))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a file of digits in it."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    save_digits(tmp_path / "here" / "digits.npz", 100)
    return tmp_path / "here"


def test_both_conditions_from_anywhere(
    diptych: Command, recipe_file: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diptych(f"train {recipe_file} --out run {SHORTCUTS} --set shortcuts.digits=digits.npz")
    diptych("report run")
    assert "rsum with shortcuts" not in (folder / "run" / "report.html").read_text()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "there")  # the file of digits was named by a relative path
    done = diptych("evaluate ../here/run --samples 0")
    assert "with the shortcuts of training: a unique number on every image" in done.out
    assert (folder / "run" / "evaluation" / "scenes-test-with-shortcuts" / "evaluation.json").is_file()
    diptych("report ../here/run")
    assert "rsum with shortcuts" in (folder / "run" / "report.html").read_text()


def test_out_holds_everything(diptych: Command, recipe_file: Path, folder: Path) -> None:
    diptych(f"train {recipe_file} --out run {SHORTCUTS}")
    before = {path for path in folder.iterdir()}
    diptych("evaluate run --out out --samples 0")
    assert {path for path in folder.iterdir()} - before == {folder / "out"}
    assert {path.name for path in (folder / "out").iterdir()} == {"embeddings", "evaluation"}


def test_other_digits_than_those_of_training_are_refused(
    diptych: Command, recipe_file: Path, folder: Path
) -> None:
    named = ("--set", "shortcuts.digits=digits.npz")
    diptych(f"train {recipe_file} --out run {SHORTCUTS}", *named)
    save_digits(folder / "digits.npz", 50)
    done = diptych("evaluate run --samples 0", failed="the run was trained on digits")
    assert "rsum" in done.out, "what needs no digits is measured and said first"
    diptych("analyse audit run --probe linear --samples 0", failed="the run was trained on digits")


def test_a_run_without_shortcuts_has_one_table(diptych: Command, run_folder: Path) -> None:
    done = diptych(f"evaluate {run_folder} --samples 0")
    assert "shortcuts" not in done.out


def test_a_section_is_taken_out_by_an_empty_value(diptych: Command, recipe_file: Path, folder: Path) -> None:
    (folder / "cached.toml").write_text(
        recipe_file.read_text().replace('train = ["*"]', "") + "\n[features]\nviews = 0\n"
    )
    diptych(f"train cached.toml --out run {SHORTCUTS}", refused="leave [features] out")
    diptych(f"train cached.toml --out run {SHORTCUTS} --set features=")


def test_counts_say_that_they_are_without_shortcuts(
    diptych: Command, recipe_file: Path, folder: Path
) -> None:
    diptych(f"train {recipe_file} --out run {SHORTCUTS}")
    assert "shortcuts none, trained with unique" in diptych("analyse cocos run").out


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(
    diptych: Command, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diptych.encoders.encode._IMAGE_BLOCK", 4)
    whole, out = tmp_path / "whole", tmp_path / "out"
    diptych(f"embed {run_folder} --out {whole}")
    encode, seen = TwoTowerEncoder.encode_prepared, 0

    def interrupted(self: TwoTowerEncoder, prepared: Any, positions: Any) -> np.ndarray:
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
    done = diptych(f"embed {run_folder} --out {out}")
    assert "16 images and 80 captions" in done.out
    assert seen == 16
    found, expected = EncodedCollection.open(out), EncodedCollection.open(whole)
    assert np.array_equal(found.images.rows, expected.images.rows)
    assert np.array_equal(found.texts.rows, expected.texts.rows)


def test_devices_that_are_not_there_are_refused(
    diptych: Command, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    for accelerator, said in (
        ("cuda", "2 processes for 0 GPUs"),
        ("mps", "accelerator 'mps' with 2 processes"),
    ):
        line = f"embed {run_folder} --out {tmp_path}/e --processes 2 --accelerator {accelerator}"
        diptych(line, refused=said)
