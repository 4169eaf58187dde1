"""A shop's categories: trees, downloads, training, evaluation, picks, filling, index, search, info, report."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from commands import Command
from picture_host import picture_host
from PIL import Image

from diptych.commerce.catalogue import catalogue_of
from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
from diptych.commerce.category_to_image.run import CategoryRun
from diptych.commerce.taxonomy import read_taxonomy
from diptych.core.reading import read_json
from diptych.data import read_collection

GOOGLE = """# Google_Product_Taxonomy_Version: 2021-09-21
1 - Men
2 - Men > Shoes
3 - Women > Shoes
4 - Women > Sale > \x1b[31mHats
"""
FEED = """id,title,product_type
1,a,Men > Shoes
2,b,Men > Shoes
3,c,"Men > Shoes,Women > Hats"
4,d,
5,e,Women
"""


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_a_taxonomy_and_back(diptych: Command, tmp_path: Path) -> None:
    file, out = tmp_path / "taxonomy.en-GB.txt", tmp_path / "tree.json"
    file.write_text(GOOGLE)
    done = diptych(f"categories tree {file} --out {out}")
    done.hides("\x1b")
    rows, shape = words(done.out), "6 categories on 3 levels: 2 most general, 3 without children"
    assert rows[0] == f"Google product taxonomy 2021-09-21 en-GB: {shape}"
    added = "note: 2 categories that only stand in paths of others added, the first: Women"
    siblings = "2 categories have no siblings: their level sorts nothing"
    assert {"1 2 0 2 1.5", "2 3 2 1 1", "3 1 1 0 0", "Shoes 2", added, siblings} <= set(rows)
    assert rows[-1] == f"next: diptych categories train shop --taxonomy {file} --out runs/shop"
    written = json.loads(out.read_text())
    assert written["shape"]["shared"] == {"Shoes": 2}
    assert written["categories"][1] == {"path": ["Men", "Shoes"], "id": "2"}
    first, again = read_taxonomy(file), read_taxonomy(out)
    assert (again.fingerprint, again.codes) == (first.fingerprint, first.codes)
    assert (again.version, again.language) == ("2021-09-21", "en-GB")
    file = tmp_path / "categories.csv"
    file.write_text("id,parent,name\n1,,A\n2,9,B\n")
    diptych(f"categories tree {file}", failed=("'B' (id 2, parent 9)", "orphans=root"))
    done = diptych(f"categories tree {file} --option orphans=root --out {tmp_path}/tree.json")
    assert "note: 1 categories whose parent is not there made roots: 'B' (id 2, parent 9)" in words(done.out)


def test_the_tree_of_products(diptych: Command, tmp_path: Path) -> None:
    file, out = tmp_path / "feed.csv", tmp_path / "tree.json"
    file.write_text(FEED)
    rows = words(diptych(f"categories tree {file} --out {out}").out)
    assert {"Men > Shoes 3 3", "Women 1 2"} <= set(rows)
    assert any(row.startswith("note: 'Men > Shoes' holds 75% of the products") for row in rows)
    assert rows[-1] == f"next: diptych categories train {file} --out runs/shop"
    written = json.loads(out.read_text())
    assert written["products"] == 5
    keys = ("products", "products_with_those_below")
    found = [(*one["path"], *(one[key] for key in keys)) for one in written["categories"]]
    assert found == [("Men", 0, 3), ("Men", "Shoes", 3, 3), ("Women", 1, 2), ("Women", "Hats", 1, 1)]
    taxonomy = tmp_path / "t.txt"
    taxonomy.write_text("Men > Shoes\nWomen > Hats\nChildren\n")
    with_empty = diptych(f"categories tree {file} --taxonomy {taxonomy}")
    assert "1 of 5 categories have no products, in them or below" in words(with_empty.out)


def test_pictures_are_downloaded_from_lists_and_feeds(diptych: Command, tmp_path: Path) -> None:
    options = "--contact me@example.org --rate 1000 --allow-private"
    table, feed, images = (tmp_path / name for name in ("list.csv", "feed.csv", "images"))
    with picture_host() as host:
        rows = [f"A{i},{host.address}/ok/{i}.png" for i in range(4)] + [f"x y,{host.address}/gone/1", "none,"]
        call = f"categories download {table} --out {images} {options}"
        table.write_text("\n".join(["id,address", *rows[:3]]) + "\n")
        diptych(call).shows("there", "not tried yet", "next: diptych categories train shop")
        table.write_text("\n".join(["id,address", *rows]) + "\n")
        diptych(call).shows("fetched now", "failed: status 404", "--retry-failed")
        assert sorted(file.name for file in images.glob("*.png")) == [f"A{i}.png" for i in range(4)]
        assert host.counts["/gone/1"] == 1
        assert {line["id"] for line in lines(images / "downloads.jsonl")} == {"A0", "A1", "A2", "A3", "x y"}
        products = ["id,title,link,image_link,price,product_type"]
        for name, path in (("SKU-1", "moved/a.jpg"), ("sku 2", "ok/b.png"), ("sku 3", "gone/c")):
            products.append(f"{name},A thing,http://x/{name},{host.address}/{path},3 EUR,Home > Things")
        feed.write_text("\n".join(products) + "\n")
        done = diptych(f"categories download {feed} --out {tmp_path}/pictures {options}")
        done.shows("status 404")
    shop = catalogue_of(read_collection(feed, images=tmp_path / "pictures"))
    assert list(shop.ids) == ["SKU-1", "sku 2", "sku 3"]
    assert shop.pictured.tolist() == [True, True, False]
    assert shop.collection.image(int(shop.picture_rows[1])).size == (8, 8)


FAST = "--set epochs=2 --set hidden=16 --set width=8 --text-encoder lsa:16"


def test_from_products_to_a_run_and_its_measures(
    trained: tuple[Path, Path], tmp_path: Path, diptych: Command
) -> None:
    shop, out = trained[0], tmp_path / "run"
    done = diptych(f"categories train {shop} --out {out} {FAST}")
    run = CategoryRun.open(out)
    assert (run.options.setting, run.options.resample, run.options.query) == ("all", True, "unique")
    left = run.model.about["without_category"]
    assert left > 0
    done.shows(f"{left} without a category left out", "without an image", "splits: train 56")
    done.shows("--image-encoder backbone:NAME", "--text-encoder sentence:NAME")
    done.shows("the best by mAP@10 of validation products")
    rows = [line.split() for line in done.out.splitlines() if line.lstrip().startswith("clip-ita ")]
    (row,) = [row for row in rows if row[1] != "of"]
    assert all(0 <= float(number) <= 100 for number in row[1:])
    assert done.out.splitlines()[-1].startswith("next: diptych categories ")
    before = (out / "model.safetensors").read_bytes()
    diptych(f"categories train {shop} --out {out} {FAST}")
    assert (out / "model.safetensors").read_bytes() == before
    assert CategoryRun.open(out).about == run.about


def test_options_reach_the_training(
    trained: tuple[Path, Path], run_folder: Path, tmp_path: Path, diptych: Command
) -> None:
    some = "--published --model clip-ta --setting most-general --query path --seed 3 --set tree_distance=0.1"
    some += " --set attributes=attention --split-by product --split-option seed=1"
    done = diptych(f"categories train {trained[0]} --out {tmp_path}/run {FAST} {some}")
    done.shows("image encoder: none (the model needs none)")
    about = CategoryRun.open(tmp_path / "run").about
    options = about["options"]
    assert (options["batch_size"], options["temperature"], options["duplicates"]) == (8, 1.0, "negatives")
    assert (options["setting"], options["query"], options["seed"]) == ("most-general", "path", 3)
    assert not options["resample"]
    assert (options["tree_distance"], options["attributes"], options["epochs"]) == (0.1, "attention", 2)
    assert about["encoders"]["image"] is None
    assert (about["data"]["split_by"], about["data"]["split_option"]) == ("product", ["seed=1"])
    encoders = f"--image-encoder {run_folder} --text-encoder {run_folder}"  # a run of diptych train
    diptych(f"categories train {trained[0]} --out {tmp_path}/own --set epochs=1 {encoders}")
    diptych(f"categories pick {tmp_path}/own --no-sheet")


def test_models_are_evaluated(diptych: Command, tiny_shop: Path, tmp_path: Path) -> None:
    out, tiny = tmp_path / "evaluation", "--set epochs=1 --set hidden=8 --set width=4 --text-encoder lsa:8"
    grid = "--model bm25,sentence,clip-ita --setting most-specific --setting all --seeds 2 --samples 20"
    line = f"categories evaluate {tiny_shop} --out {out} {grid} {tiny}"
    done = diptych(line)
    found = ModelsEvaluation.open(out)
    assert found.models == ("bm25", "sentence", "clip-ita")
    done.shows(f"{100 * found.value('most-specific', 'bm25', 'P@1').mean:.1f}", "Most specific category")
    done.shows("leaderboard measures", "nDCG@10", "chance", "Levels of the tree", found.line(), "BM25")
    done.shows("First products of another category", f"open {out / 'report.html'}")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "data:image/jpeg" in page
    assert "--text-encoder lsa:8" in page
    assert found.about["source"]["data"] == str(tiny_shop)
    diptych(f"{line} --query path", failed="query 'unique', requested 'path'")
    # a run is measured on what it has not seen
    run, out = tmp_path / "run", tmp_path / "held-out"
    diptych(f"categories train {tiny_shop} --out {run} --model clip-ta --setting most-specific {tiny}")
    done = diptych(f"categories evaluate {tiny_shop} --run {run} --out {out} --samples 0")
    done.shows("nothing fitted", "trained on most-specific categories")
    found = ModelsEvaluation.open(out)
    assert found.models == ("clip-ta",)
    numbers = found.numbers["settings"]["most-specific"]
    assert numbers["products"] == 5  # six test products, one without a category
    assert [one for one in numbers["scores"] if one["part"] == "seen"]
    assert "17 products left out" in (out / "report.html").read_text(encoding="utf-8")


def test_baselines_of_products_that_are_not_split(diptych: Command, tmp_path: Path) -> None:
    feed, out = tmp_path / "feed.csv", tmp_path / "baselines"
    types = ("Shoes > Boots", "Bags > Totes", "Shoes > Sandals")
    rows = [f"p{n},{types[n % 3].split()[-1]} number {n},{types[n % 3]}" for n in range(9)]
    feed.write_text("\n".join(["id,title,product_type", *rows]) + "\n")
    some = "--split-by given --setting most-specific --samples 0 --text-encoder lsa:4"
    line = f"categories evaluate {feed} {some}"
    diptych(f"{line} --out {out} --model bm25,sentence").shows("BM25", "sentence encoder")
    assert ModelsEvaluation.open(out).value("most-specific", "bm25", "P@1").mean == 1
    diptych(f"{line} --out {out}-2 --model bm25,clip-t", refused="no split called test")


def test_images_are_picked(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    shop, run = trained
    done = diptych(f"categories pick {run} -k 3")
    found = read_json(run / "picks" / "picks.json")
    assert found["catalogue"]["products"] == 80
    assert found["about"]["model"] == "clip-ita"
    done.shows(f"{found['counts']['pictures']:,} images for {found['counts']['categories']:,} categories")
    done.shows(f"open {run / 'picks' / 'tree.html'}", "of these products")
    done.shows("trained on most-specific categories only; --setting all is for every level")
    assert done.out.index("too high") < done.out.index("Images of")
    assert "of these products" in (run / "picks" / "tree.html").read_text("utf-8")
    for entry in found["categories"]:
        assert len(entry["products"]) == min(3, entry["pictured_products"])
        assert entry["query"] == entry["path"][-1]
        files = {one["file"] for one in entry["products"]}
        assert len(files) == len(entry["products"])
        assert all(Path(file).is_file() for file in files)
    members = "--split test --among members --no-sheet --distinct title"
    done = diptych(f"categories pick {run} {shop} {members} --out {run}/picks")
    done.hides("for every level", "too high")
    assert [file.name for file in (run / "picks").iterdir()] == [
        "picks.json"
    ]  # the page showed other pictures
    found = read_json(run / "picks" / "picks.json")
    assert found["counts"]["categories without a picture"] > 0
    assert found["counts"]["of another category"] == 0
    assert (found["distinct"], found["about"]["split"]) == (["picture", "title"], "test")
    diptych(f"report {run}/picks", refused="categories pick")


def test_products_without_a_category_are_filled(
    diptych: Command, trained: tuple[Path, Path], tmp_path: Path
) -> None:
    _, run = trained
    done = diptych(f"categories fill {run}")
    filled, summary = lines(run / "filled.jsonl"), read_json(run / "filled.summary.json")
    assert 0 < len(filled) == summary["products"] == sum(summary["counts"].values())
    done.shows(f"{len(filled)} products in {run / 'filled.jsonl'}", "found on", "of split val")
    assert summary["reliability"]["products"] > 0
    assert summary["calibration"]["loss"] <= summary["calibration"]["chance"]
    assert {one["verdict"] for one in filled} <= {"whole", "in part", "uncertain"}
    feed, out = tmp_path / "feed.csv", tmp_path / "filled.jsonl"
    feed.write_text("id,title,product_type,image_link\na1,Red Heart,,\na2,,,\n", "utf-8")
    diptych(f"categories fill {run} {feed} --out {out} --threshold 0")
    named, blank = lines(out)
    assert named["path"]
    assert blank["verdict"] == "nothing known"
    assert blank["path"] == blank["levels"] == blank["alternatives"] == []
    path = " > ".join(CategoryRun.open(run).tree.paths[-1])
    feed.write_text(f"id,title,product_type\na1,a lamp,{path}\n", "utf-8")
    done = diptych(f"categories fill {run} {feed} --out {out}")
    done.shows("all products have a category: nothing to fill")
    assert done.out.rstrip().endswith("--check")
    assert out.read_bytes() == b""


def test_products_that_may_be_in_the_wrong_place(
    diptych: Command, trained: tuple[Path, Path], tmp_path: Path
) -> None:
    _, run = trained
    file = tmp_path / "doubtful.csv"
    done = diptych(f"categories fill {run} --check --candidates all --threshold 0.05 --out {file}")
    done.shows("the run was trained on", "that agree with their own category left out")
    done.shows("hierarchical F1 of what is suggested for", "need review, as in", "doubtful.review.csv")
    rows, review = (
        list(csv.DictReader(one.read_text("utf-8").splitlines()))
        for one in (file, tmp_path / "doubtful.review.csv")
    )
    summary = read_json(tmp_path / "doubtful.summary.json")
    assert len(review) == summary["review"] <= len(rows)
    assert 0 < summary["hierarchical"]["f1"] < 1
    assert 0 < summary["trained_on"] < sum(one == "train" for one in CategoryRun.open(run).splits.values())
    assert len(rows) + summary["counts"].get("agrees", 0) == summary["products"]
    assert all(row["verdict"] != "agrees" for row in rows)
    wrong = [row for row in rows if row["verdict"] == "disagrees"]
    assert not any(row["category"].startswith(row["own"] or "?") for row in wrong)
    line = f"categories fill {run} --check --split test --calibrate-on test --out {tmp_path}/t.jsonl"
    done = diptych(line)
    done.shows("was not measured")  # nothing is left to measure on
    done.hides("the run was trained on")
    summary = read_json(tmp_path / "t.summary.json")
    assert (summary["trained_on"], summary["reliability"]) == (0, None)


def test_categories_find_products(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    cases: Any = ["exact", "hnsw"]
    for engine in cases:
        run, index = tmp_path / "run", tmp_path / "index"
        shutil.copytree(trained[1], run)
        made = diptych(f"categories index {run} --engine {engine} --out {index}")
        made.shows(f"80 products of product-scenes, engine {engine}")
        opened = CategoryRun.open(run)
        catalogue, name = opened.products(), opened.tree.paths[0][0]
        found = diptych(f"search {index} {name} --category -k 4 --sheet {tmp_path}/found.png")
        table = [line.split() for line in found.out.splitlines() if line.strip()[:1].isdigit()]
        if engine == "exact":
            rows = np.asarray(opened.model.product_rows(opened.maker.products(catalogue)), np.float64)
            query = np.asarray(opened.category_rows([name]), np.float64)[0]
            best = np.argsort(-(rows @ query), kind="stable")[:4]
            assert [row[2] for row in table] == [catalogue.ids[product] for product in best]
        for row in table:
            own = catalogue.places_of(list(catalogue.ids).index(row[2]))
            right = any(catalogue.tree.paths[place][0] == name for place in own)
            assert {"✓", "✗"} & set(row) == ({"✓" if right else "✗"} if len(own) else set())
        with Image.open(tmp_path / "found.png") as sheet:
            assert sheet.width > 400
        again = diptych(f"search {index} {name} -k 4")
        assert again.out.splitlines()[:6] == found.out.splitlines()[:6]
        again.shows("--category --sheet found.png")
        diptych(f"search {index} {name} -k 4 --where pictured=true").shows("products for")
        path = next(path for path in opened.tree.paths if len(path) == 2)
        done = diptych(f"search {index}", ">".join(path).upper(), "-k", 3)
        done.shows(f"sorted into {' > '.join(path)}, or below it")
        done = diptych(f"search {index} 'no such category' -k 3")
        done.shows("'no such category' is no category of the tree")
        for line, message in (
            ("x.png --category", "is an image"),
            ("x --category --own-terms", "searches for images"),
            ("x --where colour=red", "fields of the items: categories, pictured, title"),
            ("' '", "the query is empty"),
        ):
            diptych(f"search {index} {line}", refused=message)
        shutil.rmtree(run)
        diptych(f"search {index} x", refused="which is not there any more")


def test_info_and_report(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    shop, run = trained
    picks, filled, found = tmp_path / "picks", tmp_path / "filled.csv", tmp_path / "evaluation"
    diptych(f"categories pick {run} --out {picks}")
    diptych(f"categories fill {run} --out {filled}")
    diptych(f"categories index {run}")
    diptych(f"categories evaluate {shop} --run {run} --out {found} --samples 0")
    for path, shown in (
        (run, ("category run", "clip-ita", "encoders.text", "most-specific")),
        (picks, ("picks", "product-scenes", "tree.html")),
        (filled, ("summary", "temperature", "clip-ita")),
        (filled.with_suffix(".summary.json"), ("summary",)),
        (found, ("category evaluation", "report.html", "label")),
        (run / "index-exact", ("index", "exact", "80", run.name)),
        (shop, ("dataset", "80 products")),
    ):
        diptych(f"info {path}").shows(*shown)
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
