"""Several collections on one command line: names, folders of pictures, readers and their options."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command

from diptych.cli.study_data import DataChoices
from diptych.core.errors import DiptychError


def test_each_collection_has_its_own_options() -> None:
    given = DataChoices(
        data=["coco=annotations.json", "shop.2=items.csv", "scenes"],
        images=["coco=val2014", "pictures"],
        reader=["coco=karpathy"],
        reader_option=["coco.restval=true", "shop.2.caption_column=title", "sep=;"],
        skip_bad_images=True,
    )
    coco, shop, scenes = (dict(section) for _, section in given.several())
    assert [name for name, _ in given.several()] == ["coco", "shop.2", ""]
    assert (coco["path"], coco["reader"]) == ("annotations.json", "karpathy")
    assert coco["options"] == {"sep": ";", "restval": True, "images": str(Path("val2014").resolve())}
    assert shop["options"]["caption_column"] == "title"
    assert shop["options"]["images"] == scenes["options"]["images"] == str(Path("pictures").resolve())
    assert shop["reader"] is None
    assert scenes["options"]["sep"] == ";"
    assert all(section["skip_bad_images"] for section in (coco, shop, scenes))


def test_a_path_that_is_there_is_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b").mkdir()
    ((name, section),) = DataChoices(data=["a=b"]).several()
    assert name == ""
    assert section["path"] == str(tmp_path / "a=b")
    assert DataChoices(data=["a=b"]).one() == section
    assert DataChoices().one() is None
    assert DataChoices().several() == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (DataChoices(data=["a=x", "a=y"]), "two collections are called 'a'"),
        (DataChoices(data=["a=x"], images=["b=y"]), "collection of --images 'b'"),
        (DataChoices(data=["a=x"], reader=["a=csv", "a=pairs"]), "--reader is given twice for a"),
        (DataChoices(data=["a=x"], reader_option=["b.images=y"]), "--reader-option 'b'"),
        (DataChoices(data=["a=x"], reader_option=["a.images"]), "is not KEY=VALUE"),
    ],
)
def test_names_that_do_not_fit(given: DataChoices, said: str) -> None:
    with pytest.raises(DiptychError, match=said):
        given.several()


def test_one_collection_is_one() -> None:
    with pytest.raises(DiptychError, match="--data is given 2 times"):
        DataChoices(data=["a", "b"]).one()


def test_several_are_run_with_one_command(
    diptych: Command, scenes_folder: Path, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = tmp_path / "reproducibility.table-2.2"
    done = diptych(
        "scenes",
        "--train",
        0,
        "--val",
        0,
        "--test",
        12,
        "--size",
        32,
        "--objects",
        1,
        "--out",
        tmp_path / "o",
    )
    assert "object-centric" in done.out
    done = diptych(
        "study", "run", "reproducibility.table-2.2", "--data", f"flickr8k={scenes_folder}",
        "--data", f"things={tmp_path / 'o'}", "--set", f"clip={run_folder}", "--set", f"x-vlm={run_folder}",
        "--rows", "clip,x-vlm", "--out", out,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "row 2 of 2: X-VLM: measuring on things" in done.out
    assert "measured on: things test: 12 images" in done.out
    assert "one order, from collection to collection" in done.out
    assert "protocol of x-vlm: dataset things" in done.out
    assert "tie ~0.00" in done.out  # it is the same encoder twice
    assert "◐ 18 of 36" in done.out  # the thesis's root
    page = (out / "report.html").read_text()
    assert "--data flickr8k=" in page
    assert ">things<" in page
    again = diptych("study", "verdict", out)
    assert again.code == 0
    assert "Relative results" in again.out
    shown = diptych("study", "show", "reproducibility.table-2.1")
    assert "74.95" in shown.out
    assert shown.out.count("original scores and reproduced ones") == 4  # each collection by each who measured
    assert "by thesis: CLIP: flickr30k val: 1,014 images" in shown.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("reproducibility.table-2.1", "--setting", "data"), "no data given"),
        (("reproducibility.table-2.1", "--data", "a=nowhere"), "nowhere"),
        (("convse.table-3", "--data", "a", "--data", "b"), "--data is given 2 times"),
        (("reproducibility.table-2.1", "--quick", "--set", "measure.k_test=-1"), "measure.k_test is -1"),
    ],
)
def test_bad_input_is_said(
    diptych: Command, arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = diptych("study", "run", *arguments)
    assert done.code in (1, 2)
    assert said in done.err.replace("\n", " ")


@pytest.mark.parametrize("objects", ["0", "x", "2-", "1-9"])
def test_numbers_of_objects_that_cannot_be(diptych: Command, objects: str, tmp_path: Path) -> None:
    done = diptych("scenes", "--objects", objects, "--out", tmp_path / "o")
    assert done.code == 2
    assert "objects" in done.err
