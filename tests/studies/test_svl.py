"""Thesis chapter 4: rows, recipes, grids, bars, information, and one small run of the whole way."""

from __future__ import annotations

import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study_runs import SMALL, run_study

from diptych.core.errors import MismatchError, UsageError
from diptych.studies import STUDIES, Choices, compare, recipe_of
from diptych.studies.claims import Check, Claim, beats, judge
from diptych.studies.making import start_of
from diptych.studies.page import study_page
from diptych.studies.results import Entry, entry_file
from diptych.studies.rows import base_of, why_left_out
from diptych.studies.runner import plan_of
from diptych.studies.shortcut_checks import (
    at_least,
    chosen_of,
    collapsed,
    in_order,
    less,
    reaches,
    recovers,
    with_chosen,
)
from diptych.studies.shortcut_rows import BITS, BOUNDS, BUDGETS, chosen_remarks
from diptych.studies.study import SettingName, Study
from diptych.studies.verdict import Evidence, Figure, cell_verdict
from diptych.training.recipe import Recipe
from diptych.training.run import Run

FIGURE = STUDIES.get("svl.figure-4.5")
LTD, IFM = STUDIES.get("svl.table-4.1"), STUDIES.get("svl.table-4.2")
INFORMATION = STUDIES.get("svl.information")
CLIP = {"fine_tune": "clip-rn50"}


def of(name: str, setting: SettingName = "paper", study: str = "svl.table-4.1", **values: object) -> Any:
    """The recipe; tests read its optional parts as if they were there."""
    found = STUDIES.get(study)
    return recipe_of(found, found.row(name), setting, Choices(values=values))


def test_the_schedule_of_the_thesis() -> None:
    recipe = of("vse-none")
    (stage,) = recipe.stages
    assert (stage.epochs, stage.learning_rate, stage.schedule, stage.step_epochs) == (30, 2e-4, "step", 15)
    assert stage.train == ("*",)
    assert (recipe.batches.plan, recipe.batches.size, recipe.optimizer.clip) == ("captions", 128, 2.0)
    assert (recipe.model.image.backbone, recipe.model.width) == ("resnet152.tv2_in1k", 1024)  # type: ignore[union-attr]
    assert recipe.objective == {"name": "infonce", "temperature": 0.07, "learn_temperature": True}
    assert recipe.checkpoints.keep == "last"
    fine = recipe_of(LTD, LTD.row("clip-unique"), "paper")
    (stage,) = fine.stages
    assert (stage.epochs, stage.learning_rate, stage.schedule, stage.warmup) == (5, 2e-5, "cosine", 100)
    assert (fine.batches.size, fine.optimizer.name, fine.optimizer.weight_decay) == (256, "adamw", 0.0)
    assert fine.augmentation is None


def test_rows_differ_in_their_shortcuts_alone() -> None:
    study = "svl.figure-4.5"
    plain = of("vse-none", "quick", study)
    assert plain.shortcuts.setup == "none"
    size = plain.shortcuts.digit_size
    for name, setup in (("vse-captions", "captions"), ("vse-unique", "unique"), ("vse-bits-4", "bits")):
        found = of(name, "quick", study)
        assert (found.shortcuts.setup, found.shortcuts.digit_size) == (setup, size)
        alike = {"shortcuts": None, "name": ""}
        assert found.model_copy(update=alike) == plain.model_copy(update=alike)
    bits = [of(f"vse-bits-{n}", "paper", study).shortcuts for n in BITS]
    assert [one.bits for one in bits] == list(range(14))
    one = of("vse-per-caption-one", "paper", study).shortcuts
    assert one.carries == "one"


