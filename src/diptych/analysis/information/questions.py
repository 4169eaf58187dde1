"""Questions that probes are asked: facts of images, words of captions, and their answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from diptych.core.errors import DataError
from diptych.data.collection import Collection


@dataclass(frozen=True, eq=False)
class Answers:
    """What is true of the rows of one split.

    Attributes:
        keys: the questions' names.
        values: (n, q) objects: the answer as text, None where the row is not asked.
        groups: kind of information → (n, q) weights, 0 or more; usually 0 and 1.
        images: (n,) the image of each row.
    """

    keys: tuple[str, ...]
    values: np.ndarray
    groups: Mapping[str, np.ndarray]
    images: np.ndarray

    def __post_init__(self) -> None:
        shape = (len(self.images), len(self.keys))
        for what, array in (("values", self.values), *self.groups.items()):
            if array.shape != shape:
                raise DataError(f"{what} of answers have shape {array.shape}, not {shape}")

    def aligned(self, keys: Sequence[str]) -> Answers:
        """The same answers with these keys, in this order; nobody is asked a key that is not here."""
        column = {key: number for number, key in enumerate(self.keys)}
        values = np.full((len(self.images), len(keys)), None, dtype=object)
        weights = {name: np.zeros(values.shape) for name in self.groups}
        for place, key in enumerate(keys):
            if key in column:
                values[:, place] = self.values[:, column[key]]
                for name, given in self.groups.items():
                    weights[name][:, place] = given[:, column[key]]
        return Answers(tuple(keys), values, weights, self.images)

    def beside(self, others: Answers) -> Answers:
        """These questions and others about the same rows; a group may have members of both."""
        nothing = [np.zeros(one.values.shape) for one in (self, others)]
        return Answers(
            (*self.keys, *others.keys),
            np.concatenate([self.values, others.values], axis=1),
            joined(self.groups, others.groups, nothing),
            self.images,
        )


def joined(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], nothing: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Groups of both, side by side; ``nothing`` stands for a group that one of them does not have."""
    return {
        name: np.concatenate([first.get(name, nothing[0]), second.get(name, nothing[1])], axis=1)
        for name in dict.fromkeys((*first, *second))
    }


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

    def rows(self, chosen: np.ndarray | slice) -> Part:
        """Return some of the rows."""
        return Part(self.labels[chosen], self.images[chosen])


