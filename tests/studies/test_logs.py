"""Studies of a log: rows, what is shared, what is refused, how claims are judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from events import write_log
from study_runs import run_study

from diptych.commerce.purchase_intent.shown import Discretion, showing
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.studies import STUDIES, Choices, LogSource, collect, compare
from diptych.studies.claims import Check
from diptych.studies.log_checks import above, between, highest, lowest, peak, steady
from diptych.studies.logs import LogOptions
from diptych.studies.page import study_page
from diptych.studies.verdict import Evidence, Figure

pytest.importorskip("duckdb")

TABLE_6_1, TABLE_6_2, TABLE_6_4, TABLE_6_7 = (STUDIES.get(f"intent.table-6.{n}") for n in (1, 2, 4, 7))
MONDAY = 4 * 86_400  # 1970-01-05


def shop(
    devices: tuple[str, ...] = ("pc", "smartphone", "tablet"), channel: str = "direct"
) -> list[dict[str, Any]]:
    """Twelve clients, a session each on a day of its own: three pages, a query, and every third buys."""
    events = []
    for number in range(12):
        begin = MONDAY + number * 86_400 + 19 * 3600
        who = {
            "client_id": f"c{number}",
            "visitor_id": f"v{number % 4}" if number % 2 else None,
            "device": devices[number % len(devices)],
            "channel": channel if number % 2 else "paid",
        }
        events += [{**who, "t": begin + 60 * page, "page_type": "product"} for page in range(3)]
        events.append({**who, "t": begin + 200, "action": "query", "query": f"shoes {number % 5}"})
        if number % 3 == 0:
            events.append({**who, "t": begin + 300, "action": "purchase", "is_purchase": True})
    return events


@pytest.fixture(autouse=True)
def _every_count_is_shown() -> Iterator[None]:
    with showing(Discretion(least=1)):
        yield


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "shop", shop(), buckets=2).folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Studies beside each other, which share what is made of the log."""
    return tmp_path_factory.mktemp("home") / "studies"


def choices(log: Path, **values: Any) -> Choices:
    return Choices(log=LogSource(log), values={f"measure.{key}": value for key, value in values.items()})


def test_rows_are_measured_and_the_printed_ones_stand_beside(log: Path, tmp_path: Path) -> None:
    folder = tmp_path / "studies" / "intent.table-6.4"
    told: list[str] = []
    results = run_study(TABLE_6_4, folder, choices(log), tell=told.append)
    assert told == ["shop: statistics"]
    assert results.setting == "data"
    assert results.values("pc", "purchase") == [100.0]  # clients 0, 3, 6 and 9
    assert results.values("smartphone", "non-purchase") == [50.0]
    assert set(results.left_out) == {"game-console", "tv"}
    entry = results.of("pc")[0]
    assert entry.measurements[0].on.sessions == 12
    task = "all, 12 sessions, by client, ended by 30 minutes without an event"
    assert entry.measurements[0].on.task == task
    found = compare(TABLE_6_4, results)
    assert not found.reproduces
    assert found.blocks[0].differences == (
        "dataset shop, not thesis-shop",
        "12 sessions, not 94,402,590 or 95,757,177",
    )
    cells = {cell.column: cell for cell in found.blocks[0].rows[1].cells}
    assert cells["purchase"].verdict == "other data"
    assert cells["purchase"].published is not None
    assert cells["purchase"].published.value == 44.97
    assert found.label.startswith("Not a reproduction: on shop: ")
    assert "as the setting 'data' says (any log)" in found.label
    said = {claim.name: judgement.status for claim, judgement, _ in found.claims}
    assert said == {"PC": "holds", "order": "holds", "purchases": "fails", "rare": "not run"}
    page = study_page(found).html()
    assert "<svg" in page
    assert "over seeds" not in page


def test_what_is_made_of_a_log_serves_all_studies(log: Path, tmp_path: Path) -> None:
    studies = tmp_path / "studies"
    run_study(TABLE_6_4, studies / "intent.table-6.4", choices(log))
    (kept,) = (studies / "intent.logs").iterdir()
    assert kept.name.startswith("shop-")
    (description,) = kept.glob("description-*")
    before = (description / "description.json").stat().st_mtime_ns
    told: list[str] = []
    run_study(TABLE_6_2, studies / "intent.table-6.2", choices(log), tell=told.append)
    run_study(TABLE_6_4, studies / "intent.table-6.4", choices(log), tell=told.append)
    assert told == []
    assert (description / "description.json").stat().st_mtime_ns == before
    # Elsewhere than beside them it is made again, and results are found where they are.
    moved = tmp_path / "moved"
    studies.rename(moved)
    (found,) = collect([moved / "intent.table-6.4"])
    kept_at = found.evidence().kept["pc"][0]
    assert kept_at.is_dir()
    assert moved.resolve() in kept_at.resolve().parents
    assert "<svg" in study_page(compare(TABLE_6_4, found)).html()
    alone = tmp_path / "alone"
    (moved / "intent.table-6.4").rename(alone)
    (found,) = collect([alone])
    assert compare(TABLE_6_4, found).tables == ()  # numbers are there, figures are not
    assert found.values("pc", "purchase") == [100.0]