def test_the_grids_are_those_of_the_thesis() -> None:
    bounds = [of(f"vse-unique-ltd-eta-{eta:g}").reconstruction for eta in BOUNDS]
    assert [one.constraint.bound for one in bounds] == [0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]
    dual = of("vse-unique-ltd-dual").reconstruction
    assert (dual.beta, dual.constraint, dual.hidden) == (1.0, None, (1024, 1024))
    assert dual.targets.model.endswith("all-mpnet-base-v2")
    budgets = [of(f"vse-none-ifm-{e:g}", study="svl.table-4.2").objective for e in BUDGETS]
    assert [one["epsilon"] for one in budgets] == [0.05, 0.1, 0.2, 0.5, 1.0]
    assert {one["name"] for one in budgets} == {"infonce-ifm"}
    assert {one["temperature"] for one in budgets} == {0.07}


def test_targets_have_the_digits_in_the_papers_setting_only() -> None:
    for setting, expected in (("paper", True), ("data", False), ("quick", False)):
        found = of("vse-unique-ltd-dual", setting).shortcuts  # type: ignore[arg-type]
        assert (found.in_targets, found.shuffled) == (expected, expected)
    none = of("vse-none-ltd-dual").shortcuts
    assert not none.in_targets


@pytest.mark.parametrize(
    ("key", "value", "row", "reaches"),
    [
        ("shortcuts.in_targets", True, "vse-unique", False),
        ("shortcuts.in_targets", True, "vse-unique-ltd-dual", True),
        ("shortcuts.shuffled", True, "vse-none", False),
        ("shortcuts.shuffled", True, "vse-unique", True),
        ("shortcuts.compat", "published", "vse-none", False),
        ("shortcuts.compat", "published", "vse-unique", True),
        ("shortcuts.digit_size", 6, "vse-none", True),
        ("reconstruction.beta", 2.0, "vse-unique", False),
    ],
)
def test_what_has_no_meaning_for_a_row_leaves_it_alone(
    key: str, value: object, row: str, reaches: bool
) -> None:
    assert (of(row, "quick", **{key: value}) != of(row, "quick")) is reaches


def test_fine_tuned_rows_start_from_what_is_given_or_from_a_row() -> None:
    row = FIGURE.row("clip-unique")
    assert "--set fine_tune=ENCODER" in str(why_left_out(FIGURE, row, "paper", Choices()))
    for setting in ("data", "quick"):
        base = base_of(FIGURE, row, setting, Choices())  # type: ignore[arg-type]
        assert base is not None
        assert base.name == "pretrained"
        assert base_of(FIGURE, row, setting, Choices(values=CLIP)) is None  # type: ignore[arg-type]
    assert why_left_out(FIGURE, FIGURE.row("vse-unique"), "paper", Choices()) is None
    plan = plan_of(FIGURE, [row, FIGURE.row("vse-none")], [0, 1], "quick")
    jobs = [("pretrained", 0), *((row, seed) for row in ("clip-unique", "vse-none") for seed in (0, 1))]
    assert [(job.row.name, job.seed) for job in plan] == jobs
    # An encoder that is given is no business of rows that are trained from scratch.
    assert of("vse-none", "quick", **CLIP) == of("vse-none", "quick")


def test_the_tables_share_their_baselines_runs() -> None:
    for name in ("vse-none", "vse-unique", "clip-none", "clip-unique"):
        assert {study.row(name).home for study in (FIGURE, LTD, IFM)} == {"svl.figure-4.5"}
        assert of(name, "quick") == of(name, "quick", "svl.table-4.2") == of(name, "quick", "svl.figure-4.5")


@pytest.mark.parametrize("setting", ["paper", "data", "quick"])
@pytest.mark.parametrize("study", [FIGURE, LTD, IFM, INFORMATION], ids=lambda study: study.name)
def test_no_two_rows_are_one_training(study: Study, setting: SettingName) -> None:
    choices = Choices(values=CLIP)
    recipes = [
        recipe_of(study, row, setting, choices).model_copy(update={"name": ""})
        for row in study.rows
        if why_left_out(study, row, setting, choices) is None
    ]
    assert all(recipe not in recipes[place + 1 :] for place, recipe in enumerate(recipes))


