"""The audit of rows that hold what was put into them, its gap, and its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diptych.analysis.information import Audit, Encoded, audit, gap_of
from diptych.analysis.information.audit import side_questions
from diptych.core.errors import DataError, NumericalError, StorageError
from diptych.data.collection import Collection
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
    with pytest.raises(DataError, match="nothing can be asked of image rows: facts: 1 with one value"):
        side_questions("image", [same] * 3)


def test_too_few_images_are_told_what_helps(told: Callable[..., Collection]) -> None:
    many = told([{"shape": "star"}, {"shape": "ring"}] * 10, [[("shape",)]] * 20)
    one = told([{"shape": "star"}], [[("shape",)]])
    for most in (20, 4000):  # neither more training images nor --most can help
        with pytest.raises(DataError, match="left out, of whose values") as caught:
            side_questions("image", [many, many, one], most)
        assert caught.value.fix == "audit a test split of two images or more, whose captions differ"
    same = told([{"shape": "star"}] * 3, [[("shape",)]] * 3)
    with pytest.raises(DataError, match="1 with one value") as caught:
        side_questions("image", [same, many, many])
    assert "all 3 training images are used" in caught.value.fix
    bare = told(None, [], captions=[["a dog"], ["a cat"]])
    with pytest.raises(DataError, match="no content word") as caught:
        side_questions("caption", [bare] * 3)
    assert "all 2 training images are used" in caught.value.fix
    # as many as there may be: there can be more
    with pytest.raises(DataError, match="no content word") as caught:
        side_questions("caption", [bare] * 3, most=2)
    assert "--most" in caught.value.fix


@pytest.mark.parametrize(("side", "name"), [("image", "i5"), ("caption", "c5")])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_that_are_no_numbers_are_named(
    seen: Callable[..., Encoded], side: str, name: str, value: float
) -> None:
    parts = [seen(n, seed) for seed, n in enumerate((60, 30, 30))]
    rows = (parts[1].images if side == "image" else parts[1].texts).copy()
    rows[5, 2] = rows[7, 0] = value
    parts[1] = replace(parts[1], **{"images" if side == "image" else "texts": rows})
    said = rf"2 of {len(rows)} {side} rows of the validation split are not finite, the first is row 5, {name}"
    with pytest.raises(NumericalError, match=said):
        audit({"without": tuple(parts)}, ("linear",), bootstrap=Bootstrap(0))  # type: ignore[dict-item]


def test_few_validation_images_are_said(found: Audit) -> None:
    def notes(to_choose: int) -> list[str]:
        protocol = replace(found.protocol, images=(400, to_choose, 200))
        return [note for note in Audit(protocol, found.conditions).notes() if "to choose penalties" in note]

    assert notes(20) == []
    assert notes(19)[0].startswith("Only 19 validation images to choose")
    assert notes(1)[0].startswith("Only 1 validation image to choose")


def test_digits_that_no_caption_has_are_no_part_of_the_gap(told: Callable[..., Collection]) -> None:
    def split(n: int, seed: int, ends: bool) -> Encoded:
        random = np.random.default_rng(seed)
        facts = [
            {"shape": f"s{shape}", "place": f"p{place}"} for shape, place in random.integers(0, 4, (n, 2))
        ]
        numbers = [f"{number:06d}" for number in random.integers(0, 100, n)]
        part = told(
            facts,
            [[("shape", "place"), ("shape",)]] * n,
            shortcuts=[[number] for number in numbers],
            ends=[[number if ends else ""] * 2 for number in numbers],
        )
        rows = random.normal(size=(3 * n, 6)).astype(np.float32)
        return Encoded(part, rows[:n], rows[n:])

    for ends, expected in ((False, 0.0), (True, 2 * np.log2(10))):
        splits = tuple(split(n, seed, ends) for seed, n in enumerate((300, 100, 200)))
        side = audit({"with": splits}, ("linear",), bootstrap=Bootstrap(0)).conditions["with"]["image"]  # type: ignore[dict-item]
        gap, planted = gap_of(side, "linear"), side.group("shortcut")
        assert gap is not None
        assert planted is not None
        assert planted.held["linear"].there == pytest.approx(2 * np.log2(10), abs=0.2)
        assert gap.shortcut == pytest.approx(expected, abs=0.2)
        assert (gap.shortcut == 0) is not ends
        assert gap.optimal - gap.shortcut == pytest.approx(4, abs=0.06)
