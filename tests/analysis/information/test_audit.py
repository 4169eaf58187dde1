"""The audit of rows that hold what was put into them, its gap, and its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from diptych.analysis.information import Audit, Encoded, audit, gap_of
from diptych.analysis.information.audit import side_questions
from diptych.core.errors import DataError, StorageError
from diptych.data.collection import Collection
from diptych.evaluation.bootstrap import Bootstrap


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


def test_the_file(found: Audit, tmp_path: Path) -> None:
    again = Audit.open(found.save(tmp_path / "audit.json"))
    assert again.to_dict() == found.to_dict()
    assert again.held("without", "image", "shared", "linear") == found.held(
        "without", "image", "shared", "linear"
    )
    line = found.protocol.line()
    for words in ("dataset told", "images 400 to train", "95 % intervals from 200", "seed 0"):
        assert words in line
    (tmp_path / "other.json").write_text(json.dumps({"kind": "cocos", "format": 1}))
    with pytest.raises(StorageError, match="expected information audit of format 1, got cocos"):
        Audit.open(tmp_path / "other.json")
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(StorageError, match="holds no information audit"):
        Audit.open(tmp_path / "list.json")


def test_words_where_nobody_says_facts(told: Callable[..., Collection]) -> None:
    def split(n: int, seed: int) -> Encoded:
        random = np.random.default_rng(seed)
        kind, extra = random.integers(0, 3, n), random.integers(0, 2, n)
        captions = [
            [
                f"a {('dog', 'cat', 'bird')[k]}",
                f"the {('dog', 'cat', 'bird')[k]} {'barks' if e else 'sleeps'}",
            ]
            for k, e in zip(kind, extra, strict=True)
        ]
        images = np.concatenate([np.eye(3)[kind], random.normal(size=(n, 5)) / 5], axis=1)
        texts = np.concatenate([np.eye(3)[np.repeat(kind, 2)], random.normal(size=(2 * n, 5)) / 5], axis=1)
        return Encoded(told(None, [], captions=captions), images.astype("f4"), texts.astype("f4"))

    found = audit(
        {"without": (split(300, 0), split(100, 1), split(150, 2))}, ("linear",), bootstrap=Bootstrap(0)
    )
    assert found.protocol.content == "words"
    shared = found.held("without", "image", "shared", "linear")
    specific = found.held("without", "image", "specific", "linear")
    words = found.held("without", "caption", "words", "linear")
    assert shared is not None
    assert specific is not None
    assert words is not None
    assert shared.percent > 97  # dog, cat, bird
    assert specific.percent < 3  # barks, sleeps
    assert 40 < words.percent < 80
    assert gap_of(found.conditions["without"]["image"], "linear") is None


def test_nothing_to_ask(told: Callable[..., Collection]) -> None:
    same = told([{"shape": "star"}] * 3, [[("shape",)]] * 3)
    with pytest.raises(DataError, match="nothing can be asked of image rows"):
        side_questions("image", [same] * 3)
