"""The papers' tables from the command line: on pictures, several collections, catalogues and logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from commands import Command

from diptych.core.errors import DiptychError
from diptych.core.options import command_line
from diptych.data.several import DataChoices
from diptych.studies import cti_rows, intent_rows
from diptych.studies.choices import RunOptions

SMALL = (
    "model.width=16",
    "model.image.preprocessing={size = 32, resize = 32}",
    "model.text.word_width=8",
    "model.text.min_count=1",
    "batches.size=16",
    "stages.0.epochs=1",
    "stages.0.warmup=0",
)


def test_list_has_a_line_of_80_columns_per_study(diptych: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from diptych.studies import STUDIES

    monkeypatch.setenv("COLUMNS", "80")
    done = diptych("study list")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    for study in STUDIES:
        times = [study.settings[key].duration for key in ("quick", "paper")]
        assert " ".join([study.name, study.topic, *times]) in lines
    assert max(map(len, done.out.partition("next:")[0].splitlines())) <= 80
    assert "next: diptych study show" in done.out


def test_show_prints_the_table_and_judges_the_paper(
    diptych: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    done = diptych("study show convse.table-3")
    done.shows("483.6", "12 of 14 comparisons hold", "--rows", "note: The text at hand has no page numbers.")
    done.shows("diptych study run convse.table-3 --quick")


def test_a_study_is_run_and_judged_on_other_data(
    diptych: Command, scenes_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    out = tmp_path / "out"
    quick = " ".join(
        ["--setting quick --seeds 0 --accelerator cpu", *(f"--set '{value}'" for value in SMALL)]
    )
    done = diptych(
        f"study run metric-learning.table-1 --data {scenes_folder} --rows 1.1,1.3 --out {out} {quick}"
    )
    done.shows("row 2 of 2: VSE++, NT-Xent: training", "Not a reproduction: on scenes", "353.8±1.6")
    done.shows(f"next: diptych study verdict {out}")
    page = (out / "report.html").read_text()
    assert "Not a reproduction" in page
    assert "--rows 1.1,1.3" in page
    again = diptych(f"study verdict {out}")
    again.shows("rightly counted", "(2)")
    diptych(f"study verdict {out}/rows/vsepp-triplet/seed-0 --out {tmp_path}/one.html")
    assert (tmp_path / "one.html").is_file()
    counted = diptych(
        f"study run metric-learning.table-2 --data {scenes_folder} --rows 1.1 {quick} "
        f"--out {tmp_path}/metric-learning.table-2"
    )
    assert (tmp_path / "metric-learning.table-1" / "rows" / "vsepp-triplet" / "seed-0").is_dir()
    assert "C^B" in counted.out


@pytest.mark.parametrize("columns", ["80", "160"])
def test_no_number_is_cut(diptych: Command, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    """Ten columns have no room on a narrow line: the rest of them follow below."""
    monkeypatch.setenv("COLUMNS", columns)
    done = diptych("study show d2s.table-3.6")
    done.shows("13277", "9739", "183.42", "193.46", ">700.00", "D2S, HNSW")
    assert "search.engine" in " ".join(done.out.split()) or columns == "80"  # what sets a row apart
    assert max(len(line) for line in done.out.splitlines() if "13277" in line) <= int(columns)


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


def test_files_that_are_named_are_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from diptych.cli.sources import recipe_values
    from diptych.studies import STUDIES
    from diptych.studies.rows import path_keys

    monkeypatch.chdir(tmp_path)
    keys = {
        "d2s.table-3.1": ("dense", "measure.words", "sparsify.vocabulary.source"),
        "brittleness.table-5.3": ("clip", "encoder", "bag", "measure.relevance", "measure.wordnet"),
        "cti.table-7.1": ("features.weights",),
        "reproducibility.table-2.1": ("clip", "x-vlm", "fine_tune", "model.image.weights"),
    }
    for name, paths in keys.items():
        found = recipe_values([f"{key}={tmp_path.name}" for key in paths], path_keys(STUDIES.get(name)))
        assert set(found.values()) == {tmp_path.name}
        found = recipe_values([f"{key}=../{tmp_path.name}" for key in paths], path_keys(STUDIES.get(name)))
        assert set(found.values()) == {str(tmp_path)}
    assert recipe_values(["clip=.", "warm_start=."]) == {"clip": ".", "warm_start": str(tmp_path)}


def test_a_command_is_typed_as_it_was_given() -> None:
    data = DataChoices(data=["a=x y", "b"], skip_bad_images=True)
    options = RunOptions(rows="1.1,1.2", quick=True, regions=Path("r.npy"), set_=["clip=c"])
    said = command_line(("diptych", "study", "run", "s"), data, options)
    assert said == (
        "diptych study run s --data 'a=x y' --data b --skip-bad-images --rows 1.1,1.2 --quick --regions r.npy "
        "--set clip=c"
    )


def test_one_collection_is_one() -> None:
    with pytest.raises(DiptychError, match="--data is given 2 times"):
        DataChoices(data=["a", "b"]).one()


def test_several_are_run_with_one_command(
    diptych: Command, scenes_folder: Path, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = tmp_path / "reproducibility.table-2.2"
    done = diptych(f"data scenes --train 0 --val 0 --test 12 --size 32 --objects 1 --out {tmp_path}/o")
    assert "object-centric" in done.out
    done = diptych(
        f"study run reproducibility.table-2.2 --data flickr8k={scenes_folder} --data "
        f"things={tmp_path}/o --set clip={run_folder} --set x-vlm={run_folder} --rows clip,x-vlm "
        f"--out {out}"
    )
    done.shows("row 2 of 2: X-VLM: measuring on things", "things test: 12 images")
    done.shows("one order, from collection to collection", "protocol: dataset things", "tie ~0.00")
    done.shows("◐ 18 of 36")
    page = (out / "report.html").read_text()
    assert "--data flickr8k=" in page
    assert ">things<" in page
    again = diptych(f"study verdict {out}")
    assert "Relative results" in again.out
    shown = diptych("study show reproducibility.table-2.1")
    assert "74.95" in shown.out
    assert shown.out.count("original scores and reproduced ones") == 1
    assert "flickr30k, by thesis: flickr30k val: 1,014 images" in shown.out


def test_a_quick_study_of_generated_products(
    diptych: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("DIPTYCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    small = replace(
        cti_rows.TRAINED["quick"],
        products={"n_products": 100, "levels": (2, 3), "size": 32, "seed": 3},
        measure={"train.epochs": 1, "train.hidden": 16, "train.width": 8, "features.text": "lsa:8"},
    )
    monkeypatch.setitem(cti_rows.TRAINED, "quick", small)
    rows = "bm25-most-specific,clip-i-most-specific,clip-ita-most-specific"
    done = diptych(f"study run cti.table-7.1 --quick --rows {rows}")
    done.shows("Not a reproduction: on product-scenes: 100 products", "45.85")
    done.shows("protocol: dataset product-scenes", "next: diptych study verdict studies/cti.table-7.1")
    page = Path("studies/cti.table-7.1/report.html").read_text()
    assert f"diptych study run cti.table-7.1 --rows {rows} --quick" in page
    assert "Intervals, chance, and products that ask for their category" in page
    beside = diptych("study run cti.table-7.2 --quick --rows most-specific")
    assert "models in" not in beside.out  # nothing was made again
    again = diptych("study verdict studies/cti.table-7.1")
    assert "pictures, share" in again.out


def test_show_says_what_is_printed(diptych: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    done = diptych("study show cti.table-7.3")
    done.shows("xmarket-us test: 38,921 products", "is above both parts")
    done.shows("diptych study run cti.table-7.3 --quick")


pytest.importorskip("duckdb")


def test_a_quick_study_of_a_generated_log(
    diptych: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)
    small = replace(intent_rows.COUNTING["quick"], log={"visitors": 150})
    monkeypatch.setitem(intent_rows.COUNTING, "quick", small)
    done = diptych("study run intent.table-6.2 --quick")
    done.shows("scenes: importing events", "Not a reproduction: on scenes", "71.07")
    assert "seeds" not in done.out
    done.shows("diptych intent describe", "next: diptych study verdict studies/intent.table-6.2")
    page = Path("studies/intent.table-6.2/report.html").read_text()
    assert "diptych study run intent.table-6.2 --quick" in page
    assert "48.27" not in page
    beside = diptych("study run intent.figure-6.3 --quick")
    assert "scenes: " not in beside.out.replace("on scenes: ", "")  # nothing was made again
    again = diptych("study verdict studies/intent.table-6.2")
    assert "paid and organic" in again.out
    assert "Rate, %" in again.out
    diptych("study verdict studies/intent.table-6.2 --hide-rates").hides("Rate, %")


def test_raw_events_are_imported_first(
    diptych: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from diptych.data.scenes import make_shop_log

    monkeypatch.setenv("COLUMNS", "160")
    raw = make_shop_log(tmp_path / "raw", visitors=60)
    done = diptych(
        f"study run intent.table-6.1 --data {raw} --reader shop-log --reader-option name=mine "
        f"--reader-option zone=UTC --set measure.gap=20 --out {tmp_path}/studies/here"
    )
    done.shows("on mine: ", "(UTC)", "ended by more than 20 minutes")
    assert (tmp_path / "studies" / "intent.logs").is_dir()


def test_features_are_held_against_the_thesis_at_once(diptych: Command, tmp_path: Path) -> None:
    done = diptych(f"study run intent.table-6.7 --out {tmp_path}/here")
    assert "cells: 45 reproduced" in done.out
    shown = diptych("study show intent.table-6.7")
    assert (
        "next: diptych study run intent.table-6.7 --quick, or: diptych study run intent.table-6.7\n"
        in shown.out
    )


def test_a_figure_without_numbers_is_no_table(diptych: Command) -> None:
    shown = diptych("study show intent.figure-6.7")
    said = " ".join(shown.out.split())
    assert (
        "no number is printed (anonymous: thesis-shop anonymous sessions of 12 pages and more: 22,982" in said
    )
    assert "F1@10" not in said
    assert "6.74 % more for k-nearest neighbours at step 0" in said