def test_another_way_of_measuring_is_another_measurement(log: Path, home: Path) -> None:
    folder = home / "intent.table-6.1"
    plain = run_study(TABLE_6_1, folder, choices(log))
    assert plain.values("sessions", "total") == [12.0]
    assert plain.values("distinct-queries", "total") == [5.0]
    told: list[str] = []
    short = run_study(TABLE_6_1, folder, choices(log, gap=1.5), tell=told.append)
    assert told == ["shop: statistics"]
    assert short.values("sessions", "total") == [16.0]  # a purchase comes 100 seconds after the query
    protocol = short.of("sessions")[0].measurements[0].on.protocol
    assert protocol == "by client, ended by 1.5 minutes without an event"
    assert "with changes of measure.gap" in compare(TABLE_6_1, short).label
    assert any("protocol" in one for one in compare(TABLE_6_1, short).blocks[0].differences)


def test_rows_of_another_log_do_not_stay(log: Path, home: Path, tmp_path: Path) -> None:
    folder = home / "intent.table-6.4"
    run_study(TABLE_6_4, folder, choices(log))
    other = write_log(tmp_path / "other", shop(devices=("pc",))).folder
    (entry,) = run_study(TABLE_6_4, folder, choices(other), rows=["pc"]).entries
    assert (entry.row, entry.data.partition(":")[0]) == ("pc", "other")
    with pytest.raises(UsageError, match=r"holds study 'intent\.table-6\.4'"):
        run_study(TABLE_6_1, folder, choices(log))


def test_whoever_has_the_thesis_log_gets_verdicts(log: Path, tmp_path: Path) -> None:
    """A log of that name is the paper's; entries are made to look as if they had its sessions."""
    named = write_log(tmp_path / "thesis-shop", shop()).folder
    results = run_study(TABLE_6_4, tmp_path / "studies" / "intent.table-6.4", choices(named))
    assert results.setting == "paper"
    rows = [row for row in compare(TABLE_6_4, results).blocks[0].rows if row.seeds]
    assert {cell.verdict for row in rows for cell in row.cells} == {"other data"}

    def as_printed(entry: Any) -> Any:
        one = entry.measurements[0]
        printed = TABLE_6_4.printed(entry.row, "thesis")
        assert printed is not None
        values = {column: cell.value for column, cell in printed.cells.items()} | {"purchase": 1.0}
        made = replace(one, values=values, on=replace(one.on, sessions=94_402_590))
        return replace(entry, measurements=(made,))

    whole = replace(results, entries=tuple(map(as_printed, results.entries)))
    found = compare(TABLE_6_4, whole)
    assert found.reproduces
    assert found.label.startswith("A reproduction: on thesis-shop: ")
    row = next(one for one in found.blocks[0].rows if one.row.name == "pc")
    assert [cell.verdict for cell in row.cells] == ["not reproduced", "reproduced", "reproduced"]


def test_small_counts_and_rates_are_not_printed(log: Path, home: Path) -> None:
    """Four of twelve sessions have a purchase, so nothing of devices may be printed but how many there are."""
    results = run_study(TABLE_6_4, home / "intent.table-6.4", choices(log))
    with showing(Discretion()):
        found, page = compare(TABLE_6_4, results), study_page(compare(TABLE_6_4, results)).html()
    assert {cell.measured for row in found.blocks[0].rows for cell in row.cells} == {None}
    assert {judgement.status for _, judgement, _ in found.claims} == {"not run"}
    assert results.values("pc", "purchase") == [100.0]  # what was measured is kept as it is
    assert ("pc", "< 5", "< 5", "–", "–", "–", "–") in found.tables[0].texts
    assert "Counts below 5, and what follows from them, are not shown." in page
    with showing(Discretion(least=1, hide_rates=True)):
        found = compare(TABLE_6_4, results)
    shown = ("Device", "% of purchase sessions", "% of others", "Standardised, ddof 0")
    assert found.tables[0].columns == shown
    assert found.results.values("pc", "purchase") == [100.0]
    assert not found.results.values("pc", "rate")
    assert results.values("pc", "rate") == [100.0]


