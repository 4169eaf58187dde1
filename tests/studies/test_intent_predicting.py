"""From an evaluation to the cells of Figures 6.6 and 6.7: on a small log, and on rows made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from events import write_log
from study_runs import run_study

from diptych.studies import STUDIES, Choices, LogSource, compare
from diptych.studies.intent_predicting import STATIC, importances
from diptych.studies.page import render_study

pytest.importorskip("duckdb")
pytest.importorskip("sklearn")

FIGURE = STUDIES.get("intent.figure-6.7")
MONDAY = 4 * 86_400
ROWS = [
    f"logistic-regression-{feature_set}-{setting}"
    for setting in ("anonymous", "identified")
    for feature_set in ("baseline", "extended")
]


def shop() -> list[dict[str, Any]]:
    """160 sessions of 14 pages, half of known visitors; who comes by advertisement buys behind the last page."""
    random = np.random.default_rng(0)
    events = []
    for number in range(160):
        begin = MONDAY + number * 3600
        paid = random.random() < 0.5
        who = {
            "client_id": f"c{number}",
            "visitor_id": f"v{number % 40}" if number % 2 else None,
            "channel": "paid" if paid else "direct",
        }
        kinds = random.choice(["product", "search", "home"], 14)
        events += [{**who, "t": begin + 20 * page, "page_type": str(kind)} for page, kind in enumerate(kinds)]
        if random.random() < (0.7 if paid else 0.2):
            events.append({**who, "t": begin + 300, "action": "purchase", "is_purchase": True})
    return events


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("predicting")
    write_log(folder / "shop", shop())
    return folder / "studies"


def choices(studies: Path, **values: Any) -> Choices:
    usual: dict[str, Any] = {"steps": [0, 1], "folds": 2, "sessions": 120}
    return Choices(
        log=LogSource(studies.parent / "shop"),
        values={f"measure.{key}": value for key, value in (usual | values).items()},
    )


def test_models_are_evaluated_and_judged(studies: Path) -> None:
    told: list[str] = []
    results = run_study(FIGURE, studies / FIGURE.name, choices(studies), rows=ROWS, tell=told.append)
    assert told[0] == "shop: features"
    assert told[1].startswith("shop: 120 sessions, 11 steps, ")
    assert told[1:] == [f"{told[1].rpartition(': ')[0]}: logistic-regression"]
    assert {entry.row for entry in results.entries} == set(ROWS)
    base, more = (
        results.of(f"logistic-regression-{one}-anonymous")[0].measurements[0]
        for one in ("baseline", "extended")
    )
    assert base.on.split == "anonymous sessions of 12 pages and more"
    assert base.on.protocol == "2-fold cross-validation by grouped, balanced classes"
    assert base.commands == ()  # of a sample there is no command
    # Without a feature the baseline is a constant; the channel says much.
    assert base.values["AP 0"] == pytest.approx(base.values["base rate 0"])
    assert more.values["AP 0"] > base.values["AP 0"] + 5
    assert more.values["gain AP 0"] == pytest.approx(more.values["AP 0"] - base.values["AP 0"])
    assert more.values["gain AP 0 low"] <= more.values["gain AP 0"] <= more.values["gain AP 0 high"]
    assert more.values["AP gain 0 less others"] == pytest.approx(
        more.values["gain AP 0"] - more.values["gain AP 1"]
    )
    found = compare(FIGURE, results)
    status = {claim.name: judgement.status for claim, judgement, _ in found.claims}
    most = more.values["gain AP 0"] > more.values["gain AP 1"]
    assert status["step 0, AP"] == ("holds" if most else "fails")
    assert status["trees and networks"] == "not run"
    assert [table.caption for table in found.tables] == [
        "Average precision",
        "What the extended set gains, F1",
        "What the extended set gains, average precision",
        "Without skill",
    ]
    page = render_study(found)
    assert page.count("<svg") == 4 + 2 + 4 + 2  # per measure: settings × sets, then gains per setting
    assert "F1@10" in page


def test_what_was_fitted_is_not_fitted_again(studies: Path) -> None:
    told: list[str] = []
    again = run_study(FIGURE, studies / FIGURE.name, choices(studies, jobs=2), rows=ROWS, tell=told.append)
    assert told == []
    assert len(again.entries) == 4


def test_all_sessions_have_a_command(studies: Path, tmp_path: Path) -> None:
    whole = run_study(
        FIGURE,
        studies / "whole",
        choices(studies, sessions=500, steps=[0]),
        rows=["logistic-regression-extended-identified"],
    )
    (command,) = whole.entries[0].measurements[0].commands
    assert command.startswith("diptych intent evaluate ")
    assert "--model logistic-regression --split grouped --step 0 --seed 0 --no-inner --folds 2" in command


# Importance --------------------------------------------------------------------------------------------------------


def row(
    setting: str,
    step: int,
    feature: str,
    impurity: float | None,
    dynamic: bool = False,
    feature_set: str = "extended",
) -> dict[str, Any]:
    return {
        "setting": setting,
        "set": feature_set,
        "step": step,
        "feature": feature,
        "impurity": impurity,
        "permutation": 0.01,
        "dynamic": dynamic,
    }


def test_importance_is_a_mean_over_steps_with_pages() -> None:
    rows = [
        row("anonymous", 0, "week-day", 1.0),
        row("anonymous", 1, "week-day", 0.6),
        row("anonymous", 1, "dwell-mean", 0.4, dynamic=True),
        row("anonymous", 5, "week-day", 0.2),
        row("anonymous", 5, "dwell-mean", 0.6, dynamic=True),
        row("anonymous", 5, "dwell-mean", 0.9, dynamic=True, feature_set="baseline"),
        row("identified", 1, "orders", 0.5),
        row("identified", 5, "orders", None),
    ]
    found = importances(rows)
    assert found["week-day"]["anonymous"] == pytest.approx(40.0)
    assert found["dwell-mean"]["anonymous"] == pytest.approx(50.0)
    assert found["orders"]["identified"] == pytest.approx(50.0)
    assert found["orders"]["identified, permutation"] == pytest.approx(1.0)
    assert found[STATIC] == pytest.approx({"at step 0": 100.0, "at step 1": 60.0, "at step 5": 25.0})


def test_without_impurities_there_is_nothing_to_sum() -> None:
    assert importances([row("anonymous", 0, "week-day", None)]) == {}
