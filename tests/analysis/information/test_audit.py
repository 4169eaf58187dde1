"""The audit of rows that hold what was put into them, its gap, and its file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from diptych.analysis.information import Audit, Encoded, audit, gap_of
from diptych.metrics.bootstrap import Bootstrap


@pytest.fixture(scope="module")
def found(seen: Callable[..., Encoded]) -> Audit:
    plain, coded = (
        tuple(seen(n, seed, codes) for seed, n in enumerate((400, 120, 200))) for codes in (False, True)
    )
    return audit(
        {"without": plain, "with": coded},  # type: ignore[dict-item]
        ("linear",),
        bootstrap=Bootstrap(200),
        about={"dataset": "told"},
    )


def test_images_hold_what_was_put_into_them(found: Audit) -> None:
    # shape is stated by both captions, place by one, tint by none; the rows hold the shape alone
    shared = found.held("without", "image", "shared", "linear")
    assert shared is not None
    assert shared.percent > 98
    assert shared.there == pytest.approx(2, abs=0.02)
    for kind in ("specific", "undescribed", "never described"):
        held = found.held("without", "image", kind, "linear")
        assert held is not None
        assert held.percent < 2, kind
    assert found.held("without", "image", "partial", "linear") is None
    assert found.held("without", "image", "shortcut", "linear") is None


def test_captions_hold_what_they_state(found: Audit) -> None:
    for kind in ("shared", "specific"):
        held = found.held("without", "caption", kind, "linear")
        assert held is not None
        assert held.percent > 95, kind
    # the second caption of an image does not say where, and cannot know
    unstated = found.held("without", "caption", "unstated", "linear")
    assert unstated is not None
    assert unstated.percent < 2
    assert unstated.there == pytest.approx(1, abs=0.02)  # half of the captions, two bits each


def test_shortcuts_that_are_there_and_not_held(found: Audit) -> None:
    for side in ("image", "caption"):
        held = found.held("with", side, "shortcut", "linear")
        assert held is not None
        assert held.percent < 3
        # codes below 100: four digits are always 0
        assert held.there == pytest.approx(2 * np.log2(10), abs=0.2)
    assert any("4 with one value" in note for note in found.notes())


def test_the_gap_by_hand(found: Audit) -> None:
    gap = gap_of(found.conditions["without"]["image"], "linear")
    assert gap is not None
    # two bits of shape from both captions, two of place from one of two
    assert gap.shared == pytest.approx(2, abs=0.03)
    assert gap.minimal == pytest.approx(3, abs=0.03)
    assert gap.optimal == pytest.approx(4, abs=0.04)
    assert gap.held[0] == pytest.approx(2, abs=0.08)
    value, low, high = gap.gap
    assert low <= value <= high
    assert value == pytest.approx(gap.optimal - gap.held[0])
    coded = gap_of(found.conditions["with"]["image"], "linear")
    assert coded is not None
    assert coded.shortcut == pytest.approx(2 * np.log2(10), abs=0.2)
    assert coded.minimal - coded.shortcut == pytest.approx(gap.minimal, abs=0.03)


def test_questions_carry_accuracy_and_control(found: Audit) -> None:
    by_key = {one.key: one for one in found.conditions["without"]["image"].questions}
    shape, tint = by_key["shape"].probes["linear"], by_key["tint"].probes["linear"]
    assert shape.accuracy > 0.97
    assert shape.control_accuracy < 0.45
    assert shape.selectivity == pytest.approx(shape.accuracy - shape.control_accuracy)
    assert tint.accuracy < 0.45
    assert by_key["shape"].rows == (400, 200)
    assert by_key["shape"].groups == {"shared": 1, "one caption": 1, "task-relevant": 1}
    assert by_key["place"].groups["one caption"] == 0.5


def test_the_protocol_line(found: Audit) -> None:
    line = found.protocol.line()
    for words in ("dataset told", "images 400 to train", "95 % intervals from 200", "seed 0"):
        assert words in line
