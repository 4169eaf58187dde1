"""What a newcomer brings, through the command line: nothing is cut by a split that the data does not name."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command
from miniatures import picture

from diptych.data import read_collection


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


def test_commands_that_need_captions_say_so(
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
