"""Thesis chapter 6: printed cells, what its text derives from them, and what is counted in a log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from printed_arithmetic import arithmetic_faults, base_rate, follows, standardised

from diptych.studies import STUDIES, published_table
from diptych.studies.intent_rows import (
    MIDDLE,
    Statistics,
    channel_shares,
    device_counts,
    device_shares,
    hours,
    lengths,
    middle,
    queries,
    totals,
    transitions,
    unique_queries,
    week_days,
)
from diptych.studies.page import notes_of
from diptych.studies.study import PUBLISHED

STUDIES_OF_CHAPTER_6 = [study for study in STUDIES if study.paper.key == "intent"]


def cell(table: str, row: str, column: str) -> float:
    found = next(one for one in published_table("intent", table).rows if one.row == row)
    return found.cells[column].value


# The tables against each other ----------------------------------------------------------------------------------


def test_every_table_and_figure_is_a_study() -> None:
    names = {study.name.removeprefix("intent.") for study in STUDIES_OF_CHAPTER_6}
    assert names == {*(f"table-6.{n}" for n in range(1, 8)), *(f"figure-6.{n}" for n in range(2, 8))}
    assert all(study.of_logs for study in STUDIES_OF_CHAPTER_6)


def test_counts_of_the_table_and_of_the_text() -> None:
    sessions = cell("table-6.1", "Sessions", "total")
    anonymous = cell("table-6.1", "Anonymous", "total")
    assert anonymous + cell("table-6.1", "Logged-in or recognized", "total") == sessions
    text = cell("table-6.1", "Sessions", "text"), cell("table-6.1", "Anonymous", "text")
    assert round(100 * text[1] / text[0], 1) == cell(
        "text-table-6.1", "anonymous sessions, section 6.3", "stated"
    )
    assert round(100 * anonymous / sessions, 1) == 58.6  # "about 56 % (see Table 6.1)"
    assert (text[0] - sessions, anonymous - text[1]) == (1_354_587, 1_161_557)


def test_unique_queries_add_up_where_they_cannot() -> None:
    devices = ("Smartphone", "PC", "Tablet", "Game Console", "TV")
    kinds = ("purchase count", "non-purchase count")
    parts = [cell("table-6.6", device, kind) for kind in kinds for device in devices]
    assert sum(parts) == cell("section-6.4.5", "Unique queries", "total") == 1_302_195
    for kind in kinds:
        assert sum(cell("table-6.6", device, kind) for device in devices) == cell("table-6.6", "Total", kind)
    share = 100 * 1_302_195 / cell("section-6.4.5", "Queries", "total")
    assert (math.floor(100 * share) / 100, round(share, 2)) == (4.17, 4.18)  # cut off, not rounded


def test_the_worked_example_divides_by_n() -> None:
    # Rates .5, .2, .3 of groups: shares of purchases and others that give them with a base rate of 1/2.
    shares = [(0.5, 0.5), (0.2, 0.8), (0.3, 0.7)]
    assert standardised(shares, 0.5, 0) == pytest.approx([1.34, -1.07, -0.27], abs=0.005)
    assert standardised(shares, 0.5, 1) != pytest.approx([1.34, -1.07, -0.27], abs=0.1)


def test_the_rates_that_were_to_be_hidden() -> None:
    queries, sessions = cell("table-6.1", "Queries", "total"), cell("table-6.1", "Sessions", "total")
    low, high = base_rate(queries, sessions, (3.155, 3.165), (0.055, 0.065))
    assert (round(low, 3), round(high, 3)) == (0.086, 0.089)
    less = {
        name: cell("text-table-6.4", f"{name}, section 6.4.4", "stated") for name in ("game console", "TV")
    }
    shares = [
        *(
            (cell("table-6.4", row, "purchase"), cell("table-6.4", row, "non-purchase"))
            for row in ("Smartphone", "PC", "Tablet")
        ),
        *((100 - less[name], 100.0) for name in ("game console", "TV")),
    ]
    printed = [
        cell("table-6.4", row, "standardised") for row in ("Smartphone", "PC", "Tablet", "Game Console", "TV")
    ]
    assert standardised(shares, 0.087, 0) == pytest.approx(printed, abs=0.0105)
    assert standardised(shares, 0.10, 0) == pytest.approx(printed, abs=0.0056)
    assert standardised(shares, 0.087, 1) != pytest.approx(printed, abs=0.1)
    # Of channels the other way round; the direct one fits neither.
    channels = ("Direct", "Paid", "Organic", "Other")
    shares = [
        (cell("table-6.2", row, "purchase"), cell("table-6.2", row, "non-purchase")) for row in channels
    ]
    printed = [cell("table-6.2", row, "standardised") for row in channels]
    assert standardised(shares, 0.01, 1)[1:] == pytest.approx(printed[1:], abs=0.012)
    assert standardised(shares, 0.01, 0)[1:] != pytest.approx(printed[1:], abs=0.05)
    assert -sum(printed[1:]) == pytest.approx(-0.15)
    assert printed[0] == cell("table-6.4", "Smartphone", "standardised") == -0.56


@pytest.mark.parametrize(
    ("row", "one", "other", "sign", "follows_from_it"),
    [
        ("direct, section 6.4.3", 71.07, 77.30, -1, True),
        ("paid, section 6.4.3", 16.74, 12.92, 1, False),
        ("organic, section 6.4.3", 11.78, 7.83, 1, True),
        ("one device, section 6.4.4", 75.95, 83.78, -1, True),
        ("several devices, section 6.4.4", 24.05, 16.22, 1, False),
        ("PC, section 6.4.4", 44.97, 34.40, 1, True),
        ("tablet, section 6.4.4", 8.03, 7.50, 1, True),
        ("smartphone, section 6.4.4", 47.00, 58.09, -1, True),
    ],
)
def test_numbers_that_the_text_derives(
    row: str, one: float, other: float, sign: int, follows_from_it: bool
) -> None:
    table = next(
        found
        for name in ("text-table-6.2", "text-table-6.3", "text-table-6.4")
        for found in [published_table("intent", name)]
        if any(line.row == row for line in found.rows)
    )
    stated = next(line for line in table.rows if line.row == row).cells["stated"].value
    # Exact fractions: every printed number stands for half a unit of its last digit to either side.
    half = Fraction(1, 200)
    ratios = [
        sign * 100 * ((Fraction(str(one)) + a * half) / (Fraction(str(other)) + b * half) - 1)
        for a in (-1, 1)
        for b in (-1, 1)
    ]
    inside = min(ratios) - half <= Fraction(str(stated)) <= max(ratios) + half
    assert inside is follows_from_it
    assert ((row, "stated") in arithmetic_faults(table)) is not follows_from_it
    assert any(row in note for note in [str(fault) for fault in table.inconsistent]) is not follows_from_it


def test_numbers_of_the_tv_are_sixteenths() -> None:
    printed = [cell("figure-6.5", "TV", f"to {device}") for device in ("pc", "tablet", "game console")]
    assert [Fraction(str(value)) / 100 for value in printed] == [
        Fraction(7, 16),
        Fraction(1, 16),
        Fraction(1, 16),
    ]


@pytest.mark.parametrize(
    ("table", "row", "column", "change"),
    [
        ("table-6.1", "Queries", "total", 1),
        ("table-6.2", "Paid", "standardised", 0.5),
        ("table-6.4", "PC", "standardised", -0.2),
        ("table-6.5", "Smartphone", "purchase per session", 1.0),
        ("table-6.5", "PC", "non-purchase per session", 0.03),
        ("table-6.6", "Tablet", "non-purchase %", 0.02),
        ("text-table-6.2", "direct, section 6.4.3", "stated", 0.05),
        (
            "text-figure-6.3",
            "non-purchase sessions of three days less those of four, section 6.4.2",
            "stated",
            0.1,
        ),
    ],
)
def test_a_wrong_digit_is_found(table: str, row: str, column: str, change: float) -> None:
    whole = published_table("intent", table)
    assert (row, column) not in arithmetic_faults(whole)
    rows = tuple(
        replace(
            one,
            cells={**one.cells, column: replace(one.cells[column], value=one.cells[column].value + change)},
        )
        if one.row == row
        else one
        for one in whole.rows
    )
    assert (row, column) in arithmetic_faults(replace(whole, rows=rows))


def test_a_column_that_no_longer_adds_up_is_found() -> None:
    whole = published_table("intent", "table-6.4")
    first = whole.rows[0]
    wrong = {**first.cells, "purchase": replace(first.cells["purchase"], value=46.0)}
    found = arithmetic_faults(replace(whole, rows=(replace(first, cells=wrong), *whole.rows[1:])))
    assert ("all rows", "purchase") in found
    assert arithmetic_faults(whole) == []


def test_what_follows_is_an_interval() -> None:
    assert follows(lambda a, b: a / b, (1.0, 2.0), (4.0, 5.0)) == (0.2, 0.5)


# The text against the tables --------------------------------------------------------------------------------------


def test_errata_stand_with_every_study() -> None:
    notes = "\n".join(notes_of(STUDIES.get("intent.table-6.2")))
    assert "row Direct, standardised does not add up" in notes
    assert "16.74 is 29.57 % above 12.92" in notes
    assert "48.27" not in notes  # another table's
    assert "95,757,177" in "\n".join(notes_of(STUDIES.get("intent.table-6.1")))


def test_a_log_is_described_by_its_sessions() -> None:
    on = published_table("intent", "table-6.4").rows[0].on
    assert on.describe() == (
        "thesis-shop all: 94,402,590 or 95,757,177 sessions, by client, ended by 30 minutes without an event"
    )
    features = published_table("intent", "table-6.7").rows[0].on
    assert (
        features.describe()
        == "features declared: what may change during a session, and what the baseline has"
    )


Rows = Sequence[Mapping[str, Any]]


def of(**tables: Rows) -> Statistics:
    return lambda name: tables.get(name.replace("-", "_"), [])


def group(
    key: str, name: str, bought: int, others: int, of_all: tuple[int, int], standardised: float | None
) -> dict[str, Any]:
    return {
        key: name,
        "sessions": bought + others,
        "purchase_sessions": bought,
        "purchase_share": bought / of_all[0],
        "other_share": others / of_all[1],
        "rate": bought / (bought + others),
        "low": 0.1,
        "high": 0.3,
        "standardised": standardised,
    }


def test_totals_are_by_name() -> None:
    rows = [{"what": "sessions", "total": 9}, {"what": "distinct queries", "total": 3}]
    assert totals(of(overview=rows)) == {"sessions": {"total": 9.0}, "distinct-queries": {"total": 3.0}}


def test_channels_are_standardised_both_ways() -> None:
    rows = [
        group("channel", "direct", 6, 4, (10, 10), -0.5),
        group("channel", "paid", 4, 5, (10, 10), 1.5),
        group("channel", "e-mail", 0, 1, (10, 10), -1.0),  # the thesis has none, the rates do
    ]
    found = channel_shares(of(channels=rows))
    assert list(found) == ["direct", "paid"]
    assert found["paid"]["purchase"] == 40.0
    assert found["paid"]["non-purchase"] == 50.0
    assert found["paid"]["standardised"] == 1.5
    assert found["paid"][f"standardised{PUBLISHED}"] == pytest.approx(1.5 * math.sqrt(2 / 3))
    assert found["paid"]["rate low"] == 10.0


def test_rates_that_are_not_defined_are_no_cells() -> None:
    found = device_shares(of(devices=[group("device", "game console", 1, 1, (1, 1), None)]))
    assert "standardised" not in found["game-console"]
    assert found["game-console"]["purchase"] == 100.0


def week(sessions: Sequence[int], purchase: bool) -> Rows:
    return [
        {
            "purchase": purchase,
            "week_day": day,
            "sessions": n,
            "share": n / sum(sessions),
            "low": 0.0,
            "high": 1.0,
        }
        for day, n in enumerate(sessions)
    ]


def test_three_busiest_days_and_both_kinds_together() -> None:
    rows = [*week([10, 20, 30, 25, 5, 6, 4], True), *week([100, 0, 0, 0, 0, 0, 100], False)]
    found = week_days(of(week_days=rows))
    assert found["purchase"]["three most"] == pytest.approx(75.0)
    assert found["purchase"]["four least"] == pytest.approx(25.0)
    assert found["purchase"]["difference"] == pytest.approx(50.0)
    assert found["either"]["Monday"] == pytest.approx(100 * 110 / 300)
    assert sum(found["either"][day] for day in ("Monday", "Tuesday", "Sunday")) == pytest.approx(
        100 * 234 / 300
    )


def test_a_kind_without_sessions_has_no_days() -> None:
    nothing = [
        {"purchase": True, "week_day": day, "sessions": 0, "share": None, "low": None, "high": None}
        for day in range(7)
    ]
    found = week_days(of(week_days=[*nothing, *week([1] * 7, False)]))
    assert set(found) == {"non-purchase", "either"}


def test_hours() -> None:
    rows = [
        {"purchase": True, "hour": hour, "sessions": hour, "share": hour / 276, "low": 0.0, "high": 1.0}
        for hour in range(24)
    ]
    found = hours(of(hours=rows))["purchase"]
    assert found["23 h"] == pytest.approx(100 * 23 / 276)
    assert found["23 h high"] == 100.0


def test_lengths_between_two_percentiles() -> None:
    base = {"device": "pc", "purchase": True}
    counts = [{**base, "length": length, "sessions": n} for length, n in ((1, 5), (2, 4), (50, 1))]
    row = {**base, "sessions": 10, "mean": 6.3, "p50": 1, "p90": 2, "p99": 50, "max": 50}
    everywhere = [{**one, "device": "all"} for one in (*counts, row)]
    found = lengths(
        of(session_length=[*counts, *everywhere[:-1]], session_length_quantiles=[row, everywhere[-1]])
    )
    assert found["pc-purchase"][MIDDLE] == 2.0  # of ten sessions the sixth to ninth
    assert found["pc-purchase"]["P90"] == 2.0
    assert found["any-purchase"] == found["pc-purchase"]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_the_middle_is_that_of_repeated_sessions(given_lengths: list[int]) -> None:
    """Every session ten times: then the ends fall between sessions, and the middle is a plain mean."""
    repeated = sorted(length for length in given_lengths for _ in range(10))
    n = len(repeated)
    counts = {length: repeated.count(length) for length in set(repeated)}
    inside = repeated[n // 2 : n * 9 // 10]
    assert middle(counts) == pytest.approx(sum(inside) / len(inside))


def test_devices_of_visitors() -> None:
    rows = [
        {"purchaser": purchaser, "devices": devices, "visitors": 1, "share": share, "low": 0.0, "high": 1.0}
        for purchaser, devices, share in (
            (True, "> 1", 0.25),
            (True, "1", 0.75),
            (False, "1", 1.0),
            (True, "7", 0.01),
        )
    ]
    found = device_counts(of(devices_per_visitor=rows))
    assert found["several"] == {"purchasers": 25.0, "purchasers low": 0.0, "purchasers high": 100.0}
    assert found["one"]["non-purchasers"] == 100.0
    assert len(found) == 2


def test_transitions_are_rows_of_the_device_before() -> None:
    rows = [
        {
            "from_device": one,
            "to_device": other,
            "transitions": n,
            "share": share,
            "low": 0.0,
            "high": 1.0,
            "link": "weak",
        }
        for one, other, n, share in (
            ("tv", "pc", 7, 7 / 16),
            ("tv", "tv", 9, 9 / 16),
            ("fridge", "pc", 1, 1.0),
        )
    ]
    found = transitions(of(device_transitions=rows))
    assert list(found) == ["tv"]
    assert found["tv"]["to pc"] == 43.75
    assert found["tv"]["transitions"] == 16.0


def test_queries_per_session_are_no_shares() -> None:
    rows = [
        {
            "purchase": True,
            "device": device,
            "sessions": 2,
            "queries": 5,
            "per_session": 2.5,
            "low": 1.0,
            "high": 4.0,
            "share": share,
        }
        for device, share in (("pc", 0.5), ("all", 1.0))
    ]
    assert queries(of(queries=rows))["pc"] == {
        "purchase per session": 2.5,
        "purchase per session low": 1.0,
        "purchase per session high": 4.0,
        "purchase %": 50.0,
    }


def test_a_total_of_unique_queries_counts_once_and_as_published() -> None:
    rows = [
        {
            "purchase": purchase,
            "device": device,
            "unique": unique,
            "queries": 10,
            "share": share,
            "unique_share": unique / 10,
        }
        for purchase, device, unique, share in (
            (True, "pc", 4, 0.4),
            (True, "tv", 5, 0.5),
            (True, "fridge", 1, 0.1),
            (True, "all", 6, None),
            (False, "all", 3, None),
        )
    ]
    found = unique_queries(of(unique_queries=rows))
    assert found["all"]["purchase count"] == 6.0
    assert found["all"][f"purchase count{PUBLISHED}"] == 10.0
    assert found["all"]["purchase unique %"] == 60.0
    assert found["all"]["purchase %"] == 100.0
    assert found["pc"]["purchase %"] == 40.0
    assert "fridge" not in found
