"""The page of a sparse head: tables, figures, bars, and what it says of bad input."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from diptych.core.errors import DataError, NumericalError
from diptych.core.table import Table
from diptych.report.content import Headline
from diptych.report.sparse_page import (
    SparseReport,
    TradeoffPoint,
    overlap_figure,
    tradeoff_figure,
    write_sparse_report,
)
from diptych.report.terms import Match, MatchTerm, TermCard, WeightedTerm

POINTS = [
    TradeoffPoint("η = 1e-2", 1.6, {"t2i R@1": 47.2}, line="c"),
    TradeoffPoint("η = 1e-3", 11.5, {"t2i R@1": 51.8}, True, line="c"),
    TradeoffPoint("no terms", 0.0, {"t2i R@1": 0.1}, line="c"),
]


@pytest.fixture
def report(picture: Callable[..., Image.Image], broken: Callable[[], Image.Image]) -> SparseReport:
    marked = [WeightedTerm("dog", 2.0, True), WeightedTerm("<puppy>", 1.0, False)]
    caption = TermCard("c1", marked, "a dog & its <b>shadow</b>")
    seen = TermCard("i1", [WeightedTerm("dog", 1.5), WeightedTerm("grass", 0.3)], "a dog", picture)
    terms = [MatchTerm(f"term{place:02}", 1.0, 1.0, 1.0) for place in range(14)]
    return SparseReport(
        "A head",
        "dataset made; split test",
        headlines=[Headline("R@5 kept", "92 %")],
        compared=Table.of(
            "Dense and sparse rows",
            "",
            ("Measure", "Dense", "Sparse", "Kept", "p"),
            [("t2i R@1", "57.3", "51.8", "90.4 %", "< 0.001")],
        ),
        figures=[("FLOPs", "11.50")],
        tradeoff=POINTS,
        dense={"t2i R@1": 57.3},
        overlap=[0.7, 0.8, 0.7, 0.0],
        pictures=[seen, TermCard("photo.jpg", [], picture=broken)],
        captions=[caption],
        matches=[Match(caption, seen, terms, 14.0), Match(caption, seen, [], 0.0)],
        commands=["diptych sparse train RUN"],
        fingerprints={"head": "0123"},
    )


def words(svg: str) -> list[str]:
    tree = ElementTree.fromstring(svg)
    return ["".join(node.itertext()) for node in tree.iter("{http://www.w3.org/2000/svg}text")]


def test_the_trade_off() -> None:
    svg = tradeoff_figure(POINTS, {"t2i R@1": 57.3}, "t2i R@1")
    shown = words(svg)
    assert {"η = 1e-2", "η = 1e-3", "dense: 57.3", "this head", "10", "c"} <= set(shown)
    assert "no terms" not in shown  # what costs nothing has no place on a logarithmic axis
    assert "η = 1e-3: 11.5 FLOPs, 51.8; dense rows 57.3." in svg
    assert "dense" not in tradeoff_figure(POINTS, {}, "t2i R@1")
    with pytest.raises(DataError, match="no head has FLOPs and a t2i R@5"):
        tradeoff_figure(POINTS, {}, "t2i R@5")
    with pytest.raises(NumericalError, match="x: FLOPs is nan"):
        TradeoffPoint("x", float("nan"), {})


def test_the_histogram_of_overlap() -> None:
    svg = overlap_figure([0.7, 0.8, 0.7, 0.0], 10)
    assert "0: 25.0 %" in svg
    assert "7: 50.0 %, 8: 25.0 %" in svg
    assert "mean: 5.5 of 10" in words(svg)
    # shares of three thirds are whole items
    assert "1: 50.0 %, 2: 50.0 %" in overlap_figure([1 / 3, 2 / 3], 3)
    with pytest.raises(DataError, match="there is no histogram"):
        overlap_figure([], 10)


def test_the_page(report: SparseReport, parse: Callable[[str], Any], tmp_path: Path) -> None:
    path = write_sparse_report(report, tmp_path / "report.html")
    page = parse(path.read_text(encoding="utf-8"))
    assert not page.open
    assert len(page.all("svg", class_="figure")) == 2
    assert len(page.all("article", class_="card")) == 3
    assert [bar["style"] for bar in page.all("span", class_="bar")][:2] == ["width: 100.0%", "width: 20.0%"]
    assert len(page.all("li", class_="own")) == len(page.all("li", class_="expanded")) == 1
    for said in (
        *("90.4 %", "< 0.001", "11.50", "dataset made; split test", "R@5 kept", "0123"),
        "a dog & its <b>shadow</b>",
        "<puppy>",
        "(in the caption)",
        "Item, score 14.000",
        "2 more terms: 2.00 together.",
        "No term.",
        "photo.jpg",
        "1 picture could not be read",
    ):
        assert said in page.text, said
    assert "term11" in page.text
    assert "term12" not in page.text
    assert "http" not in page.text


def test_what_a_report_refuses() -> None:
    with pytest.raises(DataError, match="'A head' has no protocol line"):
        SparseReport("A head", "")
    with pytest.raises(DataError, match="an overlap of two lists is outside"):
        SparseReport("A head", "line", overlap=[7])
