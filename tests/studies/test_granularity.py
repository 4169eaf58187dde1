"""Thesis Table 5.1 as a study: nothing is trained, captions are measured rightly and as published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from study_runs import run_study

from diptych.core.errors import UnknownNameError, UsageError
from diptych.data import read_collection
from diptych.studies import STUDIES, Choices, collect, compare
from diptych.studies.brittleness_granularity import (
    ROW,
    check_granularity,
    finer_in,
    gains,
    granularity_tables,
    unchanged,
)
from diptych.studies.page import study_page
from diptych.studies.published import published_table
from diptych.studies.results import Results
from diptych.studies.study import Measurement
from diptych.studies.tables import compared_tables
from diptych.studies.verdict import Evidence, Figure, Measured

STUDY = STUDIES.get("brittleness.table-5.1")
FINER = {"scenes": {"n_train": 0, "n_val": 0, "n_test": 24, "size": 32, "finer": 2}}
COARSE = {"scenes": {key: value for key, value in FINER["scenes"].items() if key != "finer"}}
CHOICES = Choices(setting="quick", collections=(("scenes", COARSE), ("scenes-fg", FINER)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("study") / "table-5.1"
    run_study(STUDY, made, CHOICES)
    return made


def test_scenes_with_finer_captions(folder: Path) -> None:
    found = compare(STUDY, collect([folder])[0])
    words = {name: found.results.on(name).values(ROW, "words")[0] for name in ("scenes", "scenes-fg")}
    assert words["scenes-fg"] > words["scenes"] + 3
    published = found.results.on("scenes").values(ROW, "articles|published")
    assert published[0] > found.results.on("scenes").values(ROW, "articles")[0]  # some determiners are none
    assert not found.results.on("scenes").values(ROW, "adjectives|published")
    status = {claim.name: judged.status for claim, judged, _ in found.claims}
    assert status["finer"] == "holds"
    assert (status["phrases"], status["adjectives"]) == ("not run", "not run")
    assert "nothing is trained" in found.label
    assert "numbers are of other captions" in found.label
    compared, definitions = found.tables
    assert compared.caption == "scenes-fg less scenes"
    assert "paired: 24 images" in compared.after
    assert [row[0].text for row in compared.rows] == list(published_table("brittleness", "table-5.1").columns)
    assert definitions.rows[0][2].text == "not known"
    numbers, evaluations = compared_tables(found)  # one of each, of however many collections
    places = dict.fromkeys(row[1].text for row in numbers.rows)
    assert {"scenes", "scenes-fg"} < set(places)
    assert [row[0].text for row in evaluations.rows] == list(places)
    column = numbers.columns.index("articles")
    mine = [row[column].value for row in numbers.rows if row[1].text == "scenes"]
    assert mine[0] == published[0]
    alone = compared_tables(found, measured_alone=True)[0]
    assert {row[1].text for row in alone.rows} == {"scenes", "scenes-fg"}
    page = study_page(found).html()
    assert "scenes-fg less scenes" in page
    assert "1.56" in page  # the printed table stands beside


def test_what_is_there_is_not_measured_again(folder: Path) -> None:
    told: list[str] = []
    again = run_study(STUDY, folder, CHOICES, tell=told.append)
    assert told == []
    assert len(again.entries) == 2


def test_on_the_papers_own_captions_cells_have_verdicts(folder: Path) -> None:
    """Entries made to look as if they were of COCO-FG's test split: verdicts are by the published definitions."""
    given = collect([folder])[0].entries[0]
    rows = {row.on.key: row.cells for row in published_table("brittleness", "table-5.1").rows}
    values = {name: cell.value for name, cell in rows["coco-fg"].items()}
    values |= {"articles": 9.0, "articles|published": values["articles"], "words": 20.0}
    on = Measured("coco-fg", "test", 5000, 25000, centric="scene")
    measurement = Measurement(values, on, given.measurements[0].protocol)
    entry = replace(given, setting="paper", measurements=(measurement,))
    found = compare(STUDY, Results(STUDY.name, (entry,), several=True))
    cells = {cell.column: cell for cell in found.blocks[0].rows[0].cells}
    assert {name: cell.verdict for name, cell in cells.items() if cell.verdict != "reproduced"} == {
        "words": "not reproduced"
    }
    right = cells["articles"].right
    assert right is not None
    assert right.mean == 9.0
    assert "Cells have a verdict where collection and captions are" in found.label


# Claims -----------------------------------------------------------------------------------------


def evidence(**columns: tuple[float, float]) -> Evidence:
    """Features of made-up coarse and finer captions."""
    figures = {
        f"{name} {feature.replace('_', '-')}": Figure(value)
        for feature, both in columns.items()
        for name, value in zip(("shop", "shop-fg"), both, strict=True)
    }
    return Evidence({ROW: figures}, centric={"shop": "", "shop-fg": "", "alone": ""})


def test_checks_can_fail() -> None:
    given = evidence(words=(10, 11), articles=(2.0, 2.0), concept_depth=(7.0, 7.05))
    assert [one.holds for one in finer_in(["words", "articles"])(given)] == [True, False]
    assert [one.holds for one in finer_in(["quantifiers"])(given)] == [None]
    assert [one.holds for one in unchanged("concept-depth", 0.01)(given)] == [True]
    assert [one.holds for one in unchanged("concept-depth", 0.005)(given)] == [False]
    assert [one.holds for one in gains("shop", "words", 0.1, 0.01)(given)] == [True]
    assert [one.holds for one in gains("shop", "words", 0.2, 0.01)(given)] == [False]
    assert [one.holds for one in gains("coco", "words", 0.2, 0.01)(given)] == [None]
    assert [one.holds for one in finer_in(["words"])(Evidence())] == [None]
    assert [one.holds for one in unchanged("words", 0.1)(Evidence())] == [None]


def test_printed_gains_stand_beside_those_of_the_same_collections(folder: Path) -> None:
    measured = sorted(file.parent for file in folder.rglob("granularity.json"))
    coarse, fine = (next(one for one in measured if ("-fg" in one.name) == finer) for finer in (False, True))
    for names, expected in ((("coco", "coco-fg"), ("+38.2", "+27.6")), (("shop", "shop-fg"), ("", ""))):
        kept = {f"{name} {ROW}": (one,) for name, one in zip(names, (coarse, fine), strict=True)}
        table = granularity_tables(Evidence({}, kept=kept, centric=dict.fromkeys(names, "")))[0]
        place = table.columns.index("printed %")
        assert tuple(row[place] for row in table.texts[:2]) == expected


# What is refused ----------------------------------------------------------------------------------


def test_a_split_or_a_language_that_there_is_not(scenes_folder: Path) -> None:
    scenes = {"scenes": read_collection(scenes_folder)}
    check_granularity({}, scenes)
    with pytest.raises(UnknownNameError, match="split of scenes"):
        check_granularity({"split": "tset"}, scenes)
    with pytest.raises(UsageError, match="needs a part-of-speech tagger"):
        check_granularity({"language": "none"}, scenes)


def test_nothing_can_be_set_about_a_training(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"trains nothing.*measure\.split"):
        run_study(STUDY, tmp_path / "s", replace(CHOICES, values={"model.width": 3}))
    with pytest.raises(UnknownNameError, match="key of measure"):
        run_study(STUDY, tmp_path / "s", replace(CHOICES, values={"measure.spilt": "val"}))
