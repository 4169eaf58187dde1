"""Pages: well-formed, self-contained, other people's text escaped, images small and counted when they are gone."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsed_page import Parsed, broken, picture
from PIL import Image

from diptych.core.chart import Chart, Series
from diptych.core.table import Cell, Table
from diptych.report.document import CAPTION_LIMIT, Card, Gallery, Headline, Page, Section, Text
from diptych.report.pictures import MAX_THUMBNAIL_BYTES

ATTACK = '"><script>alert(1)</script><img src=https://evil.example/x onerror=alert(2)>'


def found(*cards: Card, query: Card | None = None, **options: Any) -> Page:
    """A page with one gallery."""
    return Page("t", sections=[Section("Found", [Gallery("", cards, query, **options)])])


@pytest.fixture
def page() -> Page:
    bars = [("term", 0.5, "1.00", True), ("other", 0.25, "0.50", False)]
    cards = [
        Card("i0", picture("#ff0000"), "circle", "1", "right", "0.9"),
        Card("i1", picture("#00ff00"), label="2", state="wrong"),
        Card("i2", broken, label="3", state="wrong"),
        Card("i3", picture, state="unknown", bars=bars),
    ]
    captions = [Card("c1", text="two squares", state="wrong"), Card("c9", text="a triangle", state="right")]
    rows = [[Cell("a"), Cell("1", value=1.0)]] * 3
    charts = [Chart(one, [Series("", [3.0, 2.0], [1, 2])], "step", "loss") for one in ("Loss", "Again")]
    sections = [
        Section("A table", [Table("Numbers", ("", "value"), rows)], "How."),
        Section("Charts", charts),
        Section("Found", [Gallery("Images", cards, Card("c0", text="a red circle")), Gallery("", captions)]),
        Section("Recipe", [Text("recipe.toml", "[objective]")], notes=["noted"]),
    ]
    headlines = [Headline("rsum", "192.7", "58 × chance")]
    rest = ({"dataset": "scenes"}, ["one seed"], ["diptych evaluate run"], [("other", "other.html")])
    return Page("a run", "One sentence.", headlines, sections, *rest)


def test_a_page_is_well_formed_and_fetches_nothing(page: Page) -> None:
    drawn = Parsed(page.html())
    for tag, attributes, _ in drawn.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base"}
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in Parsed.FETCHES:
                assert value.startswith(("#", "data:image/jpeg;base64,", "other.html")), (tag, value)
    (script,) = re.findall("<script>(.*?)</script>", page.html(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = drawn.all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy  # the one script, which sorts tables
    for words in ("One sentence.", "192.7", "How.", "noted", "scenes", "one seed", "diptych evaluate run"):
        assert words in drawn.text
    assert page.html() == page.html()
    bare = Parsed(Page("bare").html())
    assert bare.all("h1")
    for tag in ("section", "h2", "h3", "svg", "img", "table", "pre", "dl", "article", "a"):
        assert bare.all(tag) == [], tag


def test_states_are_colours_and_words_and_what_is_unreadable_is_labelled(page: Page) -> None:
    drawn = Parsed(page.html())
    frames = [have["class"].split()[1] for have in drawn.all("span", class_="frame")]
    assert frames == ["right", "wrong", "wrong", "unknown"]
    captions = [have["class"] for have in drawn.all("li") if have.get("class") in {"right", "wrong"}]
    assert captions == ["wrong", "right"]
    assert (drawn.text.count("✓"), drawn.text.count("✗")) == (2, 3)
    assert [bar["style"] for bar in drawn.all("span", class_="bar")] == ["width: 50.0%", "width: 25.0%"]
    assert len(drawn.all("li", class_="strong")) == 1
    (placeholder,) = drawn.all("span", class_="placeholder")
    assert placeholder["aria-label"] == "i2: no image"
    assert "1 image could not be read; a labelled placeholder stands in: i2." in drawn.text


def test_words_of_others_cannot_become_markup() -> None:
    a = ATTACK
    chart, table = Chart(a, [Series(a, [1.0])], a, a, [a]), Table(a, (a,), [[Cell(a, a)]], after=a)
    for page in (
        Page(a, a, [Headline(a, a, a)], protocol={a: a}, notes=[a], commands=[a]),
        Page("t", protocol=a, links=[(a, "#")]),
        Page("t", sections=[Section(a, [Text(a, a), table, chart], a, [a])]),
        found(Card(a, text=a, label=a, score=a, facts={a: a})),
        found(Card("c", bars=[(a, 1.0, a, True)]), query=Card("q", text=a), text=a),
        found(Card(a, broken)),
    ):
        drawn = Parsed(page.html())
        assert len(drawn.all("script")) == 1
        assert not drawn.all("img")
        shown = drawn.text + " ".join(have.get("aria-label", "") for _, have, _ in drawn.elements)
        assert "alert(1)" in shown


@settings(max_examples=20, deadline=None)
@given(st.text(st.characters(exclude_categories=[]), max_size=60))
def test_any_caption_gives_a_page_that_can_be_written(caption: str) -> None:
    assert found(Card("c", text=caption)).html().encode("utf-8", "replace")


def test_captions_are_whole_or_cut_with_their_length(tmp_path: Path) -> None:
    text = found(Card("c", text="word " * 20_000)).html()
    assert "(100,000 characters)" in text
    assert text.count("word ") < CAPTION_LIMIT
    caption = "Äpfel · 犬が走る · собака · كلب · 🐕"
    path = found(Card("c", text=caption)).save(tmp_path / "deep" / "report.html")
    assert caption in Parsed(path.read_text(encoding="utf-8")).text


def test_images_are_small_jpegs_and_held_once() -> None:
    noise = Image.effect_noise((2000, 1500), 100).convert("RGB")
    (image,) = Parsed(found(Card("i", noise), side=256).html()).all("img")
    encoded = base64.b64decode(image["src"].split(",")[1])
    assert len(encoded) <= MAX_THUMBNAIL_BYTES
    with Image.open(io.BytesIO(encoded)) as shown:
        assert (shown.format, shown.size) == ("JPEG", (256, 192))
    assert (image["width"], image["height"]) == ("256", "192")
    gallery = Gallery("", [Card("i", picture())], side=96)
    twice = Page("t", sections=[Section("Found", [gallery] * 2)]).html()
    assert twice.count("data:image/jpeg") == 1
    assert len(Parsed(twice).all("span", class_="p0")) == 2
