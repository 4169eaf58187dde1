"""Figures of a run: axes, colours, labels, smoothing."""

from __future__ import annotations

import re
import threading
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import DataError
from diptych.evaluation import Score
from diptych.report.content import Curves
from diptych.report.drawing import INK
from diptych.report.html import (
    learning_rate_figure,
    loss_figure,
    recall_figure,
    running_mean,
    thin,
    validation_figure,
)
from diptych.report.page import DARK, LIGHT

CURVES = Curves(
    steps=range(1, 301),
    loss=[300 / step for step in range(1, 301)],
    learning_rate=[2e-4] * 300,
    epochs=[1, 2, 3],
    validation_rsum=[50.0, 120.0, 110.0],
    chance_rsum=3.3,
)
SCORES = {
    "i2t": {"R@1": Score(0.151, 0.001, 0.14, 0.163), "R@5": Score(0.374, 0.005)},
    "t2i": {"R@1": Score(0.12, 0.001, 0.111, 0.129), "R@5": Score(0.33, 0.005)},
}


def words(svg: str) -> list[str]:
    """The letters of a figure, which must be letters and not outlines."""
    return [
        "".join(node.itertext())
        for node in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    ]


def label(svg: str) -> str:
    return ElementTree.fromstring(svg).get("aria-label", "")


def drawn_height(svg: str, group: str) -> list[float]:
    """The y positions of a path's points."""
    found = re.search(rf'<g id="{group}">\s*<path d="([^"]*)"', svg)
    assert found
    return [float(point.split()[1]) for point in re.findall(r"[ML] ([\d.]+ [\d.]+)", found.group(1))]


def test_axes_are_labelled_with_units():
    assert {"Training loss", "step", "loss", "as logged", "mean of 11"} <= set(words(loss_figure(CURVES)))
    assert {"epoch", "rsum (sum of R@k in %)"} <= set(words(validation_figure(CURVES)))
    assert {"step", "learning rate (× 10⁻⁴)"} <= set(words(learning_rate_figure(CURVES)))
    assert {"recall (% of queries)", "R@1", "R@5", "image → text", "text → image", "chance"} <= set(
        words(recall_figure(SCORES))
    )


def test_summaries_say_what_the_pictures_show():
    assert label(validation_figure(CURVES)) == (
        "Validation rsum per epoch: best 120.0 after epoch 2, last 110.0, chance 3.3."
    )
    assert "R@1 image → text 15.1" in label(recall_figure(SCORES))
    assert "R@5 text → image 33.0" in label(recall_figure(SCORES))


def test_bars_show_values_and_differ_in_height():
    svg = recall_figure(SCORES)
    assert {"15.1", "12.0", "37.4", "33.0"} <= set(words(svg))
    # bars come after the two backgrounds: both of image → text, then both of text → image
    heights = [max(y) - min(y) for y in (drawn_height(svg, f"recall-patch_{n}") for n in (3, 4, 5, 6))]
    assert [height / heights[0] for height in heights] == pytest.approx(
        [1, 37.4 / 15.1, 12.0 / 15.1, 33.0 / 15.1], rel=1e-3
    )


@pytest.mark.parametrize("draw", [loss_figure, validation_figure, learning_rate_figure])
def test_figures_take_their_colours_from_the_page_and_fetch_nothing(draw):
    svg = draw(CURVES)
    assert svg.startswith("<svg")
    assert INK not in svg
    assert "currentColor" in svg
    assert f"var(--blue, {LIGHT['blue']})" in svg
    assert not re.search(r'(?:src|href)="(?!#)', svg)
    assert "<metadata" not in svg
    root = ElementTree.fromstring(svg)
    assert root.get("width") is None
    assert root.get("viewBox")


def test_threads_may_draw_at_once():
    alone = loss_figure(CURVES)
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.append(loss_figure(CURVES))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [alone] * 3


def test_nothing_to_draw_is_an_error():
    empty = Curves()
    for draw in (loss_figure, validation_figure, learning_rate_figure):
        with pytest.raises(DataError, match="logged"):
            draw(empty)


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


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("paper", ["paper", "soft"])
def test_words_and_shapes_can_be_told_from_the_paper(colours, paper):
    for name in ("ink", "muted", "right", "wrong"):
        assert contrast(colours[name], colours[paper]) >= 4.5, name
    for name in ("blue", "orange", "unknown"):
        assert contrast(colours[name], colours[paper]) >= 2.9, name
