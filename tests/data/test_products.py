"""What records of products say, whatever they were read from."""

from __future__ import annotations

import html
import os
import re

from hypothesis import given
from hypothesis import strategies as st

from diptych.data.products import attributes_of, paths_of, picture_name, plain_text, split_path


def test_plain_text_paths_and_names() -> None:
    for text, plain in (
        ("<b>Red</b> dress &amp; shoes", "Red dress & shoes"),
        ("&lt;b&gt;Red&lt;/b&gt;", "Red"),
        ("3 < 5 and <3", "3 < 5 and <3"),
        ("a<style>.b { c: d }</style> e<script>f()</script> /* g */ h", "a e h"),
        ("a\u00a0b\t\nc\u200b \u200ed\ufeff", "a b c d"),
        ("half \ud83d a character", "half a character"),
        ("<br>", ""),
        ("&amp;lt;b&amp;gt;Red &amp;amp; blue", "Red & blue"),
        ("a <!-- b", "a <!-- b"),
        ("a <!-- b /* c --> d */ e", "a d */ e"),
        ("a <SCRIPT x>b</script > c", "a c"),
        ("a<\u017fcript>b", "a< cript>b".replace(" ", "\u017f")),
        ("a &#" + "9" * 5000 + "; b", "a \ufffd b"),
        ("", ""),
    ):
        assert plain_text(text) == plain
    assert paths_of({"category_path": ["Home ", "", "<b>Lamps</b>"]}) == (("Home", "Lamps"),)
    assert paths_of({"category_paths": [["A"], ["B", "C"], ["A"], []], "category_path": ["Z"]}) == (
        ("A",),
        ("B", "C"),
    )
    assert paths_of({"category_path": []}) == paths_of(None) == paths_of({}) == ()
    assert split_path("Home > Bed, Bath & A>B > ") == ("Home", "Bed, Bath & A>B")
    assert attributes_of({"attributes": {"a": [" x", "x", None, ""], "b": 3, "c": None}}) == (
        ("a", "x"),
        ("b", "3"),
    )
    assert attributes_of({"attributes": {}}) == attributes_of(None) == ()
    names = {picture_name(one).lower() for one in ODD}
    assert len(names) == len(ODD)
    for name in names:
        assert 0 < len(name) <= 80
        assert os.path.basename(name) == name
        assert name.isascii()
        assert name not in (".", "..", "con", "com1")
    for opening in ("<!--", "/* ", "<script ", "<style>", "<a ", "&lt;!--"):
        given = opening * 200_000  # an hour's work, were each looked for to the end
        assert plain_text(given) in ("", given.strip(), "<!--" * 200_000)


_PIECES = (
    *("<!--", "-->", "/*", "*/", "<script", "<style>", "</script>", "</STYLE >", ">", "<b", "a", " "),
    *("&lt;", "&amp;"),
)


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_hidden_parts_are_those_of_one_slow_expression(text: str) -> None:
    hidden = r"(?is)<(script|style)\b.*?</\1\s*>|<!--.*?-->|/\*.*?\*/"
    slow = text
    for _ in range(20):
        slow = html.unescape(re.sub("</?[a-zA-Z][^<>]*>", " ", re.sub(hidden, " ", slow)))
    assert plain_text(text) == " ".join(slow.split())


@given(st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=3)), max_size=8).map("".join))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert plain_text(plain_text(text)) == plain_text(text)


ODD = (
    *("", ".", "..", "../x", "a/b", "a\\b", "abc", "ABC", "Abc", "CON"),
    *("COM1", "é", "e\u0301", "A" * 300, "\ud800", "A B"),
)
