"""Sheets of weighted terms and of matches: what is drawn where, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diptych.core.errors import DataError, NumericalError, StorageError, UsageError
from diptych.report.page import LIGHT
from diptych.report.terms import (
    Match,
    MatchTerm,
    TermCard,
    WeightedTerm,
    draw_match_sheet,
    draw_terms_sheet,
    write_match_sheet,
    write_terms_sheet,
)

TERMS = [WeightedTerm("dog", 2.0), WeightedTerm("grass", 1.0), WeightedTerm("-ped", 0.5)]


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))


def runs(sheet: Image.Image, colour: str) -> list[int]:
    """Lengths of horizontal runs of one colour, from top to bottom, one per bar."""
    mask = np.all(np.asarray(sheet) == rgb(colour), axis=2)
    found, before = [], 0
    for row in mask:
        length = int(row.sum())
        if length and not before:
            found.append(length)
        before = length
    return found


def match(score: float = 3.5) -> Match:
    query = TermCard("c1", TERMS, "a dog on the grass")
    item = TermCard("i1", [], "a dog", Image.new("RGB", (40, 30), "#336699"))
    terms = [MatchTerm("dog", 2, 1, 2.0), MatchTerm("grass", 1, 1, 1.0), MatchTerm("the", 0.5, 1, 0.5)]
    return Match(query, item, terms, score)


def test_bars_are_as_long_as_weights() -> None:
    sheet, unreadable = draw_terms_sheet("title", [TermCard("i1", TERMS, picture=Image.new("RGB", (40, 30)))])
    long, middle, short = runs(sheet, LIGHT["blue"])
    assert middle == pytest.approx(long / 2, abs=1)
    assert short == pytest.approx(long / 4, abs=1)
    assert unreadable == ()


def test_own_terms_and_expansion_have_two_colours_and_a_legend() -> None:
    marked = [WeightedTerm("dog", 2.0, True), WeightedTerm("puppy", 1.0, False)]
    sheet, _ = draw_terms_sheet("title", [TermCard("c1", marked, "a dog")])
    own, expanded = runs(sheet, LIGHT["blue"]), runs(sheet, LIGHT["orange"])
    assert len(own) == len(expanded) == 2  # a bar, and its colour in the legend
    assert expanded[0] == pytest.approx(own[0] / 2, abs=1)
    plain, _ = draw_terms_sheet("title", [TermCard("c1", TERMS, "a dog")])
    assert len(runs(plain, LIGHT["blue"])) == 3
    assert runs(plain, LIGHT["orange"]) == []


def test_cards_stand_side_by_side() -> None:
    cards = [TermCard(f"c{row}", TERMS, "a dog") for row in range(3)]
    two, _ = draw_terms_sheet("title", cards)
    one, _ = draw_terms_sheet("title", cards, columns=1)
    assert two.width > one.width
    assert two.height < one.height
    alone, _ = draw_terms_sheet("title", cards[:1])
    assert alone.width == one.width


def test_a_row_without_terms_and_a_picture_that_cannot_be_read(broken: Callable[[], Image.Image]) -> None:
    sheet, unreadable = draw_terms_sheet("title", [TermCard("photo.jpg", [], "nothing", broken)])
    assert unreadable == ("photo.jpg",)
    assert runs(sheet, LIGHT["blue"]) == []
    nothing = TermCard("c", [WeightedTerm("dog", 0.0)], "a dog")
    draw_terms_sheet("title", [nothing])  # no division by the heaviest
    assert nothing.heaviest == 0


def test_what_a_sheet_refuses(tmp_path: Path) -> None:
    card = TermCard("c", TERMS, "a dog")
    with pytest.raises(UsageError, match="0 cards in 2 columns"):
        draw_terms_sheet("title", [])
    with pytest.raises(UsageError, match="1 cards in 0 columns"):
        draw_terms_sheet("title", [card], columns=0)
    with pytest.raises(UsageError, match=r"'sheet\.jpg' ends in '\.jpg'"):
        write_terms_sheet(tmp_path / "sheet.jpg", "title", [card])
    with pytest.raises(StorageError, match="cannot be read"):
        draw_terms_sheet("title", [card], font=tmp_path / "none.ttf")
    with pytest.raises(NumericalError, match="the weight of 'dog' is nan"):
        WeightedTerm("dog", float("nan"))
    with pytest.raises(NumericalError, match="the weight of 'dog' is -1"):
        MatchTerm("dog", 1, -1, -1)


def test_sheets_are_written(tmp_path: Path) -> None:
    write_terms_sheet(tmp_path / "terms.png", "title", [TermCard("c", TERMS, "a dog")])
    write_match_sheet(tmp_path / "match.png", match())
    for name in ("terms.png", "match.png"):
        with Image.open(tmp_path / name) as written:
            assert written.format == "PNG"
            assert runs(written.convert("RGB"), LIGHT["blue"])
    with pytest.raises(UsageError, match=r"explanation 'match' ends in 'nothing'"):
        write_match_sheet(tmp_path / "match", match())


def test_a_match_has_a_bar_per_term_and_none_for_the_rest() -> None:
    whole, _ = draw_match_sheet(match())
    first, second, third = runs(whole, LIGHT["blue"])
    assert second == pytest.approx(first / 2, abs=1)
    assert third == pytest.approx(first / 4, abs=1)
    cut, _ = draw_match_sheet(match(), shown=1, title="Why?")
    assert len(runs(cut, LIGHT["blue"])) == 1
    with pytest.raises(UsageError, match="shows 0 terms"):
        draw_match_sheet(match(), shown=0)


def test_nothing_in_common_is_drawn_too() -> None:
    sheet, _ = draw_match_sheet(Match(match().query, match().item, [], 0.0))
    assert runs(sheet, LIGHT["blue"]) == []


def test_contributions_must_add_up() -> None:
    with pytest.raises(DataError, match=r"'c1' and 'i1': contributions add up to 3\.5, the score is 3"):
        match(3.0)
