"""The page of granularity: what stands on it, what is escaped, and the bins of its figure."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from counted_language import counted
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.granularity import Effect, Granularity, compare_granularity, granularity
from diptych.core.errors import UsageError
from diptych.report.granularity import (
    bins_of,
    cell,
    difference_cells,
    distribution_figure,
    interval_text,
    render_granularity,
    shares,
    write_granularity_page,
)

COARSE = ["a dog", "a dog on grass", "three dogs", "a <b>man</b> in a hat", "running"]
FINE = ["a small dog", "a red dog on grass", "three small dogs", "a happy man in a red hat", "two old boys"]


def measured(captions: list[str], name: str, compat: str = "none") -> Granularity:
    return granularity(captions, language=counted(), name=name, compat=compat)


@pytest.fixture(scope="module")
def both() -> tuple[Granularity, Granularity]:
    return measured(COARSE, "coarse & co"), measured(FINE, "fine")


def test_a_page_of_two(both: tuple[Granularity, Granularity], tmp_path: Path) -> None:
    page = write_granularity_page(tmp_path / "p.html", both, compare_granularity(*both)).read_text("utf-8")
    assert "<h1>Granularity of coarse &amp; co and fine</h1>" in page
    for one in both:
        for feature in one.features:
            assert f">{cell(feature.mean, feature.decimals)}</span>" in page
            assert feature.definition in page
        assert one.line().replace("&", "&amp;") in page
    assert "a &lt;b&gt;man&lt;/b&gt; in a hat" in page
    assert "<b>man" not in page
    assert "1 caption has no value (no noun that the WordNet has 1)" in page
    assert 'id="comparison"' in page
    assert "Welch&#39;s t-test over images" in page
    assert not re.search(r"https?://(?!www\.w3\.org)", page)


def test_a_page_of_one_has_no_comparison(both: tuple[Granularity, Granularity]) -> None:
    page = render_granularity(both[:1])
    assert "<h1>Granularity of coarse &amp; co</h1>" in page
    assert 'id="comparison"' not in page
    for number in (0, 3):
        with pytest.raises(UsageError, match=f"a page of {number} collections"):
            render_granularity([both[0]] * number)


def test_what_is_counted_as_published_is_said() -> None:
    page = render_granularity([measured(COARSE, "coarse", "published")])
    assert page.count("; as published") == 6
    assert "words tagged DT, which are all determiners" in page


def test_a_figure_has_a_panel_per_feature(both: tuple[Granularity, Granularity]) -> None:
    figure = distribution_figure(both)
    for feature in both[0].features:
        assert f"{feature.name} ({feature.unit}" in figure
    assert "Distributions over captions" in figure
    means = [f"{one.feature('words').mean:.2f}" for one in both]
    assert f"words coarse &amp; co {means[0]}, fine {means[1]}" in figure


def test_bins_of_counts_hold_one_number_each() -> None:
    bins = bins_of([np.array([0.0, 1, 2]), np.array([2.0, 4, np.nan])])
    assert bins.edges.tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5]
    assert (bins.whole, bins.cut) == (True, False)
    assert shares(np.array([0.0, 1, 1, 4, np.nan]), bins).tolist() == [0.25, 0.5, 0, 0, 0.25]


def test_the_last_bin_has_what_lies_above() -> None:
    values = np.array([1.0] * 500 + [2.0] * 499 + [900.0])
    bins = bins_of([values])
    assert (bins.edges.tolist(), bins.cut) == ([0.5, 1.5, 2.5], True)
    assert shares(values, bins).tolist() == [0.5, 0.5]


@given(values=st.lists(st.floats(0, 1e6) | st.just(float("nan")), min_size=0, max_size=30))
def test_every_caption_with_a_value_is_in_a_bin(values: list[float]) -> None:
    given_values = np.array(values, dtype=np.float64)
    bins = bins_of([given_values])
    assert np.all(np.diff(bins.edges) > 0)
    known = int((~np.isnan(given_values)).sum())
    assert shares(given_values, bins).sum() == pytest.approx(1.0 if known else 0.0)


def test_numbers_as_tables_print_them() -> None:
    assert (cell(None, 2), cell(1.005, 1), cell(0.5, 2, True)) == ("–", "1.0", "+0.50")
    assert cell(-0.001, 2, True) == "+0.00"
    assert interval_text(None, 1.0, 1) == ""
    assert interval_text(-1, 2, 1, True) == "[-1.0, +2.0]"
    assert difference_cells(None, 2) == difference_cells(Effect(None), 2) == ("", "")
    assert difference_cells(Effect(0.25, 0.125, 0.5), 1, 100.0) == ("+25.0", "[+12.5, +50.0]")
    assert difference_cells(Effect(0.25), 2) == ("+0.25", "")


def test_features_without_any_value(both: tuple[Granularity, Granularity]) -> None:
    alone = granularity(["running"], language=counted(), name="alone")
    page = render_granularity([alone, replace(alone, name="again")])
    assert "concept-depth alone none, again none" in page
