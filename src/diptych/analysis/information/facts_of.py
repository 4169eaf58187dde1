"""Facts and shortcut digits as questions: who states what, from a collection's records.

Image rows are asked every fact their image has, and every digit of the codes its picture carries.
Caption rows are asked the facts of their image, those they state and those they do not, and the
digits of their own code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

import numpy as np

from diptych.analysis.information.answers import Answers
from diptych.core.errors import DataError
from diptych.data.collection import Collection

__all__ = [
    "CAPTION_GROUPS",
    "IMAGE_GROUPS",
    "UNSTATED",
    "caption_codes",
    "caption_facts",
    "carried_codes",
    "fact_keys",
    "has_codes",
    "has_facts",
    "image_facts",
    "stated_keys",
]

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
    """Every fact of every image, grouped by how many of the image's captions state it.

    Args:
        collection: one split.
        ever: the keys that a caption may state at all, as :func:`stated_keys` of the training images
            gives them; the others are "never described".

    Raises:
        DataError: the collection has no facts, or an image's are none; the message names it.
    """
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
    """The facts of every caption's image: those the caption states, or those only others state.

    Args:
        collection: one split.
        stated: which; probes of the two are different ones.

    Raises:
        DataError: as of :func:`image_facts`, or a caption's ``states`` are no list; the message names it.
    """
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
