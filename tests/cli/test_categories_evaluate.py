"""``diptych categories evaluate``: a small grid, gone on with, a run measured as it is, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command
from tiny_catalogue import NO_PICTURE, tiny_catalogue, tiny_collection

from diptych.cli.categories.report import held_out
from diptych.commerce.category_to_image.evaluation import ModelsEvaluation

GRID = ("--model", "bm25,sentence,clip-ita", "--setting", "most-specific", "--setting", "all", "--seeds", 2,
        "--set", "epochs=1", "--set", "hidden=8", "--set", "width=4", "--text-encoder", "lsa:8",
        "--samples", 20)  # fmt: skip


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny shop as a Karpathy file; without the product that has no picture."""
    folder = tmp_path_factory.mktemp("shop")
    collection = tiny_collection(folder / "images")
    assert collection.records is not None
    images = [
        {
            "filename": f"{name}.png",
            "split": split,
            "sentences": [{"raw": record["title"] or name}],
            **record,
        }
        for name, split, record in zip(
            collection.image_ids, collection.splits, collection.records, strict=True
        )
        if name != NO_PICTURE
    ]
    (folder / "dataset_tiny.json").write_text(json.dumps({"dataset": "tiny", "images": images}))
    return folder


def test_a_small_grid_its_page_and_what_goes_on(diptych: Command, shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "evaluation"
    done = diptych("categories", "evaluate", shop, "--out", out, *GRID)
    assert done.code == 0, done.err
    found = ModelsEvaluation.open(out)
    assert found.models == ("bm25", "sentence", "clip-ita")
    value = found.value("most-specific", "bm25", "P@1").mean
    row = next(line for line in done.out.splitlines() if line.strip().startswith("BM25"))
    assert f"{100 * value:.1f}" in done.out
    assert "categories: most-specific" in done.out
    assert row
    assert "chance" in done.out
    assert "by level of the tree" in done.out
    assert "first products of clip-ita over 2 seeds" in done.out
    assert found.line() in done.out
    assert f"next: open {out / 'report.html'}" in done.out
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "data:image/jpeg" in page
    assert "--image-encoder grid --text-encoder lsa:8" in page
    assert found.about["source"]["data"] == str(shop)
    again = diptych("categories", "evaluate", shop, "--out", out, *GRID, "--query", "path")
    assert again.code == 1
    assert "query name and path" in again.err


def test_a_run_is_measured_on_what_it_has_not_seen(diptych: Command, shop: Path, tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "held-out"
    trained = diptych("categories", "train", shop, "--out", run, "--model", "clip-ta", "--set", "epochs=1",
                      "--set", "hidden=8", "--set", "width=4", "--text-encoder", "lsa:8")  # fmt: skip
    assert trained.code == 0, trained.err
    done = diptych("categories", "evaluate", shop, "--run", run, "--out", out, "--samples", 0)
    assert done.code == 0, done.err
    found = ModelsEvaluation.open(out)
    assert found.models == ("clip-ta",)
    assert len(found.judged("most-specific").products) == 5  # six test products, one without a category
    assert "nothing fitted" in done.out
    assert "trained on most-specific categories" in done.out
    assert found.seen("most-specific", "clip-ta", "P@1")
    assert "17 products left out" in (out / "report.html").read_text(encoding="utf-8")


def test_what_is_refused(diptych: Command, shop: Path, tmp_path: Path) -> None:
    for words, code, said in (
        (("--model", "clip-x"), 2, "unknown model 'clip-x'"),
        (("--setting", "some"), 2, "unknown setting 'some'"),
        (("--relevance", "taste"), 2, "one of label, path"),
        (("--query", "picture"), 2, "one of name, path"),
        (("--set", "epoch=1"), 2, "did you mean 'epochs'"),
        (("--set", "setting=all"), 2, "--setting"),
        (("--set", "epochs=0"), 2, "epochs: Input should be greater"),
        (("--published", "--set", "epochs=1"), 2, "as in the thesis"),
        (("--run", tmp_path / "none"), 2, "holds no trained category model"),
        (("--run", tmp_path / "none", "--model", "clip-i"), 2, "measured as it is"),
        (("--run", tmp_path / "none", "--query", "path"), 2, "measured as it is"),
        (("--run", tmp_path / "none", "--text-encoder", "lsa:8"), 2, "measured as it is"),
        (("--model", "clip"), 2, "dual encoder"),
    ):
        done = diptych("categories", "evaluate", shop, "--out", tmp_path / "out", *words)
        assert (done.code, said in done.err) == (code, True), (words, done.err)
    assert not (tmp_path / "out").exists()
    nowhere = diptych("categories", "evaluate", tmp_path / "nothing", "--out", tmp_path / "out")
    assert nowhere.code == 2
    assert "does not exist" in nowhere.err


def test_what_a_run_has_not_seen(tmp_path: Path) -> None:
    shop = tiny_catalogue(tmp_path)
    splits = dict.fromkeys(shop.ids[:20], "train") | {shop.ids[20]: "dev", shop.ids[21]: "extra"}
    found, notes = held_out(splits, shop)
    assert list(found.ids) == list(shop.ids[21:])
    assert notes == ["21 products left out that the run was trained or validated on"]


def test_help_has_examples(diptych: Command) -> None:
    done = diptych("categories", "evaluate", "--help")
    assert done.code == 0
    assert "--published" in done.out
    assert "held-out" in done.out
