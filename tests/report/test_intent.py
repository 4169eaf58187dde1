"""The pages of a description, an evaluation and a scorer: their numbers, what is hidden, hostile names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from feature_tables import small_features
from hypothesis import given
from hypothesis import strategies as st
from intent_rows import (
    LENGTHS,
    cells_of,
    described,
    evaluation,
    groups,
    importance_of,
    lengths,
    times,
    transitions,
)
from parsed_page import Parsed

from diptych.commerce.logs.log import Log
from diptych.commerce.purchase_intent.evaluation import Evaluation
from diptych.commerce.purchase_intent.options import DescribeOptions
from diptych.commerce.purchase_intent.scoring import Scorer, TrainOptions, train
from diptych.commerce.purchase_intent.shown import (
    DisclosureControl,
    disclosing,
    evaluation_blocks,
    evaluation_tables,
    importance_charts,
    mean_importance,
    number,
    static_shares,
)
from diptych.commerce.purchase_intent.statistics import Description, tables_of
from diptych.core.chart import Chart, Series
from diptych.core.errors import MismatchError
from diptych.report.document import Page
from diptych.report.intent import description_page, evaluation_page, scorer_page

HOSTILE = '<script>alert(1)</script>"><img src=x>'


def evaluation_charts(found: Evaluation) -> list[Chart]:
    """Return all charts of an evaluation."""
    return [
        one
        for part in evaluation_blocks(found.cells, found.importance).values()
        for one in part
        if isinstance(one, Chart)
    ]


def texts(page: Page) -> list[str]:
    """Return the texts and notes of all cells, and of the data behind all charts."""
    blocks = [block for section in page.sections for block in section.blocks]
    tables: Any = [one.table() if isinstance(one, Chart) else one for one in blocks]
    return [cell.line for table in tables if table.kind == "table" for row in table.rows for cell in row]


def line(chart: Chart, name: str) -> Series:
    """Return the series of that name."""
    return next(one for one in chart.series if one.name == name)


def description(tables: dict[str, Any], **options: Any) -> Description:
    """Return a description as ``describe`` makes it."""
    about = {"log": "a <shop>", "zone": "Europe/Amsterdam", "engine": "duckdb"}
    about |= {"log_fingerprint": "f00", "sessions_fingerprint": "ba5"}
    more: dict[str, Any] = {"session_options": {"gap_minutes": 20.0, "by": "visitor", "pages": 10}}
    more |= {"options": DescribeOptions(**options).model_dump(), "notes": ["no visitor is known anywhere"]}
    return Description({**about, **more, "counts": {"sessions": 3200, "several_visitors": 3}}, tables)


def test_a_description_has_every_number() -> None:
    tables = described()
    page = description_page(description(tables, ddof=1, journey="journey"))
    cells = texts(page)
    for row in tables["overview"]:
        assert (f"{row['total']:,}" if row["total"] >= 5 else "< 5") in cells
    for row in tables["session-length-quantiles"]:
        assert {f"{row['sessions']:,}", f"{row['p50']:,}", f"{row['mean']:.1f}"} <= set(cells)
    for row in [*tables["channels"], *tables["devices"]]:
        assert f"{100 * row['rate']:.2f} ({100 * row['low']:.2f} to {100 * row['high']:.2f})" in cells
        assert f"{row['standardised']:+.2f}".replace("-", "−") in cells
    for row in tables["devices-per-visitor"]:
        assert f"{100 * row['share']:.1f} ({100 * row['low']:.1f} to {100 * row['high']:.1f})" in cells
    for row in tables["queries"]:
        assert f"{row['per_session']:.2f} ({row['low']:.2f} to {row['high']:.2f})" in cells
    assert {f"{row['unique']:,}" for row in tables["unique-queries"]} <= set(cells)
    (week,) = description(tables).charts("week-days")
    assert line(week, "purchase").y == pytest.approx([14, 16, 15, 18, 13, 12, 12])
    assert line(week, "all alike").y[0] == pytest.approx(100 / 7)
    text = Parsed(page.html()).text
    for words in (
        "in a <shop>",
        "than 20 minutes without an event; fingerprint ba5",
        "No visitor is known anywhere.",
    ):
        assert words in text
    assert page.commands[0].endswith("--gap 20 --by visitor --ddof 1 --journey journey")


def test_names_of_a_log_stay_words() -> None:
    every = described({(HOSTILE if one == "pc" else one, buys): of for (one, buys), of in LENGTHS.items()})
    tables = {name: every[name] for name in ("overview", "devices", "session-length")}
    tables["channels"] = groups("channel", {HOSTILE: (500, 50), "]]>&amp;": (500, 5), "電話 📱": (90, 9)})
    tables["channels"][-1]["channel"] += "\ud800"
    moves = {(HOSTILE, HOSTILE): (9, "self"), (HOSTILE, "tv"): (9, "weak")}
    text = description_page(description({**tables, "device-transitions": transitions(moves)})).html()
    text.encode("utf-8", "replace")
    assert "<script>alert" not in text
    assert "<img" not in text
    assert HOSTILE in Parsed(text).text


def test_small_counts_and_what_gives_them_away_are_hidden() -> None:
    tables = {
        "overview": [{"what": "sessions", "total": 900}, {"what": "purchase sessions", "total": 3},
                     {"what": "anonymous sessions", "total": 800}, {"what": "identified visitors", "total": 7},
                     {"what": "events", "total": 9000}],
        "devices": groups("device", {"pc": (800, 97), "tv": (4, 1), "tablet": (96, 3), "fridge": (50, 48)}),
        "devices-per-visitor": [
            {"purchaser": True, "devices": "> 1", "visitors": 3, "share": 0.03, "low": 0.01, "high": 0.09}
        ],
        "device-transitions": transitions({("pc", "pc"): (38, "self"), ("pc", "tv"): (2, "one-sided"),
                                           ("pc", "pad"): (60, "one-sided"), ("tv", "tv"): (8, "self")}),
        "hours": times("hour", [3] + [10] * 23, [50] * 24),
    }  # fmt: skip

    def shown(name: str) -> dict[str, list[str]]:
        (table,) = tables_of(description(tables), name)
        keys = 1 + sum(head in ("Devices", "To device", "Link") for head in table.columns)
        return {
            " ".join(one.text for one in row[:keys]): [one.line for one in row[keys:]] for row in table.rows
        }

    assert shown("overview")["purchase sessions"] == ["< 5"]
    devices = shown("devices")
    assert devices["tv"] == ["< 5", "< 5", *["–"] * 4]
    assert devices["tablet"] == ["96", "< 5", *["–"] * 4]  # the share of the 93 others would give the 3 away
    assert devices["fridge"] == ["50", "–", *["–"] * 4]
    assert shown("devices-per-visitor")["purchasers > 1"] == ["–"]
    moves = shown("device-transitions")
    assert moves["pc pad one-sided"] == ["60", "60.0 (50.2 to 69.1)"]
    assert [moves[f"pc {one}"] for one in ("pc self", "tv one-sided")] == [["–", "–"], ["< 5", "–"]]
    assert moves["tv tv self"] == ["8", "100.0 (67.6 to 100.0)"]
    (hours,) = description(tables).charts("hours")
    assert line(hours, "purchase").y[:3] == [None, None, pytest.approx(1000 / 233)]
    assert line(hours, "purchase").low[0] is None
    shares, rates = description(tables).charts("devices")
    assert [one.y[1:] for one in shares.series] == [[None] * 3] * 2
    assert rates.series[0].y[1:] == [None] * 3
    of_all = description_page(description(tables))
    assert "have a purchase" not in [one.label for one in of_all.headlines]
    assert not any(
        cell.value for table in tables_of(description(tables), "devices") for cell in table.rows[3][1:]
    )
    with disclosing(DisclosureControl(least=1)):
        assert shown("devices")["tv"][:2] == ["4", "1"]
        assert shown("device-transitions")["pc tv one-sided"] == ["2", "2.0 (0.6 to 7.0)"]
        assert DisclosureControl.current().lines() == []


def test_without_rates_nothing_is_counted_by_class() -> None:
    tables = described()
    with disclosing(DisclosureControl(hide_rates=True)):
        page = description_page(description(tables))
        found = texts(page)
        (standardised,) = description(tables).charts("channels")[1:]
        long = lengths({("pc", True): dict.fromkeys(range(1, 1001), 1)})[0]
        cut = description({"session-length": long}).charts("session-length")
    for row in [*tables["channels"], *tables["devices"]]:
        assert not any(cell.startswith(f"{100 * row['rate']:.2f}") for cell in found)
        assert f"{row['standardised']:+.2f}".replace("-", "−") in found
        assert f"{100 * row['purchase_share']:.1f}" in found
    assert not {"200", "150", "1,100", "2,100"} & set(found)  # purchases, purchasers, sessions
    assert not any(" to " in cell for cell in found)
    assert standardised.title == "Standardised conversion rate"
    assert "have a purchase" not in [one.label for one in page.headlines]
    # the last step of a tail is the inverse of the number of sessions
    assert min(line(cut[0], "purchase").y) == pytest.approx(1.0)  # type: ignore[type-var]


def test_a_curve_is_the_share_that_is_at_least_so_long() -> None:
    rows, quantiles = lengths({("pc", True): {2: 5, 4: 3, 9: 2}, ("pc", False): {0: 40, 1: 60}})
    with disclosing(DisclosureControl(least=3)):
        found = description({"session-length": rows, "session-length-quantiles": quantiles})
        (chart,) = found.charts("session-length")
        (table,) = tables_of(found, "session-length-quantiles")
    curve = line(chart, "purchase")
    assert dict(zip(curve.x, curve.y, strict=True)) == pytest.approx({2: 100.0, 4: 50.0})  # not 9: of two
    others = line(chart, "no purchase")
    assert (others.x, others.y) == ([1], [60.0])  # no place for 0 on a logarithmic axis
    assert table.texts[:2] == [
        ("all", "purchase", "10", "4.0", "2", "–", "–"),
        ("all", "no purchase", "100", "0.6", "1", "1", "–"),
    ]


@given(share=st.floats(0, 1), decimals=st.integers(1, 3))
def test_some_is_never_printed_as_none(share: float, decimals: int) -> None:
    shown = number(share, decimals)
    if shown.startswith("<"):
        assert 0 < share < 10**-decimals
    else:
        assert float(shown) > 0 or share == 0
        assert abs(float(shown) - share) <= 0.5 * 10**-decimals + 1e-9


def test_what_the_import_dropped(tmp_path: Path) -> None:
    named = {"\x1b[31mbot": 7}
    rules = [
        {"rule": "agent", "description": "bots <by> agent", "dropped": 100, "named": named},
        {"rule": "duplicate", "description": "equal to an earlier event", "dropped": 0},
    ]
    about = {"name": "shop", "importer": "csv", "events": 900, "rows_read": 1000, "rules": rules}
    about |= {"notes": ["one client has 300 events: a bot?"], "fingerprint": "f00"}
    about |= {"first": "2019-10-01T00:00:00Z", "last": "2019-10-09T00:00:00Z"}
    about |= {"events_by_day": {f"2019-10-{day:02d}": 100 * (day != 4) for day in range(1, 10)}}
    Log(about).save(tmp_path / Log.marker())
    log = Log.open(tmp_path)
    page = description_page(description({}), log)
    text = Parsed(page.html()).text
    for words in (
        "900 of 1,000 rows are events",
        "bots <by> agent",
        "One client has 300",
        "from 2019-10-01 to",
    ):
        assert words in text
    assert "\x1b" not in text
    assert {"10.00", "100", "\\x1b[31mbot 7"} <= set(texts(page))
    assert line(log.charts()[0], "events").y == [100, 100, 100, 0, 100, 100, 100, 100, 100]
    with pytest.raises(MismatchError, match="the log f00"):
        description_page(description({}), Log({**about, "fingerprint": "another"}))


def test_an_evaluation_has_every_number() -> None:
    remarks = {"did not converge <lbfgs>": 2}
    cells = [{**cell, "remarks": remarks} for cell in cells_of(settings=("anonymous",))]
    left = [{"setting": "identified", "step": 10, "reason": "0 purchases among 7 test sessions"}]
    page = evaluation_page(evaluation(cells, importance=importance_of(), left_out=left))
    shown = set(texts(page))
    for cell in cells:
        for name in ("f1", "best_f1", "average_precision"):
            assert f"{cell[name]:.3f} ({cell[f'{name}_low']:.3f} to {cell[f'{name}_high']:.3f})" in shown
        base, always = f"{100 * cell['base_rate']:.2f}", f"{cell['always_buy_f1']:.3f}"
        assert {f"{cell['sessions']:,}", base, always} <= shown
    for name, worth in mean_importance(importance_of(), "impurity").items():
        assert f"{100 * worth:.0f}" in shown, name
    assert {"0.050 (0.020 to 0.080)", "0.045 (0.020 to 0.080)"} <= shown  # gains
    text = page.html()
    for words in (
        "Left out: identified, step 10: 0 purchases among 7 test sessions.",
        "8 of 8 cells: did not converge <lbfgs>",
        "95 % intervals of 200 resamples of persons",
        "KNN: has no weights for classes <b>.",
        "--step 0 --step 5 --folds 2 --no-importance --samples 200 --seed 3",
    ):
        assert words in Parsed(text).text
    assert "classes <b>" not in text
    whole = evaluation(cells_of(("all",), ("all",), (-1,)), HOSTILE, compat="published")
    page = evaluation_page(whole)
    assert "<script>alert" not in page.html()
    assert page.protocol["population"] == "whole sessions, when they are over"  # type: ignore[index]
    assert line(evaluation_charts(whole)[0], "average precision").y == pytest.approx([0.394, 0.363])
    none = [{**cell, "f1": None, "average_precision": None} for cell in cells]
    assert evaluation_page(evaluation(none)).summary == "Nothing could be evaluated."


def test_the_headline_is_the_best_model_and_how_it_was_chosen() -> None:
    cells = cells_of()
    best = {"setting": "anonymous", "step": 5, "set": "extended", "model": "k-nearest"}
    for cell in cells:  # the best on average is not the best at the last step
        if best.items() <= cell.items():
            cell["average_precision"] = 0.9
    found = evaluation(cells)
    page = evaluation_page(found)
    first, second = page.headlines
    assert (first.label, first.value) == ("average precision of KNN, anonymous, extended", "0.90")
    assert first.note == "the best after 5 pages; purchases 19.0 %"
    assert second.label == "average precision of RF, identified, extended"
    summary = "KNN, anonymous, extended, after 5 pages: average precision 0.900, by chance 0.190"
    assert page.summary.startswith(summary)
    table = {one.caption: one for one in evaluation_tables(found.cells, found.importance)}[
        "anonymous, extended: average precision"
    ]
    assert (table.columns[-1], table.texts[1][-1]) == ("share of purchases", "0.19")
    charts = [one for one in evaluation_charts(found) if (one.title, one.y) == ("anonymous, extended", "F1")]
    banded = [one.name for chart in charts for one in chart.series if one.low and not one.quiet]
    assert banded == ["KNN"]  # the band is of the best


def test_importances_add_up_and_figure_and_table_agree() -> None:
    rows = importance_of()
    assert mean_importance(rows, "impurity") == pytest.approx(
        {"dwell-mean": 0.5, "week-day": 0.3, "channel": 0.2}
    )
    earlier = [row for row in rows if row["step"] == 5 and row["feature"] != "channel"]
    again = [{**row, "step": 1, "impurity": 0.5} for row in earlier]
    longer = [*rows, *again]  # where a feature has no model it counts nothing
    means = mean_importance(longer, "impurity")
    assert sum(means.values()) == pytest.approx(1.0)
    assert means["channel"] == pytest.approx(0.1)
    (chart,) = [one for one in importance_charts(longer) if one.title == "anonymous, by impurity"]
    bars = [[value or 0.0 for value in one.y] for one in chart.series]
    drawn = dict(zip(chart.categories, np.sum(bars, axis=0), strict=True))
    assert drawn == pytest.approx({name: 100 * worth for name, worth in means.items()})
    before = [row for row in rows if row["step"] == 0]  # static features alone
    assert mean_importance(before, "impurity") == {"week-day": 0.75, "channel": 0.25}
    assert static_shares(rows, "impurity") == {0: 1.0, 5: pytest.approx(0.5)}
    assert static_shares([{**row, "permutation": -0.1} for row in rows], "permutation") == {}


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Scorer:
    folder = tmp_path_factory.mktemp("scorer")
    options = TrainOptions(model="logistic-regression", samples=5, folds=2)
    features = small_features(folder / "a <shop>", 400)
    return train(features, folder / "scorer", options=options, settings=["anonymous"], steps=[0, 2])


def test_what_a_scorer_measured_and_what_an_example_gets(scorer: Scorer) -> None:
    page = scorer_page(scorer)
    text, shown = Parsed(page.html()).text, texts(page)
    for cell in scorer.about["cells"]:
        found = cell["holdout"]
        for name in ("average_precision", "roc_auc", "f1"):
            assert any(one.startswith(f"{found[name]:.3f}") for one in shown)
        numbers = {f"{found[name]:.4f}" for name in ("brier", "brier_prior")}
        assert {*numbers, f"{cell['threshold']:.3f}"} <= set(shown)
    example = json.loads((scorer.folder / "example.json").read_text("utf-8"))
    last = scorer.score(example, reasons=8)
    assert last.reasons
    for words in ("Scorer: a <shop>", f"{last.line()}.", "# Purchase intent", "not run with this scorer"):
        assert words in text
    for reason in last.reasons:
        assert {reason.label, f"{reason.effect:+.2f}".replace("-", "−")} <= set(shown)


def test_a_scorer_without_measures_and_with_alarms(scorer: Scorer) -> None:
    cells = [{**cell, "holdout": None} for cell in scorer.about["cells"]]
    audit = {"checks": ["shift"], "findings": [{"alarm": True}, {"alarm": False}]}
    notes = ["alarm of the leak audit, shift dwell: looks ahead <b>"]
    broken = replace(scorer, about={**scorer.about, "cells": cells, "audit": audit, "notes": notes})
    object.__setattr__(broken, "folder", scorer.folder)
    page = scorer_page(broken)
    assert [section.title for section in page.sections] == ["Measured", "An example", "Model card"]
    assert page.summary == "Nothing was measured: one of the classes is missing."
    assert "2 findings, 1 alarms (shift)" in page.sections[2].blocks[0].text  # type: ignore[union-attr]
    assert page.notes == ["Alarm of the leak audit, shift dwell: looks ahead <b>."]