def test_verdicts_take_the_root_of_a_printed_variance() -> None:
    """436.2 ± 145.0: within two deviations of 12.0, and what is printed stays as printed."""
    row = next(row for row in LTD.published[0].rows if row.row == "F3")
    cell = row.cells["rsum"]
    assert cell.printed_spread == 145.0
    far = replace(cell, tolerance=0.0)
    assert cell_verdict([436.2 + 24.0], far) == "reproduced"
    assert cell_verdict([436.2 + 24.2], far) == "not reproduced"


@pytest.fixture
def tiny(scenes_folder: Path) -> Choices:
    values = {
        **{**SMALL, "model.image.hidden": 16, "model.image.grid": (1, 2), "batches.size": 48},
        "reconstruction.targets": {"kind": "lsa", "width": 8},
        **{"shortcuts.digit_size": 5, "shortcuts.digits": "drawn"},
    }
    return Choices(setting="quick", data={"path": str(scenes_folder)}, values=values)


def test_the_whole_way_in_small(tiny: Choices, tmp_path: Path) -> None:
    folder = tmp_path / "svl.figure-4.5"
    rows = ["vse-none", "vse-unique", "clip-unique"]
    results = run_study(FIGURE, folder, tiny, rows=rows, seeds=[0])
    measured = {entry.row: entry.measurements[0] for entry in results.entries}
    assert list(measured) == rows  # the base is trained, and is no row of the table
    assert (folder / "rows" / "pretrained" / "seed-0").is_dir()
    always = {"rsum", "i2t R@1", "t2i R@10", "chance rsum", "validation rsum"}
    with_shortcuts = {"with rsum", "with i2t R@1", "validation with rsum"}
    assert always <= measured["vse-none"].values.keys()
    assert not with_shortcuts & measured["vse-none"].values.keys()
    assert with_shortcuts <= measured["vse-unique"].values.keys()
    assert "zero-shot rsum" not in measured["vse-unique"].values
    assert "zero-shot rsum" in measured["clip-unique"].values
    assert "with shortcuts: a unique number" in measured["vse-unique"].protocol
    kept = folder / "rows" / "clip-unique" / "seed-0" / "evaluation"
    measured_on = ("test", "test-with-shortcuts", "test-zero-shot", "val", "val-with-shortcuts")
    assert sorted(one.name for one in kept.iterdir()) == [f"scenes-{name}" for name in measured_on]
    page = study_page(compare(FIGURE, results)).html()
    assert page.count("<svg") == 3  # the comparison, and a panel per model
    assert "evaluated with shortcuts" in page

    start = start_of(Run.open(kept.parent))
    assert start is not None
    assert f"; fine-tuned from {start.name}, zero-shot: dataset scenes;" in measured["clip-unique"].protocol
    assert "fine-tuned" not in measured["vse-unique"].protocol

    # The same encoder under another name is the same training, another encoder is not.
    begun_with = Recipe.model_validate(tomllib.loads((kept.parent / "recipe.toml").read_text())).fine_tune
    assert begun_with == str(folder / "rows" / "pretrained" / "seed-0" / "best")
    for place, other in (("elsewhere", "pretrained"), ("other", "vse-unique")):
        shutil.copytree(folder / "rows" / other / "seed-0" / "best", tmp_path / place)
    told: list[str] = []
    given = replace(tiny, values={**tiny.values, "fine_tune": str(tmp_path / "elsewhere")})
    run_study(FIGURE, folder, given, rows=["clip-unique"], seeds=[0], tell=told.append)
    assert told == ["row 1 of 1: Fine-tuned, unique: there already"]
    file = entry_file(kept.parent, FIGURE.name)
    assert not Entry.open(file).fine_tuned_from  # the base is no encoder that was given
    file.unlink()
    run_study(FIGURE, folder, given, rows=["clip-unique", "vse-none"], seeds=[0])
    assert Entry.open(file).fine_tuned_from == f"{tmp_path / 'elsewhere'} (fingerprint {start.fingerprint})"
    assert "fine_tune" in Entry.open(file).changed
    given = replace(tiny, values={**tiny.values, "fine_tune": str(tmp_path / "other")})
    with pytest.raises(UsageError, match="was begun with"):
        run_study(FIGURE, folder, given, rows=["clip-unique"], seeds=[0])

    assert start.fingerprint == Run.open(kept.parent).begun_with["fine_tune"]


