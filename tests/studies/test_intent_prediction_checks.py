"""Claims of thesis section 6.5 on made-up numbers: as the thesis says, and otherwise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from diptych.studies import STUDIES
from diptych.studies.claims import Check, Judgement, judge
from diptych.studies.evidence import Evidence, Figure
from diptych.studies.intent_prediction import all_rows_with, mean_is_above
from diptych.studies.intent_prediction_checks import (
    AHEAD,
    AP,
    GAIN,
    best_models,
    falls,
    first_is_best,
    gains_something,
    identified_is_above,
    largest_gain,
    learns_on_page_one,
    nearest_neighbours_alone,
    no_clear_rise,
    stays_level,
)
from diptych.studies.intent_rows import MODELS, SETS, SETTINGS, STEPS, prediction_row

FIGURE = STUDIES.get("intent.figure-6.7")
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


def judged(check: Check, given: Evidence) -> Judgement:
    from diptych.studies.claims import Claim

    return judge(Claim("made up", "made up", check), given)


@pytest.mark.parametrize(
    "check",
    [
        gains_something("anonymous"),
        first_is_best("anonymous"),
        learns_on_page_one("anonymous"),
        no_clear_rise("anonymous", 0.05),
        stays_level("identified", STEPS, 1.1),
        identified_is_above(),
        best_models("anonymous", BEST),
        largest_gain("anonymous", 0.1, 0.2),
        nearest_neighbours_alone("identified", 0.02),
        falls("static", ["at step 0", "at step 1"], "falls"),
        mean_is_above("anonymous", ["dwell-mean"], ["channel"], "first"),
        all_rows_with({"baseline": 1.0}, "dynamic", 1.0, "marks"),
    ],
)
def test_without_numbers_nothing_is_judged(check: Check) -> None:
    assert judged(check, Evidence()).status == "not run"


def test_steps_that_were_not_run_are_left_out() -> None:
    """A coarse grid: steps 0, 1, 5 and 10 of two models."""

    def thin(rows: Numbers) -> None:
        for row in list(rows):
            if not row.startswith(("random-forest", "svm")):
                del rows[row]
                continue
            rows[row] = {
                f"{measure}{step}": rows[row][f"{measure}{step}"]
                for measure in ("", AP)
                for step in (0, 1, 5, 10)
            }

    found = {claim.name: judge(claim, evidence(thin)) for claim in FIGURE.claims}
    assert {name: one.status for name, one in found.items() if one.status != "holds"} == {}
    assert len(found["added features"].decided) == 2 * 4


def test_a_gain_within_its_interval_is_no_gain() -> None:
    def unclear(rows: Numbers) -> None:
        _set("svm", "baseline", "identified", "3", 90.0)(rows)
        row = rows[prediction_row("svm", "extended", "identified")]
        row |= {f"{GAIN}3": 6.0, f"{GAIN}3 low": -1.0, f"{GAIN}3 high": 13.0}

    given = evidence(unclear)
    assert judged(nearest_neighbours_alone("identified", 0.02), given).status == "holds"
    assert (
        judged(gains_something("identified"), given).status == "fails"
    )  # it gains there, and nothing elsewhere
    finding = next(one for one in gains_something("identified")(given) if one.what == "SVM gains at step 3")
    assert finding.detail == "+6.0 [-1.0, +13.0]"


def test_intervals_say_whether_a_rise_is_clear() -> None:
    def sharp(rows: Numbers) -> None:
        row = rows[prediction_row("svm", "extended", "anonymous")]
        row |= {"0 low": 56.0, "0 high": 56.8, "1 low": 56.9, "1 high": 57.1}

    assert judged(no_clear_rise("anonymous", 0.05), evidence()).status == "holds"
    assert judged(no_clear_rise("anonymous", 0.05), evidence(sharp)).status == "fails"


def test_the_lead_at_step_0_has_an_interval() -> None:
    def known(rows: Numbers) -> None:
        row = rows[prediction_row("svm", "extended", "anonymous")]
        row |= {AHEAD: 7.5, f"{AHEAD} low": 3.0, f"{AHEAD} high": 12.0}

    finding = next(one for one in first_is_best("anonymous")(evidence(known)) if one.what.startswith("SVM"))
    assert finding.detail == "+9.5, at step 1 +2.0; less the mean of the others 7.5 [3.0, 12.0]"


# Importance ------------------------------------------------------------------------------------------------------


def importance(**columns: dict[str, float]) -> Evidence:
    rows: dict[str, dict[str, Figure]] = {}
    for column, values in columns.items():
        for name, value in values.items():
            rows.setdefault(name.replace("_", "-"), {})[column.replace("_", " ")] = Figure(value)
    return Evidence(rows)


def test_static_importance_has_to_fall() -> None:
    falling = {"static": {"at step 0": Figure(100.0), "at step 1": Figure(60.0), "at step 10": Figure(30.0)}}
    claim = next(one for one in STUDIES.get("intent.figure-6.6").claims if one.name == "static falls")
    assert judge(claim, Evidence(falling)).status == "holds"
    rising = {"static": {**falling["static"], "at step 10": Figure(61.0)}}
    assert judge(claim, Evidence(rising)).status == "fails"
    part = {"static": {**falling["static"], "at step 0": Figure(99.0)}}
    assert judge(claim, Evidence(part)).status == "fails"


def test_the_two_orders_of_chapter_6_exclude_each_other() -> None:
    claims = {one.name: one for one in STUDIES.get("intent.figure-6.6").claims}
    static = {"start_hour": 7.0, "channel": 6.0, "device": 5.0, "device_rate": 4.0}
    dynamic = {"dwell_deviation": 15.0, "dwell_mean": 14.0, "page_sequence_score": 13.0}
    for day, said in ((20.0, ("holds", "holds", "fails")), (8.0, ("fails", "holds", "holds"))):
        given = importance(anonymous={**static, **dynamic, "week_day": day})
        found = tuple(
            judge(claims[name], given).status for name in ("week day", "then dynamic", "dynamic first")
        )
        assert found == said


def test_marks_of_features() -> None:
    marks = {
        name: {"dynamic": Figure(0.0), "baseline": Figure(0.0), "history": Figure(0.0)} for name in _names()
    }
    check = all_rows_with({"baseline": 0.0, "history": 0.0}, "dynamic", 0.0, "static")
    assert judged(check, Evidence(marks)).status == "holds"
    marks["week-day"]["dynamic"] = Figure(1.0)
    found = judged(check, Evidence(marks))
    assert found.status == "fails"
    assert "not week-day" in found.figure
    del marks["week-day"]
    assert judged(check, Evidence(marks)).status == "not run"


def _names() -> list[str]:
    return [row.name for row in STUDIES.get("intent.table-6.7").rows]


def test_rows_are_models_sets_and_settings() -> None:
    assert len(FIGURE.rows) == len(MODELS) * len(SETS) * len(SETTINGS)
    assert [row.name for row in FIGURE.resolve(["RF, baseline, anon"])] == [
        "random-forest-baseline-anonymous"
    ]
