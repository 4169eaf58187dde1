"""The information audit: how much of each kind of information frozen rows hold, in per cent.

A *probe* (Alain and Bengio, Understanding intermediate layers using linear classifier probes, 2016)
predicts one fact from a row: linearly, or by a small perceptron. What is *held* is the share of the
fact's bits that the probe finds on test images: V-information (Xu et al. 2020) over entropy, see
:mod:`~diptych.analysis.information.audit_report`. A linear probe says what can be read off; the perceptron
also what needs a little computing. Following Pimentel et al. (Information-theoretic probing for
linguistic structure, ACL 2020) neither is *the* information in a row, which no finite probe measures;
both are lower bounds that can be compared between encoders because the probes are the same.

Facts of an image are grouped by who states them, so that the audit measures what chapter 4 of
Hendriksen's thesis could only argue about: how much of what one caption alone says survives in the
image's row, and how far it is from a task-optimal representation (:mod:`.gap`).

Probes are trained on rows of the split that the encoder was trained on, chosen on validation and measured
on test rows. An encoder that fits its training pictures in ways that do not carry over makes the probes'
rows unlike their test rows, which lowers what is found: the figures are about what holds for new pictures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from diptych.analysis.information.audit_report import Audit, AuditProtocol, Side
from diptych.analysis.information.probing import (
    MOST_ROWS,
    PROBES,
    ProbeName,
    Rows,
    group_figures,
    probe,
    question_figures,
)
from diptych.analysis.information.questions import (
    PLACES,
    WORD_CAPTION_GROUPS,
    WORD_IMAGE_GROUPS,
    Answers,
    Questions,
    caption_words,
    content_words,
    image_words,
    questions_of,
)
from diptych.core.errors import DataError, NumericalError
from diptych.data.collection import Collection
from diptych.metrics.bootstrap import Bootstrap

# Facts and shortcut digits as questions: who states what, from a collection's records.
#
# Image rows are asked every fact their image has, and every digit of the codes its picture carries.
# Caption rows are asked the facts of their image, those they state and those they do not, and the
# digits of their own code.

IMAGE_GROUPS = {
    "shared": "stated by every caption of the image",
    "partial": "stated by several captions, not by all",
    "specific": "stated by exactly one of several captions",
    "undescribed": "stated by no caption of the image: what captions of other images state and what none ever does",
    "never described": "stated by no caption of any training image (part of undescribed)",
    "shortcut": "digits of the code or codes on the picture",
    "one caption": "stated by one caption of the image, on average over its captions",
    "task-relevant": "stated by some caption of the image",
}
"""Kinds of information in an image's row."""

CAPTION_GROUPS = {
    "shared": "stated by this and by every other caption of the image",
    "partial": "stated by this and some other captions",
    "specific": "stated by this caption alone",
    "unstated": "stated by other captions of the image, not by this one",
    "shortcut": "digits of the caption's code",
}
"""Kinds of information in a caption's row."""

UNSTATED = "unstated "
"""Begins the name of a question about a fact that the caption does not state."""


def has_facts(collection: Collection) -> bool:
    """Whether any record says what is true of its image, and any which facts its caption states."""
    return any(isinstance(record.get("facts"), Mapping) for record in collection.records or ()) and any(
        "states" in record for record in collection.caption_records or ()
    )


def has_codes(collection: Collection) -> bool:
    """Whether a picture or a caption of it carries a shortcut."""
    return any(record.get("shortcuts") for record in collection.records or ()) or any(
        record.get("shortcut") for record in collection.caption_records or ()
    )


def fact_keys(collection: Collection) -> tuple[str, ...]:
    """The keys of its facts, in order of first appearance."""
    return tuple(dict.fromkeys(key for facts in _facts(collection) for key in facts))


def stated_keys(collection: Collection) -> frozenset[str]:
    """The keys that any of its captions states."""
    return frozenset(key for states in _states(collection) for key in states)


