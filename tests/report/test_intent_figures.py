"""Figures of purchase intent: where marks lie, what is thinned, and what is said to who does not see them."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from intent_rows import lengths, times, transitions

from diptych.report.intent_content import Discretion
from diptych.report.intent_figures import (
    by_class,
    class_bars,
    curve_of,
    hour_figure,
    label_places,
    rate_figure,
    standardised_figure,
    transition_figure,
    transition_order,
    week_day_figure,
)

EVERY = Discretion(least=1)


def boxes(figure: str, colour: str) -> list[tuple[float, float, float, float]]:
    """Left, top, width and height of every filled box of that colour, in the order they were drawn."""
    found = []
    for path, style in re.findall(r'<path d="(M [^"]*?z)\s*"[^>]*style="([^"]*)"', figure):
        if f"fill: var(--{colour}" in style:
            x, y = np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", path), dtype=float).T
            found.append((x.min(), y.min(), float(np.ptp(x)), float(np.ptp(y))))
    return found


def test_bars_of_week_days_are_as_high_as_their_shares() -> None:
    figure = week_day_figure(times("week_day", (10, 20, 30, 40, 50, 60, 70), (40,) * 7), EVERY)
    heights = [height for *_, height in boxes(figure, "blue")]
    assert np.allclose(np.array(heights) / heights[0], [1, 2, 3, 4, 5, 6, 7], atol=1e-3)
    other = boxes(figure, "orange")
    assert len(other) == 7
    # the classes stand side by side, purchases first, on one axis
    assert all(one[0] < two[0] for one, two in zip(boxes(figure, "blue"), other, strict=True))
    assert other[0][3] / heights[0] == pytest.approx((40 / 280) / (10 / 280), rel=1e-3)
    assert "Tuesday 7.1" in figure


def test_hours_that_few_buy_in_are_left_out() -> None:
    rows = times("hour", [3] + [10] * 23, [50] * 24)
    assert np.isnan(by_class(rows, "hour", 24, True, Discretion())[0]).all()
    shown = by_class(rows, "hour", 24, True, EVERY)[0]
    assert shown[0] == pytest.approx(100 * 3 / 233)
    assert shown[1] < shown[0] < shown[2]
    hidden = by_class(rows, "hour", 24, True, Discretion(hide_rates=True))
    assert np.isnan(hidden[1, 1:]).all()
    assert hidden[1, 0] == pytest.approx(1000 / 233)
    nearly_nobody = times("hour", [0] * 23 + [4], [50] * 24)
    assert np.isnan(by_class(nearly_nobody, "hour", 24, True, Discretion())).all()
    figure = hour_figure(rows, Discretion())
    assert "of their class: purchase 1 h 4.3, 2 h 4.3" in figure


def test_a_curve_is_the_share_that_is_at_least_so_long() -> None:
    rows, _ = lengths({("pc", True): {2: 5, 4: 3, 9: 2}, ("pc", False): {0: 4, 1: 6}})
    assert curve_of(rows, "pc", True, EVERY) == ([2, 4, 9], [1.0, 0.5, 0.2])
    assert curve_of(rows, "pc", True, Discretion(least=3)) == ([2, 4], [1.0, 0.5])
    assert curve_of(rows, "pc", False, EVERY) == ([1], [0.6])  # no place for 0 on a log axis
    assert curve_of(rows, "tv", True, EVERY) == ([], [])
    many = lengths({("pc", True): {length: 1 for length in range(1, 1001)}})[0]
    # a tail tells how many sessions there are
    assert min(curve_of(many, "pc", True, Discretion(hide_rates=True))[1]) == pytest.approx(0.01)


@given(
    counts=st.dictionaries(st.integers(1, 3000), st.integers(1, 50), min_size=1, max_size=300),
    least=st.integers(1, 5),
)
def test_thinning_moves_no_line_by_more_than_a_hair(counts: dict[int, int], least: int) -> None:
    rows, _ = lengths({("pc", True): counts})
    whole = [
        (row["length"], row["share"]) for row in rows if row["device"] == "pc" and row["at_least"] >= least
    ]
    x, y = curve_of(rows, "pc", True, Discretion(least=least))
    kept = list(zip(x, y, strict=True))
    if not whole:
        assert kept == []
        return
    assert set(kept) <= set(whole)
    assert (kept[0], kept[-1]) == (whole[0], whole[-1])
    width = np.log(max(2.0, whole[-1][0] / whole[0][0]))
    height = np.log(max(2.0, whole[0][1] / whole[-1][1]))
    for one, two in pairwise(kept):
        between = [point for point in whole if one[0] < point[0] < two[0]]
        for point in between:  # whatever was dropped lies near what was kept before it
            assert np.log(point[0] / one[0]) <= 0.006 * width + 1e-9
            assert np.log(one[1] / point[1]) <= 0.006 * height + 1e-9


def test_groups_lie_in_their_order_and_say_their_numbers() -> None:
    values = {"<pc>": (40.0, 20.0), "tv": (None, 10.0)}
    figure = class_bars("shares", "Devices", values, {"<pc>": ("40.0", "20.0"), "tv": ("1.0", "10.0")}, "%")
    (_, top, width, _), (_, below, half, _) = boxes(figure, "blue")[0], boxes(figure, "orange")[0]
    assert half / width == pytest.approx(0.5, abs=1e-3)
    assert top < below
    assert len(boxes(figure, "blue")) == 1
    assert "&lt;pc&gt; 40.0 and 20.0; tv – and 10.0" in figure
    assert "1.0" not in re.findall(r"<text[^>]*>([^<]*)</text>", figure)
    rates = rate_figure("rates", "Rate", {"pc": (0.1, 0.05, 0.2), "tv": (0.2, 0.1, 0.3)}, 0.12)
    assert "pc 10.0; tv 20.0" in rates
    deviations = standardised_figure("z", "Standardised", {"pc": 1.0, "tv": -0.5})
    (left, _, one, _), (other_left, _, half, _) = boxes(deviations, "blue")[0], boxes(deviations, "orange")[0]
    assert half / one == pytest.approx(0.5, abs=1e-3)
    assert other_left + half == pytest.approx(left, abs=1e-3)  # both begin at 0
    assert "tv −0.50" in deviations


@given(
    st.lists(
        st.tuples(*[st.floats(-1, 1, width=16)] * 6).map(lambda flat: np.array(flat).reshape(3, 2)),
        min_size=1,
        max_size=6,
    )
)
def test_a_number_stands_on_its_own_arrow(curves: list[np.ndarray]) -> None:
    fine = np.linspace(0, 1, 2001)[:, None]
    for curve, place in zip(curves, label_places(curves), strict=True):
        points = (1 - fine) ** 2 * curve[0] + 2 * fine * (1 - fine) * curve[1] + fine**2 * curve[2]
        assert np.linalg.norm(points - place, axis=1).min() < 0.01


def test_arrows_are_as_thick_as_a_switch_is_probable() -> None:
    rows = transitions(
        {
            ("pc", "pc"): (50, "self"),
            ("pc", "tv"): (50, "one-sided"),
            ("tv", "tv"): (70, "self"),
            ("tv", "pc"): (25, "strong"),
            ("tv", "radio"): (5, "weak"),
            ("radio", "radio"): (9, "none"),
        }
    )
    assert transition_order(rows) == ["tv", "pc", "radio"]
    figure = transition_figure(rows, EVERY)
    assert "pc stays 50.0 %, to tv 50.0 % (one-sided)" in figure
    assert "tv stays 70.0 %, to radio 5.0 % (weak), to pc 25.0 % (strong)" in figure
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", figure)
    assert {"50 %", "70 %", "100 %", "25", "50", "5.0"} <= set(texts)
    assert figure.count("stroke-dasharray") >= 1  # the weak one is dashed
    alone = transition_figure(transitions({("pc", "pc"): (9, "self")}), EVERY)
    assert "pc stays 100.0 %" in alone
    # what is left out, or was never seen, is not called 0 %
    few = transitions(
        {("pc", "pc"): (3, "self"), ("pc", "tv"): (7, "strong"), ("radio", "pc"): (9, "one-sided")}
    )
    said = transition_figure(few, Discretion())
    assert "pc stays –, to tv 70.0 %" in said
    assert "tv stays –" in said
    assert "radio stays 0.0 %" in said


def test_letters_of_any_script_are_drawn_without_a_warning() -> None:
    values = {"電話 📱": (1.0, 2.0), "هاتف": (2.0, 1.0), "a\x00b\ud800": (1.0, 1.0)}
    figure = class_bars("any", "any", values, dict.fromkeys(values, ("1", "2")), "%")
    assert "電話 📱" in figure
    figure.encode("utf-8")
