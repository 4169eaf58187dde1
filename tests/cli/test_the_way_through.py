"""The whole way by the command line: scenes, train, evaluate, embed, index, search, report, info."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command
from PIL import Image


def test_scenes(diptych: Command, tmp_path: Path) -> None:
    done = diptych("scenes", "--train", 6, "--val", 2, "--test", 2, "--size", 32, "--out", tmp_path / "s")
    assert done.code == 0
    assert "10 images, 50 captions (5 captions per image); train 6, val 2, test 2" in done.out
    assert f"diptych train scenes --data {tmp_path / 's'}" in done.out
    assert len(list((tmp_path / "s").rglob("*.png"))) == 10


def test_train_then_resume_a_finished_run(diptych: Command, tmp_path: Path, recipe_file: Path) -> None:
    done = diptych(
        "train", recipe_file, "--out", tmp_path / "r", "--set", "stages.0.epochs=1", "--accelerator", "cpu"
    )
    assert done.code == 0, done.err
    assert "best validation rsum" in done.out
    assert f"next: diptych evaluate {tmp_path / 'r'}" in done.out
    assert {"recipe.toml", "environment.json", "metrics.jsonl", "checkpoint", "best", "run.json"} <= {
        path.name for path in (tmp_path / "r").iterdir()
    }
    again = diptych("train", "--resume", tmp_path / "r")
    assert again.code == 0
    assert "is finished" in again.out


def test_evaluate_a_run(diptych: Command, run_folder: Path) -> None:
    done = diptych("evaluate", run_folder)
    assert done.code == 0, done.err
    for word in ("R@1", "R@10", "rsum", "chance", "16 images", "80 texts", "split test"):
        assert word in done.out, word
    folder = run_folder / "evaluation" / "scenes-test"
    assert {"evaluation.json", "t2i.run", "t2i.qrels", "i2t.run", "i2t.qrels"} <= {
        p.name for p in folder.iterdir()
    }
    assert json.loads((folder / "evaluation.json").read_text())


def test_evaluate_another_split_with_chosen_measures(
    diptych: Command, run_folder: Path, tmp_path: Path
) -> None:
    done = diptych(
        "evaluate",
        run_folder,
        "--split",
        "val",
        "--measure",
        "R@3",
        "--measure",
        "mAP@5",
        "--out",
        tmp_path / "e",
    )
    assert done.code == 0, done.err
    assert "R@3" in done.out
    assert "mAP@5" in done.out
    assert "R@10" not in done.out
    assert (tmp_path / "e" / "evaluation" / "evaluation.json").is_file()


@pytest.mark.parametrize("engine", ["exact", "hnsw"])
def test_embed_index_search(diptych: Command, run_folder: Path, tmp_path: Path, engine: str) -> None:
    embedded = diptych("embed", run_folder, "--out", tmp_path / "e")
    assert embedded.code == 0, embedded.err
    assert "16 pictures and 80 captions, 16 numbers each" in embedded.out
    indexed = diptych("index", tmp_path / "e", "--engine", engine, "--out", tmp_path / "i")
    assert indexed.code == 0, indexed.err
    assert f"16 images of scenes, engine {engine}" in indexed.out
    assert ("recall@10" in indexed.out) == (engine == "hnsw")
    found = diptych("search", tmp_path / "i", "a red star", "-k", 3, "--sheet", tmp_path / "sheet.png")
    assert found.code == 0, found.err
    starts = [line.split()[0] for line in found.out.splitlines() if line.strip()]
    assert [start for start in starts if start.isdigit()] == ["1", "2", "3"]
    with Image.open(tmp_path / "sheet.png") as picture:
        assert picture.size[0] > 300


def test_search_captions_with_a_picture(
    diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    assert diptych("index", run_folder, "--of", "texts", "--out", tmp_path / "i").code == 0
    picture = next((scenes_folder / "test").glob("*.png"))
    found = diptych("search", tmp_path / "i", picture, "-k", 100)
    assert found.code == 0, found.err
    assert "80" in found.out
    assert "texts for" in found.out


def test_another_encoder_is_refused(
    diptych: Command, run_folder: Path, recipe_file: Path, tmp_path: Path
) -> None:
    assert diptych("index", run_folder, "--out", tmp_path / "i").code == 0
    other = diptych(
        "train", recipe_file, "--out", tmp_path / "r", "--set", "seed=5", "--set", "stages.0.epochs=1"
    )
    assert other.code == 0
    refused = diptych("search", tmp_path / "i", "a red star", "--model", tmp_path / "r")
    assert refused.code == 1
    assert "were made by encoder" in refused.err
    assert "rebuild the index" in refused.err


def test_report(diptych: Command, run_folder: Path) -> None:
    done = diptych("report", run_folder)
    assert done.code == 0, done.err
    page = (run_folder / "report.html").read_text()
    for word in ("R@1", "rsum", "chance", "Best", "Worst", "data:image/", "[[stages]]", "torch"):
        assert word.lower() in page.lower(), word
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_info_of_everything(diptych: Command, run_folder: Path, scenes_folder: Path, tmp_path: Path) -> None:
    plain = diptych("info")
    assert plain.code == 0, plain.err
    for word in ("torch", "karpathy", "infonce", "hnsw", "R@k", "scenes"):
        assert word in plain.out, word
    assert diptych("embed", run_folder, "--out", tmp_path / "e").code == 0
    assert diptych("index", tmp_path / "e", "--out", tmp_path / "i").code == 0
    for path, word in (
        (run_folder, "run"),
        (run_folder / "best", "encoder"),
        (scenes_folder, "dataset"),
        (tmp_path / "e", "embedded collection"),
        (tmp_path / "e" / "images", "image embeddings"),
        (tmp_path / "i", "index"),
    ):
        done = diptych("info", path)
        assert done.code == 0, done.err
        assert word in done.out


def test_train_on_pairs_of_ones_own(diptych: Command, recipe_file: Path, tmp_path: Path) -> None:
    lines = ["picture,words,split"]
    (tmp_path / "pictures").mkdir()
    for number in range(40):
        split = "train" if number < 28 else "val" if number < 34 else "test"
        Image.new("RGB", (20, 30), (6 * number, 0, 0)).save(tmp_path / "pictures" / f"{number}.jpg")
        lines.append(f"{number}.jpg,picture of shade {number % 5},{split}")
    (tmp_path / "shop.csv").write_text("\n".join(lines))
    done = diptych(
        "train", "scenes", "--data", tmp_path / "shop.csv", "--images", tmp_path / "pictures",
        "--reader-option", "image_column=picture", "--reader-option", "caption_column=words",
        "--set", "stages.0.epochs=1", "--set", "batches.size=7", "--set", "model.width=16", "--out", tmp_path / "r",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert diptych("evaluate", tmp_path / "r").code == 0
