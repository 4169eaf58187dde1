"""What a page of people's behaviour may show, and how numbers are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import UsageError
from diptych.report.intent_content import Discretion, interval, listed, number, percent, sentence, signed


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


def test_a_quantile_needs_sessions_beyond_it() -> None:
    some = Discretion(least=5)
    assert not some.few_beyond(0.9, 50)
    assert some.few_beyond(0.9, 49)
    assert some.few_beyond(0.5, 1000, 9)
    assert not Discretion(least=1).few_beyond(0.99, 100)


def test_what_is_left_out_is_said() -> None:
    lines = Discretion(least=7, hide_rates=True).lines()
    assert "1 to 6 are shown as < 7" in lines[0]
    assert "Conversion rates" in lines[1]
    assert Discretion().floor == 0.0
    assert Discretion(hide_rates=True).floor == 0.01


def test_numbers_as_pages_print_them() -> None:
    assert (number(1234.5, 1), number(None), number(-0.0004, 3), number(-2)) == (
        "1,234.5",
        "–",
        "0.000",
        "−2",
    )
    assert (signed(0.5), signed(-1.25), signed(-0.001), signed(None)) == ("+0.50", "−1.25", "+0.00", "–")
    assert (percent(0.1234), percent(0.00001), percent(0.0), percent(1.0, 0), percent(None)) == (
        "12.3", "< 0.1", "0.0", "100", "–",
    )  # fmt: skip
    assert interval(0.1, 0.25) == "10.0 to 25.0"
    assert interval(-0.5, 2.0, 2, 1.0) == "−0.50 to 2.00"
    assert interval(None, 0.5) == ""
    assert [listed(["a", "b", "c"][:count]) for count in (1, 2, 3)] == ["a", "a and b", "a, b and c"]


@given(share=st.floats(0, 1), decimals=st.integers(0, 3))
def test_some_is_never_printed_as_none(share: float, decimals: int) -> None:
    shown = percent(share, decimals)
    if share > 0:
        assert shown.startswith("<") or float(shown) > 0
        if not shown.startswith("<"):
            assert abs(float(shown) - 100 * share) <= 0.5 * 10**-decimals + 1e-9
    else:
        assert float(shown) == 0


def test_notes_become_sentences() -> None:
    assert [sentence(text) for text in ("one event", "A bot?", "so it is.", "")] == [
        "One event.",
        "A bot?",
        "So it is.",
        ".",
    ]
    assert sentence("x" * 50, 10) == "X" + "x" * 9 + "… (50 characters)."
