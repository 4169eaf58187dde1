"""Questions that probes answer from embeddings: facts, digits of shortcuts, words; coded by training rows.

The questions of an image are every fact it has, and every digit of the codes it carries.
Those of a caption are the facts of its image, those they state and those they do not, and the
digits of their own code. Without facts, the presence of words takes their place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from diptych.analysis.shortcuts.codes import N_DIGITS
from diptych.core.errors import DataError
from diptych.core.reading import read_toml
from diptych.data.collection import Collection

_TEXTS = read_toml(Path(__file__).with_name("kinds.toml"))
# content → side → kind of information → what it means, in the order they are reported
GROUPS: dict[str, dict[str, dict[str, str]]] = {content: _TEXTS[content] for content in ("facts", "words")}
READING: dict[str, str] = _TEXTS["reading"]  # how figures, and the kinds of a content, are to be read
FUNCTION_WORDS = frozenset(_TEXTS["words-left-out"]["english"].split())
ProbeName = Literal["linear", "mlp"]
PROBES: dict[ProbeName, str] = {
    "linear": "softmax regression, L2 penalty chosen on validation rows",
    "mlp": "one hidden layer of 64 rectified units, stopped on validation rows",
}  # the kinds of probe and what they are
MOST_ROWS = 4000  # training rows per question, unless another number is given
UNSTATED = "unstated "  # begins the name of a question about a fact that the caption does not state


@dataclass(frozen=True, eq=False)
class Answers:
    keys: tuple[str, ...]  # the questions' names
    values: np.ndarray  # (n, q) objects: the answer as text, None where the row has no label
    groups: Mapping[str, np.ndarray]  # kind of information → (n, q) weights, 0 or more; usually 0 and 1
    images: np.ndarray  # (n,) the image of each row

    @classmethod
    def joined(cls, given: Sequence[Answers]) -> Answers:
        """Return all answers of the same rows; a group may have members of several."""
        groups = {
            name: np.concatenate([one.groups.get(name, np.zeros(one.values.shape)) for one in given], axis=1)
            for name in dict.fromkeys(name for one in given for name in one.groups)
        }
        keys = tuple(key for one in given for key in one.keys)
        return cls(keys, np.concatenate([one.values for one in given], axis=1), groups, given[0].images)


def has_facts(collection: Collection) -> bool:
    """Return whether any record says what is true of its image, and any which facts its caption states."""
    return any(isinstance(record.get("facts"), Mapping) for record in collection.records or ()) and any(
        "states" in record for record in collection.caption_records or ()
    )


def has_codes(collection: Collection) -> bool:
    """Return whether an image or a caption of it carries a shortcut."""
    return any(record.get("shortcuts") for record in collection.records or ()) or any(
        record.get("shortcut") for record in collection.caption_records or ()
    )


def stated_keys(collection: Collection) -> frozenset[str]:
    return frozenset(key for states in _states(collection) for key in states)


def image_facts(collection: Collection, ever: Set[str]) -> Answers:
    """Return every fact of every image, grouped by how many of the image's captions state it."""
    keys, values = _facts(collection)
    labelled = values != None  # noqa: E711 - elementwise
    _, times, k = _stated(collection, keys, _states(collection))
    groups = {name: labelled & mask for name, mask in _by_times(times, k).items()}
    groups["undescribed"] = labelled & (times == 0)
    groups["never described"] = groups["undescribed"] & np.array([key not in ever for key in keys], bool)
    groups["one caption"] = labelled * times / np.maximum(k, 1)
    groups["task-relevant"] = labelled & (times > 0)
    return Answers(tuple(keys), values, groups, np.arange(collection.n_images))


def caption_facts(collection: Collection, *, stated: bool) -> Answers:
    """Return the facts of every caption's image: those the caption states, or those only others state."""
    image, (keys, values) = np.asarray(collection.caption_image), _facts(collection)
    values = values[image]
    states, times, k = _stated(collection, keys, _states(collection))
    times, k = times[image], k[image]
    labelled = (values != None) & (states if stated else ~states & (times > 0))  # noqa: E711
    values[~labelled] = None
    groups = {"unstated": labelled}
    if stated:
        groups = {name: labelled & mask for name, mask in _by_times(times, k).items()}
    return Answers(tuple(keys if stated else [UNSTATED + key for key in keys]), values, groups, image)


