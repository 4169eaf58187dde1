"""``diptych categories pick``: from a run to pictures for every category, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from category_runs import trained_shop
from commands import Command


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return trained_shop(tmp_path_factory.mktemp("trained"))


def picked(folder: Path) -> dict:  # type: ignore[type-arg]
    said: dict = json.loads((folder / "picks.json").read_text("utf-8"))  # type: ignore[type-arg]
    return said


def test_the_runs_own_products(diptych: Command, trained: tuple[Path, Path]) -> None:
    _, run = trained
    done = diptych("categories", "pick", run, "-k", 3)
    assert done.code == 0, done.err
    said = picked(run / "picks")
    assert said["catalogue"]["products"] == 80
    assert said["about"]["model"] == "clip-ita"
    assert (
        f"{said['counts']['pictures']:,} pictures for {said['counts']['categories']:,} categories" in done.out
    )
    assert f"next: open {run / 'picks' / 'tree.html'}" in done.out
    assert "trained on most-specific categories alone; pictures for every level" in done.out
    assert (run / "picks" / "tree.html").is_file()
    for entry in said["categories"]:
        assert len(entry["products"]) == 3
        assert entry["asked"] == entry["path"][-1]
        files = [one["file"] for one in entry["products"]]
        assert len(set(files)) == 3
        assert all(Path(file).is_file() for file in files)
        for one in entry["products"]:
            below = any(path[: len(entry["path"])] == entry["path"] for path in one["categories"])
            assert one["of_the_category"] == (below if one["categories"] else None)


def test_members_of_a_split_of_other_products(
    diptych: Command, trained: tuple[Path, Path], tmp_path: Path
) -> None:
    shop, run = trained
    done = diptych("categories", "pick", run, shop, "--split", "test", "--among", "members", "--no-sheet",
                   "--distinct", "title", "--out", tmp_path / "picks")  # fmt: skip
    assert done.code == 0, done.err
    assert [file.name for file in (tmp_path / "picks").iterdir()] == ["picks.json"]
    said = picked(tmp_path / "picks")
    assert said["counts"]["categories without a picture"] > 0
    assert said["counts"]["of another category"] == 0
    assert said["distinct"] == ["picture", "title"]
    assert "pictures for every level" not in done.out
    assert said["about"]["split"] == "test"


def test_the_same_twice(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    _, run = trained
    for name in ("one", "two"):
        assert diptych("categories", "pick", run, "-k", 2, "--out", tmp_path / name).code == 0
    for file in ("picks.json", "tree.html"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_more_than_the_shop_has(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    _, run = trained
    done = diptych("categories", "pick", run, "-k", 500, "--no-sheet", "--out", tmp_path / "picks")
    assert done.code == 0, done.err
    said = picked(tmp_path / "picks")
    pictured = 80 - said["counts"]["products without a picture"]
    assert {len(entry["products"]) for entry in said["categories"]} == {pictured}


def test_what_is_refused(diptych: Command, trained: tuple[Path, Path], tmp_path: Path) -> None:
    shop, run = trained
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "photo.jpg").write_bytes(b"")
    for arguments, words in (
        ((run, "--among", "some"), "among 'some'"),
        ((run, "--distinct", "colour"), "distinct by 'colour'"),
        ((run, "--split", "tset"), "did you mean 'test'?"),
        ((run, "--images", shop), "options of data, but no data"),
        ((run, tmp_path / "nothing"), "does not exist"),
        ((run, "--out", tmp_path / "mine"), "holds other things"),
        ((shop,), "no trained category model"),
    ):
        done = diptych("categories", "pick", *arguments)
        assert done.code == 2, (arguments, done.out)
        assert words in done.err
