"""``diptych categories fill``: suggestions, what they are worth, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from category_runs import trained_shop
from commands import Command
from PIL import Image

from diptych.commerce.category_to_image.runs import CategoryRun
from diptych.core.reading import read_json


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return trained_shop(tmp_path_factory.mktemp("trained"))


def lines(file: Path) -> list[dict]:  # type: ignore[type-arg]
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_products_without_a_category(diptych: Command, trained: tuple[Path, Path]) -> None:
    _, run = trained
    done = diptych("categories", "fill", run)
    assert done.code == 0, done.err
    filled, said = lines(run / "filled.jsonl"), read_json(run / "filled.summary.json")
    assert 0 < len(filled) == said["products"] == sum(said["counts"].values())
    assert f"{len(filled)} products in {run / 'filled.jsonl'}" in done.out
    assert "found on" in done.out
    assert "of split val" in done.out
    assert said["reliability"]["products"] > 0
    assert said["calibration"]["loss"] <= min(
        said["calibration"]["loss_at_one"], said["calibration"]["chance"]
    )
    assert {one["verdict"] for one in filled} <= {"whole", "in part", "uncertain"}
    for one in filled:
        values = [level["confidence"] for level in one["levels"]]
        assert values == sorted(values, reverse=True)
        assert one["own"] == []
        assert all(value >= 0.5 for value in values[: len(one["path"])])
        assert all(value < 0.5 for value in values[len(one["path"]) : len(one["path"]) + 1])
        assert len(one["alternatives"]) == 3


def test_a_threshold_cuts_paths(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    shop, run = trained
    for threshold in ("0", "0.9", "1"):
        file = tmp_path / f"{threshold}.jsonl"
        assert diptych("categories", "fill", run, shop, "--threshold", threshold, "--out", file).code == 0
    kept = [[len(one["path"]) for one in lines(tmp_path / f"{name}.jsonl")] for name in ("0", "0.9", "1")]
    assert all(low >= middle >= high for low, middle, high in zip(*kept, strict=True))
    assert all(one["verdict"] == "whole" for one in lines(tmp_path / "0.jsonl"))
    assert sum(kept[1]) < sum(kept[0])


def test_products_that_may_be_in_the_wrong_place(
    diptych: Command, trained: tuple[Path, Path], tmp_path: Path
) -> None:
    _, run = trained
    file = tmp_path / "doubtful.csv"
    done = diptych(
        "categories", "fill", run, "--check", "--candidates", "all", "--threshold", 0.2, "--out", file
    )
    assert done.code == 0, done.err
    with open(file, encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    said = read_json(tmp_path / "doubtful.summary.json")
    assert len(rows) + said["counts"].get("agrees", 0) == said["products"]
    assert all(row["verdict"] != "agrees" for row in rows)
    assert all(
        not row["category"].startswith(row["own"] or "?") for row in rows if row["verdict"] == "disagrees"
    )
    assert "that agree with their own category left out" in done.out


def test_nothing_to_fill(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    _, run = trained
    path = CategoryRun.open(run).tree.paths[-1]
    (tmp_path / "shop" / "images").mkdir(parents=True)
    images = []
    for name in ("a", "b"):
        Image.new("RGB", (16, 16), "red").save(tmp_path / "shop" / "images" / f"{name}.png")
        images.append(
            {
                "filename": f"{name}.png",
                "split": "new",
                "sentences": [{"raw": "a lamp"}],
                "title": "a lamp",
                "category_path": path,
            }
        )
    (tmp_path / "shop" / "dataset_two.json").write_text(json.dumps({"dataset": "two", "images": images}))
    done = diptych("categories", "fill", run, tmp_path / "shop", "--out", tmp_path / "a.jsonl")
    assert done.code == 0, done.err
    assert "all 2 products have a category: nothing to fill" in done.out
    assert done.out.rstrip().endswith("--check")
    assert (tmp_path / "a.jsonl").read_bytes() == b""


def test_calibrated_on_the_test_products_nothing_is_left_to_measure_on(
    diptych: Command, trained: tuple[Path, Path], tmp_path: Path
) -> None:
    _, run = trained
    done = diptych("categories", "fill", run, "--calibrate-on", "test", "--out", tmp_path / "b.jsonl")
    assert done.code == 0, done.err
    assert "was not measured" in done.out
    assert read_json(tmp_path / "b.summary.json")["reliability"] is None


def test_what_is_refused(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    shop, run = trained
    for arguments, words in (
        ((run, "--out", tmp_path / "filled.xlsx"), "ends in '.xlsx'"),
        ((run, "--calibrate-on", "train"), "thinks too much of itself"),
        ((run, "--calibrate-on", "tests"), "no tests products to calibrate on"),
        ((run, "--candidates", "few"), "candidates 'few'"),
        ((run, "--threshold", "2"), "less than or equal to 1"),
        ((shop,), "no trained category model"),
    ):
        done = diptych("categories", "fill", *arguments)
        assert done.code == 2, (arguments, done.out)
        assert words in done.err


def test_of_a_product_of_which_nothing_is_known_nothing_is_said(
    diptych: Command, trained: tuple[Path, Path], tmp_path: Path
) -> None:
    _, run = trained
    feed = tmp_path / "feed.csv"
    feed.write_text("id,title,product_type,image_link\na1,Red Heart,,\na2,,,\n", "utf-8")
    done = diptych("categories", "fill", run, feed, "--out", tmp_path / "filled.jsonl", "--threshold", 0)
    assert done.code == 0, done.err
    named, blank = lines(tmp_path / "filled.jsonl")
    assert named["path"]
    assert blank["verdict"] == "nothing known"
    assert blank["path"] == blank["levels"] == blank["alternatives"] == []
    assert read_json(tmp_path / "filled.summary.json")["counts"]["nothing known"] == 1


def test_what_it_was_trained_on_is_said(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    _, run = trained
    whole = diptych("categories", "fill", run, "--check")
    assert whole.code == 0, whole.err
    assert "the run was trained on" in whole.out
    assert (run / "checked.jsonl").is_file()
    trained_on = read_json(run / "checked.summary.json")["trained_on"]
    opened = CategoryRun.open(run)
    assert 0 < trained_on < sum(split == "train" for split in opened.splits.values())  # some have no category
    test = diptych("categories", "fill", run, "--check", "--split", "test", "--out", tmp_path / "t.jsonl")
    assert "the run was trained on" not in test.out
    assert read_json(tmp_path / "t.summary.json")["trained_on"] == 0
    picked = diptych("categories", "pick", run, "--out", tmp_path / "picks")
    assert f"the run was trained on {trained_on} of these products" in picked.out
    assert f"{trained_on} of these products" in (tmp_path / "picks" / "tree.html").read_text("utf-8")
    members = diptych(
        "categories", "pick", run, "--out", tmp_path / "picks", "--among", "members", "--no-sheet"
    )
    assert "flatters" not in members.out
    assert not (tmp_path / "picks" / "tree.html").exists()  # it showed other pictures