def carried_codes(collection: Collection) -> Answers:
    """Return the digits of the codes on every image: ``records[i]["shortcuts"]``, six digits each."""
    codes = [tuple(record.get("shortcuts", ())) for record in collection.records or ()]
    keys, values = _digits(codes, collection.n_images)
    own = [record.get("shortcut", "") for record in collection.caption_records or ()]
    stated = np.zeros(values.shape)
    for image, carried in enumerate(codes):
        captions = own[collection.caption_start[image] : collection.caption_start[image + 1]]
        shares = [captions.count(code) / max(1, len(captions)) for code in carried]
        stated[image, : len(carried) * N_DIGITS] = np.repeat(shares, N_DIGITS)
    labelled = values != None  # noqa: E711
    groups = {
        "shortcut": labelled,
        "one caption": labelled * stated,
        "task-relevant": labelled & (stated > 0),
    }
    return Answers(keys, values, groups, np.arange(collection.n_images))


def caption_codes(collection: Collection) -> Answers:
    """Return the digits of every caption's own code: ``caption_records[j]["shortcut"]``, empty for none."""
    own = [record.get("shortcut", "") for record in collection.caption_records or ()]
    keys, values = _digits([(code,) if code else () for code in own], collection.n_captions)
    return Answers(keys, values, {"shortcut": values != None}, np.asarray(collection.caption_image))  # noqa: E711


def _digits(codes: Sequence[Sequence[str]], n: int) -> tuple[tuple[str, ...], np.ndarray]:
    most, places = max(map(len, codes), default=0), range(1, N_DIGITS + 1)
    values = np.full((n, most * N_DIGITS), None, dtype=object)
    for row, carried in enumerate(codes):
        values[row, : len(carried) * N_DIGITS] = list("".join(carried))
    heads = [f"code {code} " if most > 1 else "" for code in range(1, most + 1)]
    return tuple(f"{head}digit {place}" for head in heads for place in places), values


def _facts(collection: Collection) -> tuple[list[str], np.ndarray]:
    """Return keys in order of first appearance, and (n_images, q) facts as text or None."""
    found = []
    for record, name in zip(collection.records or (), collection.image_ids, strict=True):
        given = record.get("facts") or {}
        if not isinstance(given, Mapping):
            what = f"the facts of image {name} of {collection.name} are {given!r}, not keys with values"
            raise DataError(what, 'write them as {"facts": {"main.colour": "red"}}')
        # text, so that answers can be sorted: values of other collections may be numbers
        found.append({str(key): str(value) for key, value in given.items() if value is not None})
    keys = list(dict.fromkeys(key for facts in found for key in facts))
    values = [[facts.get(key) for key in keys] for facts in found]
    return keys, np.array(values, dtype=object).reshape(len(found), len(keys))


def _states(collection: Collection) -> list[list[str]]:
    found = []
    for record, name in zip(collection.caption_records or (), collection.caption_ids, strict=True):
        given = record.get("states") or ()
        if not isinstance(given, Sequence | Set) or isinstance(given, str):
            what = f"caption {name} of {collection.name} states {given!r}, which is no list of keys of facts"
            raise DataError(what, 'write them as {"states": ["main.colour"]}')
        found.append([str(key) for key in given])
    return found


