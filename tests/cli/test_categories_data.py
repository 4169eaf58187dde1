"""Trees, downloads, trainings and evaluations of a shop's categories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Command
from picture_host import PictureHost, picture_host

from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
from diptych.commerce.category_to_image.run import CategoryRun
from diptych.commerce.taxonomy import read_taxonomy

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


def test_a_taxonomy_and_back(diptych: Command, tmp_path: Path) -> None:
    file, out = tmp_path / "taxonomy.en-GB.txt", tmp_path / "tree.json"
    file.write_text(GOOGLE)
    done = diptych(f"categories tree {file} --out {out}")
    rows = words(done.out)
    assert rows[0] == (
        "Google product taxonomy 2021-09-21 en-GB: 6 categories on 3 levels: 2 most general, 3 without children"
    )
    for says in ("1 2 0 2 1.5", "2 3 2 1 1", "3 1 1 0 0", "Shoes 2"):
        assert says in rows, says
    assert "note: 2 categories that only stand in paths of others added, the first: Women" in rows
    assert "2 categories have no siblings: their level sorts nothing" in rows
    assert "\x1b" not in done.out
    assert rows[-1] == f"next: diptych categories train shop --taxonomy {file} --out runs/shop"
    written = json.loads(out.read_text())
    assert written["shape"]["shared"] == {"Shoes": 2}
    assert written["categories"][1] == {"path": ["Men", "Shoes"], "id": "2"}
    first, again = read_taxonomy(file), read_taxonomy(out)
    assert again.fingerprint == first.fingerprint
    assert again.codes == first.codes
    assert (again.version, again.language) == ("2021-09-21", "en-GB")
    diptych(f"categories tree {out}")


def test_the_tree_of_products(diptych: Command, tmp_path: Path) -> None:
    file, out = tmp_path / "feed.csv", tmp_path / "tree.json"
    file.write_text(FEED)
    done = diptych(f"categories tree {file} --out {out}")
    rows = words(done.out)
    assert "Men > Shoes 3 3" in rows
    assert "Women 1 2" in rows
    assert any(row.startswith("note: 'Men > Shoes' holds 75% of the products") for row in rows)
    assert rows[-1] == f"next: diptych categories train {file} --out runs/shop"
    written = json.loads(out.read_text())
    assert written["products"] == 5
    assert [
        (*one["path"], one["products"], one["products_with_those_below"]) for one in written["categories"]
    ] == [("Men", 0, 3), ("Men", "Shoes", 3, 3), ("Women", 1, 2), ("Women", "Hats", 1, 1)]
    taxonomy = tmp_path / "t.txt"
    taxonomy.write_text("Men > Shoes\nWomen > Hats\nChildren\n")
    with_empty = diptych(f"categories tree {file} --taxonomy {taxonomy}")
    assert "1 of 5 categories have no products, in them or below" in words(with_empty.out)


def test_what_was_mended_and_what_cannot_be(diptych: Command, tmp_path: Path) -> None:
    file = tmp_path / "categories.csv"
    file.write_text("id,parent,name\n1,,A\n2,9,B\n")
    diptych(f"categories tree {file}", failed=("'B' (id 2, parent 9)", "orphans=root"))
    done = diptych(f"categories tree {file} --option orphans=root --out {tmp_path}/tree.json")
    assert "note: 1 categories whose parent is not there made roots: 'B' (id 2, parent 9)" in words(done.out)


@pytest.fixture
def host() -> Iterator[PictureHost]:
    with picture_host() as running:
        yield running


OPTIONS = ("--contact", "me@example.org", "--rate", "1000", "--allow-private")


def test_a_list_of_addresses_in_two_calls(diptych: Command, host: PictureHost, tmp_path: Path) -> None:
    rows = [f"A{i},{host.address}/ok/{i}.png" for i in range(4)] + [f"x y,{host.address}/gone/1", "none,"]
    call = ("categories", "download", tmp_path / "list.csv", "--out", tmp_path / "images", *OPTIONS)
    (tmp_path / "list.csv").write_text("\n".join(["id,address", *rows[:3]]) + "\n")
    diptych(*call).shows("there", "not tried yet", "next: diptych categories train shop")
    (tmp_path / "list.csv").write_text("\n".join(["id,address", *rows]) + "\n")
    second = diptych(*call)
    second.shows("fetched now", "failed: status 404", "--retry-failed")
    assert sorted(file.name for file in (tmp_path / "images").glob("*.png")) == [
        f"A{i}.png" for i in range(4)
    ]
    assert host.counts["/gone/1"] == 1
    lines = (tmp_path / "images" / "downloads.jsonl").read_text().splitlines()
    assert {json.loads(line)["id"] for line in lines} == {"A0", "A1", "A2", "A3", "x y"}


def test_a_feed_has_its_pictures_afterwards(diptych: Command, host: PictureHost, tmp_path: Path) -> None:
    from diptych.commerce.catalogue import catalogue_of
    from diptych.data import read_collection

    lines = ["id,title,link,image_link,price,product_type"]
    for name, path in (("SKU-1", "moved/a.jpg"), ("sku 2", "ok/b.png"), ("sku 3", "gone/c")):
        lines.append(f"{name},A thing,http://x/{name},{host.address}/{path},3 EUR,Home > Things")
    (tmp_path / "feed.csv").write_text("\n".join(lines) + "\n")
    images = tmp_path / "pictures"
    diptych(f"categories download {tmp_path}/feed.csv --out {images}", *OPTIONS).shows("status 404")
    shop = catalogue_of(read_collection(tmp_path / "feed.csv", images=images))
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


def test_options_reach_the_training(trained: tuple[Path, Path], tmp_path: Path, diptych: Command) -> None:
    done = diptych(
        f"categories train {trained[0]} --out {tmp_path}/run {FAST} --published --model clip-ta --setting "
        "most-general --query path --seed 3 --set tree_distance=0.1 --set attributes=attention "
        "--split-by product --split-option seed=1"
    )
    done.shows("image encoder: none (the model needs none)")
    about = CategoryRun.open(tmp_path / "run").about
    options = about["options"]
    assert (options["batch_size"], options["temperature"], options["duplicates"]) == (8, 1.0, "negatives")
    assert (options["setting"], options["query"], options["seed"]) == ("most-general", "path", 3)
    assert not options["resample"]
    assert (options["tree_distance"], options["attributes"], options["epochs"]) == (0.1, "attention", 2)
    assert about["encoders"]["image"] is None
    assert (about["data"]["split_by"], about["data"]["split_option"]) == ("product", ["seed=1"])


GRID = (
    "--model bm25,sentence,clip-ita --setting most-specific --setting all --seeds 2 --set epochs=1 "
    "--set hidden=8 --set width=4 --text-encoder lsa:8 --samples 20"
)


def test_a_small_grid_its_page_and_what_goes_on(diptych: Command, tiny_shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "evaluation"
    done = diptych(f"categories evaluate {tiny_shop} --out {out} {GRID}")
    found = ModelsEvaluation.open(out)
    assert found.models == ("bm25", "sentence", "clip-ita")
    value = found.value("most-specific", "bm25", "P@1").mean
    row = next(line for line in done.out.splitlines() if line.strip().startswith("BM25"))
    done.shows(f"{100 * value:.1f}", "Most specific category")
    assert row
    done.shows("leaderboard measures", "nDCG@10", "chance", "Levels of the tree", found.line())
    done.shows("First products of another category")
    done.shows(f"open {out / 'report.html'}")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "data:image/jpeg" in page
    assert "--text-encoder lsa:8" in page
    assert found.about["source"]["data"] == str(tiny_shop)
    other = f"categories evaluate {tiny_shop} --out {out} {GRID} --query path"
    diptych(other, failed="query 'unique', asked for 'path'")


def test_a_run_is_measured_on_what_it_has_not_seen(diptych: Command, tiny_shop: Path, tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "held-out"
    diptych(
        f"categories train {tiny_shop} --out {run} --model clip-ta --set epochs=1 --set hidden=8 --set "
        "width=4 --text-encoder lsa:8 --setting most-specific"
    )
    done = diptych(f"categories evaluate {tiny_shop} --run {run} --out {out} --samples 0")
    found = ModelsEvaluation.open(out)
    assert found.models == ("clip-ta",)
    numbers = found.numbers["settings"]["most-specific"]
    assert numbers["products"] == 5  # six test products, one without a category
    done.shows("nothing fitted", "trained on most-specific categories")
    assert [one for one in numbers["scores"] if one["part"] == "seen"]
    assert "17 products left out" in (out / "report.html").read_text(encoding="utf-8")


def test_baselines_of_products_that_are_not_split(diptych: Command, tmp_path: Path) -> None:
    feed, out = tmp_path / "feed.csv", tmp_path / "baselines"
    types = ("Shoes > Boots", "Bags > Totes", "Shoes > Sandals")
    rows = [f"p{n},{types[n % 3].split()[-1]} number {n},{types[n % 3]}" for n in range(9)]
    feed.write_text("\n".join(["id,title,product_type", *rows]) + "\n")
    only = f"categories evaluate {feed} --split-by given --setting most-specific --samples 0 --text-encoder lsa:4"
    diptych(f"{only} --out {out} --model bm25,sentence").shows("BM25", "sentence encoder")
    assert ModelsEvaluation.open(out).value("most-specific", "bm25", "P@1").mean == 1
    diptych(f"{only} --out {out}-2 --model bm25,clip-t", refused="no split called test")
