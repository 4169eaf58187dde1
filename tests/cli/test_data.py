"""Known datasets, generated ones, language resources, and what a newcomer brings."""

from __future__ import annotations

import json

import pytest
from miniatures import karpathy, picture
from tiny_tagger import write_tagger
from tiny_wordnet import write_json_lines

from diptych.data import read_collection
from diptych.data.known import KNOWN

IMAGES = {
    f"{i}.png": ("test" if i > 2 else "train", [f"a thing {i} {k}" for k in range(2)]) for i in range(5)
}


def test_known_datasets(diptych):
    diptych("data list").shows(*KNOWN.names(), "next: diptych data show coco")
    for name in KNOWN.names():
        done, one = diptych(f"data show {name}"), KNOWN.get(name)
        done.shows(one.title, f"licence: {one.licence}", *one.where.values(), *one.layout.splitlines())
        done.shows(*(f"{size.images:,}" for form in one.forms for size in form.sizes.values()))
        done.shows(f"when it is there: diptych data check {name} FOLDER")


def test_a_check_that_finds_all(diptych, tmp_path):
    karpathy(tmp_path, IMAGES, "things")
    done = diptych(f"data check own {tmp_path} --decode --out {tmp_path}/check.json")
    done.shows("things: 5 images, 10 captions", "complete: nothing has to be done")
    done.shows(f"commands read it with: --data {tmp_path} --reader karpathy")
    rows = [" ".join(line.split()) for line in done.out.splitlines()]
    assert {f"images in {tmp_path}/images 5 of 5", "images that cannot be decoded 0"} <= set(rows)
    written = json.loads((tmp_path / "check.json").read_text())
    assert written["complete"] is True
    assert written["pictures"]["missing"] == {"count": 0, "first": []}
    for name in IMAGES:  # elsewhere
        (tmp_path / "images" / name).unlink()
        picture(tmp_path / "b" / name)
    line = f"data check own {tmp_path} --images {tmp_path}/b --reader karpathy"
    done = diptych(f"{line} --reader-option max_captions=1 --split test")
    done.shows("things: 2 images, 2 captions")
    for wrong in ("--split dev", "--reader-option colour=3", "--workers -1"):
        diptych(f"{line} {wrong}", code=2)
    diptych(f"data check own {tmp_path}/gone", failed="gone does not exist")


def test_a_check_that_finds_pieces_missing(diptych, tmp_path):
    karpathy(tmp_path, IMAGES, "coco")
    (tmp_path / "images" / "3.png").unlink()
    (tmp_path / "images" / "0.png").write_bytes(b"")
    picture(tmp_path / "images" / "extra.png")
    file = tmp_path / "check.json"
    done = diptych(f"data check coco {tmp_path} --decode --workers 0 -o {file}", code=1)
    rows = [" ".join(line.split()) for line in done.out.splitlines()]
    assert {"images that no caption uses 1 extra.png", "empty files 1 0.png"} <= set(rows)
    done.shows("113,287", "to do: 4 of 5 images are there, 1 are missing: 3.png", "fix: ")
    done.shows("not complete: ")
    done.hides("next: ")
    written = json.loads(file.read_text())
    assert written["complete"] is False
    assert written["pictures"]["missing"] == {"count": 1, "first": ["3.png"]}
    assert any(problem["what"].startswith("split val is not there") for problem in written["problems"])
    (tmp_path / "other").mkdir()
    table = tmp_path / "other" / "Train_GCC-training.tsv"
    table.write_text("a dog\thttp://x/1.jpg\na cat\thttp://x/2.jpg\n")
    for name in ("fashion200k", "coco"):
        done = diptych(f"data check {name} {tmp_path}/other", code=2)
        done.says(f"is not laid out as {name}: it looks like what the reader captions-tsv reads")
        done.says(f"diptych data show {name} says how it is laid out")


def test_products_and_logs_are_made(diptych, tmp_path, monkeypatch):
    shop, log = tmp_path / "shop", tmp_path / "log"
    some = "--dirt 0.2 --without-picture 0.2 --without-category 0.3 --workers 1"
    done = diptych(f"data products --n 40 --size 32 --levels 2-4 --seed 2 {some} -o {shop}")
    done.shows(read_collection(shop).describe(), f"next: diptych categories train {shop} --out runs/shop")
    header = json.loads((shop / "dataset.json").read_text())
    options = ("n_products", "levels", "seed", "size", "dirt", "without_picture", "without_category")
    assert [header[key] for key in options] == [40, [2, 4], 2, 32, 0.2, 0.2, 0.3]
    assert {"effects", "leaves"} == set(json.loads((shop / "truth.json").read_text()))
    done = diptych(f"data shop-log --visitors 60 --dirt 0.1 --days 7 --seed 2 -o {log}")
    truth, header = (json.loads((log / f"{name}.json").read_text()) for name in ("truth", "dataset"))
    assert (header["visitors"], header["days"], header["seed"], header["dirt"]) == (60, 7, 2, 0.1)
    done.shows("events", f"{truth['events']:,}", f"next: diptych intent ingest {log} --out log")
    for rule, rows in truth["dirt"].items():
        done.shows(rule, f"{rows:,}")
    assert (log / "events.csv.gz").is_file()
    monkeypatch.setenv("DIPTYCH_CACHE", str(tmp_path))  # where they are without a name
    done = diptych("data products --n 10 --size 32 --levels 3")
    (made,) = (tmp_path / "product-scenes").glob("*/dataset.json")
    assert json.loads(made.read_text())["levels"] == [3, 3]
    done.shows(f"next: diptych categories train {made.parent} --out runs/shop")
    diptych("data shop-log --visitors 10 --format parquet").hides("rows that are none")
    assert len(list(tmp_path.glob("shop-log/*/events/part-*.parquet"))) == 1


