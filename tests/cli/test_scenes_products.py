"""``diptych scenes --products``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command

from diptych.data import read_collection


def test_products_are_made_and_told_of(diptych: Command, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    done = diptych(
        *("scenes", "--products", "--n", 40, "--size", 32, "--levels", "2-4", "--seed", 2, "--dirt", 0.2),
        *("--without-pictures", 0.2, "--without-categories", 0.3, "--workers", 1, "-o", folder),
    )
    assert done.code == 0, done.err
    header = json.loads((folder / "dataset.json").read_text())
    asked = ("n_products", "levels", "seed", "size", "dirt", "without_picture", "without_category")
    assert [header[key] for key in asked] == [40, [2, 4], 2, 32, 0.2, 0.2, 0.3]
    assert read_collection(folder).describe() in done.out
    truth = json.loads((folder / "truth.json").read_text())
    share = {(row["model"], row["level"]): row["share"] for row in truth["ideal"]["accuracy"]}
    line = next(line for line in done.out.splitlines() if "picture + title + attributes" in line)
    assert f"{share['clip-ita', 1]:.1%}" in line
    assert f"{share['clip-ita', 'most-specific']:.1%}" in line
    assert f"next: diptych categories train {folder} --out runs/shop" in done.out


def test_products_without_a_name_are_in_the_cache(
    diptych: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIPTYCH_CACHE", str(tmp_path))
    done = diptych("scenes", "--products", "--n", 10, "--size", 32, "--levels", 3)
    assert done.code == 0, done.err
    (made,) = (tmp_path / "product-scenes").glob("*/dataset.json")
    assert json.loads(made.read_text())["levels"] == [3, 3]
    assert f"next: diptych categories train {made.parent} --out runs/shop" in done.out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--products", "--train", 3), "--train is of pictures, and products would be made"),
        (("--products", "-k", 3), "--captions is of pictures"),
        (("--products", "--visitors", 3), "leave out --visitors or --products"),
        (("--products", "--shop-log"), "two datasets"),
        (("--n", 3), "or give --products too"),
        (("--shop-log", "--skew", 0.5), "--skew is of products, and a log would be made"),
        (("--shop-log", "--size", 32), "--size is of pictures and products"),
        (("--products", "--levels", "few"), "--levels 'few' is no number of levels"),
        (("--products", "--levels", "2-"), "e.g. --levels 1"),
        (("--products", "--levels", "2-12"), "2 to 12 levels"),
        (("--products", "--n", 0), "0 products"),
        (("--products", "--skew", 2), "skew is 2.0"),
        (("--products", "--without-titles", -1), "without_title is -1.0"),
        (("--products", "--size", 4), "pictures of 4 pixels"),
    ],
)
def test_odd_wishes_are_usage_errors(
    diptych: Command, tmp_path: Path, given: tuple[object, ...], said: str
) -> None:
    done = diptych("scenes", *given, "--out", tmp_path / "o")
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "o").exists()
