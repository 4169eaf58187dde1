"""``diptych categories index`` and ``diptych search --category``: products found by the name of a category."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from category_runs import trained_shop
from commands import Command
from PIL import Image

from diptych.commerce.category_to_image.rankers import product_rows
from diptych.commerce.category_to_image.runs import CategoryRun
from diptych.index import open_index


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return trained_shop(tmp_path_factory.mktemp("trained"))


@pytest.mark.parametrize("engine", ["exact", "hnsw"])
def test_the_way_there(diptych: Command, trained: tuple[Path, Path], tmp_path: Path, engine: str) -> None:
    from diptych.cli.categories.used import own_products

    _, run = trained
    made = diptych("categories", "index", run, "--engine", engine, "--out", tmp_path / "index")
    assert made.code == 0, made.err
    assert f"80 products of product-scenes, engine {engine}" in made.out
    opened = CategoryRun.open(run)
    name = opened.tree.paths[0][0]
    found = diptych(
        "search", tmp_path / "index", name, "--category", "-k", 4, "--sheet", tmp_path / "found.png"
    )
    assert found.code == 0, found.err
    catalogue = own_products(opened)
    rows = product_rows(opened.model, opened.features(catalogue))
    asked = opened.model.category_rows(opened.category_features([name]))
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
    again = diptych("search", tmp_path / "index", name, "-k", 4)  # it knows what it holds
    assert again.out.splitlines()[:6] == found.out.splitlines()[:6]
    assert "--category --sheet found.png" in again.out


def test_words_that_are_no_category_are_neither_right_nor_wrong(
    diptych: Command, trained: tuple[Path, Path], tmp_path: Path
) -> None:
    _, run = trained
    assert diptych("categories", "index", run, "--split", "test", "--out", tmp_path / "index").code == 0
    assert 0 < len(open_index(tmp_path / "index")) < 80
    done = diptych("search", tmp_path / "index", 'a "quoted" / name', "--category", "-k", 3)
    assert done.code == 0, done.err
    assert "✓" not in done.out
    assert "✗" not in done.out


def test_what_is_refused(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    _, run = trained
    moved = tmp_path / "moved"
    shutil.copytree(run, moved)
    assert diptych("categories", "index", moved, "--out", tmp_path / "index").code == 0
    for arguments, words in (
        (("x.png", "--category"), "is a picture"),
        (("x", "--category", "--own-terms"), "searches for pictures"),
        (("x", "--where", "pictured=true"), "keeps no metadata"),
        ((" ",), "the query is empty"),
    ):
        done = diptych("search", tmp_path / "index", *arguments)
        assert done.code == 2, (arguments, done.out)
        assert words in done.err
    shutil.rmtree(moved)
    done = diptych("search", tmp_path / "index", "x")
    assert done.code == 2
    assert "which is not there any more" in done.err
    done = diptych("categories", "index", run, "--engine", "exakt")
    assert done.code == 2
    assert "did you mean 'exact'?" in done.err


def test_what_the_marks_mean_is_said(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    _, run = trained
    assert diptych("categories", "index", run, "--out", tmp_path / "index").code == 0
    tree = CategoryRun.open(run).tree
    path = next(path for path in tree.paths if len(path) == 2)
    done = diptych("search", tmp_path / "index", ">".join(path).upper(), "-k", 3)
    assert done.code == 0, done.err
    assert f"sorted into {' > '.join(path)}, or below it" in done.out
    done = diptych("search", tmp_path / "index", "no such category", "-k", 3)
    assert "'no such category' is no category of the tree" in done.out
