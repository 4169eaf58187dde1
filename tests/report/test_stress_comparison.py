"""The page of models side by side under stress."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stressed import LAST_WORD, REVERSED, Reader, painted

from diptych.analysis.perturbations import choose_perturbations
from diptych.core.errors import UnknownNameError
from diptych.evaluation.stress import StressComparison, beside, say_beside, stress
from diptych.report.stress_comparison import beside_figure, render_stress_comparison, write_stress_comparison


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> StressComparison:
    folder = tmp_path_factory.mktemp("beside")
    some: dict[str, Any] = {"samples": 20, "flips": 99, "split": "test", "seeds": (0,)}
    chosen = [LAST_WORD, REVERSED, *choose_perturbations(["brightness"])]
    folders = {}
    for name, parts in (("a <b>letters</b>", "letters"), ("words & all", "words")):
        folders[name] = folder / parts
        stress(Reader(parts), painted(), folders[name], perturbations=chosen, **some)
        chosen = chosen[:2]
    return beside(folders, samples=50, flips=199)


def test_the_page_says_all_and_fetches_nothing(found: StressComparison, parse: Callable[[str], Any]) -> None:
    text = render_stress_comparison(found)
    page = parse(text)
    assert "<b>letters" not in text
    for name in found.models:
        assert name in page.text
    for row in found.rows:
        assert row.name in page.text
    for line in (*say_beside(found), *found.notes):
        assert f"{line}." in page.text
    for value in (*found.protocol.values(), *found.encoders.values(), found.method):
        assert str(value) in page.text
    assert "brightness (words & all: not run)" in page.text
    assert "not seen" in page.text
    figures = page.all("svg", class_="figure")
    assert len(figures) == len(found.measures) == 2
    assert all(figure["aria-label"].startswith("Relative change of ") for figure in figures)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert "http" not in text.replace("http://www.w3.org", "").replace("http-equiv", "")


def test_the_figure_has_models_and_differences(found: StressComparison) -> None:
    base, other = found.models
    short = dataclasses.replace(
        found,
        models=("gru", "bag"),
        baseline="gru",
        rows=[
            dataclasses.replace(
                row,
                unseen={"gru": row.unseen[base], "bag": row.unseen[other]},
                differences={"bag": row.differences[other]},
            )
            for row in found.rows
        ],
    )
    label = beside_figure(short, "rsum")
    row = short.of("rsum")[0]
    share = row.own("gru").relative
    assert share is not None
    assert f"last-word gru {'0' if share == 0 else f'{100 * share:+.1f}'}, bag " in label
    assert "bag − gru" in label
    with pytest.raises(UnknownNameError, match="unknown measure 'R@1'"):
        beside_figure(short, "R@1")


def test_a_verdict_has_its_colour_and_its_words(found: StressComparison, parse: Callable[[str], Any]) -> None:
    other = found.models[1]
    (first, *rest) = found.rows
    told = dataclasses.replace(
        first.differences[other], verdict="less robust", difference=-12.5, corrected=0.0004
    )
    changed = dataclasses.replace(found, rows=[dataclasses.replace(first, differences={other: told}), *rest])
    page = parse(render_stress_comparison(changed))
    assert any("worse" in str(cell.get("class")) for cell in page.all("td"))
    for words in ("less robust", "−12.5", "<0.001", "by the most"):
        assert words in page.text


def test_without_intervals_and_without_a_protocol(
    found: StressComparison, parse: Callable[[str], Any]
) -> None:
    rows = [
        dataclasses.replace(
            row,
            differences={
                name: dataclasses.replace(
                    one, low=None, high=None, relative=None, relative_low=None, relative_high=None
                )
                for name, one in row.differences.items()
            },
        )
        for row in found.rows
    ]
    page = parse(render_stress_comparison(dataclasses.replace(found, rows=rows, protocol={}, left_out={})))
    assert "one test set" in page.text
    assert "Left out" not in page.text
    assert "nan" not in page.text


def test_the_same_page_twice(found: StressComparison, tmp_path: Path) -> None:
    first = write_stress_comparison(found, tmp_path / "a.html").read_bytes()
    assert write_stress_comparison(found, tmp_path / "b.html").read_bytes() == first
