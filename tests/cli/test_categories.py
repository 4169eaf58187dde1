"""Category runs: pick, fill, index, search, info, report."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Command
from PIL import Image

from diptych.commerce.category_to_image.run import CategoryRun
from diptych.core.reading import read_json


def picked(folder: Path) -> Any:
    return json.loads((folder / "picks.json").read_text("utf-8"))


def test_the_runs_own_products(diptych: Command, trained: tuple[Path, Path]) -> None:
    _, run = trained
    done = diptych(f"categories pick {run} -k 3")
    said = picked(run / "picks")
    assert said["catalogue"]["products"] == 80
    assert said["about"]["model"] == "clip-ita"
    done.shows(f"{said['counts']['pictures']:,} images for {said['counts']['categories']:,} categories")
    done.shows(f"open {run / 'picks' / 'tree.html'}")
    done.shows("trained on most-specific categories only; --setting all is for every level")
    assert (run / "picks" / "tree.html").is_file()
    for entry in said["categories"]:
        assert len(entry["products"]) == min(3, entry["pictured_products"])
        assert entry["query"] == entry["path"][-1]
        files = [one["file"] for one in entry["products"]]
        assert len(set(files)) == len(files)
        assert all(Path(file).is_file() for file in files)
        for one in entry["products"]:
            below = any(path[: len(entry["path"])] == entry["path"] for path in one["categories"])
            assert one["of_the_category"] == (below if one["categories"] else None)


def test_members_of_a_split_of_other_products(
    diptych: Command, trained: tuple[Path, Path], tmp_path: Path
) -> None:
    shop, run = trained
    done = diptych(
        f"categories pick {run} {shop} --split test --among members --no-sheet --distinct title "
        f"--out {tmp_path}/picks"
    )
    assert [file.name for file in (tmp_path / "picks").iterdir()] == ["picks.json"]
    said = picked(tmp_path / "picks")
    assert said["counts"]["categories without a picture"] > 0
    assert said["counts"]["of another category"] == 0
    assert said["distinct"] == ["picture", "title"]
    assert "for every level" not in done.out
    assert said["about"]["split"] == "test"


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_products_without_a_category(diptych: Command, trained: tuple[Path, Path]) -> None:
    _, run = trained
    done = diptych(f"categories fill {run}")
    filled, said = lines(run / "filled.jsonl"), read_json(run / "filled.summary.json")
    assert 0 < len(filled) == said["products"] == sum(said["counts"].values())
    done.shows(f"{len(filled)} products in {run / 'filled.jsonl'}", "found on", "of split val")
    assert said["reliability"]["products"] > 0
    assert said["calibration"]["loss"] <= said["calibration"]["chance"]
    assert {one["verdict"] for one in filled} <= {"whole", "in part", "uncertain"}
    for one in filled:
        values = [level["confidence"] for level in one["levels"]]
        assert values == sorted(values, reverse=True)
        assert one["own"] == []
        assert all(value >= 0.5 for value in values[: len(one["path"])])
        assert all(value < 0.5 for value in values[len(one["path"]) : len(one["path"]) + 1])
        assert len(one["alternatives"]) == 3


def test_products_that_may_be_in_the_wrong_place(
    diptych: Command, trained: tuple[Path, Path], tmp_path: Path
) -> None:
    _, run = trained
    file = tmp_path / "doubtful.csv"
    done = diptych(f"categories fill {run} --check --candidates all --threshold 0.05 --out {file}")
    with open(file, encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    said = read_json(tmp_path / "doubtful.summary.json")
    with open(tmp_path / "doubtful.review.csv", encoding="utf-8", newline="") as handle:
        assert len(list(csv.DictReader(handle))) == said["review"] <= len(rows)
    done.shows("hierarchical F1 of what is suggested for", "need a person, as in", "doubtful.review.csv")
    assert 0 < said["hierarchical"]["f1"] < 1
    assert len(rows) + said["counts"].get("agrees", 0) == said["products"]
    assert all(row["verdict"] != "agrees" for row in rows)
    assert all(
        not row["category"].startswith(row["own"] or "?") for row in rows if row["verdict"] == "disagrees"
    )
    assert "that agree with their own category left out" in done.out


def test_little_to_fill(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    """Of a product of which nothing is known nothing is suggested; categories that are there stay."""
    _, run = trained
    done = diptych(f"categories fill {run} --calibrate-on test --out {tmp_path}/b.jsonl")
    done.shows("was not measured")  # nothing is left to measure on
    assert read_json(tmp_path / "b.summary.json")["reliability"] is None
    feed, out = tmp_path / "feed.csv", tmp_path / "filled.jsonl"
    feed.write_text("id,title,product_type,image_link\na1,Red Heart,,\na2,,,\n", "utf-8")
    diptych(f"categories fill {run} {feed} --out {out} --threshold 0")
    named, blank = lines(out)
    assert named["path"]
    assert blank["verdict"] == "nothing known"
    assert blank["path"] == blank["levels"] == blank["alternatives"] == []
    assert read_json(tmp_path / "filled.summary.json")["counts"]["nothing known"] == 1
    path = " > ".join(CategoryRun.open(run).tree.paths[-1])
    feed.write_text(f"id,title,product_type\na1,a lamp,{path}\n", "utf-8")
    done = diptych(f"categories fill {run} {feed} --out {out}")
    done.shows("all products have a category: nothing to fill")
    assert done.out.rstrip().endswith("--check")
    assert out.read_bytes() == b""


def test_products_of_the_training_are_named(
    diptych: Command, trained: tuple[Path, Path], tmp_path: Path
) -> None:
    _, run = trained
    whole = diptych(f"categories fill {run} --check")
    assert "the run was trained on" in whole.out
    assert (run / "checked.jsonl").is_file()
    trained_on = read_json(run / "checked.summary.json")["trained_on"]
    opened = CategoryRun.open(run)
    assert 0 < trained_on < sum(split == "train" for split in opened.splits.values())  # some have no category
    test = diptych(f"categories fill {run} --check --split test --out {tmp_path}/t.jsonl")
    assert "the run was trained on" not in test.out
    assert read_json(tmp_path / "t.summary.json")["trained_on"] == 0
    picked = diptych(f"categories pick {run} --out {tmp_path}/picks")
    assert f"the run was trained on {trained_on} of these products" in picked.out
    assert f"{trained_on} of these products" in (tmp_path / "picks" / "tree.html").read_text("utf-8")
    assert picked.out.index("too high") < picked.out.index("Images of")
    members = diptych(f"categories pick {run} --out {tmp_path}/picks --among members --no-sheet")
    members.hides("too high")
    assert not (tmp_path / "picks" / "tree.html").exists()  # it showed other pictures


@pytest.mark.parametrize("engine", ["exact", "hnsw"])
def test_the_way_there(diptych: Command, trained: tuple[Path, Path], tmp_path: Path, engine: str) -> None:
    _, run = trained
    made = diptych(f"categories index {run} --engine {engine} --out {tmp_path}/index")
    assert f"80 products of product-scenes, engine {engine}" in made.out
    opened = CategoryRun.open(run)
    name = opened.tree.paths[0][0]
    found = diptych(f"search {tmp_path}/index {name} --category -k 4 --sheet {tmp_path}/found.png")
    catalogue = opened.products()
    rows = opened.model.product_rows(opened.maker.products(catalogue))
    asked = opened.category_rows([name])
    best = np.argsort(-(np.asarray(rows, np.float64) @ np.asarray(asked, np.float64)[0]), kind="stable")[:4]
    table = [line.split() for line in found.out.splitlines() if line.strip()[:1].isdigit()]
    if engine == "exact":
        assert [row[2] for row in table] == [catalogue.ids[product] for product in best]
    for row in table:
        product = list(catalogue.ids).index(row[2])
        own = catalogue.places_of(product)
        marks = {"✓", "✗"} & set(row)
        if len(own):
            right = any(catalogue.tree.paths[place][0] == name for place in own)
            assert marks == {"✓" if right else "✗"}
        else:
            assert not marks
    with Image.open(tmp_path / "found.png") as sheet:
        assert sheet.width > 400
    again = diptych(f"search {tmp_path}/index {name} -k 4")
    assert again.out.splitlines()[:6] == found.out.splitlines()[:6]
    assert "--category --sheet found.png" in again.out


def test_searches_by_category(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    moved, index = tmp_path / "moved", tmp_path / "index"
    shutil.copytree(trained[1], moved)
    diptych(f"categories index {moved} --out {index}")
    path = next(path for path in CategoryRun.open(moved).tree.paths if len(path) == 2)
    done = diptych(f"search {index}", ">".join(path).upper(), "-k", 3)
    done.shows(f"sorted into {' > '.join(path)}, or below it")
    done = diptych(f"search {index} 'no such category' -k 3")
    done.shows("'no such category' is no category of the tree")
    for line, words in (
        ("x.png --category", "is an image"),
        ("x --category --own-terms", "searches for images"),
        ("x --where pictured=true", "keeps no metadata"),
        ("' '", "the query is empty"),
    ):
        diptych(f"search {index} {line}", refused=words)
    shutil.rmtree(moved)
    diptych(f"search {index} x", refused="which is not there any more")


def test_a_run_and_what_was_made_with_it(
    diptych: Command, trained: tuple[Path, Path], tmp_path: Path
) -> None:
    shop, run = trained
    picks, filled, found = tmp_path / "picks", tmp_path / "filled.csv", tmp_path / "evaluation"
    diptych(f"categories pick {run} --out {picks}")
    diptych(f"categories fill {run} --out {filled}")
    diptych(f"categories index {run}")
    diptych(f"categories evaluate {shop} --run {run} --out {found} --samples 0")
    for path, words in (
        (run, ("category run", "clip-ita", "encoders.text", "most-specific")),
        (picks, ("picks", "product-scenes", "tree.html")),
        (filled, ("summary", "temperature", "clip-ita")),
        (filled.with_suffix(".summary.json"), ("summary",)),
        (found, ("category evaluation", "report.html", "label")),
        (run / "index-exact", ("index", "exact", "80", run.name)),
        (shop, ("dataset", "80 products")),
    ):
        diptych(f"info {path}").shows(*words)
    page = (found / "report.html").read_bytes()
    (found / "report.html").unlink()
    diptych(f"report {found}")
    assert (found / "report.html").read_bytes() == page
    moved = shop.rename(shop.with_name("moved"))
    try:
        done = diptych(f"report {found} --out {tmp_path}/page.html")
    finally:
        moved.rename(shop)
    done.shows("no images", "shop")
    assert (tmp_path / "page.html").is_file()
    diptych(f"categories pick {run} --out {picks} --no-sheet")
    diptych(f"report {picks}", refused="categories pick")


def test_a_run_of_diptych_train_is_an_encoder(
    diptych: Command, trained: tuple[Path, Path], run_folder: Path, tmp_path: Path
) -> None:
    shop, _ = trained
    diptych(
        f"categories train {shop} --out {tmp_path}/run --set epochs=1 --image-encoder "
        f"{run_folder} --text-encoder {run_folder}"
    )
    diptych(f"categories pick {tmp_path}/run --no-sheet")