def _stated(
    collection: Collection, keys: Sequence[str], stated: Iterable[Sequence[str]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (n_captions, q) what captions state, (n_images, q) how many captions do, and (n_images, 1) of how many."""
    column = {key: number for number, key in enumerate(keys)}
    states = np.zeros((collection.n_captions, len(keys)), dtype=bool)
    for row, given in enumerate(stated):
        states[row, [column[key] for key in given if key in column]] = True
    times = np.zeros((collection.n_images, len(keys)), dtype=np.int64)
    np.add.at(times, np.asarray(collection.caption_image), states)
    return states, times, collection.captions_per_image[:, None]


def _by_times(times: np.ndarray, k: np.ndarray) -> dict[str, np.ndarray]:
    """Sort facts as :func:`diptych.data.scenes.described` does."""
    return {
        "shared": (times == k) & (k > 0),
        "partial": (times > 1) & (times < k),
        "specific": (times == 1) & (k > 1),
    }


MOST_WORDS = 50  # how many words are probed
# A word is in the captions of at least so many training images and at most this share of them
LEAST_IMAGES, MOST_SHARE = 40, 0.5
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


def content_words(collection: Collection, fix: str) -> tuple[str, ...]:
    """Return the :data:`MOST_WORDS` words in the captions of the most images, the most frequent first."""
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
        where = f"{LEAST_IMAGES} to {highest:.0f} of {collection.n_images:,} training images"
        raise DataError(f"{collection.name}: no content word is in the captions of {where}", fix)
    return tuple(fit[:MOST_WORDS])


def image_words(collection: Collection, words: Sequence[str]) -> Answers:
    """Return three questions per word about every image: do all, several or one of its captions have it?"""
    _, times, k = _stated(collection, words, map(_words_in, collection.captions))
    none, parts = (times == 0) & (k > 0), []
    named = zip(("all captions", "several captions", "one caption"), _by_times(times, k).items(), strict=True)
    for which, (group, has) in named:
        values = np.full(times.shape, None, dtype=object)
        values[none], values[has] = "no", "yes"
        keys = tuple(f"{word} ({which})" for word in words)
        parts.append(Answers(keys, values, {group: has | none}, np.arange(len(times))))
    return Answers.joined(parts)


def caption_words(collection: Collection, words: Sequence[str]) -> Answers:
    """Return whether every caption has every word."""
    has, _, _ = _stated(collection, words, map(_words_in, collection.captions))
    values = np.where(has, "yes", "no").astype(object)
    return Answers(
        tuple(words), values, {"words": np.ones(values.shape)}, np.asarray(collection.caption_image)
    )


def _words_in(caption: str) -> list[str]:
    return _WORD.findall(caption.lower())


UNLABELLED = -1  # the label of a row that a question does not concern
SplitName = Literal["train", "validation", "test"]
# what probes are trained, chosen and measured on
SPLIT_NAMES: tuple[SplitName, ...] = get_args(SplitName)

# below so many training rows per class a probe may find less than there is. Of facts planted plainly (one-hot,
# rotated, 2 to 25 classes, 128 dimensions) the linear probe finds 96 % with 5 rows per class and 99.8 % with
# 10, the perceptron 54–76 % with 5, 80–94 % with 10 and 96–99 % with 50
FEW_ROWS_PER_CLASS = 50
_SHOWN = 6  # questions that a note names


@dataclass(frozen=True, eq=False)
class SplitLabels:
    labels: np.ndarray  # (n, q) int64 class numbers, UNLABELLED where the row has no label
    images: np.ndarray  # (n,) int64, the image of each row


@dataclass(frozen=True, eq=False)
class Questions:
    """Questions with coded answers of train, validation and test rows."""

    keys: tuple[str, ...]
    n_classes: tuple[int, ...]  # per question, different answers of the training rows
    parts: Mapping[SplitName, SplitLabels]  # coded answers of each split
    groups: Mapping[str, np.ndarray]  # kind of information → (n_test, q) weights; 0 where unlabelled
    notes: tuple[str, ...] = ()  # what was left out and why, and which questions have few rows

    def subset(self, columns: np.ndarray, train_rows: np.ndarray) -> Questions:
        parts = {
            place: SplitLabels(part.labels[:, columns], part.images) for place, part in self.parts.items()
        }
        train = parts["train"]
        parts["train"] = SplitLabels(train.labels[train_rows], train.images[train_rows])
        return replace(
            self,
            keys=tuple(self.keys[column] for column in columns),
            n_classes=tuple(self.n_classes[column] for column in columns),
            parts=parts,
            groups={name: weights[:, columns] for name, weights in self.groups.items()},
        )


def questions_of(train: Answers, validation: Answers, test: Answers) -> Questions:
    """Code the answers of three splits by the classes of the training rows.

    An answer that no training row has is left out. A question with one answer only, or that no validation or no
    two test answers are left of, is left out. Both are counted in the notes.
    """
    splits = (train, validation, test)
    kept: dict[str, tuple[int, list[np.ndarray]]] = {}
    constant, untestable, unseen, few = [], [], 0, []
    for key in train.keys:
        given = [
            one.values[:, one.keys.index(key)] if key in one.keys else np.full(len(one.images), None)
            for one in splits
        ]
        classes = sorted({value for value in given[0] if value is not None})
        code = {value: number for number, value in enumerate(classes)}
        labels = [np.array([code.get(value, UNLABELLED) for value in values], np.int64) for values in given]
        counts = [int((one != UNLABELLED).sum()) for one in labels]
        if len(classes) < 2:
            constant += [key] * len(classes)
        elif len(np.setdiff1d(labels[2], [UNLABELLED])) < 2 or not counts[1]:
            untestable.append(key)
        else:
            unseen += sum(value is not None for value in given[2]) - counts[2]
            few += [key] if counts[0] < FEW_ROWS_PER_CLASS * len(classes) else []
            kept[key] = len(classes), labels
    parts: dict[SplitName, SplitLabels] = {}
    for number, (place, one) in enumerate(zip(SPLIT_NAMES, splits, strict=True)):
        columns = [labels[number] for _, labels in kept.values()]
        stacked = np.stack(columns, axis=1) if columns else np.empty((len(one.images), 0), np.int64)
        parts[place] = SplitLabels(stacked, np.asarray(one.images, np.int64))
    of_test = parts["test"].labels != UNLABELLED
    places = [test.keys.index(key) for key in kept]
    notes = {
        f"{len(constant)} with one value in all training rows left out: {_some(constant)}.": constant,
        f"{len(untestable)} left out, of whose values training rows share fewer than two with test rows or none with "
        f"validation rows: {_some(untestable)}.": untestable,
        f"{unseen:,} test answers that no training row has are left out.": unseen,
        f"fewer than {FEW_ROWS_PER_CLASS} training rows per class, so that probes may find less than there is: "
        f"{_some(few)}.": few,
    }
    return Questions(
        tuple(kept),
        tuple(size for size, _ in kept.values()),
        parts,
        {name: weights[:, places] * of_test for name, weights in test.groups.items()},
        tuple(note for note, there in notes.items() if there),
    )


def _some(names: Sequence[str]) -> str:
    shown, more = ", ".join(names[:_SHOWN]), len(names) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def side_questions(
    side: Literal["image", "caption"], collections: Sequence[Collection], most: int
) -> Questions:
    """Return all questions of one side's rows of train, validation and test."""
    train, images = collections[0], side == "image"
    more = "audit more training images with --most"
    if train.n_images < most:
        more = f"all {train.n_images:,} training images are used: audit a collection with more images"
    kinds: list[Callable[[Collection], Answers]]
    if not has_facts(train):
        of_words = image_words if images else caption_words
        kinds = [partial(of_words, words=content_words(train, more))]
    elif images:
        kinds = [partial(image_facts, ever=stated_keys(train))]
    else:
        kinds = [partial(caption_facts, stated=stated) for stated in (True, False)]
    if has_codes(train):
        kinds.append(carried_codes if images else caption_codes)
    given = [Answers.joined([kind(one) for kind in kinds]) for one in collections]
    whole = questions_of(*given)
    if not whole.keys:
        fix = f"facts of test images must differ, and be known of training and validation images too; {more}"
        if collections[2].n_images < 2:
            fix = "audit a test split of two images or more, whose captions differ"
        reasons = " ".join(whole.notes) or "they have no fact, digit or word."
        raise DataError(f"{side} embeddings have no question to probe: {reasons.rstrip('.')}", fix)
    return whole