def image_facts(collection: Collection, ever: Iterable[str]) -> Answers:
    """Every fact of every image, grouped by how many of the image's captions state it."""
    keys = fact_keys(collection)
    values = _values(_facts(collection), keys)
    asked = values != None  # noqa: E711 - elementwise
    times, k = _times(collection, keys), collection.captions_per_image[:, None]
    never = np.array([key not in set(ever) for key in keys], dtype=bool)
    groups = {**_by_times(asked, times, k), "undescribed": asked & (times == 0)}
    groups["never described"] = groups["undescribed"] & never
    weights = {name: mask.astype(np.float64) for name, mask in groups.items()}
    weights["one caption"] = asked * times / np.maximum(k, 1)
    weights["task-relevant"] = (asked & (times > 0)).astype(np.float64)
    return Answers(keys, values, weights, np.arange(collection.n_images))


def caption_facts(collection: Collection, *, stated: bool) -> Answers:
    """The facts of every caption's image: those the caption states, or those only others state."""
    image, keys = np.asarray(collection.caption_image), fact_keys(collection)
    values = _values(_facts(collection), keys)[image]
    states = _stated(collection, keys)
    times, k = _times(collection, keys)[image], collection.captions_per_image[image][:, None]
    asked = (values != None) & (states if stated else ~states & (times > 0))  # noqa: E711
    values[~asked] = None
    groups = _by_times(asked, times, k) if stated else {"unstated": asked}
    names = keys if stated else tuple(UNSTATED + key for key in keys)
    return Answers(names, values, {name: mask.astype(np.float64) for name, mask in groups.items()}, image)


def carried_codes(collection: Collection) -> Answers:
    """The digits of the codes on every picture: ``records[i]["shortcuts"]``, six digits each."""
    codes = [tuple(record.get("shortcuts", ())) for record in collection.records or ()]
    n_codes = max((len(carried) for carried in codes), default=0)
    n_digits = max((len(code) for carried in codes for code in carried), default=0)
    keys = [
        f"digit {place + 1}" if n_codes == 1 else f"code {row + 1} digit {place + 1}"
        for row in range(n_codes)
        for place in range(n_digits)
    ]
    values = np.full((collection.n_images, len(keys)), None, dtype=object)
    stated = np.zeros((collection.n_images, n_codes))
    own = [record.get("shortcut", "") for record in collection.caption_records or ()]
    for image, carried in enumerate(codes):
        captions = own[collection.caption_start[image] : collection.caption_start[image + 1]]
        for row, code in enumerate(carried):
            values[image, row * n_digits : row * n_digits + len(code)] = list(code)
            stated[image, row] = np.mean([caption == code for caption in captions]) if captions else 0.0
    asked = (values != None).astype(np.float64)  # noqa: E711
    times = asked * np.repeat(stated, n_digits, axis=1)
    groups = {"shortcut": asked, "one caption": times, "task-relevant": (times > 0).astype(np.float64)}
    return Answers(tuple(keys), values, groups, np.arange(collection.n_images))


def caption_codes(collection: Collection) -> Answers:
    """The digits of every caption's own code: ``caption_records[j]["shortcut"]``, empty for none."""
    codes = [record.get("shortcut", "") for record in collection.caption_records or ()]
    n_digits = max((len(code) for code in codes), default=0)
    values = np.full((len(codes), n_digits), None, dtype=object)
    for row, code in enumerate(codes):
        values[row, : len(code)] = list(code)
    asked = (values != None).astype(np.float64)  # noqa: E711
    keys = tuple(f"digit {place + 1}" for place in range(n_digits))
    return Answers(keys, values, {"shortcut": asked}, np.asarray(collection.caption_image))


