from __future__ import annotations

import base64
import dataclasses
import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from diptych.evaluation import Score
from diptych.report.content import Curves, Query, ReportContent, Retrieval, Retrieved
from diptych.report.html import CAPTION_LIMIT, render_report, write_report
from diptych.report.page import Headline
from diptych.report.pictures import MAX_THUMBNAIL_BYTES

ATTACK = '"><script>alert(1)</script><img src=https://evil.example/x onerror=alert(2)>'


def full(content: ReportContent) -> ReportContent:
    return dataclasses.replace(
        content,
        subtitle="GRU 512-d",
        protocol_line="scenes, test split, 1,000 images, 5,000 captions, any of 5",
        headlines=[Headline("rsum", "192.7", "58 × chance")],
        scores={
            "i2t": {"R@1": Score(0.1513, 0.001, 0.14, 0.163), "medr": Score(11.0, 250.0)},
            "t2i": {"R@1": Score(0.12, 0.001)},
            "both": {"rsum": Score(192.7, 3.3, 187.0, 198.2)},
        },
        curves=Curves(range(1, 5), [4.0, 3.0, 2.5, 2.4], [1e-4] * 4, [1, 2], [80.0, 120.0], chance_rsum=3.3),
        recipe_text='[objective]\nname = "infonce"\n',
        environment={"torch": "2.14.1"},
        fingerprints={"weights": "3f9c1b0a77d2e645"},
        notes=["one seed"],
        commands=["diptych train recipe.toml", "diptych evaluate run"],
    )


def test_page_is_well_formed_and_fetches_nothing(content, parse):
    page = parse(render_report(full(content)))
    assert page.open == []
    for tag, attributes, _ in page.elements:
        assert tag not in {"script", "link", "iframe", "object", "embed", "base"}
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in {"src", "href", "srcset", "xlink:href", "action", "poster"}:
                assert value.startswith(("#", "data:image/jpeg;base64,")), (tag, name, value)
    styles = "".join("".join(words) for tag, _, words in page.elements if tag == "style")
    assert "url(" not in styles
    assert "@import" not in styles
    policy = page.all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    assert "default-src 'none'" in policy


def test_table_prints_scores_intervals_chance_and_protocol(content, parse):
    page = parse(render_report(full(content)))
    words = " ".join(page.text.split())
    assert "scenes, test split, 1,000 images, 5,000 captions, any of 5" in words
    assert re.search(r"R@1 %\s+15\.1\s*14\.0–16\.3\s+0\.1\s+12\.0\s+0\.1", words)
    assert re.search(r"medr\s+11\.0\s+250\.0\s+–\s+–", words)
    assert re.search(r"rsum\s*both directions\s+192\.7\s*187\.0–198\.2\s+3\.3", words)
    assert len(page.all("svg")) == 4
    assert all(attributes["aria-label"] for attributes in page.all("svg"))


def test_what_is_missing_is_left_out(parse):
    page = parse(render_report(ReportContent("bare")))
    assert page.all("h1")
    for tag in ("section", "h2", "h3", "svg", "img", "table", "pre", "dl", "article", "a"):
        assert page.all(tag) == [], tag


def test_right_is_green_and_wrong_is_red(content, parse):
    page = parse(render_report(content))
    frames = [have["class"].split()[1] for have in page.all("span", class_="frame")]
    assert frames == ["right", "wrong", "wrong", "unknown"]
    captions = [
        have["class"] for have in page.all("li") if have.get("class") in {"right", "wrong", "unknown"}
    ]
    assert captions == ["wrong", "wrong", "right"]
    # not by colour alone
    assert page.text.count("✓") == 2
    assert page.text.count("✗") == 4
    assert "first right answer at rank 1,234" in page.text
    assert "Should have come first" in page.text


def test_unreadable_picture_is_a_labelled_placeholder_and_counted(content, parse):
    page = parse(render_report(content))
    placeholders = page.all("span", class_="placeholder")
    assert [have["aria-label"] for have in placeholders] == ["Picture i2 could not be read"]
    assert placeholders[0]["role"] == "img"
    assert "1 picture could not be read; a labelled placeholder stands in: i2." in page.text


@pytest.mark.parametrize("place", ["caption", "query", "name", "title", "recipe", "environment"])
def test_words_of_others_cannot_become_markup(place, parse, picture, broken):
    item = Retrieved(
        ATTACK if place == "name" else "i",
        0.5,
        False,
        caption=ATTACK if place == "caption" else "",
        picture=broken if place == "name" else picture,
    )
    content = ReportContent(
        title=ATTACK if place == "title" else "t",
        protocol_line="p",
        scores={"i2t": {"R@1": Score(1.0, 0.1)}},
        best_retrievals=[Retrieval(Query("q", caption=ATTACK if place == "query" else "c"), [item])],
        recipe_text=ATTACK if place == "recipe" else "",
        environment={ATTACK: ATTACK} if place == "environment" else {},
    )
    text = render_report(content)
    page = parse(text)
    assert not page.all("script")
    assert not [have for have in page.all("img") if "onerror" in have or "evil" in have["src"]]
    assert page.open == []
    shown = page.text + " ".join(have.get("aria-label", "") for _, have, _ in page.elements)
    assert ATTACK in shown


@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(exclude_categories=[]), max_size=60))
def test_any_caption_gives_a_page_that_can_be_written(caption):
    picture = Image.new("RGB", (2, 2))
    one = Retrieval(Query("q", picture=picture), [Retrieved("c", 0.0, True, caption=caption)])
    assert render_report(ReportContent("t", best_retrievals=[one])).encode("utf-8")


def test_long_caption_is_cut_and_says_its_length(parse, picture):
    one = Retrieval(Query("q", picture=picture), [Retrieved("c", 0.0, True, caption="word " * 20_000)])
    text = render_report(ReportContent("t", best_retrievals=[one]))
    assert "(100,000 characters)" in text
    assert text.count("word ") < CAPTION_LIMIT


def test_unicode_survives(tmp_path, parse, picture):
    caption = "Äpfel · 犬が走る · собака · كلب · 🐕"
    one = Retrieval(Query("q", caption=caption), [Retrieved("i", 0.5, True, picture=picture)])
    path = write_report(ReportContent("t", best_retrievals=[one]), tmp_path / "deep" / "report.html")
    assert caption in parse(path.read_text(encoding="utf-8")).text


def test_pictures_are_small_jpegs(parse):
    noise = Image.effect_noise((2000, 1500), 100).convert("RGB")
    one = Retrieval(Query("q", picture=noise), [Retrieved("c", 0.5, True, caption="noise")])
    page = parse(render_report(ReportContent("t", best_retrievals=[one]), thumbnail_side=256))
    encoded = base64.b64decode(page.all("img")[0]["src"].split(",")[1])
    assert len(encoded) <= MAX_THUMBNAIL_BYTES
    with Image.open(io.BytesIO(encoded)) as picture:
        assert picture.format == "JPEG"
        assert picture.size == (256, 192)
    assert (page.all("img")[0]["width"], page.all("img")[0]["height"]) == ("256", "192")


def test_same_content_gives_the_same_page(content):
    assert render_report(full(content)) == render_report(full(content))
