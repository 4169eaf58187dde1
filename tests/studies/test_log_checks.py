"""Comparisons that claims about a log are made of: each holds, fails, cannot tell, or lacks a number."""

from __future__ import annotations

import pytest

from diptych.studies.claims import Check
from diptych.studies.evidence import Evidence, Figure
from diptych.studies.log_checks import above, between, highest, lowest, peak, shown, steady

DEVICES = Evidence(
    {
        "pc": {
            "rate": Figure(9.0),
            "rate low": Figure(8.0),
            "rate high": Figure(10.0),
            "share": Figure(30.0),
        },
        "tv": {"rate": Figure(2.0), "rate low": Figure(0.5), "rate high": Figure(7.5)},
        "tablet": {"rate": Figure(8.5), "rate low": Figure(7.0), "rate high": Figure(10.0)},
        "console": {"rate": Figure(2.0)},
        "shop": {"count": Figure(94_402_590.0)},
    }
)
RATES = [(name, "rate") for name in ("pc", "tv", "tablet", "console")]


def one(check: Check) -> tuple[bool | None, str]:
    (finding,) = check(DEVICES)
    return finding.holds, finding.detail


@pytest.mark.parametrize(
    ("check", "holds", "said"),
    [
        (
            above(("pc", "rate"), ("tv", "rate")),
            True,
            "9.00 [8.00, 10.00] against 2.00 [0.50, 7.50], intervals apart",
        ),
        (above(("pc", "rate"), ("tablet", "rate")), True, "intervals overlap"),
        (above(("tv", "rate"), ("pc", "rate")), False, "intervals apart"),
        (above(("pc", "rate"), ("console", "rate")), True, "9.00 [8.00, 10.00] against 2"),
        (above(("tv", "rate"), ("console", "rate")), None, "equal, as far as the digits go"),
        (above(("pc", "rate"), ("phone", "rate")), None, "rate of phone"),
        (
            highest(RATES, [("pc", "rate")], "pc first"),
            True,
            "pc 9.00 [8.00, 10.00], tablet 8.50 [7.00, 10.00]",
        ),
        (highest(RATES, [("tablet", "rate"), ("pc", "rate")], "two first"), True, "tablet 8.50"),
        (highest(RATES, [("pc", "rate"), ("tv", "rate")], "not these"), False, "tv 2.00"),
        (highest(RATES, [("phone", "rate")], "nobody"), None, "rate of phone"),
        (lowest(RATES, [("tv", "rate"), ("console", "rate")], "two last"), True, "tablet 8.50"),
        (lowest(RATES, [("tv", "rate")], "one of two"), None, "equal"),
        (peak(RATES, RATES[:2], "pc or tv"), True, "pc 9.00"),
        (peak(RATES, RATES[1:2], "tv"), False, "pc 9.00"),
        (peak(RATES, RATES[2:], "lowest: tablet or console", sign=-1), None, "equal"),
        (peak([*RATES, ("phone", "rate")], RATES[:1], "of all"), None, "rate of phone"),
        (steady(RATES[::2], 1.1, "level"), True, "from 8.50 to 9.00"),
        (steady(RATES, 1.1, "level"), False, "from 2.00 to 9.00"),
        (between(("pc", "share"), 30, 40, "about 35"), True, "30"),
        (between(("pc", "share"), 31, 40, "about 35"), False, "30"),
        (between(("tv", "share"), 31, 40, "about 35"), None, "share of tv"),
    ],
)
def test_a_comparison(check: Check, holds: bool | None, said: str) -> None:
    found, detail = one(check)
    assert found is holds
    assert said in detail


def test_margins_say_what_is_closest() -> None:
    (wide,) = above(("pc", "rate"), ("tv", "rate"))(DEVICES)
    (narrow,) = above(("pc", "rate"), ("tablet", "rate"))(DEVICES)
    (wrong,) = above(("tablet", "rate"), ("pc", "rate"))(DEVICES)
    assert wide.margin > narrow.margin > 0 > wrong.margin


def test_large_counts_are_whole() -> None:
    assert shown(DEVICES, ("shop", "count")) == "94,402,590"


def test_names_say_what_differs() -> None:
    (of_row,) = above(("pc", "rate"), ("tv", "rate"))(DEVICES)
    (of_column,) = above(("pc", "share"), ("pc", "rate"))(DEVICES)
    assert (of_row.what, of_column.what) == ("pc is above tv", "share is above rate")
