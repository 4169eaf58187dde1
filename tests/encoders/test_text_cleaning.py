from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.encoders.text_cleaning import ALBEF_CLEANING, BLIP_CLEANING, Cleaning

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "pre_caption.json").read_text(encoding="utf-8"))
RULES = {"albef": ALBEF_CLEANING, "xvlm": ALBEF_CLEANING, "blip": BLIP_CLEANING}


@pytest.mark.parametrize("model", RULES)
def test_golden(model: str) -> None:
    """Outputs of the published code."""
    assert [RULES[model](caption) for caption in GOLDEN["captions"]] == GOLDEN["out"][model]


@pytest.mark.parametrize("rule", [ALBEF_CLEANING, BLIP_CLEANING])
@given(text=st.text(st.sampled_from("aB .,'-/\n\t!(~"), max_size=80))
def test_properties(rule: Cleaning, text: str) -> None:
    cleaned = rule(text)
    assert not set(cleaned) & set(rule.marks)
    assert cleaned == cleaned.lower()
    assert "  " not in cleaned
    assert len(cleaned.split(" ")) <= 30
    assert rule.cuts(text) == (cleaned != rule.whole(text))


def test_words_are_counted_after_cleaning() -> None:
    assert not ALBEF_CLEANING.cuts("word " * 30)
    assert ALBEF_CLEANING.cuts("word " * 31)
    assert ALBEF_CLEANING.cuts("half-word " * 16)  # 32 words once the hyphens are spaces
    assert not BLIP_CLEANING.cuts("half-word " * 16)
    assert BLIP_CLEANING.describe() == {"like": "BLIP", "words": 30}
    assert ALBEF_CLEANING("...") == ""
