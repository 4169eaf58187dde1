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
    cards = [
        Card("i0", picture("#ff0000"), "circle", "1", "right", "0.9"),
        Card("i1", picture("#00ff00"), label="2", state="wrong"),
        Card("i2", broken, label="3", state="wrong"),
        Card(
            "i3", picture, state="unknown", bars=[("term", 0.5, "1.00", True), ("other", 0.25, "0.50", False)]
        ),
    ]
    captions = [Card("c1", text="two squares", state="wrong"), Card("c9", text="a triangle", state="right")]
    sections = [
        Section(
            "A table", [Table("Numbers", ("", "value"), [[Cell("a"), Cell("1", value=1.0)]] * 3)], "How."
        ),
        Section(
            "Charts",
            [Chart(one, [Series("", [3.0, 2.0], [1, 2])], "step", "loss") for one in ("Loss", "Again")],
        ),
        Section("Found", [Gallery("Images", cards, Card("c0", text="a red circle")), Gallery("", captions)]),
        Section("Recipe", [Text("recipe.toml", "[objective]")], notes=["noted"]),
    ]
    return Page(
        "a run",
        "One sentence.",
        [Headline("rsum", "192.7", "58 × chance")],
        sections,
        {"dataset": "scenes"},
        ["one seed"],
        ["diptych evaluate run"],
        [("other", "other.html")],
    )


def test_a_page_is_well_formed_and_fetches_nothing(page: Page) -> None:
    drawn = Parsed(page.html())
    for tag, attributes, _ in drawn.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base"}
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in {"src", "href", "srcset", "xlink:href", "action", "poster"}:
                assert value.startswith(("#", "data:image/jpeg;base64,")) or value == "other.html", (
                    tag,
                    value,
                )
    (script,) = re.findall("<script>(.*?)</script>", page.html(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = drawn.all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy  # the one script, which sorts tables
    for said in ("One sentence.", "192.7", "How.", "noted", "scenes", "one seed", "diptych evaluate run"):
        assert said in drawn.text
    assert page.html() == page.html()


def test_what_is_missing_is_left_out() -> None:
    drawn = Parsed(Page("bare").html())
    assert drawn.all("h1")
    for tag in ("section", "h2", "h3", "svg", "img", "table", "pre", "dl", "article", "a"):
        assert drawn.all(tag) == [], tag


def test_states_are_colours_and_words(page: Page) -> None:
    drawn = Parsed(page.html())
    frames = [have["class"].split()[1] for have in drawn.all("span", class_="frame")]
    assert frames == ["right", "wrong", "wrong", "unknown"]
    captions = [have["class"] for have in drawn.all("li") if have.get("class") in {"right", "wrong"}]
    assert captions == ["wrong", "right"]
    assert (drawn.text.count("✓"), drawn.text.count("✗")) == (2, 3)
    assert [bar["style"] for bar in drawn.all("span", class_="bar")] == ["width: 50.0%", "width: 25.0%"]
    assert len(drawn.all("li", class_="strong")) == 1


def test_an_unreadable_image_is_a_labelled_placeholder_and_counted(page: Page) -> None:
    drawn = Parsed(page.html())
    (placeholder,) = drawn.all("span", class_="placeholder")
    assert placeholder["aria-label"] == "i2: no image"
    assert "1 picture could not be read; a labelled placeholder stands in: i2." in drawn.text


@pytest.mark.parametrize(
    "page",
    [
        Page(ATTACK),
        Page("t", ATTACK),
        Page("t", headlines=[Headline(ATTACK, ATTACK, ATTACK)]),
        Page("t", protocol={ATTACK: ATTACK}, notes=[ATTACK], commands=[ATTACK]),
        Page("t", protocol=ATTACK, links=[(ATTACK, "#")]),
        Page("t", sections=[Section(ATTACK, [Text(ATTACK, ATTACK)], ATTACK, [ATTACK])]),
        Page(
            "t", sections=[Section("s", [Table(ATTACK, (ATTACK,), [[Cell(ATTACK, ATTACK)]], after=ATTACK)])]
        ),
        Page(
            "t", sections=[Section("s", [Chart(ATTACK, [Series(ATTACK, [1.0])], ATTACK, ATTACK, [ATTACK])])]
        ),
        found(Card(ATTACK, text=ATTACK, label=ATTACK, score=ATTACK, facts={ATTACK: ATTACK})),
        found(Card("c", bars=[(ATTACK, 1.0, ATTACK, True)]), query=Card("q", text=ATTACK), text=ATTACK),
    ],
)
def test_words_of_others_cannot_become_markup(page: Page) -> None:
    drawn = Parsed(page.html())
    assert len(drawn.all("script")) == 1
    assert not drawn.all("img")
    shown = drawn.text + " ".join(have.get("aria-label", "") for _, have, _ in drawn.elements)
    assert "alert(1)" in shown


def test_the_name_of_an_unreadable_image_cannot_either() -> None:
    drawn = Parsed(found(Card(ATTACK, broken)).html())
    assert len(drawn.all("script")) == 1
    assert ATTACK in drawn.text


@settings(max_examples=20, deadline=None)
@given(st.text(st.characters(exclude_categories=[]), max_size=60))
def test_any_caption_gives_a_page_that_can_be_written(caption: str) -> None:
    assert found(Card("c", text=caption)).html().encode("utf-8", "replace")


def test_a_long_caption_is_cut_and_its_length_is_stated() -> None:
    text = found(Card("c", text="word " * 20_000)).html()
    assert "(100,000 characters)" in text
    assert text.count("word ") < CAPTION_LIMIT


def test_unicode_survives(tmp_path: Path) -> None:
    caption = "Äpfel · 犬が走る · собака · كلب · 🐕"
    path = found(Card("c", text=caption)).save(tmp_path / "deep" / "report.html")
    assert caption in Parsed(path.read_text(encoding="utf-8")).text


def test_images_are_small_jpegs() -> None:
    noise = Image.effect_noise((2000, 1500), 100).convert("RGB")
    (image,) = Parsed(found(Card("i", noise), side=256).html()).all("img")
    encoded = base64.b64decode(image["src"].split(",")[1])
    assert len(encoded) <= MAX_THUMBNAIL_BYTES
    with Image.open(io.BytesIO(encoded)) as picture:
        assert (picture.format, picture.size) == ("JPEG", (256, 192))
    assert (image["width"], image["height"]) == ("256", "192")


def test_small_images_are_held_once() -> None:
    gallery = Gallery("", [Card("i", picture())], side=96)
    twice = Page("t", sections=[Section("Found", [gallery] * 2)]).html()
    assert twice.count("data:image/jpeg") == 1
    assert len(Parsed(twice).all("span", class_="p0")) == 2
