"""Statistics of a log against an independent implementation, by hand, as planted; and what may be shown of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import scipy.stats
from events import write_log
from hypothesis import given, settings
from hypothesis import strategies as st
from intent_rows import finished, groups
from planted_logs import expected

import diptych
from diptych.commerce.logs import Cleaning
from diptych.commerce.logs.ingest import ingest
from diptych.commerce.purchase_intent.engine import Engine
from diptych.commerce.purchase_intent.options import DescribeOptions
from diptych.commerce.purchase_intent.sessions import sessionise
from diptych.commerce.purchase_intent.shown import DisclosureControl, disclosing
from diptych.commerce.purchase_intent.statistics import ORDER, STATISTICS, Description, describe
from diptych.commerce.scenes.shop_log import DEVICES, EFFECTS, MOST_EVENTS, make_shop_log
from diptych.commerce.scenes.visits import COUNTRIES, Calendar, ShopWorld
from diptych.core.errors import UnknownNameError, UsageError
from diptych.report.intent import description_page
from diptych.studies import STUDIES, Choices, compare
from diptych.studies.page import content_of, study_page
from diptych.studies.runner import run_study


def described(folder: Path, engine: Engine, events: list[dict[str, Any]], **options: Any) -> Description:
    tables = sessionise(write_log(folder / "log", events), engine=engine)
    return describe(tables, engine=engine, options=DescribeOptions(**options))


def test_a_log_without_events(tmp_path: Path, engine: Engine) -> None:
    found = described(tmp_path, engine, [])
    assert all(row["total"] == 0 for row in found.unprotected["overview"])
    for name in ("week-days", "weekend", "hours"):
        assert {(row["sessions"], row["share"], row["low"]) for row in found.unprotected[name]} == {
            (0, None, None)
        }
    for name in set(ORDER) - {"overview", "week-days", "weekend", "hours"}:
        assert found.unprotected[name] == []
    # One without purchases and visitors.
    found = described(tmp_path / "d", engine, [{"t": 0}, {"t": 0, "client_id": "d", "device": "tv"}])
    rates = [
        (one["rate"], one["purchase_share"], one["standardised"]) for one in found.unprotected["devices"]
    ]
    assert rates == [(0.0, None, None)] * 2
    assert {(row["purchase"], row["share"]) for row in found.unprotected["queries"]} == {(False, None)}
    assert found.unprotected["devices-per-visitor"] == found.unprotected["device-transitions"] == []


def test_a_device_that_is_called_all_is_not_all_of_them(tmp_path: Path, engine: Engine) -> None:
    events = [
        {"t": 0, "client_id": client, "device": device, "action": "query", "query": client}
        for client, device in (("a", "all"), ("b", "all"), ("c", "tv"))
    ]
    found = described(tmp_path, engine, events)
    for name, column, of_both in (
        ("session-length-quantiles", "sessions", 3),
        ("session-length", "sessions", 3),
        ("queries", "queries", 3),
        ("unique-queries", "unique", 3),
    ):
        counts = {row["device"]: row[column] for row in found.unprotected[name]}
        assert counts == {"all": of_both, '"all"': 2, "tv": 1}, name
    assert {row["device"]: row["share"] for row in found.unprotected["unique-queries"]}["all"] == 1


def test_what_is_not_there_is_said(tmp_path: Path, engine: Engine) -> None:
    tables = sessionise(write_log(tmp_path / "log", [{"t": 0}]), engine=engine)
    found = describe(tables, engine=engine, names=["hours", "channels", "hours"])
    assert list(found.unprotected) == ["hours", "channels"]
    with pytest.raises(UnknownNameError, match="unknown statistic of this description 'devices'"):
        found.rows("devices")
    for names, error, match in (
        (["chanels"], UnknownNameError, "unknown statistic 'chanels'.*did you mean 'channels'"),
        ([], UsageError, "no statistic is named"),
    ):
        with pytest.raises(error, match=match):
            describe(tables, engine=engine, names=names)


@settings(max_examples=15)
@given(st.integers(1, 10**9), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_intervals_are_the_usual_ones(of: int, data: st.DataObject, confidence: float) -> None:
    part = data.draw(st.integers(0, of))
    counted = ("pc", True, part), ("pc", False, of - part)
    (row,) = finished("devices", "name purchase sessions", *counted, confidence=confidence)
    usual = scipy.stats.binomtest(part, of).proportion_ci(confidence, method="wilson")
    assert row["low"] == pytest.approx(usual.low, rel=1e-9, abs=1e-15)
    assert row["high"] == pytest.approx(usual.high, rel=1e-9)
    assert 0 <= row["low"] <= part / of == row["rate"] <= row["high"] <= 1


def test_kinds_of_links() -> None:
    for there, back, kind in (
        (2000, 200, "strong"),  # tablet to PC and back
        (4375, 1, "one-sided"),  # TV to PC
        (1, 625, "one-sided"),  # tablet to TV
        (90, 0, "weak"),
        (100, 100, "strong"),
        (5000, None, "none"),
    ):
        counted = [("a", "b", there), ("a", "a", 10_000 - there)]
        counted += [] if back is None else [("b", "a", back)] * (back > 0) + [("b", "b", 10_000 - back)]
        rows = finished("device-transitions", "from_device to_device transitions", *counted)
        found = {(row["from_device"], row["to_device"]): row["link"] for row in rows}
        assert found == dict.fromkeys(found, kind) | {pair: "self" for pair in found if pair[0] == pair[1]}


def standardised(rates: list[float], ddof: int = 0) -> list[float | None]:
    counts = {f"{place}": (100_000, round(rate * 100_000)) for place, rate in enumerate(rates)}
    return [row["standardised"] for row in groups("device", counts, ddof=ddof)]


def test_table_6_4_is_divided_by_n() -> None:
    # Rates up to a factor, from the shares of purchase and other sessions that the text compares.
    ratios = [1 - 0.1910, 1.3070, 1.0712, 1 - 0.1547, 1 - 0.3401]  # smartphone, pc, tablet, console, tv
    rates = [ratio * 0.03 / (1 + ratio * 0.03) for ratio in ratios]
    printed = [-0.56, 1.61, 0.61, -0.40, -1.25]
    assert standardised(rates) == pytest.approx(printed, abs=0.03)
    assert standardised(rates, ddof=1) != pytest.approx(printed, abs=0.1)
    assert standardised([0.5, 0.2, 0.3]) == pytest.approx([1.3363, -1.0690, -0.2673], abs=1e-4)  # its example


def test_where_nothing_differs_there_is_no_deviation() -> None:
    for rates in ([0.3], [0.1, 0.1, 0.1]):
        for ddof in (0, 1):
            assert standardised(rates, ddof) == [None] * len(rates)


def described_shop(shop: Path, confidence: float = 0.95) -> Description:
    cleaning = Cleaning(countries=COUNTRIES, devices=tuple(DEVICES.values()), most_events=MOST_EVENTS)
    log = ingest(shop, shop.with_name("log"), cleaning=cleaning, buckets=2)
    return describe(sessionise(log), options=DescribeOptions(confidence=confidence))


def test_planted_parameters_lie_in_their_intervals(tmp_path: Path) -> None:
    # Without what makes sessions of one visitor alike, which intervals know nothing of.
    independent = {"repeat": 0.0}
    found = described_shop(
        make_shop_log(tmp_path / "shop", visitors=1_500, effects=independent, seed=2), 0.9999
    )
    planted = expected(ShopWorld({**EFFECTS, **independent}, Calendar("Europe/Amsterdam", 28), 2))
    for name in ("channels", "devices"):
        for row in found.unprotected[name]:
            assert row["low"] <= planted[name][row[name.removesuffix("s")]]["rate"] <= row["high"]
    for name, column, key in (("week-days", "week_day", "week_days"), ("hours", "hour", "hours")):
        for row in found.unprotected[name]:
            share = planted[key]["purchase" if row["purchase"] else "other"][row[column]]
            assert row["low"] <= share <= row["high"]
    for row in found.unprotected["device-transitions"]:
        share = planted["device_transitions"][row["from_device"]][row["to_device"]]
        assert row["low"] <= share <= row["high"]
    for row in found.unprotected["queries"]:
        if row["device"] != "all" and row["sessions"] >= 50:
            queries = planted["queries_per_session"]["purchase" if row["purchase"] else "other"]
            assert row["low"] <= queries[row["device"]] <= row["high"]


RARE = "console of one"  # used by 3 of 203 sessions, one of which buys


def rare_events() -> Iterator[dict[str, Any]]:
    for number in range(203):
        who = {"client_id": f"c{number}", "visitor_id": f"v{number % 100}", "t": number * 20_000}
        who |= {"device": RARE if number < 3 else "pc" if number % 2 else "tv", "channel": "paid"}
        who["channel"] = RARE if number < 3 else "paid" if number % 3 else "direct"
        yield {**who, "action": "query", "query": f"q{number % 7}"}
        yield {**who, "action": "page", "is_purchase": number % 8 == 0}


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> Description:
    log = write_log(tmp_path_factory.mktemp("log") / "shop", list(rare_events()))
    return describe(sessionise(log))


def suppressed(row: dict[str, Any], shown: dict[str, Any]) -> list[str]:
    """Return the numbers of a row that the shown one lacks, as an output would write them exactly."""
    lost = [name for name, value in row.items() if shown.get(name) != value and isinstance(value, float)]
    return [f"{row[name]!r}" for name in lost if row[name] not in (0.0, 1.0)]


def outputs(description: Description, folder: Path) -> dict[str, str]:
    """Return the text of everything that leaves a description."""
    description.save(folder)
    texts = {file.name: file.read_text() for file in (folder / "tables").iterdir()}
    tables = [
        *description.tables(),
        *(chart.table() for name in description.statistics for chart in description.charts(name)),
    ]
    texts["tables"] = "\n".join(
        f"{cell.value!r} {cell.line}" for one in tables for row in one.rows for cell in row
    )
    texts["page"] = description_page(description).html()
    texts["totals"] = repr(description.totals())
    return texts


def test_nothing_suppressed_is_in_any_output(description: Description, tmp_path: Path) -> None:
    with disclosing(DisclosureControl(least=1)):
        everything = outputs(description, tmp_path / "all")
    for control in (DisclosureControl(), DisclosureControl(hide_rates=True)):
        with disclosing(control):
            disclosed = outputs(description, tmp_path / f"rates-{control.hide_rates}")
        check_disclosed(description, control, everything, disclosed)


def check_disclosed(
    description: Description,
    control: DisclosureControl,
    everything: dict[str, str],
    disclosed: dict[str, str],
) -> None:
    rare = [row for row in description.unprotected["devices"] if row["device"] == RARE]
    assert [row["sessions"] for row in rare] == [3]
    hidden = [repr(rare[0][name]) for name in ("purchase_share", "rate", "low", "high")]
    assert all(number in everything["devices.csv"] for number in hidden)
    public = set()
    for name in ORDER:
        with disclosing(control):
            shown = description.rows(name)
        public |= {repr(value) for row in shown for value in row.values()}
        keys = set(STATISTICS.get(name).columns.split()[:2])
        by_key = {tuple(str(row.get(one)) for one in keys): row for row in shown}
        for row in description.unprotected[name]:
            hidden += suppressed(row, by_key.get(tuple(str(row.get(one)) for one in keys), {}))
    for output, text in disclosed.items():
        numbers = set(re.findall(r"\d+\.\d{6,}(?:e-?\d+)?", text))
        assert not (numbers & set(hidden)) - public, output
    assert disclosed.keys() == everything.keys()


def test_a_study_keeps_only_what_may_be_shown(tmp_path: Path) -> None:
    name = "table-6.4"
    log = write_log(tmp_path / "shop", [{**one, "device": one["device"].replace(RARE, "tablet"),
                                         "channel": one["channel"].replace(RARE, "organic")}
                                        for one in rare_events()]).folder  # fmt: skip
    study = STUDIES.get(f"intent.{name}")
    row = "tablet"
    with disclosing(DisclosureControl()):
        results = run_study(study, tmp_path / "study", Choices(data={"path": log}))
        assert results.values(row, "purchase") == []
        compared = compare(study, results)
        texts = [study_page(compared).html(), repr(content_of(compared))]
    kept = [file.read_text() for file in (tmp_path / "study").rglob("*.json")]
    share = 100 * 1 / 51  # of purchase sessions
    assert not any(f"{share:.6f}"[:8] in text for text in [*texts, *kept])
    with disclosing(DisclosureControl(least=1)):
        again = run_study(study, tmp_path / "study", Choices(data={"path": log}))
    assert again.of(row)


def test_code_reads_unprotected_counts_in_one_place_only() -> None:
    package = Path(diptych.__file__).parent
    texts = {file: file.read_text("utf-8") for file in package.rglob("*.py")}
    readers = [str(file.relative_to(package)) for file, text in texts.items() if ".unprotected" in text]
    assert readers == ["commerce/purchase_intent/statistics.py"]
