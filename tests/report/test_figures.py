"""Charts as figures: letters, values, colours of the page; smoothing and thinning."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.chart import Chart, Series
from diptych.report.figures import INK, summary, svg, thin
from diptych.report.run import running_mean
from diptych.report.style import DARK, LIGHT

LINE = Chart("Loss", [Series("mean", [3.0, None, 1.0], [1, 2, 3], low=[2.0, None, 0.5], high=[4.0, None, 2.0]),
                      Series("chance", [2.5], mark="level")], "step", "loss")  # fmt: skip
IMAGES = Series("image → text", [15.1, 37.4], mark="bar", texts=["15.1", "37.4"])
TEXTS = Series("text → image", [12.0, 33.0], mark="bar")
BARS = Chart("Recall", [IMAGES, TEXTS], "", "% of queries", ["R@1", "R@5"])
ACROSS = Chart(
    "Rows", [Series("here", [1.0, 200.0], mark="point")], "per second", "", ["a", "b" * 60], "x", True
)


def words(drawn: str) -> list[str]:
    """The letters of a figure, which must be letters and not outlines."""
    tree = ElementTree.fromstring(drawn)
    return ["".join(node.itertext()) for node in tree.iter("{http://www.w3.org/2000/svg}text")]


def test_axes_legends_and_values_are_written() -> None:
    assert {"Loss", "step", "loss", "mean", "chance"} <= set(words(svg(LINE)))
    assert {"Recall", "% of queries", "R@1", "R@5", "image → text", "15.1", "37.4"} <= set(words(svg(BARS)))
    long = next(word for word in words(svg(ACROSS)) if word.startswith("bb"))
    assert "…" in long


def test_bars_are_as_high_as_their_values() -> None:
    paths = re.findall(r'<g id="[^"]*patch_\d+">\s*<path d="([^"]*)"', svg(BARS))
    ends = [
        [float(point.split()[1]) for point in re.findall(r"[ML] ([-\d.]+ [-\d.]+)", path)] for path in paths
    ]
    # bars come after the two backgrounds: both of image → text, then both of text → image
    heights = [max(y) - min(y) for y in ends[2:6]]
    assert [height / heights[0] for height in heights] == pytest.approx(
        [1, 37.4 / 15.1, 12.0 / 15.1, 33.0 / 15.1], rel=1e-3
    )


def test_a_figure_takes_its_colours_from_the_page_and_fetches_nothing() -> None:
    for chart in [LINE, BARS, ACROSS]:
        drawn = svg(chart)
        assert INK not in drawn
        assert "currentColor" in drawn
        assert f"var(--blue, {LIGHT['blue']})" in drawn
        assert not re.search(r'(?:src|href)="(?!#)', drawn)
        assert "<metadata" not in drawn
        root = ElementTree.fromstring(drawn)
        assert root.get("aria-label") == summary(chart)
        assert root.get("width") is None
        assert root.get("viewBox")
        with ThreadPoolExecutor(3) as pool:  # threads may draw at once
            assert list(pool.map(svg, [chart] * 3)) == [drawn] * 3


VALUES = st.lists(st.floats(-100, 100), min_size=1, max_size=40).map(np.array)


@given(VALUES, st.integers(0, 8).map(lambda half: 2 * half + 1))
def test_running_mean_against_slices(values, window):
    half = window // 2
    expected = [values[max(0, i - half) : i + half + 1].mean() for i in range(len(values))]
    assert running_mean(values, window) == pytest.approx(np.array(expected), abs=1e-9)


def test_a_spike_one_step_wide_is_kept():
    y = np.zeros(10_000)
    y[1234], y[8765] = 9.0, -9.0
    x, kept = thin(np.arange(10_000), y, 100)
    assert len(x) <= 102
    assert (x[0], x[-1]) == (0, 9_999)
    assert kept[x == 1234] == 9.0
    assert kept[x == 8765] == -9.0


@given(VALUES, st.integers(4, 20))
def test_thinned_points_are_points_of_the_curve_in_order(y, limit):
    x, kept = thin(np.arange(len(y)), y, limit)
    assert (kept == y[x]).all()
    assert (np.diff(x) > 0).all()
    assert len(x) <= limit + 2
    assert (kept.min(), kept.max()) == (y.min(), y.max())


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.2."""
    parts = [part / 255 for part in bytes.fromhex(colour[1:])]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_words_and_shapes_can_be_distinguished_from_the_paper() -> None:
    for colours in (LIGHT, DARK):
        for paper in (colours["paper"], colours["soft"]):
            for name in ("ink", "muted", "right", "wrong"):
                assert contrast(colours[name], paper) >= 4.5, name
            for name in ("blue", "orange", "unknown"):
                assert contrast(colours[name], paper) >= 2.9, name


def test_a_series_has_the_same_decimals_everywhere() -> None:
    for y, high, log, expected in (
        ([16.0, 9.118, 12.7], [], "", ["16.00", "9.12", "12.70"]),
        ([3.0, 12.0, 1.0], [3.25, 12.5, 1.0], "", ["3.00", "12.00", "1.00"]),
        ([1e-6, 12.5, 2e4], [], "x", ["1e-06", "12.5", "20,000"]),
        ([0.012, 0, None], [], "", ["0.012", "0.000", "–"]),
        ([1.25e-8, 0.0, 2e-9], [], "", ["1.25e-08", "0", "2e-09"]),
    ):
        table = Chart("", [Series("a", y, low=high, high=high)], categories="pqr", log=log).table()
        assert [row[1].text for row in table.rows] == expected