def test_language_resources(diptych, tmp_path, monkeypatch):
    monkeypatch.setattr(pytest.importorskip("nltk.data"), "path", [])
    monkeypatch.delenv("NLTK_DATA", raising=False)
    monkeypatch.delenv("DIPTYCH_WORDNET", raising=False)
    done = diptych("data resources")
    done.shows("to get the tagger: python -m nltk.downloader averaged_perceptron_tagger_eng wordnet")
    done.shows("or name Open English WordNet (https://en-word.net) with --wordnet or DIPTYCH_WORDNET")
    done.shows("language of scenes", "next: diptych data resources --check")
    diptych(f"data resources --check --nltk-data {tmp_path}", code=1).shows("missing")
    net, data = write_json_lines(tmp_path / "net"), write_tagger(tmp_path / "data")
    done = diptych(f"data resources --wordnet {net} --nltk-data {data} --check --out {tmp_path}/found.json")
    done.shows(f"next: diptych data perturb --list --wordnet {net} --nltk-data {data}")
    done.hides("to get")
    rows = {row["name"]: row for row in json.loads((tmp_path / "found.json").read_text())["resources"]}
    assert {row["state"] for row in rows.values()} == {"there"}
    assert "14 synsets, 19 lemmas" in rows["WordNet"]["version"]
    assert rows["WordNet"]["path"] == str(net)
    assert rows["tagger"]["version"].endswith(": Two/CD young/NNS dogs/NN are/NN running/NN")


def test_images_without_captions(diptych, scenes_folder, run_folder, tmp_path):
    """They are searched with words; commands that need captions refuse."""
    scenes, photos, best = read_collection(scenes_folder), tmp_path / "photos", run_folder / "best"
    for row in range(30):
        path = photos / ("a" if row % 2 else "b") / f"{row:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        scenes.image(row).save(path)
    (photos / "readme.txt").write_text("mine")
    done = diptych(f"embed {best} --data {photos} --out {tmp_path}/embedded")
    done.shows(
        "30 images and 0 captions", "note: images without captions", "note: 1 files that are no images"
    )
    diptych(f"index {tmp_path}/embedded --out {tmp_path}/index").shows("30 images of photos")
    found = diptych(f"search {tmp_path}/index 'a red square' -k 3 --paths")
    assert found.out.count(f"{photos}/") == 3
    diptych(f"info {photos}").shows("photos: 30 images, 0 captions", "1 files that are no images left out")
    diptych(f"data check own {photos} --decode").shows("images without captions", "complete")
    for line in (
        f"analyse audit {best}",
        f"sparse train {best}",
        "train scenes",
        f"analyse stress {best} --perturb typos",
        f"adapt {best}",
    ):
        diptych(f"{line} --data {photos} --out {tmp_path}/out", failed=" images and no captions, which ")
    diptych(f"evaluate {best} --data {photos} --out {tmp_path}/r", failed="30 images and 0 texts")
    diptych(f"index {tmp_path}/embedded --of texts", failed="photos has no texts to index")


def test_pairs_without_splits_are_taken_whole(run_folder, tmp_path, diptych):
    for row in range(40):
        picture(tmp_path / f"{row}.png", row)
    lines = "".join(f"{row}.png,thing {row}\n" for row in range(40))
    (tmp_path / "shop.csv").write_text(f"image,caption\n{lines}")
    best = f"{run_folder}/best --data {tmp_path}/shop.csv"
    diptych(f"index {best} --out {tmp_path}/index").shows("40 images of shop")
    diptych(f"evaluate {best} --out {tmp_path}/result").shows("40 images", "split all")
    test = read_collection(tmp_path / "shop.csv").split("test")
    done = diptych(f"embed {best} --split test --out {tmp_path}/test")
    done.shows(f"{test.n_images} images", f"note: {test.notes[-1]}")


def test_parts_are_joined_to_what_one_call_writes(diptych, run_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("diptych.encoders.encode._IMAGE_BLOCK", 8)
    diptych(f"embed {run_folder} --out {tmp_path}/one")
    for part in ("2/2", "1/2"):
        done = diptych(f"embed {run_folder} --out {tmp_path}/out --part {part}")
        done.shows(f"part {part}: 8 images and", f"next: diptych embed {tmp_path}/out --join")
    diptych(f"embed {tmp_path}/out --join").shows("16 images and 80 captions", f"evaluate {tmp_path}/out")
    one, joined = ((tmp_path / name / "images" / "rows.npy").read_bytes() for name in ("one", "out"))
    assert one == joined
    assert (tmp_path / "out" / "origin.json").read_text() == (tmp_path / "one" / "origin.json").read_text()
    diptych(f"index {tmp_path}/out --out {tmp_path}/index").shows("16 images")