@dataclass(frozen=True, eq=False)
class Questions:
    """What can be asked of train, validation and test rows.

    Attributes:
        keys: the questions' names.
        classes: per question, its possible answers: those of the training rows, sorted.
        parts: coded answers of each split.
        groups: kind of information → (n_test, q) float64 weights; 0 where the row is not asked.
        notes: what was left out and why, and which questions have few rows; one sentence each.
    """

    keys: tuple[str, ...]
    classes: tuple[tuple[str, ...], ...]
    parts: Mapping[Place, Part]
    groups: Mapping[str, np.ndarray]
    notes: tuple[str, ...] = ()

    def subset(self, columns: np.ndarray, train_rows: np.ndarray) -> Questions:
        """Return some of the questions, about some of the training rows."""
        rows = {"train": train_rows}
        parts = {
            place: Part(part.labels[:, columns], part.images).rows(rows.get(place, slice(None)))
            for place, part in self.parts.items()
        }
        return Questions(
            tuple(self.keys[column] for column in columns),
            tuple(self.classes[column] for column in columns),
            parts,
            {name: weights[:, columns] for name, weights in self.groups.items()},
            self.notes,
        )

    def beside(self, others: Questions) -> Questions:
        """Return these questions and others about the same rows; a group may have members of both."""
        nothing = [np.zeros(one.parts["test"].labels.shape) for one in (self, others)]
        parts = {
            place: Part(np.concatenate([part.labels, others.parts[place].labels], axis=1), part.images)
            for place, part in self.parts.items()
        }
        return Questions(
            (*self.keys, *others.keys),
            (*self.classes, *others.classes),
            parts,
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
    parts: dict[Place, Part] = {}
    for number, (place, answers) in enumerate(zip(PLACES, (train, validation, test), strict=True)):
        nothing = np.empty((len(answers.images), 0), np.int64)
        mine = np.stack([labels[number] for *_, labels in coded], axis=1) if coded else nothing
        parts[place] = Part(mine, np.asarray(answers.images, np.int64))
    return Questions(
        tuple(train.keys[column] for column in columns),
        tuple(classes for _, classes, _ in coded),
        parts,
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


MOST_WORDS = 50
"""How many words are asked."""

LEAST_IMAGES, MOST_SHARE = 40, 0.5
"""A word is in the captions of at least so many training images and at most this share of them."""

WORD_IMAGE_GROUPS = {
    "shared": "words that all captions of the image have, against images none of whose captions has them",
    "partial": "words that several captions have, not all, against none",
    "specific": "words that exactly one of several captions has, against none",
}
"""Kinds of word presence in an image's row."""

WORD_CAPTION_GROUPS = {"words": "words that the caption has or has not"}
"""Kinds of word presence in a caption's row."""

_FUNCTION_WORDS = """
a about above after against all along an and another are around as at away back be behind being below beside
between both but by can do does doing down each for from front get getting go going has have he her here him
his how i in inside into is it it's its just look looking looks made make near next no not of off on one
onto or other out outside over own picture photo image several she side so some something stand standing
stands such than that the their them then there these they this those through to together top toward towards
two three four under up upon very was way we were what when where which while who will with you your
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words that say little about a picture; the same for every collection."""

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


def content_words(
    collection: Collection, most: int = MOST_WORDS, fix: str = "audit a collection with more images"
) -> tuple[str, ...]:
    """The ``most`` words in the captions of the most images, the most frequent first."""
    counts: Counter[str] = Counter()
    for image in range(collection.n_images):
        counts.update({word for caption in collection.captions_of(image) for word in _words_in(caption)})
    highest = MOST_SHARE * collection.n_images
    fit = [
        word
        for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if LEAST_IMAGES <= count <= highest and word not in FUNCTION_WORDS and len(word) > 1
    ]
    if not fit:
        raise DataError(
            f"{collection.name}: no content word is in the captions of {LEAST_IMAGES} to {highest:.0f} of "
            f"{collection.n_images:,} training images",
            fix,
        )
    return tuple(fit[:most])


def image_words(collection: Collection, words: Sequence[str]) -> Answers:
    """Three questions per word about every image; see :data:`WORD_IMAGE_GROUPS`."""
    has = _has(collection, words)
    times = np.zeros((collection.n_images, len(words)), dtype=np.int64)
    np.add.at(times, np.asarray(collection.caption_image), has)
    k = collection.captions_per_image[:, None]
    none = (times == 0) & (k > 0)
    kinds = {
        "shared": ("all captions", (times == k) & (k > 0)),
        "partial": ("several captions", (times > 1) & (times < k)),
        "specific": ("one caption", (times == 1) & (k > 1)),
    }
    images = np.arange(collection.n_images)
    nobody = Answers((), np.empty((len(images), 0), dtype=object), {}, images)
    for group, (which, yes) in kinds.items():
        values = np.full(yes.shape, None, dtype=object)
        values[none], values[yes] = "no", "yes"
        keys = tuple(f"{word} ({which})" for word in words)
        nobody = nobody.beside(Answers(keys, values, {group: (yes | none).astype(np.float64)}, images))
    return nobody


def caption_words(collection: Collection, words: Sequence[str]) -> Answers:
    """Whether every caption has every word."""
    values = np.where(_has(collection, words), "yes", "no").astype(object)
    return Answers(
        tuple(words), values, {"words": np.ones(values.shape)}, np.asarray(collection.caption_image)
    )


def _words_in(caption: str) -> list[str]:
    return _WORD.findall(caption.lower())


def _has(collection: Collection, words: Sequence[str]) -> np.ndarray:
    """(n_captions, words)."""
    column = {word: number for number, word in enumerate(words)}
    has = np.zeros((collection.n_captions, len(words)), dtype=bool)
    for row, caption in enumerate(collection.captions):
        has[row, [column[word] for word in _words_in(caption) if word in column]] = True
    return has
