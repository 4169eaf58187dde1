"""Typing errors: as many, of the kinds and at the places that were asked for."""

from __future__ import annotations

from typing import Any

import pytest
from edit_distance import edit_distance
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.perturbations import (
    PERTURBATIONS,
    PerturbedCaptions,
    TextPerturbation,
    perturb_captions,
)
from diptych.analysis.perturbations.letters import neighbours

KIND = PERTURBATIONS.get("typing-errors")
assert isinstance(KIND, TextPerturbation)
NO_KIND = {"substitution": 0, "omission": 0, "insertion": 0, "transposition": 0}
TEXT = "several brown horses graze beside wooden fences"  # 41 letters, 7 first ones


def mistyped(captions: list[str], **options: Any) -> PerturbedCaptions:
    assert isinstance(KIND, TextPerturbation)
    return perturb_captions(KIND, captions, [str(row) for row in range(len(captions))], options=options)


def test_as_many_errors_per_letter_as_the_rate_says() -> None:
    n = 2000
    done = mistyped([TEXT] * n)
    errors = sum(edit_distance(TEXT, after) for after in done.texts if after != TEXT)
    assert errors / (41 * n) == pytest.approx(0.0117, rel=0.08)
    assert done.reasons["no error was drawn"] > n / 3


def test_the_kinds_have_their_shares() -> None:
    done = mistyped([TEXT] * 4000, rate=0.005)
    one = [after for after in done.texts if after != TEXT and edit_distance(TEXT, after) == 1]
    shorter = sum(len(after) < len(TEXT) for after in one)
    longer = sum(len(after) > len(TEXT) for after in one)
    exchanged = sum(sorted(after) == sorted(TEXT) for after in one)
    total = 1.65 + 0.80 + 0.67 + 0.165
    for count, weight in ((shorter, 0.80), (longer, 0.67), (exchanged, 0.165)):
        assert count / len(one) == pytest.approx(weight / total, abs=0.03)


def test_one_kind_alone() -> None:
    near = neighbours("qwertz")
    for kind in NO_KIND:
        weights = NO_KIND | {kind: 1.0}
        for after in mistyped([TEXT] * 60, rate=0.05, keyboard="qwertz", **weights).texts:
            if kind == "substitution":
                different = [pair for pair in zip(TEXT, after, strict=True) if pair[0] != pair[1]]
                assert all(new in near[old] for old, new in different)
            elif kind == "transposition":
                assert sorted(after) == sorted(TEXT)
            else:
                assert (len(after) > len(TEXT)) == (kind == "insertion" and after != TEXT)
            assert len(after.split()) == 7


def test_first_letters_are_hit_as_seldom_as_asked() -> None:
    weights = NO_KIND | {"substitution": 1.0}
    for share in (0.0, 0.25, 1.0):
        done = mistyped([TEXT] * 1500, rate=0.05, first_letter=share, **weights)
        first = other = 0
        for after in done.texts:
            for place, (old, new) in enumerate(zip(TEXT, after, strict=True)):
                if old != new:
                    if place == 0 or TEXT[place - 1] == " ":
                        first += 1
                    else:
                        other += 1
        assert first / 7 / (other / 34) == pytest.approx(share, abs=0.08)


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("", {}, "no letter"),
        ("🎉 ... !", {}, "no letter"),
        ("a b c", {"first_letter": 0, "rate": 0.5}, "no error was drawn"),
        ("ж", {"insertion": 0, "rate": 0.5, "first_letter": 1}, "no error was drawn"),
        (TEXT, NO_KIND, "no error was drawn"),
    ],
)
def test_why_a_caption_stays(text: str, options: dict[str, float], reason: str) -> None:
    done = mistyped([text] * 20, **options)
    assert done.texts == [text] * 20
    assert done.reasons == {reason: 20}


@given(st.text(max_size=40))
def test_words_stay_words(text: str) -> None:
    done = mistyped([text], rate=0.5)
    assert len(done.texts[0].split()) == len(text.split())
    assert mistyped([text], rate=0.5).texts == done.texts


def test_a_word_keeps_a_letter_however_many_are_hit() -> None:
    options = NO_KIND | {"omission": 1.0, "first_letter": 1.0, "rate": 0.5}
    after = {text for text in mistyped(["ab,cd"] * 200, **options).texts}
    assert after == {"ab,cd", "a,cd", "b,cd", "ab,c", "ab,d", "a,c", "a,d", "b,c", "b,d"}
