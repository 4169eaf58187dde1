from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.report.page import clean, shorten, wrap


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [("a  b\n\tc ", "a b c"), ("\x00a\x1bb", "ab"), ("x\ud83dy", "x\ufffdy"), ("犬　が", "犬 が"), ("", "")],
)
def test_clean(text, cleaned):
    assert clean(text) == cleaned


@given(st.text(st.characters(exclude_categories=[])))
def test_clean_text_is_one_printable_line_of_utf8(text):
    cleaned = clean(text)
    assert cleaned.encode("utf-8").decode() == cleaned
    assert len(cleaned.splitlines()) <= 1
    assert clean(cleaned) == cleaned


def test_shorten_says_what_it_cut():
    assert shorten("short  one", 20) == "short one"
    assert shorten("x" * 1500, 4) == "xxxx… (1,500 characters)"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two", "three"]),
        ("abcdefghijkl", ["abcdefgh", "ijkl"]),
        ("a abcdefghijkl", ["a", "abcdefgh", "ijkl"]),
        ("one two three four five", ["one two", "three", "four…"]),
        ("aaaa bbbb cccc dddd eeee ffff gggg", ["aaaa", "bbbb", "cccc…"]),
        ("x" * 30, ["x" * 8, "x" * 8, "x" * 7 + "…"]),
        ("", []),
        ("   ", []),
        ("\x00", []),
    ],
)
def test_wrap_by_hand(text, lines):
    assert wrap(text, 8, len, 3) == lines


@given(st.text("ab \n", max_size=80), st.integers(1, 12), st.integers(1, 6))
def test_wrapped_lines_fit_and_lose_nothing_unless_cut(text, width, max_lines):
    lines = wrap(text, width, len, max_lines)
    assert len(lines) <= max_lines
    assert all(len(line) <= max(width, 2) for line in lines)
    together = "".join(lines).replace(" ", "")
    whole = clean(text).replace(" ", "")
    if lines and lines[-1].endswith("…"):
        assert whole.startswith(together[:-1])
        assert len(whole) > len(together) - 1 or width < 2
    else:
        assert together == whole


def test_letters_wider_than_the_line_stand_one_by_one():
    assert wrap("abc", 0.5, len, 5) == ["a", "b", "c"]
