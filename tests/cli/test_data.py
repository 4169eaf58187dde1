"""Known datasets, generated ones, language resources, and what a newcomer brings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command
from miniatures import karpathy, picture
from tiny_tagger import write_tagger
from tiny_wordnet import write_json_lines

from diptych.data import read_collection
from diptych.data.known import KNOWN

IMAGES = {
    f"{i}.png": ("test" if i > 2 else "train", [f"a thing {i} {k}" for k in range(2)]) for i in range(5)
}


def test_all_are_listed(diptych: Command) -> None:
    done = diptych("data list")
    done.shows(*KNOWN.names(), "next: diptych data show coco")


def test_a_name_shows_where_licence_layout_and_sizes(diptych: Command) -> None:
    for name in KNOWN.names():
        done, one = diptych(f"data show {name}"), KNOWN.get(name)
        done.shows(one.title, f"licence: {one.licence}", *one.where.values(), *one.layout.splitlines())
        done.shows(*(f"{size.images:,}" for form in one.forms for size in form.sizes.values()))
        done.shows(f"when it is there: diptych data check {name} FOLDER")


def test_a_check_that_finds_all(diptych: Command, tmp_path: Path) -> None:
    karpathy(tmp_path, IMAGES, "things")
    done = diptych(f"data check own {tmp_path} --decode --out {tmp_path}/check.json")
    done.shows("things: 5 images, 10 captions")
    rows = [" ".join(line.split()) for line in done.out.splitlines()]
    assert f"pictures in {tmp_path}/images 5 of 5" in rows
    assert "pictures that cannot be decoded 0" in rows
    done.shows("complete: nothing has to be done")
    done.shows(f"commands read it with: --data {tmp_path} --reader karpathy")
    written = json.loads((tmp_path / "check.json").read_text())
    assert written["complete"] is True
    assert written["pictures"]["missing"] == {"count": 0, "first": []}


def test_a_check_that_finds_pieces_missing(diptych: Command, tmp_path: Path) -> None:
    karpathy(tmp_path, IMAGES, "coco")
    (tmp_path / "images" / "3.png").unlink()
    (tmp_path / "images" / "0.png").write_bytes(b"")
    picture(tmp_path / "images" / "extra.png")
    file = tmp_path / "check.json"
    done = diptych(f"data check coco {tmp_path} --decode --workers 0 -o {file}", code=1)
    rows = [" ".join(line.split()) for line in done.out.splitlines()]
    assert {"pictures that no caption uses 1 extra.png", "empty files 1 0.png"} <= set(rows)
    done.shows("113,287", "to do: 4 of 5 pictures are there, 1 are missing: 3.png", "fix: ")
    done.shows("not complete: ")
    assert "next: " not in done.out
    written = json.loads(file.read_text())
    assert written["complete"] is False
    assert written["pictures"]["missing"] == {"count": 1, "first": ["3.png"]}
    assert any(problem["what"].startswith("split val is not there") for problem in written["problems"])


def test_images_options_reader_and_split_are_handed_on(diptych: Command, tmp_path: Path) -> None:
    karpathy(tmp_path / "a", IMAGES, "things", pictures=False)
    for name in IMAGES:
        picture(tmp_path / "b" / name)
    arguments = ("data", "check", "own", tmp_path / "a", "--images", tmp_path / "b", "--reader", "karpathy")
    done = diptych(*arguments, "--reader-option", "max_captions=1", "--split", "test")
    assert "things: 2 images, 2 captions" in done.out
    diptych(*arguments, "--split", "dev", code=2)
    diptych(*arguments, "--reader-option", "colour=3", code=2)
    diptych(*arguments, "--workers", -1, code=2)
    diptych(f"data check own {tmp_path}/gone", failed="gone does not exist")


def test_the_folder_of_another_dataset_is_refused_with_what_it_is(diptych: Command, tmp_path: Path) -> None:
    (tmp_path / "Train_GCC-training.tsv").write_text("a dog\thttp://x/1.jpg\na cat\thttp://x/2.jpg\n")
    for name in ("fashion200k", "coco", "abo"):
        done = diptych(f"data check {name} {tmp_path}", code=2)
        done.says(f"is not laid out as {name}: it looks like what the reader captions-tsv reads")
        done.says(f"diptych data show {name} says how it is laid out")


def test_products_are_made(diptych: Command, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    done = diptych(
        "data products --n 40 --size 32 --levels 2-4 --seed 2 --dirt 0.2 --without-picture "
        f"0.2 --without-category 0.3 --workers 1 -o {folder}"
    )
    header = json.loads((folder / "dataset.json").read_text())
    options = ("n_products", "levels", "seed", "size", "dirt", "without_picture", "without_category")
    assert [header[key] for key in options] == [40, [2, 4], 2, 32, 0.2, 0.2, 0.3]
    assert read_collection(folder).describe() in done.out
    assert {"effects", "leaves"} == set(json.loads((folder / "truth.json").read_text()))
    assert f"next: diptych categories train {folder} --out runs/shop" in done.out


def test_a_log_is_made(diptych: Command, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    done = diptych(f"data shop-log --visitors 60 --dirt 0.1 --days 7 --seed 2 -o {folder}")
    truth = json.loads((folder / "truth.json").read_text())
    header = json.loads((folder / "dataset.json").read_text())
    assert (header["visitors"], header["days"], header["seed"], header["dirt"]) == (60, 7, 2, 0.1)
    done.shows("events", f"{truth['events']:,}")
    for rule, rows in truth["dirt"].items():
        done.shows(rule, f"{rows:,}")
    assert f"next: diptych intent ingest {folder} --out log" in done.out
    assert (folder / "events.csv.gz").is_file()


def test_what_has_no_name_is_in_the_cache(
    diptych: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIPTYCH_CACHE", str(tmp_path))
    done = diptych("data products --n 10 --size 32 --levels 3")
    (made,) = (tmp_path / "product-scenes").glob("*/dataset.json")
    assert json.loads(made.read_text())["levels"] == [3, 3]
    done.shows(f"next: diptych categories train {made.parent} --out runs/shop")
    diptych("data shop-log --visitors 10 --format parquet").hides("rows that are none")
    assert len(list(tmp_path.glob("shop-log/*/events/part-*.parquet"))) == 1


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytest.importorskip("nltk.data"), "path", [])
    monkeypatch.delenv("NLTK_DATA", raising=False)
    monkeypatch.delenv("DIPTYCH_WORDNET", raising=False)


def test_all_is_there_and_checked(diptych: Command, tmp_path: Path) -> None:
    net, data = write_json_lines(tmp_path / "net"), write_tagger(tmp_path / "data")
    done = diptych(f"data resources --wordnet {net} --nltk-data {data} --check --out {tmp_path}/found.json")
    done.shows(f"next: diptych data perturb --list --wordnet {net} --nltk-data {data}")
    assert "to get" not in done.out
    rows = {row["name"]: row for row in json.loads((tmp_path / "found.json").read_text())["resources"]}
    assert {row["state"] for row in rows.values()} == {"there"}
    assert "14 synsets, 19 lemmas" in rows["WordNet"]["version"]
    assert rows["WordNet"]["path"] == str(net)
    assert rows["tagger"]["version"].endswith(": Two/CD young/NNS dogs/NN are/NN running/NN")


def test_what_is_missing_and_how_to_get_it(diptych: Command, tmp_path: Path) -> None:
    done = diptych("data resources")
    done.shows("to get the tagger: python -m nltk.downloader averaged_perceptron_tagger_eng wordnet")
    done.shows("or name Open English WordNet (https://en-word.net) with --wordnet or DIPTYCH_WORDNET")
    done.shows("language of scenes", "next: diptych data resources --check")
    diptych(f"data resources --check --nltk-data {tmp_path}", code=1).shows("missing")


@pytest.fixture
def photos(scenes_folder: Path, tmp_path: Path) -> Path:
    """A folder of 30 images without captions, in two folders, and something that is no image."""
    scenes = read_collection(scenes_folder)
    for row in range(30):
        path = tmp_path / "photos" / ("a" if row % 2 else "b") / f"{row:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        scenes.image(row).save(path)
    (tmp_path / "photos" / "readme.txt").write_text("mine")
    return tmp_path / "photos"


def test_a_folder_of_images_is_searched_with_words(
    photos: Path, run_folder: Path, tmp_path: Path, diptych: Command
) -> None:
    done = diptych(f"embed {run_folder}/best --data {photos} --out {tmp_path}/embedded")
    done.shows(
        "30 images and 0 captions", "note: images without captions", "note: 1 files that are no images"
    )
    diptych(f"index {tmp_path}/embedded --out {tmp_path}/index").shows("30 images of photos")
    found = diptych(f"search {tmp_path}/index", "a red square", "-k", "3", "--paths")
    assert found.out.count(f"{photos}/") == 3
    diptych(f"info {photos}").shows("photos: 30 images, 0 captions", "1 files that are no images left out")
    diptych(f"data check own {photos} --decode").shows("images without captions", "complete")


def test_commands_that_need_captions_refuse_their_absence(
    photos: Path, run_folder: Path, tmp_path: Path, diptych: Command
) -> None:
    for line in (
        f"analyse audit {run_folder}/best --data {photos} --out {tmp_path}/audit",
        f"sparse train {run_folder}/best --data {photos} --out {tmp_path}/sparse",
        f"train scenes --data {photos} --out {tmp_path}/run",
        f"analyse stress {run_folder}/best --data {photos} --out {tmp_path}/stress --perturb typos",
        f"adapt {run_folder}/best --data {photos} --out {tmp_path}/adapted",
    ):
        diptych(line, failed=" images and no captions, which ")
    diptych(f"evaluate {run_folder}/best --data {photos} --out {tmp_path}/r", failed="30 images and 0 texts")
    diptych(f"embed {run_folder}/best --data {photos} --out {tmp_path}/e")
    diptych(f"index {tmp_path}/e --of texts", failed="photos has no texts to index")


def test_pairs_without_splits_are_taken_whole(run_folder: Path, tmp_path: Path, diptych: Command) -> None:
    lines = [f"{row}.png,thing {row}\n" for row in range(40)]
    for row in range(40):
        picture(tmp_path / f"{row}.png", row)
    (tmp_path / "shop.csv").write_text("image,caption\n" + "".join(lines))
    best = f"{run_folder}/best --data {tmp_path}/shop.csv"
    diptych(f"embed {best} --out {tmp_path}/whole").shows("40 images and 40 captions")
    diptych(f"index {best} --out {tmp_path}/index").shows("40 images of shop")
    diptych(f"evaluate {best} --out {tmp_path}/result").shows("40 images", "split all")
    test = read_collection(tmp_path / "shop.csv").split("test")
    done = diptych(f"embed {best} --split test --out {tmp_path}/test")
    done.shows(f"{test.n_images} images", f"note: {test.notes[-1]}")
