"""Thesis chapter 6: purchases predicted, and how that is checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from events import write_log
from study_runs import run_study

from diptych.studies import STUDIES, Choices, LogSource, compare
from diptych.studies.claims import Claim, judge
from diptych.studies.intent_predicting import STATIC, importances
from diptych.studies.intent_prediction_checks import AP, no_clear_rise
from diptych.studies.intent_rows import MODELS, SETS, STEPS, prediction_row
from diptych.studies.page import study_page
from diptych.studies.verdict import Evidence, Figure

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
    page = study_page(found).html()
    assert page.count("<svg") == 4 + 2 + 4 + 2  # per measure: settings × sets, then gains per setting
    assert "F1@10" in page


# Importance --------------------------------------------------------------------------------------------------------


def row(
    setting: str,
    step: int,
    feature: str,
    impurity: float | None,
    dynamic: bool = False,
    feature_set: str = "extended",
) -> dict[str, Any]:
    of = {"setting": setting, "set": feature_set, "step": step, "feature": feature, "dynamic": dynamic}
    return {**of, "impurity": impurity, "permutation": 0.01}


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


BEST = ("random-forest", "gradient-boosting", "neural-network")
Numbers = dict[str, dict[str, float]]


def as_the_thesis_says() -> Numbers:
    """F1 as section 6.5 describes it; values are made up."""
    rows: Numbers = {}
    for model in MODELS:
        skill = 60.0 if model in BEST else 55.0
        for feature_set in SETS:
            more = 2.0 if feature_set == "extended" else 0.0
            anonymous = {step: skill + more for step in STEPS}
            anonymous["0"] = skill + 1.5 if more else skill - 8.0
            rows[prediction_row(model, feature_set, "anonymous")] = anonymous
            rows[prediction_row(model, feature_set, "identified")] = dict.fromkeys(STEPS, 96.0)
    rows[prediction_row("k-nearest", "baseline", "identified")]["0"] = 90.0
    for columns in rows.values():
        columns |= {f"{AP}{step}": value / 2 for step, value in columns.items()}
    return rows


def evidence(change: Callable[[Numbers], None] = lambda rows: None) -> Evidence:
    rows = as_the_thesis_says()
    change(rows)
    return Evidence(
        {row: {column: Figure(value) for column, value in columns.items()} for row, columns in rows.items()}
    )


def statuses(given: Evidence) -> dict[str, str]:
    return {claim.name: judge(claim, given).status for claim in FIGURE.claims}


def test_what_the_thesis_says_holds() -> None:
    assert set(statuses(evidence()).values()) == {"holds"}


def _set(model: str, feature_set: str, setting: str, step: str, value: float) -> Callable[[Numbers], None]:
    return lambda rows: rows[prediction_row(model, feature_set, setting)].update({step: value})


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        ("added features", _set("svm", "extended", "anonymous", "4", 54.0)),
        ("step 0", _set("svm", "extended", "anonymous", "4", 70.0)),
        ("added features, AP", _set("svm", "extended", "anonymous", f"{AP}4", 27.0)),
        ("step 0, AP", _set("svm", "baseline", "anonymous", f"{AP}0", 28.2)),
        ("17 %", _set("svm", "extended", "anonymous", "4", 70.0)),
        ("step 1", _set("svm", "baseline", "anonymous", "1", 46.0)),
        ("extended at step 1", _set("svm", "extended", "anonymous", "1", 61.0)),
        ("plateau", _set("svm", "baseline", "anonymous", "7", 48.0)),
        ("trees and networks", _set("svm", "extended", "anonymous", "9", 120.0)),
        ("identified", _set("svm", "extended", "anonymous", "9", 97.0)),
        ("identified plateau", _set("k-nearest", "baseline", "identified", "1", 80.0)),
        ("nearest neighbours", _set("k-nearest", "baseline", "identified", "1", 85.0)),
        ("nearest neighbours", _set("svm", "baseline", "identified", "0", 90.0)),
    ],
)
def test_each_claim_can_fail(claim: str, change: Callable[[Numbers], None]) -> None:
    assert statuses(evidence(change))[claim] == "fails"


def test_intervals_say_whether_a_rise_is_clear() -> None:
    def sharp(rows: Numbers) -> None:
        row = rows[prediction_row("svm", "extended", "anonymous")]
        row |= {"0 low": 56.0, "0 high": 56.8, "1 low": 56.9, "1 high": 57.1}

    claim = Claim("made up", "made up", no_clear_rise("anonymous", 0.05))
    assert judge(claim, evidence()).status == "holds"
    assert judge(claim, evidence(sharp)).status == "fails"


# Importance ------------------------------------------------------------------------------------------------------


def test_static_importance_has_to_fall() -> None:
    claim = next(one for one in STUDIES.get("intent.figure-6.6").claims if one.name == "static falls")
    for values, expected in (
        ((100.0, 60.0, 30.0), "holds"),
        ((100.0, 60.0, 61.0), "fails"),
        ((99.0, 60.0, 30.0), "fails"),
    ):
        columns = dict(zip(("at step 0", "at step 1", "at step 10"), map(Figure, values), strict=True))
        assert judge(claim, Evidence({"static": columns})).status == expected
