"""Questions that probes are asked: answers of the rows of three splits, coded by the classes of training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

NOT_ASKED = -1  # the label of a row that is not asked a question
Place = Literal["train", "validation", "test"]
PLACES: tuple[Place, ...] = ("train", "validation", "test")  # what probes are trained, chosen and measured on

# below so many training rows per class a probe may find less than there is. Of facts planted plainly (one-hot,
# rotated, 2 to 25 classes, 128 dimensions) the linear probe finds 96 % with 5 rows per class and 99.8 % with
# 10, the perceptron 54–76 % with 5, 80–94 % with 10 and 96–99 % with 50
FEW_ROWS_PER_CLASS = 50


@dataclass(frozen=True, eq=False)
class Answers:
    """What is true of the rows of one split."""

    keys: tuple[str, ...]  # the questions' names
    values: np.ndarray  # (n, q) objects: the answer as text, None where the row is not asked
    groups: Mapping[str, np.ndarray]  # kind of information → (n, q) weights, 0 or more; usually 0 and 1
    images: np.ndarray  # (n,) the image of each row

    def column(self, key: str) -> np.ndarray:
        if key in self.keys:
            return self.values[:, self.keys.index(key)]
        return np.full(len(self.images), None, dtype=object)


@dataclass(frozen=True, eq=False)
class Part:
    labels: np.ndarray  # (n, q) int64 class numbers, NOT_ASKED where the row is not asked
    images: np.ndarray  # (n,) int64, the image of each row


@dataclass(frozen=True, eq=False)
class Questions:
    """What can be asked of train, validation and test rows."""

    keys: tuple[str, ...]
    n_classes: tuple[int, ...]  # per question, different answers of the training rows
    parts: Mapping[Place, Part]  # coded answers of each split
    groups: Mapping[str, np.ndarray]  # kind of information → (n_test, q) weights; 0 where not asked
    notes: tuple[str, ...] = ()  # what was left out and why, and which questions have few rows

    def subset(self, columns: np.ndarray, train_rows: np.ndarray) -> Questions:
        rows = {"train": train_rows}
        return Questions(
            tuple(self.keys[column] for column in columns),
            tuple(self.n_classes[column] for column in columns),
            {
                place: Part(part.labels[chosen][:, columns], part.images[chosen])
                for place, part in self.parts.items()
                for chosen in [rows.get(place, slice(None))]
            },
            {name: weights[:, columns] for name, weights in self.groups.items()},
            self.notes,
        )

    @classmethod
    def joined(cls, given: Sequence[Questions]) -> Questions:
        """Return all questions about the same rows; a group may have members of several."""
        nothing = [np.zeros(one.parts["test"].labels.shape) for one in given]
        return cls(
            tuple(key for one in given for key in one.keys),
            tuple(size for one in given for size in one.n_classes),
            {
                place: Part(np.concatenate([one.parts[place].labels for one in given], axis=1), part.images)
                for place, part in given[0].parts.items()
            },
            {
                name: np.concatenate(
                    [one.groups.get(name, zeros) for one, zeros in zip(given, nothing, strict=True)], axis=1
                )
                for name in dict.fromkeys(name for one in given for name in one.groups)
            },
            tuple(note for one in given for note in one.notes),
        )


def questions_of(train: Answers, validation: Answers, test: Answers, what: str = "questions") -> Questions:
    """Code the answers of three splits by the classes of the training rows.

    An answer that no training row has is not asked. A question with one answer only, or that no validation or no
    two test answers are left of, is left out. Both are counted in the notes.
    """
    keys: list[str] = []
    coded: list[tuple[int, list[np.ndarray]]] = []
    constant, untestable, unseen, few = [], [], 0, []
    for key in train.keys:
        given = [answers.column(key) for answers in (train, validation, test)]
        classes = sorted({value for value in given[0] if value is not None})
        code = {value: number for number, value in enumerate(classes)}
        labels = [np.array([code.get(value, NOT_ASKED) for value in values], np.int64) for values in given]
        asked = [one[one != NOT_ASKED] for one in labels]
        if len(classes) < 2:
            constant += [key] * len(classes)
        elif len(np.unique(asked[2])) < 2 or not len(asked[1]):
            untestable.append(key)
        else:
            unseen += sum(value is not None for value in given[2]) - len(asked[2])
            if len(asked[0]) < FEW_ROWS_PER_CLASS * len(classes):
                few.append(key)
            keys.append(key)
            coded.append((len(classes), labels))
    parts: dict[Place, Part] = {}
    for number, (place, answers) in enumerate(zip(PLACES, (train, validation, test), strict=True)):
        columns = [labels[number] for _, labels in coded]
        stacked = np.stack(columns, axis=1) if columns else np.empty((len(answers.images), 0), np.int64)
        parts[place] = Part(stacked, np.asarray(answers.images, np.int64))
    weights: dict[str, np.ndarray] = {}
    for name, group in test.groups.items():
        weights[name] = np.zeros(parts["test"].labels.shape)
        for column, key in enumerate(keys):
            if key in test.keys:
                weights[name][:, column] = group[:, test.keys.index(key)]
        weights[name] *= parts["test"].labels != NOT_ASKED
    notes = {
        f"{len(constant)} with one value in all training rows left out: {_some(constant)}.": constant,
        f"{len(untestable)} left out, of whose values training rows share fewer than two with test rows or none with "
        f"validation rows: {_some(untestable)}.": untestable,
        f"{unseen:,} test answers that no training row has are not asked.": unseen,
        f"fewer than {FEW_ROWS_PER_CLASS} training rows per class, so that probes may find less than there is: "
        f"{_some(few)}.": few,
    }
    said = tuple(f"{what}: {note}" for note, there in notes.items() if there)
    return Questions(tuple(keys), tuple(size for size, _ in coded), parts, weights, said)


def _some(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