def _facts(collection: Collection) -> list[dict[str, str]]:
    """The facts of every image, as text; none where its record has none."""
    if not has_facts(collection):
        raise DataError(
            f"{collection.name} says no facts of its images and captions",
            "audit words instead, or give scenes",
        )
    found = []
    for record, name in zip(collection.records or (), collection.image_ids, strict=True):
        given = record.get("facts") or {}
        if not isinstance(given, Mapping):
            raise DataError(
                f"the facts of image {name} of {collection.name} are {given!r}, not keys with values",
                'write them as {"facts": {"main.colour": "red"}}',
            )
        # text, so that answers can be sorted: values of other collections may be numbers
        found.append({str(key): str(value) for key, value in given.items() if value is not None})
    return found


def _states(collection: Collection) -> list[tuple[str, ...]]:
    """The keys that every caption states; none where its record has none."""
    found = []
    for record, name in zip(collection.caption_records or (), collection.caption_ids, strict=True):
        given = record.get("states") or ()
        if not isinstance(given, Sequence | Set) or isinstance(given, str):
            raise DataError(
                f"caption {name} of {collection.name} states {given!r}, which is no list of keys of facts",
                'write them as {"states": ["main.colour"]}',
            )
        found.append(tuple(str(key) for key in given))
    return found


def _values(facts: Sequence[dict[str, str]], keys: Sequence[str]) -> np.ndarray:
    values = np.full((len(facts), len(keys)), None, dtype=object)
    for row, given in enumerate(facts):
        values[row] = [given.get(key) for key in keys]
    return values


def _stated(collection: Collection, keys: Sequence[str]) -> np.ndarray:
    """(n_captions, q) whether each caption states each key."""
    column = {key: number for number, key in enumerate(keys)}
    states = np.zeros((collection.n_captions, len(keys)), dtype=bool)
    for row, given in enumerate(_states(collection)):
        states[row, [column[key] for key in given if key in column]] = True
    return states


def _times(collection: Collection, keys: Sequence[str]) -> np.ndarray:
    """(n_images, q) by how many of its captions each fact of an image is stated."""
    times = np.zeros((collection.n_images, len(keys)), dtype=np.int64)
    np.add.at(times, np.asarray(collection.caption_image), _stated(collection, keys))
    return times


def _by_times(asked: np.ndarray, times: np.ndarray, k: np.ndarray) -> dict[str, np.ndarray]:
    """As :func:`diptych.data.scenes.described` sorts them."""
    return {
        "shared": asked & (times == k) & (k > 0),
        "partial": asked & (times > 1) & (times < k),
        "specific": asked & (times == 1) & (k > 1),
    }


