"""Thesis chapter 6: what is counted in a log and predicted from it, hidden and refused, and what the text claims."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from math import sqrt

import numpy as np
import pytest
from events import write_log
from feature_tables import small_features
from intent_rows import described, groups, times
from study_runs import run_study
from uci_sessions import made_up_table

from diptych.commerce.purchase_intent.shown import DisclosureControl, disclosing
from diptych.commerce.purchase_intent.statistics import STATISTICS
from diptych.core.errors import DataError, UsageError
from diptych.studies import STUDIES, Choices, Evidence, Figure, compare, judge
from diptych.studies.log_measures import importances
from diptych.studies.page import study_page
from diptych.studies.results import collect, measure_of
from diptych.studies.study import PUBLISHED

pytest.importorskip("duckdb")

CHANNELS, DEVICES, FEATURES, F1 = (
    STUDIES.get(f"intent.{name}") for name in ("table-6.2", "table-6.4", "table-6.7", "figure-6.7")
)


def shop(devices="pc smartphone tablet", n=12, pages=3):
    """A session a day, every other of a known visitor: pages, a query, and every third buys, who comes by paid."""
    events = []
    for number in range(n):
        begin = number * 86_400 + 19 * 3600
        who = {
            "client_id": f"c{number}",
            "visitor_id": f"v{number % 40}" if number % 2 else None,
            "device": devices.split()[number % len(devices.split())],
            "channel": "paid" if number % 6 in (0, 1, 3) else "direct",
        }
        events += [{**who, "t": begin + 60 * page, "page_type": "product"} for page in range(pages)]
        events.append({**who, "t": begin + 60 * pages + 20, "action": "query", "query": str(number % 5)})
        if number % 3 == 0:
            events.append({**who, "t": begin + 60 * pages + 120, "action": "purchase", "is_purchase": True})
    return events


@pytest.fixture(autouse=True)
def _every_count_is_shown():
    with disclosing(DisclosureControl(least=1)):
        yield


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return write_log(tmp_path_factory.mktemp("log") / "shop", shop(), buckets=2).folder


def choices(log, **values):
    return Choices(data={"path": log}, values={f"measure.{key}": value for key, value in values.items()})


def run(study, log, **values):
    """Run it beside the log, where studies share what is made of it."""
    return run_study(study, log.parent / "studies" / study.name, choices(log, **values))


def test_rows_are_measured_and_the_printed_ones_stand_beside(log):
    results = run(DEVICES, log)
    assert results.values("pc", "purchase") == [100.0]  # clients 0, 3, 6 and 9
    assert results.values("smartphone", "non-purchase") == [50.0]
    assert (results.setting, set(results.left_out)) == ("data", {"game-console", "tv"})
    task = "all, 12 sessions, by client, ended by 30 minutes without an event"
    assert results.of("pc")[0].measurements[0].on.task == task
    found = compare(DEVICES, results)
    sessions = "12 sessions, not 94,402,590 or 95,757,177"
    assert found.blocks[0].differences == ("dataset shop, not thesis-shop", sessions)
    cell = next(one for one in found.blocks[0].rows[1].cells if one.column == "purchase")
    assert (cell.verdict, cell.published and cell.published.value) == ("other data", 44.97)
    assert found.label.startswith("Not a reproduction: on shop: ")
    said = {claim.name: judgement.status for claim, judgement, _ in found.claims}
    assert said == {"PC": "not tested", "order": "undecided", "purchases": "fails", "rare": "not tested"}


def test_what_is_made_of_a_log_serves_all_studies(log, tmp_path):
    studies, told = tmp_path / "studies", list[str]()
    for one in (DEVICES, CHANNELS, DEVICES):
        run_study(one, studies / one.name, choices(log), tell=told.append)
    assert told == ["shop: description"]
    # All of it can be moved together; without what lies beside numbers are there, and figures are not.
    moved, alone = tmp_path / "moved", tmp_path / "alone"
    studies.rename(moved)
    (found,) = collect([moved / DEVICES.name])
    assert "<svg" in study_page(compare(DEVICES, found)).html()
    (moved / DEVICES.name).rename(alone)
    (found,) = collect([alone])
    assert compare(DEVICES, found).further.tables == ()
    assert found.values("pc", "purchase") == [100.0]


def test_another_way_of_measuring_and_another_log_are_other_measurements(log, tmp_path):
    run(DEVICES, log)
    short = run(DEVICES, log, gap=1.5)
    on = short.of("pc")[0].measurements[0].on
    assert on.sessions == 16  # a purchase comes 100 seconds after the query
    assert on.protocol == "by client, ended by 1.5 minutes without an event"
    assert "with changes of measure.gap" in compare(DEVICES, short).label
    folder = log.parent / "studies" / DEVICES.name
    other, bare = (write_log(tmp_path / one, shop(one)).folder for one in ("pc", "unknown"))
    (entry,) = run_study(DEVICES, folder, choices(other), rows=["pc"]).entries
    assert (entry.row, entry.data.partition(":")[0]) == ("pc", "pc")
    with pytest.raises(UsageError, match=r"holds study 'intent\.table-6\.4'"):
        run_study(CHANNELS, folder, choices(log))
    with pytest.raises(DataError, match=r"nothing of intent\.table-6\.4 can be measured.*On which devices"):
        run_study(DEVICES, folder, choices(bare))


def test_a_claim_about_rows_without_numbers_says_why(tmp_path):
    study = STUDIES.get("intent.table-6.1")
    events = [{"t": 9000.0 * n, "client_id": f"c{n}", "visitor_id": f"v{n}"} for n in range(8)]
    found = compare(
        study, run_study(study, tmp_path / "s", choices(write_log(tmp_path / "l", events).folder))
    )
    judged = {claim.name: judgement for claim, judgement, _ in found.claims}
    assert judged["anonymous"].status == "not tested"
    assert judged["anonymous"].figure == "every session of the log has a visitor"


def test_a_log_by_the_name_of_the_thesis_is_the_papers_and_a_table_of_sessions_has_what_it_tells(tmp_path):
    log = write_log(tmp_path / "thesis-shop", shop()).folder
    for number, setting in enumerate((None, "published")):
        given = replace(choices(log), setting=setting)
        found = compare(DEVICES, run_study(DEVICES, tmp_path / f"s{number}" / DEVICES.name, given))
        assert found.results.setting == (setting or "paper")
        assert found.blocks[0].differences == ("12 sessions, not 94,402,590 or 95,757,177",)
    file, names = made_up_table(tmp_path / "uci.csv", 40), ("table-6.1", "table-6.2")
    sizes, channels = (
        run_study(STUDIES.get(f"intent.{name}"), tmp_path / name, choices(file)) for name in names
    )
    assert (sizes.values("sessions", "total"), sizes.values("clients", "total")) == ([40.0], [40.0])
    assert channels.left_out["paid"] == "what its numbers of traffic types mean was not published"


def test_small_counts_and_rates_are_not_printed(log):
    """Four of twelve sessions have a purchase, so nothing of devices may be printed but how many there are."""
    results = run(DEVICES, log)
    with disclosing(DisclosureControl()):
        found, page = compare(DEVICES, results), study_page(compare(DEVICES, results)).html()
    assert {cell.measured for row in found.blocks[0].rows for cell in row.cells} == {None}
    assert {judgement.status for _, judgement, _ in found.claims} == {"not tested"}
    assert ("pc", "< 5", "< 5", "–", "–", "–", "–") in found.further.tables[0].texts
    assert "Counts below 5, and what follows from them, are not shown." in page
    with disclosing(DisclosureControl(least=1, hide_rates=True)):
        found = compare(DEVICES, results)
    shown = ("Device", "% of purchase sessions", "% of others", "Standardised")
    assert found.further.tables[0].columns == shown
    assert (found.results.values("pc", "rate"), results.values("pc", "rate")) == ([], [100.0])


def test_features_need_no_log(tmp_path):
    found = compare(FEATURES, run_study(FEATURES, tmp_path / "studies" / FEATURES.name))
    assert found.counts() == {"reproduced": 45}
    assert {judgement.status for _, judgement, _ in found.claims} == {"holds"}
    assert not (tmp_path / "studies" / "intent.logs").exists()


def counted(name, of, ddof=0):
    found = measure_of(STUDIES.get(name)).counted(of, ddof)
    return found


def test_what_is_hidden_is_left_out_and_nothing_else_changes():
    tables, control = described(), DisclosureControl(least=25)
    each = {one: STATISTICS.get(one) for one in tables}
    derived = ("three most", "four least", "difference", f"standardised{PUBLISHED}", "transitions")
    for name in (one.name for one in STUDIES if one.measure["kind"] == "counted"):
        every = counted(name, tables.__getitem__)
        some = counted(name, lambda one: control.rows(tables[one], each[one].cells, each[one].whole))
        assert every
        for row in every.keys() - {"either"}:
            left = {one: value for one, value in some.get(row, {}).items() if one not in derived}
            assert {one: every[row][one] for one in left} == pytest.approx(left), name


WEEK = times("week_day", (10, 20, 30, 25, 5, 6, 4), (100, 0, 0, 0, 0, 0, 100))
SHOPS = groups("channel", {"direct": (2000, 90), "paid": (900, 80), "e-mail": (300, 30)})
SAMPLE = [{**row, "standardised": row["standardised"] * sqrt(2 / 3)} for row in SHOPS]  # ddof 1
# Mean and sample deviation of the rates 0.045, 0.08889 and 0.1, by hand
AS_PRINTED = {"purchase": 40.0, f"standardised{PUBLISHED}": (0.0888889 - 0.0779630) / 0.0290825}
SWITCHES = [  # four from the pc are too few to say anything
    {"from_device": one, "to_device": other, "transitions": n, "share": n / of}
    for one, other, n, of in (("tv", "pc", 7, 16), ("tv", "tv", 9, 16), ("pc", "tv", 4, 4))
]
QUERIES = [
    {"purchase": True, "device": device, "unique": n, "share": n / 10, "unique_share": n / 10}
    for device, n in (("pc", 4), ("tv", 5), ("fridge", 1), ("all", 6))
]


def test_numbers_of_a_statistic():
    for name, rows, row, expected in [
        ("table-6.2", SHOPS, "paid", {**AS_PRINTED, "standardised": 0.460124}),
        ("table-6.2", SAMPLE, "paid", {**AS_PRINTED, "standardised": 0.375690}),
        ("figure-6.3", WEEK, "purchase", {"three most": 75.0, "four least": 25.0, "difference": 50.0}),
        ("figure-6.3", WEEK, "either", {"Monday": 100 * 110 / 300}),
        ("figure-6.5", SWITCHES, "tv", {"to pc": 43.75, "to tablet": 0.0, "transitions": 16.0}),
        ("figure-6.5", SWITCHES, "pc", {}),
        (
            "table-6.6",
            QUERIES,
            "all",
            {"purchase count": 6.0, "purchase unique %": 60.0, "purchase %": 100.0},
        ),
        ("table-6.6", QUERIES, "all", {f"purchase count{PUBLISHED}": 10.0}),
    ]:
        of = partial(lambda rows, one: [] if one == "weekend" else rows, rows)
        found = counted(f"intent.{name}", of, ddof=int(rows is SAMPLE)).get(row, {})
        assert bool(found) is bool(expected)
        assert {one: found[one] for one in expected} == pytest.approx(expected, rel=1e-4)


def test_what_cannot_be(log, tmp_path):
    for changed, said in [
        ({"values": {"model.width": 3}}, r"about a training.*measure\.gap"),
        ({"values": {"measure.gpa": 3}}, "key of measure"),
        ({"values": {"measure.gap": 0}}, "measure: gap: Input should be greater"),
        ({"values": {"measure.by": "cookie"}}, "measure: by: .*'visitor'"),
        ({"values": {"measure.steps": []}}, "measure: steps"),
        ({"values": {"measure.folds": 1}}, "measure: folds"),
        ({"values": {"measure.sessions": True}}, "measure: sessions"),
        ({"values": {"measure.sessions": [5]}}, "measure: sessions"),
        ({"targets": "lsa"}, "--targets lsa"),
        ({"setting": "everything"}, r"setting of intent\.figure-6\.7"),
        ({"data": None, "setting": "data"}, "no log given.*--data LOG"),
        ({"data": {"path": "nowhere"}}, "nowhere is not there.*diptych intent ingest"),
    ]:
        with pytest.raises((UsageError, DataError), match=said):
            run_study(F1, tmp_path / "s" / F1.name, replace(choices(log), **changed))


def test_models_are_evaluated_and_judged(tmp_path):
    pytest.importorskip("sklearn")
    log = write_log(tmp_path / "shop", shop(n=160, pages=14)).folder
    given = choices(log, steps=[0, 1], folds=2, sessions=[70, 50])
    rows = [f"logistic-regression-{one}-{who}" for one, who in product(SETS, WHO)]
    results = run_study(F1, tmp_path / "studies" / F1.name, given, rows=rows)
    found = {entry.row: entry.measurements[0] for entry in results.entries}
    assert [found[row].on.sessions for row in rows] == [70, 50, 70, 50]
    base, more = found[rows[0]], found[rows[2]]
    assert base.on.split == "anonymous sessions of 12 pages and more"
    assert base.on.protocol == "2-fold cross-validation by grouped, balanced classes"
    # Without a feature the baseline is a constant; the channel says much.
    assert base.values["AP 0"] == pytest.approx(base.values["base rate 0"])
    gains = [more.values[f"gain AP {step}"] for step in (0, 1)]
    assert gains == pytest.approx([more.values[one] - base.values[one] for one in ("AP 0", "AP 1")])
    assert gains[0] > 5
    # Per measure: settings × sets, then gains per setting.
    assert study_page(compare(F1, results)).html().count("<svg") == 2 * (2 * 2 + 2)


def test_a_sample_is_of_persons_or_of_so_many_of_each_setting(tmp_path):
    features = small_features(tmp_path / "table", 300)
    assert features.sample(300, 0) is features.sample((300, 300), 0) is features.sample(None, 0) is features
    some = features.sample(100, 1)
    assert 100 <= len(some) < 105
    assert {*features.session_ids[np.isin(features.persons, some.persons)]} == {*some.session_ids}
    of_each = features.sample((60, 1000), 1)
    anonymous, known = (of_each.population(who, 0) for who in WHO)
    assert (len(anonymous), len(known)) == (60, len(features.population("identified", 0)))
    assert len({tuple(features.sample((60, 40), seed).session_ids) for seed in (0, 1, 1)}) == 2


def test_importance_is_a_mean_over_steps_with_pages():
    columns = ("setting", "set", "step", "feature", "impurity", "permutation", "dynamic")
    rows = (
        ("anonymous", "extended", 0, "week-day", 1.0, 0.01, False),
        ("anonymous", "extended", 1, "week-day", 0.6, 0.01, False),
        ("anonymous", "extended", 1, "dwell-mean", 0.4, 0.01, True),
        ("anonymous", "extended", 5, "week-day", 0.2, 0.01, False),
        ("anonymous", "extended", 5, "dwell-mean", 0.6, 0.03, True),
        ("anonymous", "baseline", 5, "dwell-mean", 0.9, 0.01, True),
    )
    found = importances([dict(zip(columns, row, strict=True)) for row in rows])
    assert found["week-day"]["anonymous"] == pytest.approx(40.0)
    assert found["dwell-mean"] == pytest.approx({"anonymous": 50.0, "anonymous, permutation": 2.0})
    assert found["static"] == pytest.approx({"at step 0": 100.0, "at step 1": 60.0, "at step 5": 25.0})


SETS, WHO, STEPS = ("baseline", "extended"), ("anonymous", "identified"), [str(step) for step in range(11)]
SKILL = dict.fromkeys(("random-forest", "gradient-boosting", "neural-network"), 60.0)
SKILL |= {"svm": 55.5, "logistic-regression": 55.0, "k-nearest": 54.5}


def described_f1(row="svm-baseline-anonymous", column="", value=0.0):
    """F1 as section 6.5 describes it, but for one number; values are made up."""
    rows = {}
    for model, skill in SKILL.items():
        rows[f"{model}-baseline-anonymous"] = {**dict.fromkeys(STEPS, skill), "0": skill - 8.0}
        rows[f"{model}-extended-anonymous"] = {**dict.fromkeys(STEPS, skill + 2.0), "0": skill + 1.5}
        rows |= {f"{model}-{one}-identified": dict.fromkeys(STEPS, 96.0) for one in SETS}
    rows["k-nearest-baseline-identified"]["0"] = 96.0 / 1.0674
    for columns in rows.values():
        columns |= {f"AP {step}": value / 2 for step, value in columns.items()}
    rows[row][column] = value
    for model, who in product(SKILL, WHO):
        before, after = (rows[f"{model}-{one}-{who}"] for one in SETS)
        after |= {f"gain {one}": after[one] - before[one] for one in before if one}
        after |= {"0 high": after["0"] + 1, "1 low": after["1"] - 1, "whole": after["5"]}
    figures = {row: {one: Figure(value) for one, value in columns.items()} for row, columns in rows.items()}
    return Evidence(figures, exact=True)


FAILS = {
    "added features": ("svm-extended-anonymous", "4", 54.0),
    "step 0": ("svm-extended-anonymous", "4", 70.0),
    "added features, AP": ("svm-extended-anonymous", "AP 4", 27.0),
    "step 0, AP": ("svm-baseline-anonymous", "AP 0", 28.2),
    "17 %": ("svm-extended-anonymous", "4", 70.0),
    "step 1": ("svm-baseline-anonymous", "1", 46.0),
    "extended at step 1": ("svm-extended-anonymous", "1", 61.0),
    "plateau": ("svm-baseline-anonymous", "7", 48.0),
    "trees and networks": ("svm-extended-anonymous", "9", 120.0),
    "SVM, LR, KNN": ("logistic-regression-extended-anonymous", "9", 70.0),
    "identified": ("svm-extended-anonymous", "9", 97.0),
    "identified, whole sessions": ("svm-extended-anonymous", "5", 97.0),
    "identified plateau": ("k-nearest-baseline-identified", "1", 80.0),
    "nearest neighbours": ("svm-baseline-identified", "0", 90.0),
    "96 %": ("svm-extended-identified", "10", 98.5),
    "6.74 %": ("k-nearest-baseline-identified", "0", 92.0),
}


def test_each_claim_holds_of_what_the_thesis_says_and_can_fail():
    for claim in F1.claims:
        assert judge(claim, described_f1()).status == "holds", claim.name
        assert judge(claim, described_f1(*FAILS[claim.name])).status == "fails", claim.name
