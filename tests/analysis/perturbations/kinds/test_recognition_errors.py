"""Characters misread for others of their shape."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.perturbations import (
    PERTURBATIONS,
    PerturbedCaptions,
    TextPerturbation,
    perturb_captions,
)
from diptych.analysis.perturbations.kinds.recognition_errors import CONFUSIONS

KIND = PERTURBATIONS.get("recognition-errors")
assert isinstance(KIND, TextPerturbation)


def misread(captions: list[str], **options: Any) -> PerturbedCaptions:
    assert isinstance(KIND, TextPerturbation)
    return perturb_captions(KIND, captions, [str(row) for row in range(len(captions))], options=options)


def test_the_table_has_no_pair_twice() -> None:
    pairs = [frozenset(pair.split()) for pair in CONFUSIONS]
    assert all(len(pair) == 2 for pair in pairs)
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m", {"rn", "nn"}),
        ("rn", {"m"}),
        ("0", {"O", "o"}),
        ("5", {"S"}),
        ("vv", {"w", "yy", "yw", "wy", "ww"}),
    ],
)
def test_what_shapes_are_read_for(text: str, expected: set[str]) -> None:
    assert set(misread([text] * 300, rate=1.0).texts) == expected


def test_the_rate_is_the_chance_of_each_place() -> None:
    text = "5 " * 1000
    after = misread([text]).texts[0]
    assert after.count("S") == pytest.approx(20, abs=12)
    assert after.replace("S", "5") == text


def test_an_accent_is_another_shape() -> None:
    assert misread(["e\u0301"], rate=1.0).reasons == {"no character that looks like another": 1}
    assert misread(["1\ufe0f\u20e3"], rate=1.0).reasons == {"no character that looks like another": 1}
    assert misread(["é 5"], rate=1.0).texts == ["é S"]


@pytest.mark.parametrize("text", ["", "🎉", "שלום", "4 4", "..."])
def test_nothing_to_misread(text: str) -> None:
    assert misread([text], rate=1.0).reasons == {"no character that looks like another": 1}


@given(st.text(max_size=40))
def test_blanks_and_what_is_not_in_the_table_stay(text: str) -> None:
    after = misread([text], rate=0.5).texts[0]
    table = set("".join(CONFUSIONS).replace(" ", ""))
    assert [one for one in after if one not in table] == [one for one in text if one not in table]
