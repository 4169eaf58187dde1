from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import UnknownNameError
from diptych.metrics.paired import CORRECTIONS, corrected, correction_named, correction_text


def test_by_hand() -> None:
    p = [0.03, None, 0.01, 0.02, 0.5]
    assert corrected(p, "none") == p
    assert corrected(p, "bonferroni") == pytest.approx([0.12, None, 0.04, 0.08, 1.0])
    # 4 × 0.01, 3 × 0.02, 2 × 0.03 (no less than the one before it), 1 × 0.5
    assert corrected(p, "holm") == pytest.approx([0.06, None, 0.04, 0.06, 0.5])
    assert corrected([], "holm") == []
    assert corrected([None], "bonferroni") == [None]


def rejected_in_turn(p: list[float], level: float) -> set[int]:
    """Holm's procedure as he wrote it: step down until one is not rejected."""
    order = sorted(range(len(p)), key=lambda place: p[place])
    out: set[int] = set()
    for rank, place in enumerate(order):
        if p[place] * (len(p) - rank) > level:
            break
        out.add(place)
    return out


@given(
    st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.01, 0.05])), max_size=12),
    st.sampled_from([0.01, 0.05, 0.2]),
)
def test_holm_rejects_what_stepping_down_rejects(p: list[float], level: float) -> None:
    holm, bonferroni = corrected(p, "holm"), corrected(p, "bonferroni")
    assert {place for place, value in enumerate(holm) if value is not None and value <= level} == (
        rejected_in_turn(p, level)
    )
    for raw, one, other in zip(p, holm, bonferroni, strict=True):
        assert one is not None
        assert other is not None
        assert min(1.0, raw) <= one <= other <= 1


def test_names() -> None:
    said = [correction_text(correction_named(name), 1200) for name in CORRECTIONS]
    assert said == ["Bonferroni over 1,200 comparisons", "Holm over 1,200 comparisons", ""]
    with pytest.raises(UnknownNameError, match="unknown correction 'Holm'.*did you mean 'holm'"):
        correction_named("Holm")
