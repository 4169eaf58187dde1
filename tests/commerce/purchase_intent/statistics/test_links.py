from __future__ import annotations

import pytest

from diptych.commerce.purchase_intent.statistics.intervals import LINKS, link


@pytest.mark.parametrize(
    ("there", "back", "kind"),
    [
        (0.20, 0.02, "strong"),  # tablet to PC and back
        (0.4375, 0.0001, "one-sided"),  # TV to PC
        (0.0001, 0.0625, "one-sided"),  # tablet to TV
        (0.009, 0.0, "weak"),
        (0.01, 0.01, "strong"),
        (0.5, None, "none"),
    ],
)
def test_kinds(there: float, back: float | None, kind: str) -> None:
    assert link(there, back, likely=0.01, near_zero=0.01) == kind
    assert kind in LINKS


@pytest.mark.parametrize(
    ("there", "back", "kind"),
    [
        (0.3, 0.03, "none"),
        (0.03, 0.03, "none"),
        (0.3, 0.01, "one-sided"),
        (0.03, 0.01, "none"),
        (0.3, 0.05, "strong"),
    ],
)
def test_between_likely_and_near_zero(there: float, back: float, kind: str) -> None:
    assert link(there, back, likely=0.05, near_zero=0.02) == kind
    assert link(back, there, likely=0.05, near_zero=0.02) == kind