def test_a_study_that_has_moved(tiny: Choices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What rows start from is found from any working directory, and where it is today."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    monkeypatch.chdir(old)
    told: list[str] = []
    some: dict[str, Any] = {"rows": ["clip-none"], "seeds": [0], "tell": told.append}
    before = run_study(FIGURE, Path(FIGURE.name), tiny, **some).of("clip-none")[0].measurements
    begun_with = f"{FIGURE.name}/rows/pretrained/seed-0/best"
    recipe = Path(FIGURE.name) / "rows" / "clip-none" / "seed-0" / "recipe.toml"
    assert f'fine_tune = "{old / begun_with}"' in recipe.read_text()
    # All is moved, and looked at from elsewhere.
    old.rename(new)
    monkeypatch.chdir(tmp_path)
    run = (new / recipe).parent
    entry = entry_file(run, FIGURE.name)
    entry.unlink()
    told.clear()
    after = run_study(FIGURE, new / FIGURE.name, tiny, **some).of("clip-none")[0].measurements
    assert after[0].values == before[0].values
    said = [f"row 2 of 2: Fine-tuned, no shortcuts: {did}" for did in ("there already", "measuring")]
    assert told[1:] == said
    # Another encoder in its place is not taken for it.
    entry.unlink()
    begun = start_of(Run.open(run), str(run))
    assert begun is not None
    with pytest.raises(MismatchError, match="training began with"):
        begun.open()


def status(check: Check, rows: dict[str, dict[str, float]], sd: float | None = None) -> str:
    figures = {
        row: {name: Figure(value, sd, 1 if sd is None else 3) for name, value in values.items()}
        for row, values in rows.items()
    }
    return judge(Claim("x", "y", check), Evidence(figures)).status


SHARE = at_least("a", "none", 0.9, "rsum")
SHRUNK = less("a", "rsum", "zero-shot rsum")
SPECIFIC = less("a", "image specific", "image shared")
RECOVERY = recovers("ltd", "unique", "none", 3.0)
COLLAPSE = collapsed("unique", "none")


def sums(chance: float, **rows: float) -> dict[str, dict[str, float]]:
    return {row: {"rsum": rsum, "chance rsum": chance} for row, rsum in rows.items()}


@pytest.mark.parametrize(
    ("check", "rows", "expected"),
    [
        (SHARE, {"a": {"rsum": 90.0}, "none": {"rsum": 100.0}}, "holds"),
        (SHARE, {"a": {"rsum": 89.9}, "none": {"rsum": 100.0}}, "fails"),
        (SHARE, {"a": {"rsum": 90.0}}, "not run"),
        (reaches("a", "rsum", 90), {"a": {"rsum": 90.0}}, "holds"),
        (reaches("a", "rsum", 90), {"a": {"rsum": 89.9}}, "fails"),
        # 27 beside 30 where chance is 10: a model that learned nothing keeps nothing.
        (SHARE, sums(5.0, a=27.0, none=30.0), "holds"),
        (SHARE, sums(10.0, a=27.0, none=30.0), "not run"),
        (SHRUNK, {"a": {"rsum": 27.0, "zero-shot rsum": 30.0, "chance rsum": 5.0}}, "holds"),
        (SHRUNK, {"a": {"rsum": 27.0, "zero-shot rsum": 30.0, "chance rsum": 10.0}}, "not run"),
        # Shares of information have no chance.
        (SPECIFIC, {"a": {"image specific": 1.0, "image shared": 2.0, "chance rsum": 10.0}}, "holds"),
        (RECOVERY, sums(10.0, ltd=90.0, unique=30.0, none=400.0), "holds"),
        (RECOVERY, sums(10.0, ltd=89.9, unique=30.0, none=400.0), "fails"),
        (RECOVERY, sums(10.0, ltd=31.0, unique=9.0, none=400.0), "holds"),  # the fallen row may be at chance
        # more than 3 times as much, and a collapse still: 3 times chance; 5 % of what there is to recover
        (RECOVERY, sums(10.0, ltd=30.0, unique=9.0, none=400.0), "fails"),
        (RECOVERY, sums(10.0, ltd=39.0, unique=9.0, none=800.0), "fails"),
        # nothing was learned without shortcuts either
        (RECOVERY, sums(10.0, ltd=90.0, unique=9.0, none=30.0), "not run"),
        (RECOVERY, sums(10.0, unique=30.0, none=400.0), "not run"),
        (RECOVERY, sums(10.0, ltd=90.0, none=400.0), "not run"),
        (RECOVERY, sums(10.0, ltd=90.0, unique=30.0), "not run"),
        (COLLAPSE, sums(1.0, unique=20.0, none=400.0), "holds"),  # 5 % of 400
        (COLLAPSE, sums(1.0, unique=20.1, none=400.0), "fails"),
        (COLLAPSE, sums(10.0, unique=29.0, none=400.0), "holds"),  # 3 times chance, on a small test set
        (COLLAPSE, sums(10.0, unique=31.0, none=400.0), "fails"),
        (COLLAPSE, sums(10.0, unique=5.0, none=30.0), "not run"),
    ],
)
def test_checks_by_hand(check: Check, rows: dict[str, dict[str, float]], expected: str) -> None:
    assert status(check, rows) == expected


@pytest.mark.parametrize(
    ("values", "sd", "expected"),
    [
        ([400, 300, 100], None, "holds"),
        ([400, 410, 100], None, "holds"),  # 10 points the wrong way are a run's own
        ([400, 413, 100], None, "fails"),
        ([400, 420, 100], 10.0, "holds"),  # within twice the spread of the difference, 28
        ([400, 399, 395], None, "fails"),  # never the wrong way, but nowhere either
    ],
)
def test_a_fall_from_row_to_row(values: list[float], sd: float | None, expected: str) -> None:
    rows = {f"bits-{n}": {"rsum": value, "with rsum": 600 - value} for n, value in enumerate(values)}
    names = [f"bits-{n}" for n in range(5)]  # the last two were not run
    assert status(in_order(names, "rsum", rising=False), rows, sd) == expected
    assert status(in_order(names, "with rsum", rising=True), rows, sd) == expected
    assert status(in_order(names[2:], "rsum", rising=False), rows, sd) == "not run"


def evidence(**validation: float | None) -> Evidence:
    """Rows with an rsum of 10, 20, … and the given validation rsum."""
    figures = {}
    for number, (row, value) in enumerate(validation.items(), 1):
        figures[row] = {"rsum": Figure(10.0 * number)}
        if value is not None:
            figures[row]["validation rsum"] = Figure(value)
    return Evidence(figures)


def test_the_candidate_is_chosen_by_validation_not_by_test() -> None:
    found = evidence(a=5.0, b=7.0, c=6.0)
    assert chosen_of(found, ["a", "b", "c"]) == "b"
    assert chosen_of(found, ["a", "c", "absent"]) == "c"
    assert chosen_of(found, ["absent"]) is None
    claim = Claim("x", "y", with_chosen(["a", "b"], lambda row: beats(row, "c", "rsum")))
    assert judge(claim, found).findings[0].what == "b beats c in rsum"
    nothing = Claim("x", "y", with_chosen(["absent"], lambda row: beats(row, "c", "rsum")))
    assert judge(nothing, found).status == "not run"
    remarks = chosen_remarks(["a", "b"], ["absent"])(found)
    assert remarks == ["Chosen by validation rsum without shortcuts: b; of a 5.0, b 7.0."]