def test_features_need_no_log(tmp_path: Path) -> None:
    results = run_study(TABLE_6_7, tmp_path / "studies" / "intent.table-6.7")
    found = compare(TABLE_6_7, results)
    assert found.reproduces
    assert found.counts() == {"reproduced": 45}
    assert not (tmp_path / "studies" / "intent.logs").exists()
    assert all(judgement.status == "holds" for _, judgement, _ in found.claims)


# What is refused ---------------------------------------------------------------------------------------------------


def test_a_log_that_has_nothing_of_it(tmp_path: Path) -> None:
    bare = write_log(tmp_path / "bare", shop(devices=("unknown",))).folder
    with pytest.raises(DataError, match=r"nothing of intent\.table-6\.4 can be measured.*On which devices"):
        run_study(TABLE_6_4, tmp_path / "studies" / "intent.table-6.4", choices(bare))


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"values": {"model.width": 3}}, UsageError, r"about a training.*measure\.gap"),
        ({"values": {"measure.gpa": 3}}, UnknownNameError, "key of measure"),
        ({"values": {"measure.gap": "long"}}, UsageError, "measure: gap"),
        ({"values": {"measure.by": "cookie"}}, UsageError, "measure: by: .*'visitor'"),
        ({"values": {"measure.ddof": -1}}, UsageError, "measure: ddof: Input should be greater"),
        ({"targets": "lsa"}, UsageError, "--targets lsa"),
        ({"setting": "everything"}, UnknownNameError, r"setting of intent\.table-6\.1"),
        ({"log": None, "setting": "data"}, DataError, "no log given"),
        ({"log": LogSource(Path("nowhere"))}, DataError, "nowhere is not there"),
    ],
)
def test_what_cannot_be(
    log: Path, tmp_path: Path, changed: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        run_study(TABLE_6_1, tmp_path / "s" / "intent.table-6.1", replace(choices(log), **changed))


@pytest.mark.parametrize(
    ("key", "value"), [("steps", ["a"]), ("steps", []), ("folds", 1), ("sessions", True), ("gap", 0)]
)
def test_impossible_options(key: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"measure: {key}"):
        LogOptions.read({key: value}, "measure")


def rate(*values: float) -> dict[str, Figure]:
    """With its interval, where there is one."""
    return dict(zip(("rate", "rate low", "rate high"), map(Figure, values), strict=False))


DEVICES = Evidence(
    {
        "pc": rate(9.0, 8.0, 10.0) | {"share": Figure(30.0)},
        "tv": rate(2.0, 0.5, 7.5),
        "tablet": rate(8.5, 7.0, 10.0),
        "console": rate(2.0),
    }
)
RATES = [(name, "rate") for name in ("pc", "tv", "tablet", "console")]
PC, TV, TABLET, CONSOLE = RATES
PHONE = ("phone", "rate")


@pytest.mark.parametrize(
    ("check", "holds", "said"),
    [
        (above(PC, TV), True, "9.00 [8.00, 10.00] against 2.00 [0.50, 7.50], intervals apart"),
        (above(PC, TABLET), True, "intervals overlap"),
        (above(TV, PC), False, "intervals apart"),
        (above(PC, CONSOLE), True, "9.00 [8.00, 10.00] against 2"),
        (above(TV, CONSOLE), None, "equal, as far as the digits go"),
        (above(PC, PHONE), None, "rate of phone"),
        (highest(RATES, [PC], "pc first"), True, "pc 9.00 [8.00, 10.00], tablet 8.50 [7.00, 10.00]"),
        (highest(RATES, [TABLET, PC], "two first"), True, "tablet 8.50"),
        (highest(RATES, [PC, TV], "not these"), False, "tv 2.00"),
        (highest(RATES, [PHONE], "nobody"), None, "rate of phone"),
        (lowest(RATES, [TV, CONSOLE], "two last"), True, "tablet 8.50"),
        (lowest(RATES, [TV], "one of two"), None, "equal"),
        (peak(RATES, RATES[:2], "pc or tv"), True, "pc 9.00"),
        (peak(RATES, RATES[1:2], "tv"), False, "pc 9.00"),
        (peak(RATES, RATES[2:], "lowest: tablet or console", sign=-1), None, "equal"),
        (peak([*RATES, PHONE], RATES[:1], "of all"), None, "rate of phone"),
        (steady(RATES[::2], 1.1, "level"), True, "from 8.50 to 9.00"),
        (steady(RATES, 1.1, "level"), False, "from 2.00 to 9.00"),
        (between(("pc", "share"), 30, 40, "about 35"), True, "30"),
        (between(("pc", "share"), 31, 40, "about 35"), False, "30"),
        (between(("tv", "share"), 31, 40, "about 35"), None, "share of tv"),
    ],
)
def test_a_comparison(check: Check, holds: bool | None, said: str) -> None:
    (finding,) = check(DEVICES)
    assert finding.holds is holds
    assert said in finding.detail
