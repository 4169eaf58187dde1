from __future__ import annotations

import pytest

from diptych.report.page import DARK, LIGHT, frame_colour, judgement


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.2."""
    parts = [part / 255 for part in bytes.fromhex(colour[1:])]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("paper", ["paper", "soft"])
def test_words_and_shapes_can_be_told_from_the_paper(colours, paper):
    for name in ("ink", "muted", "right", "wrong"):
        assert contrast(colours[name], colours[paper]) >= 4.5, name
    for name in ("blue", "orange", "unknown"):
        assert contrast(colours[name], colours[paper]) >= 2.9, name


def test_both_papers_know_the_same_colours():
    assert list(LIGHT) == list(DARK)


def test_judgements():
    assert [judgement(state) for state in (True, False, None)] == ["right", "wrong", "unknown"]
    assert [frame_colour(state) for state in (True, False, None)] == [
        LIGHT["right"],
        LIGHT["wrong"],
        LIGHT["unknown"],
    ]