GROUPS: dict[str, dict[str, dict[str, str]]] = {
    "facts": {"image": IMAGE_GROUPS, "caption": CAPTION_GROUPS},
    "words": {
        "image": {**WORD_IMAGE_GROUPS, "shortcut": IMAGE_GROUPS["shortcut"]},
        "caption": {**WORD_CAPTION_GROUPS, "shortcut": CAPTION_GROUPS["shortcut"]},
    },
}
"""Content → side → kind of information → what it means, in the order they are told."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """One split as it was encoded.

    Attributes:
        collection: with records that say facts, codes or both.
        images: (n_images, d) rows.
        texts: (n_captions, d) rows.
    """

    collection: Collection
    images: np.ndarray
    texts: np.ndarray


Splits = tuple[Encoded, Encoded, Encoded]
"""Train, validation and test."""


def audit(
    conditions: Mapping[str, Splits],
    probes: Sequence[ProbeName] = ("linear", "mlp"),
    *,
    seed: int = 0,
    most: int = MOST_ROWS,
    bootstrap: Bootstrap | None = None,
    about: dict[str, Any] | None = None,
) -> Audit:
    """Audit the rows of both sides under every condition."""
    bootstrap = bootstrap or Bootstrap()
    first = next(iter(conditions.values()))
    content = "facts" if has_facts(first[0].collection) else "words"
    return Audit(
        AuditProtocol(
            content,
            {name: PROBES[name] for name in probes},
            most,
            seed,
            bootstrap.samples,
            bootstrap.confidence,
            (first[0].collection.n_images, first[1].collection.n_images, first[2].collection.n_images),
            dict(about or {}),
        ),
        {
            condition: {
                "image": audit_side("image", splits, probes, seed, most, bootstrap),
                "caption": audit_side("caption", splits, probes, seed, most, bootstrap),
            }
            for condition, splits in conditions.items()
        },
    )


def side_questions(
    side: Literal["image", "caption"], collections: Sequence[Collection], most: int = MOST_ROWS
) -> Questions:
    """Everything that can be asked of one side's rows of train, validation and test."""
    asked: list[tuple[str, list[Answers]]] = []
    if has_facts(collections[0]):
        if side == "image":
            ever = stated_keys(collections[0])
            asked.append(("facts", [image_facts(one, ever) for one in collections]))
        else:
            asked.append(("facts", [caption_facts(one, stated=True) for one in collections]))
            asked.append(("unstated facts", [caption_facts(one, stated=False) for one in collections]))
    else:
        words = content_words(collections[0], fix=_more_images(collections[0], most))
        of_words = image_words if side == "image" else caption_words
        asked.append(("words", [of_words(one, words) for one in collections]))
    if has_codes(collections[0]):
        of_codes = carried_codes if side == "image" else caption_codes
        asked.append(("digits", [of_codes(one) for one in collections]))
    whole: Questions | None = None
    notes = []
    if any(key.startswith("code ") for _, (train, *_) in asked for key in train.keys):
        notes.append(
            "digits: a picture carries several codes, whose digits depend on each other where they are numbers of "
            "neighbouring captions: their bits are counted more than once."
        )
    for what, (train, validation, test) in asked:
        found = questions_of(train, validation, test, what)
        whole = found if whole is None else whole.beside(found)
    if whole is None or not whole.keys:
        reasons = " ".join(() if whole is None else whole.notes) or "no fact, digit or word of them is told."
        raise DataError(
            f"nothing can be asked of {side} rows: {reasons.rstrip('.')}",
            "audit a test split of two images or more, whose captions differ"
            if collections[2].n_images < 2
            else "what test images say must differ, and be said of training and validation images too; "
            + _more_images(collections[0], most),
        )
    return replace(whole, notes=(*whole.notes, *notes))


def _more_images(train: Collection, most: int) -> str:
    """What to do where training images are too few."""
    if train.n_images < most:
        return f"all {train.n_images:,} training images are used: audit a collection with more images"
    return "audit more training images with --most"


def audit_side(
    side: Literal["image", "caption"],
    splits: Splits,
    probes: Sequence[ProbeName],
    seed: int,
    most: int,
    bootstrap: Bootstrap,
) -> Side:
    """Probe image rows or caption rows of one condition."""
    rows: Rows = tuple(np.asarray(one.images if side == "image" else one.texts) for one in splits)  # type: ignore[assignment]
    for place, one, given in zip(PLACES, splits, rows, strict=True):
        _check_finite(given, side, place, one.collection)
    questions = side_questions(side, [one.collection for one in splits], most)
    probed = {name: probe(name, rows, questions, seed, most) for name in probes}
    meanings = GROUPS["facts" if has_facts(splits[0].collection) else "words"][side]
    return Side(
        (len(rows[0]), len(rows[1]), len(rows[2])),
        group_figures(meanings, questions, probed, seed, bootstrap),
        question_figures(questions, probed, seed, bootstrap),
        questions.notes,
    )


def _check_finite(rows: np.ndarray, side: str, place: str, collection: Collection) -> None:
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        names = collection.image_ids if side == "image" else collection.caption_ids
        known = f", {names[bad[0]]}" if len(names) == len(rows) else ""
        raise NumericalError(
            f"{len(bad):,} of {len(rows):,} {side} rows of the {place} split are not finite, the first is row "
            f"{bad[0]}{known}",
            "the encoder is damaged or diverged: load or train it again",
        )
