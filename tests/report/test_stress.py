"""Pages of a stress run, and of models side by side under stress."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stressed import LAST_WORD, REVERSED, Reader, painted

from diptych.analysis.perturbations import choose_perturbations
from diptych.cli.report import report
from diptych.core.context import stop_when
from diptych.core.errors import DiptychError, Interrupted, StorageError
from diptych.evaluation.stress import (
    StressComparison,
    StressResult,
    compare_stress,
    stress,
    summarise,
    summarise_comparison,
    summarise_row,
)
from diptych.report.stress import (
    differing,
    drop_figure,
    render_stress,
    write_stress_page,
)
from diptych.report.stress_comparison import render_stress_comparison


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> StressResult:
    chosen = [LAST_WORD, REVERSED, *choose_perturbations(["character-swap", "synonym-noun", "brightness"])]
    folder = tmp_path_factory.mktemp("stress") / "out"
    some: dict[str, Any] = {"perturbations": chosen, "samples": 50, "flips": 199, "split": "test"}
    return stress(Reader("letters"), painted(), folder, **some)


def test_the_page_says_all_and_fetches_nothing(found: StressResult, parse: Callable[[str], Any]) -> None:
    text = render_stress(found, painted(), "a <model>")
    page = parse(text)
    assert "a <model>" in page.text
    for row in found.rows:
        assert row.name in page.text
        assert f"{row.drop('rsum').perturbed:.1f}" in page.text
        for reason in row.reasons:
            assert reason in page.text
    for line in summarise(found):
        assert f"{line}." in page.text
    for value in found.protocol.values():
        assert str(value) in page.text
    assert found.method in page.text
    assert found.left_out["synonym-noun"] in page.text
    figures = page.all("svg", class_="figure")
    assert len(figures) == 4
    assert all(figure["aria-label"] for figure in figures)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert all(image["src"].startswith("data:image/jpeg;base64,") for image in page.all("img"))
    assert "http" not in text.replace("http://www.w3.org", "").replace("http-equiv", "")


def test_the_worst_hit_stand_there_with_their_pictures(
    found: StressResult, parse: Callable[[str], Any]
) -> None:
    page = parse(render_stress(found, painted()))
    one = found.row("reversed").examples[0]
    assert f"{one.before:,.0f} → {one.after:,.0f}" in page.text
    hits = sum(len(row.examples[:2]) * (3 if row.direction == "t2i" else 2) for row in found.rows)
    assert len(page.all("img")) == hits > 0
    struck = [words for tag, _, words in page.elements if tag in ("del", "ins")]
    assert struck


def test_without_the_data_ids_stand_for_pictures(found: StressResult, parse: Callable[[str], Any]) -> None:
    page = parse(render_stress(found))
    assert not page.all("img")
    assert page.all("span", class_="placeholder")
    assert found.row("reversed").examples[0].expected in page.text


def test_the_heat_map_says_its_numbers(found: StressResult) -> None:
    drawn = drop_figure(found)
    drop = found.row("reversed").drop("R@1")
    assert drop.relative is not None
    said = f"{100 * drop.relative:+.1f}" if drop.relative else "0"
    assert f"R@1 {said}" in drawn
    assert "NaN" not in drawn.replace("currentColor", "")
    # of a clean value of 0 there is no relative change
    drops = {name: dataclasses.replace(one, relative=None) for name, one in found.rows[0].drops.items()}
    empty = dataclasses.replace(found, rows=(dataclasses.replace(found.rows[0], drops=drops),))
    assert "R@1 –" in drop_figure(empty)


def drop_of(found: StressResult, **changes: Any) -> Any:
    row = found.row("reversed")
    one = dataclasses.replace(
        row.drop("rsum"), clean=113.2, perturbed=82.2, difference=-31.0, relative=-31 / 113.2, low=-33.0, high=-29.0,
        corrected=0.0004, verdict="worse",
    )  # fmt: skip
    return dataclasses.replace(row, drops={"rsum": dataclasses.replace(one, **changes)})


def test_what_a_row_says(found: StressResult) -> None:
    assert summarise_row(drop_of(found)) == "reversed costs 31.0 of 113.2 rsum (27 %, p < 0.001)"
    assert summarise_row(drop_of(found, difference=2.0, relative=0.02, verdict="better", corrected=0.03)) == (
        "reversed gains 2.0 of 113.2 rsum (2 %, p = 0.030)"
    )
    assert summarise_row(drop_of(found, difference=-0.3, low=-1.0, high=0.4, verdict="")) == (
        "reversed has no significant cost: -0.3 (95 % -1.0 to +0.4) of 113.2 rsum"
    )
    blind = dataclasses.replace(
        drop_of(found, difference=0.0, verdict=""), same=found.row("reversed").changed
    )
    assert "changes nothing" in summarise_row(blind)
    assert summarise_row(dataclasses.replace(blind, changed=[0, 0, 0])) == "reversed changed nothing"


def test_pairs_without_a_similarity_are_counted(found: StressResult, parse: Callable[[str], Any]) -> None:
    assert "left out; over all seeds" in parse(render_stress(found)).text
    some = dataclasses.replace(
        found.agreement["t2i"], left_out={"decreased": 4, "increased": 1200, "unchanged": 0}
    )
    page = parse(render_stress(dataclasses.replace(found, agreement={"t2i": some})))
    assert "over all seeds: 4 that is decreased, 1,200 that is increased." in page.text
    none = dataclasses.replace(some, left_out=dict.fromkeys(some.left_out, 0))
    assert (
        "left out; over" not in parse(render_stress(dataclasses.replace(found, agreement={"t2i": none}))).text
    )


def test_what_captions_hold_is_no_markup(found: StressResult, parse: Callable[[str], Any]) -> None:
    row = found.row("reversed")
    evil = "<script>alert(1)</script> & <img src=x>"
    one = dataclasses.replace(
        row.examples[0], clean=f"{evil} b", changed=f"b {evil}", query=evil, first_after=evil
    )
    rows = (dataclasses.replace(row, examples=(one,)),)
    page = render_stress(dataclasses.replace(found, rows=rows, agreement={}))
    assert "<script" not in page
    assert "<img" not in page
    assert evil in parse(page).text


def test_right_pictures_are_marked_right_and_wrong_ones_wrong(
    found: StressResult, parse: Callable[[str], Any]
) -> None:
    row = found.row("reversed")
    one = dataclasses.replace(row.examples[0], expected="p1", first_before="p1", first_after="p4")
    rows = (dataclasses.replace(row, examples=(one,)),)
    page = parse(render_stress(dataclasses.replace(found, rows=rows, agreement={}), painted()))
    marks = [frame["class"].split()[-1] for frame in page.all("span", class_="frame")]
    assert marks == ["right", "right", "wrong"]


@pytest.fixture(scope="module")
def stress_comparison_found(tmp_path_factory: pytest.TempPathFactory) -> StressComparison:
    folder = tmp_path_factory.mktemp("beside")
    some: dict[str, Any] = {"samples": 20, "flips": 99, "split": "test", "seeds": (0,)}
    chosen = [LAST_WORD, REVERSED, *choose_perturbations(["brightness"])]
    folders = {}
    for name, parts in (("a <b>letters</b>", "letters"), ("words & all", "words")):
        folders[name] = folder / parts
        stress(Reader(parts), painted(), folders[name], perturbations=chosen, **some)
        chosen = chosen[:2]
    return compare_stress(folders, samples=50, flips=199)


def test_the_page_says_all_and_fetches_nothing_stress_comparison(
    stress_comparison_found: StressComparison, parse: Callable[[str], Any]
) -> None:
    text = render_stress_comparison(stress_comparison_found)
    page = parse(text)
    assert "<b>letters" not in text
    for name in stress_comparison_found.models:
        assert name in page.text
    for row in stress_comparison_found.rows:
        assert row.name in page.text
    for line in (*summarise_comparison(stress_comparison_found), *stress_comparison_found.notes):
        assert f"{line}." in page.text
    for value in (
        *stress_comparison_found.protocol.values(),
        *stress_comparison_found.encoders.values(),
        stress_comparison_found.method,
    ):
        assert str(value) in page.text
    assert "brightness (words & all: not run)" in page.text
    assert "not seen" in page.text
    figures = page.all("svg", class_="figure")
    assert len(figures) == len(stress_comparison_found.measures) == 2
    assert all(figure["aria-label"].startswith("Relative change of ") for figure in figures)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert "http" not in text.replace("http://www.w3.org", "").replace("http-equiv", "")


def test_differing_words() -> None:
    clean, changed = differing("a dog runs fast .", "a god runs very fast .")
    assert [piece for piece in clean if piece.differs] == [("dog", True)]
    assert [piece.text for piece in changed if piece.differs] == ["god", "very"]
    assert " ".join(piece.text for piece in changed) == "a god runs very fast ."
    assert differing("", "") == ([], [])
    assert differing("", "word") == ([], [("word", True)])
    assert differing("same words", "same words")[0] == [("same words", False)]
    long = " ".join(f"w{number}" for number in range(2000))
    left, right = differing(long, f"x {long}")
    assert " ".join(piece.text for piece in left) == long
    assert " ".join(piece.text for piece in right) == f"x {long}"


def test_a_run_that_has_not_ended_has_no_page(tmp_path: Path) -> None:
    """Its conditions are kept, its result is not there."""
    folder = tmp_path / "begun"
    some: dict[str, Any] = {"perturbations": [LAST_WORD, REVERSED], "split": "test", "samples": 0, "flips": 9}
    with pytest.raises(Interrupted), stop_when(lambda: any((folder / "conditions" / "units").glob("*"))):
        stress(Reader("letters"), painted(), folder, **some)
    with pytest.raises(StorageError, match="holds no stress"):
        write_stress_page(StressResult.open(folder), folder / "report.html")
    with pytest.raises(DiptychError):
        report(folder)
    assert not list(folder.glob("*.html"))
