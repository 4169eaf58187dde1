"""``diptych info`` and ``diptych report`` of what ``diptych categories`` writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from category_runs import trained_shop
from commands import Command

from diptych.core.files import write_json


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return trained_shop(tmp_path_factory.mktemp("trained"))


def test_a_run_and_what_was_made_with_it(
    diptych: Command, trained: tuple[Path, Path], tmp_path: Path
) -> None:
    shop, run = trained
    picks, filled, found = tmp_path / "picks", tmp_path / "filled.csv", tmp_path / "evaluation"
    assert diptych("categories", "pick", run, "--out", picks).code == 0
    assert diptych("categories", "fill", run, "--out", filled).code == 0
    assert diptych("categories", "index", run).code == 0
    done = diptych("categories", "evaluate", shop, "--run", run, "--out", found, "--samples", 0)
    assert done.code == 0, done.err
    for path, said in (
        (run, ("category run", "clip-ita", "text encoder", "most-specific")),
        (picks, ("pictures for categories", "80 of product-scenes", "tree.html")),
        (filled, ("suggested categories", "temperature", "split val")),
        (filled.with_suffix(".summary.json"), ("suggested categories",)),
        (found, ("evaluation of categories", "report.html", "relevance by label")),
        (run / "index-exact", ("80 product vectors", "products of", "the run's data", run.name)),
        (shop, ("dataset", "80 products")),
    ):
        done = diptych("info", path)
        assert done.code == 0, (path, done.err)
        assert all(one in done.out for one in said), (path, done.out)
    page = (found / "report.html").read_bytes()
    (found / "report.html").unlink()
    assert "none yet: diptych report" in diptych("info", found).out.replace("\n", " ")
    done = diptych("report", found)
    assert done.code == 0, done.err
    assert (found / "report.html").read_bytes() == page


def test_a_page_without_products_has_no_pictures(
    diptych: Command, trained: tuple[Path, Path], tmp_path: Path
) -> None:
    shop, run = trained
    found = tmp_path / "evaluation"
    assert diptych("categories", "evaluate", shop, "--run", run, "--out", found, "--samples", 0).code == 0
    moved = shop.rename(shop.with_name("moved"))
    try:
        done = diptych("report", found, "--out", tmp_path / "page.html")
    finally:
        moved.rename(shop)
    assert done.code == 0, done.err
    assert "no pictures" in done.out
    assert "shop" in done.out
    assert (tmp_path / "page.html").is_file()


def test_what_has_no_page(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    _, run = trained
    assert diptych("categories", "pick", run, "--out", tmp_path / "picks", "--no-sheet").code == 0
    for folder, fix in ((run, "categories evaluate"), (tmp_path / "picks", "categories pick")):
        done = diptych("report", folder)
        assert done.code == 2
        assert fix in done.err
    assert diptych("report", run, "--split", "test").code == 2


def test_damaged_ones(diptych: Command, tmp_path: Path) -> None:
    write_json(tmp_path / "picks.json", {"format": 1})
    done = diptych("info", tmp_path)
    assert done.code == 1
    assert "is damaged" in done.err


def test_a_run_of_diptych_train_that_has_not_ended_is_no_encoder(
    diptych: Command, trained: tuple[Path, Path], tmp_path: Path
) -> None:
    shop, _ = trained
    begun = tmp_path / "begun"
    write_json(begun / "run.json", {})
    done = diptych("categories", "train", shop, "--out", tmp_path / "run", "--image-encoder", begun)
    assert done.code != 0
    assert str(begun) in done.err.replace("\n", "")


def test_a_run_of_diptych_train_is_an_encoder(
    diptych: Command, trained: tuple[Path, Path], run_folder: Path, tmp_path: Path
) -> None:
    from diptych.cli.sources import encoder_source

    shop, _ = trained
    done = diptych(
        *("categories", "train", shop, "--out", tmp_path / "run", "--set", "epochs=1"),
        *("--image-encoder", run_folder, "--text-encoder", run_folder),
    )
    assert done.code == 0, done.err
    assert encoder_source(str(run_folder)) == str((run_folder / "best").resolve())
    assert encoder_source("hf:NAME") == "hf:NAME"
    assert diptych("categories", "pick", tmp_path / "run", "--no-sheet").code == 0
