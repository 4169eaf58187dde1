"""Questions: what probes are asked of rows, and which answers count for which kind of information.

A question is one fact key (``main.colour``), one digit of a shortcut or one word. A row is asked it
when it has an answer there; the answers of one question are its classes. Groups weigh the answers of
test rows: an answer counts for "shared" when all captions of its image state it, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from diptych.analysis.information.answers import Answers, joined

NOT_ASKED = -1
"""The label of a row that is not asked a question."""

Place = Literal["train", "validation", "test"]

PLACES: tuple[Place, ...] = ("train", "validation", "test")
"""What probes are trained, chosen and measured on."""

FEW_ROWS_PER_CLASS = 50
"""Below so many training rows per class a probe may find less than there is. Of facts planted plainly
(one-hot, rotated, 2 to 25 classes, 128 dimensions) the linear probe finds 96 % with 5 rows per class and
99.8 % with 10, the perceptron 54–76 % with 5, 80–94 % with 10 and 96–99 % with 50."""


@dataclass(frozen=True, eq=False)
class Part:
    """Coded answers of one split.

    Attributes:
        labels: (n, q) int64 class numbers, :data:`NOT_ASKED` where the row is not asked.
        images: (n,) int64, the image of each row.
    """

    labels: np.ndarray
    images: np.ndarray


@dataclass(frozen=True, eq=False)
class Questions:
    """What can be asked of train, validation and test rows.

    Attributes:
        keys: the questions' names.
        classes: per question, its possible answers: those of the training rows, sorted.
        train, validation, test: coded answers.
        groups: kind of information → (n_test, q) float64 weights; 0 where the row is not asked.
        notes: what was left out and why, and which questions have few rows; one sentence each.
    """

    keys: tuple[str, ...]
    classes: tuple[tuple[str, ...], ...]
    train: Part
    validation: Part
    test: Part
    groups: Mapping[str, np.ndarray]
    notes: tuple[str, ...] = ()

    def part(self, place: Place) -> Part:
        """The answers of one split."""
        parts: dict[Place, Part] = {"train": self.train, "validation": self.validation, "test": self.test}
        return parts[place]

    def subset(self, columns: np.ndarray, train_rows: np.ndarray) -> Questions:
        """Some of the questions, about some of the training rows."""
        taken = {
            place: Part(self.part(place).labels[:, columns], self.part(place).images) for place in PLACES
        }
        taken["train"] = Part(taken["train"].labels[train_rows], self.train.images[train_rows])
        return Questions(
            tuple(self.keys[column] for column in columns),
            tuple(self.classes[column] for column in columns),
            taken["train"],
            taken["validation"],
            taken["test"],
            {name: weights[:, columns] for name, weights in self.groups.items()},
            self.notes,
        )

    def beside(self, others: Questions) -> Questions:
        """These questions and others about the same rows; a group may have members of both."""
        nothing = [np.zeros(one.test.labels.shape) for one in (self, others)]
        parts = [
            Part(
                np.concatenate([self.part(place).labels, others.part(place).labels], axis=1),
                self.part(place).images,
            )
            for place in PLACES
        ]
        return Questions(
            (*self.keys, *others.keys),
            (*self.classes, *others.classes),
            parts[0],
            parts[1],
            parts[2],
            joined(self.groups, others.groups, nothing),
            (*self.notes, *others.notes),
        )

    @property
    def n_classes(self) -> list[int]:
        """Classes per question."""
        return [len(values) for values in self.classes]


def questions_of(train: Answers, validation: Answers, test: Answers, what: str = "questions") -> Questions:
    """Code the answers of three splits by the classes of the training rows.

    A test or validation row whose answer no training row has cannot be predicted by anything learned
    from them; it is not asked, and counted. A question with one answer only, or that no validation or
    no two test answers are left of, is left out, and counted.
    """
    validation, test = validation.aligned(train.keys), test.aligned(train.keys)
    coded: list[tuple[int, tuple[str, ...], list[np.ndarray]]] = []
    constant, untestable, unseen, few = [], [], 0, []
    for column, key in enumerate(train.keys):
        given = [answers.values[:, column] for answers in (train, validation, test)]
        classes = tuple(sorted({value for value in given[0] if value is not None}))
        code = {value: number for number, value in enumerate(classes)}
        labels = [np.array([code.get(value, NOT_ASKED) for value in values], np.int64) for values in given]
        if len(classes) < 2:
            if classes:
                constant.append(key)
            continue
        asked = [labels[2] != NOT_ASKED, labels[1] != NOT_ASKED]
        strangers = sum(value is not None for value in given[2]) - int(asked[0].sum())
        if len(np.unique(labels[2][asked[0]])) < 2 or not asked[1].any():
            untestable.append(key)
            continue
        unseen += strangers
        if (labels[0] != NOT_ASKED).sum() < FEW_ROWS_PER_CLASS * len(classes):
            few.append(key)
        coded.append((column, classes, labels))
    columns = [column for column, _, _ in coded]
    test_asked = np.stack([labels[2] != NOT_ASKED for *_, labels in coded], axis=1) if coded else None
    notes = _notes(what, constant, untestable, unseen, few)
    parts = [
        Part(
            np.stack([labels[place] for *_, labels in coded], axis=1)
            if coded
            else np.empty((len(answers.images), 0), np.int64),
            np.asarray(answers.images, np.int64),
        )
        for place, answers in enumerate((train, validation, test))
    ]
    return Questions(
        tuple(train.keys[column] for column in columns),
        tuple(classes for _, classes, _ in coded),
        parts[0],
        parts[1],
        parts[2],
        {
            name: weights[:, columns].astype(np.float64) * (1.0 if test_asked is None else test_asked)
            for name, weights in test.groups.items()
        },
        notes,
    )


def _notes(
    what: str, constant: Sequence[str], untestable: Sequence[str], unseen: int, few: Sequence[str]
) -> tuple[str, ...]:
    notes = []
    if constant:
        notes.append(
            f"{what}: {len(constant)} with one value in all training rows left out: {_some(constant)}."
        )
    if untestable:
        notes.append(
            f"{what}: {len(untestable)} left out, of whose values training rows share fewer than two with test "
            f"rows or none with validation rows: {_some(untestable)}."
        )
    if unseen:
        notes.append(f"{what}: {unseen:,} test answers that no training row has are not asked.")
    if few:
        notes.append(
            f"{what}: fewer than {FEW_ROWS_PER_CLASS} training rows per class, so that probes may find less than "
            f"there is: {_some(few)}."
        )
    return tuple(notes)


def _some(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
