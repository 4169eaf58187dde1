"""Questions that probes are asked: answers of the rows of three splits, coded by the classes of training rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from diptych.analysis.information import answers
from diptych.analysis.information.answers import Answers
from diptych.core.errors import DataError
from diptych.data.collection import Collection

NOT_ASKED = -1  # the label of a row that is not asked a question
Place = Literal["train", "validation", "test"]
PLACES: tuple[Place, ...] = ("train", "validation", "test")  # what probes are trained, chosen and measured on

# below so many training rows per class a probe may find less than there is. Of facts planted plainly (one-hot,
# rotated, 2 to 25 classes, 128 dimensions) the linear probe finds 96 % with 5 rows per class and 99.8 % with
# 10, the perceptron 54–76 % with 5, 80–94 % with 10 and 96–99 % with 50
FEW_ROWS_PER_CLASS = 50


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
        parts = {place: Part(part.labels[:, columns], part.images) for place, part in self.parts.items()}
        train = parts["train"]
        parts["train"] = Part(train.labels[train_rows], train.images[train_rows])
        return replace(
            self,
            keys=tuple(self.keys[column] for column in columns),
            n_classes=tuple(self.n_classes[column] for column in columns),
            parts=parts,
            groups={name: weights[:, columns] for name, weights in self.groups.items()},
        )


def questions_of(train: Answers, validation: Answers, test: Answers) -> Questions:
    """Code the answers of three splits by the classes of the training rows.

    An answer that no training row has is not asked. A question with one answer only, or that no validation or no
    two test answers are left of, is left out. Both are counted in the notes.
    """
    splits = (train, validation, test)
    asked: dict[str, tuple[int, list[np.ndarray]]] = {}
    constant, untestable, unseen, few = [], [], 0, []
    for key in train.keys:
        given = [one.column(key, one.values) for one in splits]
        classes = sorted({value for value in train.values[:, train.keys.index(key)] if value is not None})
        code = {value: number for number, value in enumerate(classes)}
        labels = [
            np.full(len(one.images), NOT_ASKED)
            if values is None
            else np.array([code.get(value, NOT_ASKED) for value in values], np.int64)
            for one, values in zip(splits, given, strict=True)
        ]
        counts = [int((one != NOT_ASKED).sum()) for one in labels]
        if len(classes) < 2:
            constant += [key] * len(classes)
        elif len(np.setdiff1d(labels[2], [NOT_ASKED])) < 2 or not counts[1]:
            untestable.append(key)
        else:
            unseen += sum(value is not None for value in given[2]) - counts[2]  # type: ignore[union-attr]
            few += [key] if counts[0] < FEW_ROWS_PER_CLASS * len(classes) else []
            asked[key] = len(classes), labels
    parts: dict[Place, Part] = {}
    for number, (place, one) in enumerate(zip(PLACES, splits, strict=True)):
        columns = [labels[number] for _, labels in asked.values()]
        stacked = np.stack(columns, axis=1) if columns else np.empty((len(one.images), 0), np.int64)
        parts[place] = Part(stacked, np.asarray(one.images, np.int64))
    of_test = parts["test"].labels != NOT_ASKED
    places = [test.keys.index(key) for key in asked]
    notes = {
        f"{len(constant)} with one value in all training rows left out: {_some(constant)}.": constant,
        f"{len(untestable)} left out, of whose values training rows share fewer than two with test rows or none with "
        f"validation rows: {_some(untestable)}.": untestable,
        f"{unseen:,} test answers that no training row has are not asked.": unseen,
        f"fewer than {FEW_ROWS_PER_CLASS} training rows per class, so that probes may find less than there is: "
        f"{_some(few)}.": few,
    }
    return Questions(
        tuple(asked),
        tuple(size for size, _ in asked.values()),
        parts,
        {name: weights[:, places] * of_test for name, weights in test.groups.items()},
        tuple(note for note, there in notes.items() if there),
    )


def _some(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def side_questions(
    side: Literal["image", "caption"], collections: Sequence[Collection], most: int
) -> Questions:
    """Return everything that can be asked of one side's rows of train, validation and test."""
    train, images = collections[0], side == "image"
    more = "audit more training images with --most"
    if train.n_images < most:
        more = f"all {train.n_images:,} training images are used: audit a collection with more images"
    kinds: list[Callable[[Collection], Answers]]
    if not answers.has_facts(train):
        of_words = answers.image_words if images else answers.caption_words
        kinds = [partial(of_words, words=answers.content_words(train, fix=more))]
    elif images:
        kinds = [partial(answers.image_facts, ever=answers.stated_keys(train))]
    else:
        kinds = [partial(answers.caption_facts, stated=stated) for stated in (True, False)]
    if answers.has_codes(train):
        kinds.append(answers.carried_codes if images else answers.caption_codes)
    given = [Answers.joined([kind(one) for kind in kinds]) for one in collections]
    whole = questions_of(*given)
    if not whole.keys:
        reasons = " ".join(whole.notes) or "no fact, digit or word of them is told."
        raise DataError(
            f"nothing can be asked of {side} rows: {reasons.rstrip('.')}",
            "audit a test split of two images or more, whose captions differ"
            if collections[2].n_images < 2
            else f"what test images say must differ, and be said of training and validation images too; {more}",
        )
    if any(key.startswith("code ") for key in given[0].keys):
        note = (
            "digits: a picture carries several codes, whose digits depend on each other where they are numbers of "
            "neighbouring captions: their bits are counted more than once."
        )
        return replace(whole, notes=(*whole.notes, note))
    return whole
