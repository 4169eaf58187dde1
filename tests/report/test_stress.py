"""Pages of a stress run, and of runs compared under stress."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from parsed_page import Parsed
from stressed import LAST_WORD, REVERSED, Reader, painted

from diptych.analysis.perturbations import choose_perturbations
from diptych.core.table import Table
from diptych.evaluation.stress.comparison import StressComparison, compare_stress
from diptych.evaluation.stress.result import StressResult
from diptych.evaluation.stress.stress import stress
from diptych.evaluation.stress.tables import (
    comparison_summary,
    comparison_tables,
    stress_summary,
    stress_tables,
)
from diptych.report.stress import comparison_page, marked, stress_page

EVIL = "<script>alert(1)</script> & <img src=x>"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> StressResult:
    chosen = [LAST_WORD, REVERSED, *choose_perturbations(["character-swap", "synonym-noun", "brightness"])]
    folder = tmp_path_factory.mktemp("stress") / "out"
    some: dict[str, Any] = {"perturbations": chosen, "samples": 50, "flips": 199, "split": "test"}
    return stress(Reader("letters"), painted(), folder, **some)


def changed(found: StressResult, name: str, **values: Any) -> StressResult:
    """The result with one row, changed."""
    return replace(found, rows=(replace(found.row(name), **values),), agreement={})


def table(tables: list[Table], caption: str) -> dict[str, dict[str, str]]:
    """The cells of a table by the heads of its rows and columns."""
    one = next(one for one in tables if one.caption.startswith(caption))
    return {row[0].text: dict(zip(one.columns, [cell.line for cell in row], strict=True)) for row in one.rows}


def test_the_page_and_tables_have_every_number(found: StressResult) -> None:
    page, tables = Parsed(stress_page(found, painted()).html()), stress_tables(found)
    for row in found.rows:
        for words in (row.name, f"{row.drop('rsum').perturbed:.1f}", *row.reasons, row.description):
            assert words in page.text
    for value in (*found.protocol.values(), found.method, found.left_out["synonym-noun"]):
        assert str(value) in page.text
    row = found.row("reversed")
    drop, one = row.drop("R@1"), row.drop("rsum")
    relative = f"{100 * drop.relative:+.1f}" if drop.relative else "0"
    assert table(tables, "Relative change")["reversed"]["R@1"] == relative
    cells = table(tables, "word order")["reversed"]
    assert cells["rsum"].split(" ")[0] == f"{one.perturbed:.1f}"
    assert cells["changed, %"].split(" ")[0] == f"{100 * sum(row.changed) / (3 * row.queries):.1f}"
    assert cells["p"] == f"{one.corrected:.3f}"
    assert row.preference is not None
    share = f"{100 * row.preference.share:.1f}"
    assert table(tables, "The caption")["reversed"]["clean, %"].startswith(share)
    decreased = found.agreement["t2i"].decreased
    assert decreased is not None
    same = table(tables, "The same")["captions query images"]
    assert same["mean of decreased"] == f"{decreased:.4f}"


def test_the_summary_what_is_bold_and_what_was_not_changed(found: StressResult) -> None:
    cost: dict[str, Any] = {"clean": 113.2, "perturbed": 82.2, "difference": -31.0, "relative": -31 / 113.2}
    for verdict, words in (
        ("worse", "1 of 1 perturbations of captions cost rsum significantly, the most reversed (113.2 → "),
        ("better", "None of 1 perturbations of captions cost rsum significantly."),
    ):
        some = {**cost, "corrected": 0.0004, "verdict": verdict}
        drops = {name: replace(drop, **some) for name, drop in found.row("reversed").drops.items()}
        one = changed(found, "reversed", drops=drops)
        assert stress_summary(one).startswith(words)
        relative = next(one for one in stress_tables(one) if one.caption.startswith("Relative"))
        assert {cell.strong for cell in relative.rows[0][1:]} == {verdict == "worse"}
    tables = stress_tables(changed(found, "reversed", changed=[0, 0, 0]))
    assert set(table(tables, "Relative")["reversed"].values()) == {"reversed", "–"}
    cells = table(tables, "word order")["reversed"]
    assert (cells["difference"], cells["p"], cells["verdict"]) == ("–", "–", "nothing to change")


def test_the_worst_hit_stand_there_with_their_images(found: StressResult) -> None:
    page = Parsed(stress_page(found, painted()).html())
    one = found.row("reversed").examples[0]
    assert f"{one.before:,.0f} → {one.after:,.0f}" in page.text
    hits = sum(len(row.examples[:2]) * (3 if row.direction == "t2i" else 2) for row in found.rows)
    assert len(page.all("img")) == hits > 0
    without = Parsed(stress_page(found).html())
    assert not without.all("img")
    assert one.expected in without.text
    other = replace(one, expected="p1", first_before="p1", first_after="p4")
    page = Parsed(stress_page(changed(found, "reversed", examples=(other,)), painted()).html())
    marks = [frame["class"].split()[-1] for frame in page.all("span", class_="frame")]
    assert marks == ["right", "right", "wrong"]
    evil = replace(one, clean=f"{EVIL} b", changed=f"b {EVIL}", query=EVIL, first_after=EVIL)
    text = stress_page(changed(found, "reversed", examples=(evil,))).html()
    assert "<script>alert" not in text
    assert "<img" not in text
    assert EVIL in Parsed(text).text


def test_differing_words_are_marked() -> None:
    before, after = marked("a dog runs fast .", "a god runs very fast .")
    assert (before, after) == ("a [dog] runs fast .", "a [god] runs [very] fast .")
    assert marked("", "word") == ("", "[word]")
    assert marked("same words", "same  words") == ("same words", "same words")
    long = " ".join(f"w{number}" for number in range(2000))
    assert marked(long, f"x {long}")[1].replace("[x]", "x").replace("[w399] ", "w399 ") == f"x {long}"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> StressComparison:
    folder = tmp_path_factory.mktemp("compared")
    some: dict[str, Any] = {"samples": 20, "flips": 99, "split": "test", "seeds": (0,)}
    chosen = [LAST_WORD, REVERSED, *choose_perturbations(["brightness"])]
    folders = {"a <b>letters</b>": folder / "letters", "words & all": folder / "words"}
    for one in folders.values():
        stress(Reader(one.name), painted(), one, perturbations=chosen, **some)
        chosen = chosen[:2]
    return compare_stress(folders, samples=50, flips=199)


def test_the_page_of_a_comparison(compared: StressComparison) -> None:
    text = comparison_page(compared).html()
    page = Parsed(text)
    assert "<b>letters" not in text
    for value in (*compared.protocol.values(), *compared.encoders.values(), compared.method, *compared.notes):
        assert str(value) in page.text
    assert "words & all: not run" in page.text
    row = next(one for one in compared.rows if (one.name, one.measure) == ("reversed", "rsum"))
    one = row.differences["words & all"]
    cells = table(comparison_tables(compared), "rsum")["reversed"]
    assert cells["words & all"] == f"0 (of {one.second.clean:.1f}, not seen)"
    assert cells["difference"].split(" ")[0] == (f"{one.difference:+.1f}" if one.difference else "0")
    assert cells["perturbation"] == "reversed (other meaning)"
    values = {"verdict": "more robust", "difference": 3.0, "relative_low": -0.3, "relative_high": -0.1}
    robust = replace(row, differences={"words & all": replace(one, **values)})  # type: ignore[arg-type]
    better = replace(compared, rows=[robust])
    summary = "By rsum, words & all loses significantly less than a <b>letters</b> under 1 of 1 perturbations"
    assert comparison_summary(better).startswith(summary)
    verdict = table(comparison_tables(better), "rsum")["reversed"]["verdict"]
    assert verdict == "more robust (the other way round in %)"
