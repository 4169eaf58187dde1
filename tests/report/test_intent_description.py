"""The page of a description: what stands on it, what must not, findings, discretion, and odd logs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from intent_rows import LENGTHS, described, groups, lengths, times, transitions

from diptych.commerce.purchase_intent.statistics import DescribeOptions, Description
from diptych.core.errors import MismatchError, UsageError
from diptych.data.logs.log import Log
from diptych.report.intent_content import (
    Discretion,
    Page,
    percent,
    render_page,
)
from diptych.report.intent_description import (
    described_headlines,
    described_sections,
    description_page,
    write_description_page,
)
from diptych.report.intent_description_tables import (
    group_findings,
    hour_findings,
    length_findings,
    week_day_findings,
)

HOSTILE = "<script>alert(1)</script>"


def rendered(tables: dict[str, Any], discretion: Discretion | None = None, **more: Any) -> str:
    discretion = discretion or Discretion()
    headlines, sections = (
        described_headlines(tables, discretion),
        described_sections(tables, discretion, **more),
    )
    return render_page(Page("a log", "of a shop", headlines, sections))


def row_of(text: str, head: str) -> list[str]:
    """What stands in the cells of a row."""
    rows = {
        unescape(one): cells
        for one, cells in re.findall(r'<th scope="row"[^>]*>([^<]*)(.*?)</tr>', text, re.DOTALL)
    }
    return [unescape(cell) for cell in re.findall(r"<td[^>]*>([^<]*)", rows[head])]


@pytest.fixture(scope="module")
def whole() -> str:
    return rendered(described())


def test_every_number_of_the_rows_is_there(whole: str, parse: Callable[[str], Any]) -> None:
    text = parse(whole).text
    tables = described()
    for row in tables["overview"]:
        assert f"{row['total']:,}" in text if row["total"] >= 5 else "< 5" in text
    for row in tables["session-length-quantiles"]:
        for name in ("sessions", "p50"):
            assert f"{row[name]:,}" in text
        assert f"{row['mean']:.1f}" in text
    for name in ("week-days", "hours", "devices-per-visitor"):
        for row in tables[name]:
            if row.get("sessions", 5) >= 5:
                assert f"{100 * row['share']:.1f}" in text
                assert f"{100 * row['low']:.1f} to {100 * row['high']:.1f}" in text
    for name in ("channels", "devices"):
        for row in tables[name]:
            assert f"{row['sessions']:,}" in text
            assert f"{100 * row['rate']:.2f}" in text
            assert f"{100 * row['low']:.2f} to {100 * row['high']:.2f}" in text
            assert f"{row['standardised']:+.2f}".replace("-", "−") in text
    for row in tables["device-transitions"]:
        assert f"{100 * row['share']:.1f}" in text
    for row in tables["queries"]:
        assert f"{row['queries']:,}" in text
        assert f"{row['low']:.2f} to {row['high']:.2f}" in text
    for row in tables["unique-queries"]:
        assert f"{row['unique']:,}" in text


def test_it_stands_alone_and_can_be_read_aloud(whole: str, parse: Callable[[str], Any]) -> None:
    page = parse(whole)
    assert "http" not in whole.replace("http://www.w3.org", "").replace("http-equiv", "")
    assert not page.all("script")
    figures = page.all("svg", class_="figure")
    assert len(figures) == 3 + 2 + 2 + 2 + 1 + 1
    assert all(one["aria-label"] and one["role"] == "img" for one in figures)
    ids = re.findall(r'\bid="([^"]+)"', whole)
    assert len(ids) == len(set(ids))
    assert {one["href"][1:] for one in page.all("a")} <= set(ids)
    heads = page.all("th")
    assert heads
    assert {one["scope"] for one in heads} == {"col", "row", "colgroup"}
    assert len(page.all("caption")) == len(page.all("table")) == len(page.all("div", class_="scroll"))
    assert all(one["aria-label"] for one in page.all("div", class_="scroll"))
    # heads and cells add up, row by row
    for table in re.findall(r"<table.*?</table>", whole, flags=re.DOTALL):
        widths = {
            len(re.findall(r"<t[hd][ >]", row)) for row in re.findall(r"<tr>.*?</tr>", table, flags=re.DOTALL)
        }
        assert len(widths) == 1


def test_names_of_a_log_stay_words(parse: Callable[[str], Any]) -> None:
    counts = {
        (HOSTILE if device == "pc" else device, purchase): of_length
        for (device, purchase), of_length in LENGTHS.items()
    }
    tables = described(counts)
    for name in ("session-length", "week-days", "hours", "queries", "unique-queries"):
        del tables[name]
    tables["channels"] = groups("channel", {'"><img src=x>': (500, 50), "]]>&amp;": (500, 5)})
    tables["device-transitions"] = transitions(
        {(HOSTILE, HOSTILE): (9, "self"), (HOSTILE, "tv"): (9, "weak")}
    )
    text = rendered(tables)
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)" in text
    page = parse(text)
    assert HOSTILE in page.text
    assert '"><img src=x>' in page.text


def test_without_rates_nothing_is_counted_by_class(parse: Callable[[str], Any]) -> None:
    tables = described()
    for name in ("session-length", "hours", "queries"):  # their figures are slow to draw
        del tables[name]
    text = rendered(tables, Discretion(hide_rates=True))
    page = parse(text)
    said = page.text + " ".join(one["aria-label"] for one in page.all("svg"))
    for row in [*tables["channels"], *tables["devices"]]:
        assert f"{100 * row['rate']:.2f}" not in said
        assert f"{row['standardised']:+.2f}".replace("-", "−") in said
        assert f"{100 * row['purchase_share']:.1f}" in said
    assert "Rate, %" not in said
    cells = re.findall(r"<td[^>]*>([^<]*)", text)
    assert not {"200", "150", "1,100", "2,100"} & set(
        cells
    )  # purchase sessions, purchasers, sessions of devices
    assert not re.findall(r'<span class="interval">[^<]* to [^<]*', text)
    assert "6.25" not in said


def test_few_people_are_not_shown(parse: Callable[[str], Any]) -> None:
    tables = {
        "overview": [{"what": "sessions", "total": 900}, {"what": "purchase sessions", "total": 3}],
        "devices": groups("device", {"pc": (800, 97), "tv": (4, 1), "tablet": (96, 3)}),
        "devices-per-visitor": [
            {"purchaser": True, "devices": "> 1", "visitors": 3, "share": 0.03, "low": 0.01, "high": 0.09}
        ],
    }
    text = rendered(tables)
    assert row_of(text, "tv") == ["< 5", "< 5", "–", "–", "–", "–"]
    tablet = row_of(text, "tablet")
    assert tablet == ["96", "< 5", "–", "–", "–", "–"]  # the share of the 93 others would tell the 3
    assert "<dt>have a purchase</dt>" not in text
    assert row_of(text, "> 1 device") == ["–", "–"]
    every = rendered({"overview": tables["overview"]}, Discretion(least=1))
    assert "< 5" not in unescape(every)
    assert "0.33 %" in parse(every).text


def description(tables: dict[str, Any], **options: Any) -> Description:
    """A description as ``describe`` makes it."""
    about = {
        "log": "a <shop>",
        "zone": "Europe/Amsterdam",
        "log_fingerprint": "f00",
        "sessions_fingerprint": "ba5",
        "session_options": {"gap_minutes": 20.0, "by": "visitor", "pages": 10},
        "options": asdict(DescribeOptions(**options)),
        "engine": "duckdb",
        "counts": {"sessions": 3200, "several_visitors": 3},
        "notes": [
            "3 sessions have several visitors; each counts for the first of them",
            "no visitor is known anywhere",
        ],
    }
    return Description(about, tables)


def test_the_protocol_says_how_it_was_made(parse: Callable[[str], Any]) -> None:
    of = description({"overview": described()["overview"]}, ddof=1, journey="journey")
    page = description_page(of)
    assert page.title == "Purchase intent in a <shop>"
    assert page.commands == [
        "diptych intent describe LOG --out DESCRIPTION --statistic overview --by visitor --gap 20 --ddof 1 "
        "--journey journey"
    ]
    said = parse(render_page(page)).text
    assert "ended by more than 20 minutes without an event; fingerprint ba5" in said
    assert "of Europe/Amsterdam, by a session's first event" in said
    assert "No visitor is known anywhere." in said
    assert "3 sessions have several visitors" not in said  # that few may be known
    assert "No visitor" in render_page(description_page(of, Discretion(least=1)))
    assert "3 sessions have several visitors" in render_page(description_page(of, Discretion(least=1)))


def log_of(folder: Path, days: dict[str, int]) -> Log:
    """A log of which only the report of its import is there."""
    about = {
        "name": "shop",
        "importer": "csv",
        "events": 900,
        "rows_read": 1000,
        "rules": [
            {"rule": "agent", "description": "bots <by> agent", "dropped": 100},
            {"rule": "duplicate", "description": "equal to an earlier event", "dropped": 0},
        ],
        "notes": ["one client has 300 events: a bot?"],
        "first": "2019-10-01T00:00:00Z",
        "last": "2019-10-09T00:00:00Z",
        "events_by_day": days,
        "fingerprint": "f00",
    }
    folder.mkdir()
    Log(about).save(folder / Log.marker())
    return Log.open(folder)


def test_what_the_import_dropped(tmp_path: Path, parse: Callable[[str], Any]) -> None:
    days = {f"2019-10-{day:02d}": 100 * (day != 4) for day in range(1, 10)}
    log = log_of(tmp_path / "log", days)
    path = write_description_page(tmp_path / "page.html", description({}), log=log)
    page = parse(path.read_text("utf-8"))
    assert "900 of 1,000 rows are events of the log; 100 were dropped (10.00 %)." in page.text.replace(
        "\u00a0", " "
    )
    assert "bots <by> agent" in page.text
    assert "One client has 300 events: a bot?" in page.text
    assert "Tuesday and Wednesday are in the log 2 times, other week days 1." in page.text
    assert "from 2019-10-01 to 2019-10-09" in page.text
    (figure,) = page.all("svg", class_="figure")
    assert "least on 2019-10-04 (0), most on 2019-10-01 (100)" in figure["aria-label"]
    other = Log({**log.about, "fingerprint": "another"})
    with pytest.raises(MismatchError, match="the log f00"):
        description_page(description({}), log=other)


SOME = Discretion()
ROWS = described()


def quantiles(buy: dict[int, int], other: dict[int, int]) -> list[dict[str, Any]]:
    counts = {("pc", True): buy, ("pc", False): other}
    return lengths({key: value for key, value in counts.items() if value})[1]


def test_which_sessions_are_longer() -> None:
    assert length_findings(ROWS["session-length-quantiles"], SOME) == [
        "Purchase sessions are longer: P50 12 actions against 2, P90 30 against 8.",
        "Without a purchase, sessions are longest on pc (mean 7.6) and shortest on smartphone (3.2).",
    ]
    assert length_findings(quantiles({2: 60}, {9: 60}), SOME)[0].startswith(
        "Purchase sessions are shorter: P50 2"
    )
    assert length_findings(quantiles({2: 60}, {2: 60}), SOME)[0].startswith(
        "Half of the sessions of both classes"
    )


def test_days_and_hours() -> None:
    days, week = week_day_findings(ROWS["week-days"], SOME)
    assert days == (
        "Purchase sessions are most frequent on Thursday (18.0 %), least on Sunday (12.0 %); others are most "
        "frequent on Wednesday (16.0 %), least on Saturday (12.7 %)."
    )
    assert week == (
        "Monday to Friday hold 76.0 % of purchase sessions and 73.0 % of others; five days of seven would be 71.4 %."
    )
    # of days too rare to be shown nothing is said
    rare = times("week_day", (2, 32, 30, 36, 26, 24, 24), (450, 420, 480, 440, 400, 380, 430))
    assert week_day_findings(rare, SOME) == []
    assert hour_findings(ROWS["hours"], SOME) == [
        "Most purchase sessions start from 18 to 19 h (8.0 %). From 18 to 23 h start 40.0 % of purchase sessions and "
        "26.7 % of others."
    ]
    assert hour_findings([row for row in ROWS["hours"] if not row["purchase"]], SOME) == []


def test_groups_that_differ_beyond_doubt() -> None:
    assert group_findings(ROWS["devices"], "device", SOME) == [
        "“pc” clearly converts more often (9.09 %) than “smartphone” (4.76 %).",
        "“pc” is 1.5 times as frequent among purchase sessions (50.0 %) as among others (33.3 %).",
    ]
    hidden = group_findings(ROWS["devices"], "device", replace(SOME, hide_rates=True))
    assert hidden[0] == (
        "“pc” clearly converts more often (standardised +1.00) than “smartphone” (standardised −1.00)."
    )
    alike = groups("channel", {"paid": (100, 10), "direct": (100, 11)})
    assert group_findings(alike, "channel", SOME) == [
        "No channel is to be told from another by its conversion rate: all intervals overlap."
    ]
    # a rare device with the least rate of all hides nothing: the others are told apart
    rare = groups("device", {"pc": (5000, 300), "smartphone": (8000, 300), "tv": (40, 0)})
    assert group_findings(rare, "device", SOME)[0].endswith("(6.00 %) than “smartphone” (3.75 %).")


def test_counts_of_few_are_not_shown() -> None:
    some = Discretion()
    assert [some.count(count) for count in (0, 1, 4, 5, 1234, None)] == ["0", "< 5", "< 5", "5", "1,234", "–"]
    assert some.small(100, 3)
    assert not some.small(0, 5, None)
    every = Discretion(least=1)
    assert every.count(1) == "1"
    assert not every.small(1, 2, 3)
    assert every.lines() == []
    with pytest.raises(UsageError, match="below 0"):
        Discretion(least=0)


@given(share=st.floats(0, 1), decimals=st.integers(0, 3))
def test_some_is_never_printed_as_none(share: float, decimals: int) -> None:
    shown = percent(share, decimals)
    if share > 0:
        assert shown.startswith("<") or float(shown) > 0
        if not shown.startswith("<"):
            assert abs(float(shown) - 100 * share) <= 0.5 * 10**-decimals + 1e-9
    else:
        assert float(shown) == 0


def test_a_quantile_needs_sessions_beyond_it() -> None:
    some = Discretion(least=5)
    assert not some.few_beyond(0.9, 50)
    assert some.few_beyond(0.9, 49)
    assert some.few_beyond(0.5, 1000, 9)
    assert not Discretion(least=1).few_beyond(0.99, 100)
