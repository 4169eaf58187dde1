"""Questions: coding by the training rows' answers, and what is left out and counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from diptych.analysis.information.questions import (
    FEW_ROWS_PER_CLASS,
    NOT_ASKED,
    Answers,
    Questions,
    questions_of,
)
from diptych.core.errors import DataError


def answers(columns: dict[str, list[Any]], weights: float = 1.0) -> Answers:
    values = np.array(list(columns.values()), dtype=object).T
    return Answers(tuple(columns), values, {"all": np.full(values.shape, weights)}, np.arange(len(values)))


def test_labels_are_numbers_of_the_training_answers() -> None:
    found = questions_of(
        answers({"colour": ["red", "blue", None, "red"]}),
        answers({"colour": ["blue", None]}),
        answers({"colour": ["red", "green", "blue"]}),
    )
    assert found.classes == (("blue", "red"),)
    assert found.parts["train"].labels[:, 0].tolist() == [1, 0, NOT_ASKED, 1]
    assert found.parts["validation"].labels[:, 0].tolist() == [0, NOT_ASKED]
    # nobody trained on green
    assert found.parts["test"].labels[:, 0].tolist() == [1, NOT_ASKED, 0]
    assert found.groups["all"][:, 0].tolist() == [1, 0, 1]
    assert any("1 test answers that no training row has" in note for note in found.notes)


def test_what_cannot_be_asked_is_left_out_and_counted() -> None:
    found = questions_of(
        answers({"same": ["a"] * 4, "good": list("abab"), "far": list("abab"), "unchosen": list("abab")}),
        answers({"same": ["a"] * 2, "good": list("ab"), "far": list("ab"), "unchosen": [None, None]}),
        answers({"same": ["a"] * 3, "good": list("aba"), "far": list("aac"), "unchosen": list("aba")}),
        "digits",
    )
    assert found.keys == ("good",)
    assert any("digits: 1 with one value" in note and "same" in note for note in found.notes)
    assert any("digits: 2 left out" in note and "far, unchosen" in note for note in found.notes)


def test_few_rows_per_class_are_said() -> None:
    many = ["a", "b"] * FEW_ROWS_PER_CLASS
    few = [*many[: 2 * FEW_ROWS_PER_CLASS - 1], None]
    found = questions_of(*(answers({"many": many, "few": few}) for _ in range(3)))
    (note,) = found.notes
    assert note.endswith("than there is: few.")


def test_other_keys_in_other_splits() -> None:
    found = questions_of(
        answers({"a": list("xyxy"), "b": list("xyxy")}),
        answers({"b": list("xy"), "c": list("xy")}),
        answers({"b": list("xyx"), "a": list("xyx")}),
    )
    assert found.keys == ("b",)


def test_beside_and_subset() -> None:
    first = questions_of(*(answers({"a": list("xyxy"), "b": list("xxyy")}) for _ in range(3)))
    second = questions_of(*(answers({"c": list("pqqp")}) for _ in range(3)))
    renamed = Questions(
        second.keys,
        second.classes,
        second.parts,
        {"own": second.groups["all"]},
    )
    both = first.beside(renamed)
    assert both.keys == ("a", "b", "c")
    assert both.groups["all"].sum(axis=0).tolist() == [4, 4, 0]
    assert both.groups["own"].sum(axis=0).tolist() == [0, 0, 4]
    part = both.subset(np.array([2, 0]), np.array([0, 3]))
    assert part.keys == ("c", "a")
    assert part.parts["train"].labels.tolist() == [[0, 0], [0, 1]]
    assert part.parts["test"].labels[:, 0].tolist() == second.parts["test"].labels[:, 0].tolist()


def test_shapes_are_held_together() -> None:
    with pytest.raises(DataError, match=r"shape \(2, 2\), not \(2, 1\)"):
        Answers(("a",), np.full((2, 1), "x", dtype=object), {"all": np.ones((2, 2))}, np.arange(2))
