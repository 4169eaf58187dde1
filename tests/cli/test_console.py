"""What is printed cannot act on the terminal, and can be printed at all."""

from __future__ import annotations

import pytest

from diptych.cli.console import fail, next_step, print_table, say
from diptych.core.errors import DataError

EVIL = "a\x1b[2Jb\x07\rc\x9bd\ud800e\u202ef\x00"
SHOWN = r"a\x1b[2Jb\x07\rc\x9bd\ud800e\u202ef\x00"


def test_control_characters_are_shown_and_not_sent(capsys: pytest.CaptureFixture[str]) -> None:
    say(EVIL)
    next_step(EVIL)
    print_table(EVIL, ("name",), [(EVIL,)], caption=EVIL)
    fail(DataError(EVIL, EVIL))
    printed = capsys.readouterr()
    assert printed.out.count(SHOWN) == 5
    assert printed.err.count(SHOWN) == 2
    assert not set(printed.out + printed.err) & set(EVIL) - set("abcdef[2J")


def test_lines_blanks_and_words_stay(capsys: pytest.CaptureFixture[str]) -> None:
    say("café [bold]\n\U0001f6d2 日本")
    assert capsys.readouterr().out == "café [bold]\n\U0001f6d2 日本\n"
