from __future__ import annotations

import numpy as np
import pytest

from diptych.analysis.information import audit, gap_of
from diptych.analysis.information.audit import held_of
from diptych.analysis.information.questions import NOT_ASKED, Answers, questions_of
from diptych.metrics.bootstrap import Bootstrap


@pytest.fixture(scope="module")
def found(seen):
    plain, coded = (
        tuple(seen(n, seed, codes) for seed, n in enumerate((400, 120, 200))) for codes in (False, True)
    )
    return audit(
        {"without": plain, "with": coded}, ("linear",), bootstrap=Bootstrap(200), about={"dataset": "told"}
    )


def test_images_hold_what_was_put_into_them(found):
    # shape is stated by both captions, place by one, tint by none; the rows hold the shape alone
    shared = found.held("without", "image", "shared", "linear")
    assert shared.percent > 98
    assert shared.there == pytest.approx(2, abs=0.02)
    for kind in ("specific", "undescribed", "never described"):
        held = found.held("without", "image", kind, "linear")
        assert held.percent < 2, kind
    assert found.held("without", "image", "partial", "linear") is None
    assert found.held("without", "image", "shortcut", "linear") is None


def test_captions_hold_what_they_state(found):
    for kind in ("shared", "specific"):
        held = found.held("without", "caption", kind, "linear")
        assert held.percent > 95, kind
    # the second caption of an image does not say where, and cannot know
    unstated = found.held("without", "caption", "unstated", "linear")
    assert unstated.percent < 2
    assert unstated.there == pytest.approx(1, abs=0.02)  # half of the captions, two bits each


def test_shortcuts_that_are_there_and_not_held(found):
    for side in ("image", "caption"):
        held = found.held("with", side, "shortcut", "linear")
        assert held.percent < 3
        # codes below 100: four digits are always 0
        assert held.there == pytest.approx(2 * np.log2(10), abs=0.2)
    assert any("4 with one value" in note for note in found.notes())


def test_the_gap_by_hand(found):
    gap = gap_of(found.conditions["without"]["image"], "linear")
    # two bits of shape from both captions, two of place from one of two
    assert gap.shared == pytest.approx(2, abs=0.03)
    assert gap.minimal == pytest.approx(3, abs=0.03)
    assert gap.optimal == pytest.approx(4, abs=0.04)
    assert gap.held[0] == pytest.approx(2, abs=0.08)
    value, low, high = gap.gap
    assert low <= value <= high
    assert value == pytest.approx(gap.optimal - gap.held[0])
    coded = gap_of(found.conditions["with"]["image"], "linear")
    assert coded.shortcut == pytest.approx(2 * np.log2(10), abs=0.2)
    assert coded.minimal - coded.shortcut == pytest.approx(gap.minimal, abs=0.03)


def answers(columns, weights=1.0):
    values = np.array(list(columns.values()), dtype=object).T
    return Answers(tuple(columns), values, {"all": np.full(values.shape, weights)}, np.arange(len(values)))


def test_labels_are_numbers_of_the_training_answers():
    found = questions_of(
        answers({"colour": ["red", "blue", None, "red"]}),
        answers({"colour": ["blue", None]}),
        answers({"colour": ["red", "green", "blue"]}),
    )
    assert found.n_classes == (2,)
    assert found.parts["train"].labels[:, 0].tolist() == [1, 0, NOT_ASKED, 1]
    assert found.parts["validation"].labels[:, 0].tolist() == [0, NOT_ASKED]
    # nobody trained on green
    assert found.parts["test"].labels[:, 0].tolist() == [1, NOT_ASKED, 0]
    assert found.groups["all"][:, 0].tolist() == [1, 0, 1]
    assert any("1 test answers that no training row has" in note for note in found.notes)


def test_what_cannot_be_asked_is_left_out_and_counted():
    found = questions_of(
        answers({"same": ["a"] * 4, "good": list("abab"), "far": list("abab"), "unchosen": list("abab")}),
        answers({"same": ["a"] * 2, "good": list("ab"), "far": list("ab"), "unchosen": [None, None]}),
        answers({"same": ["a"] * 3, "good": list("aba"), "far": list("aac"), "unchosen": list("aba")}),
    )
    assert found.keys == ("good",)
    assert any("1 with one value" in note and "same" in note for note in found.notes)
    assert any("2 left out" in note and "far, unchosen" in note for note in found.notes)


def test_by_hand():
    there = np.array([[2.0, 1.0], [2.0, 0.0], [4.0, 0.0]])
    left = np.array([[1.0, 3.0], [0.0, 0.0], [3.0, 0.0]])
    whole, bad = held_of(there, left, np.array([3, 1]), np.arange(3), Bootstrap(0))
    assert whole.raw == pytest.approx(0.5)
    assert whole.there == pytest.approx(8 / 3)
    assert whole.bits == pytest.approx(4 / 3)
    # worse than no probe is nothing held, and the raw figure is kept
    assert bad.raw == pytest.approx(-2)
    assert (bad.percent, bad.bits, bad.ends) == (0, 0, (0, 0))


def test_interval_resamples_whole_images():
    """Five rows of one image say no more than one row of it."""
    random = np.random.default_rng(0)
    there = np.full((60, 1), 2.0)
    left = random.uniform(0, 2, (60, 1))
    bootstrap = Bootstrap(400, seed=1)
    (single,) = held_of(there, left, np.ones(1), np.arange(60), bootstrap)
    (five,) = held_of(
        np.repeat(there, 5, axis=0),
        np.repeat(left, 5, axis=0),
        np.ones(1),
        np.repeat(np.arange(60), 5),
        bootstrap,
    )
    assert (five.raw, five.low, five.high) == pytest.approx((single.raw, single.low, single.high))
    assert single.low < single.raw < single.high
