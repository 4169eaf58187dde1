"""What is true of image rows and caption rows: facts, digits of shortcuts and words, and who states them.

Image rows are asked every fact their image has, and every digit of the codes its picture carries.
Caption rows are asked the facts of their image, those they state and those they do not, and the
digits of their own code. Without facts, the presence of words takes their place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

import numpy as np

from diptych.analysis.information.questions import Answers
from diptych.core.errors import DataError
from diptych.data.collection import Collection

_IMAGE_DIGITS = "digits of the code or codes on the picture"
_CAPTION_DIGITS = "digits of the caption's code"

# content → side → kind of information → what it means, in the order they are told
GROUPS: dict[str, dict[str, dict[str, str]]] = {
    "facts": {
        "image": {
            "shared": "stated by every caption of the image",
            "partial": "stated by several captions, not by all",
            "specific": "stated by exactly one of several captions",
            "undescribed": "stated by no caption of the image: what captions of other images state and what none "
            "ever does",
            "never described": "stated by no caption of any training image (part of undescribed)",
            "shortcut": _IMAGE_DIGITS,
            "one caption": "stated by one caption of the image, on average over its captions",
            "task-relevant": "stated by some caption of the image",
        },
        "caption": {
            "shared": "stated by this and by every other caption of the image",
            "partial": "stated by this and some other captions",
            "specific": "stated by this caption alone",
            "unstated": "stated by other captions of the image, not by this one",
            "shortcut": _CAPTION_DIGITS,
        },
    },
    "words": {
        "image": {
            "shared": "words that all captions of the image have, against images none of whose captions has them",
            "partial": "words that several captions have, not all, against none",
            "specific": "words that exactly one of several captions has, against none",
            "shortcut": _IMAGE_DIGITS,
        },
        "caption": {"words": "words that the caption has or has not", "shortcut": _CAPTION_DIGITS},
    },
}

UNSTATED = "unstated "  # begins the name of a question about a fact that the caption does not state


def has_facts(collection: Collection) -> bool:
    """Return whether any record says what is true of its image, and any which facts its caption states."""
    return any(isinstance(record.get("facts"), Mapping) for record in collection.records or ()) and any(
        "states" in record for record in collection.caption_records or ()
    )


def has_codes(collection: Collection) -> bool:
    """Return whether a picture or a caption of it carries a shortcut."""
    return any(record.get("shortcuts") for record in collection.records or ()) or any(
        record.get("shortcut") for record in collection.caption_records or ()
    )


def stated_keys(collection: Collection) -> frozenset[str]:
    return frozenset(key for states in _states(collection) for key in states)


def image_facts(collection: Collection, ever: Iterable[str]) -> Answers:
    """Return every fact of every image, grouped by how many of the image's captions state it."""
    keys, values = _facts(collection)
    asked = values != None  # noqa: E711 - elementwise
    _, times, k = _stated(collection, keys, _states(collection))
    never = np.array([key not in set(ever) for key in keys], dtype=bool)
    groups = {name: asked & mask for name, mask in _by_times(times, k).items()}
    groups["undescribed"] = asked & (times == 0)
    groups["never described"] = groups["undescribed"] & never
    groups["one caption"] = asked * times / np.maximum(k, 1)
    groups["task-relevant"] = asked & (times > 0)
    return _answers(keys, values, groups, np.arange(collection.n_images))


def caption_facts(collection: Collection, *, stated: bool) -> Answers:
    """Return the facts of every caption's image: those the caption states, or those only others state."""
    image, (keys, values) = np.asarray(collection.caption_image), _facts(collection)
    values = values[image]
    states, times, k = _stated(collection, keys, _states(collection))
    times, k = times[image], k[image]
    asked = (values != None) & (states if stated else ~states & (times > 0))  # noqa: E711
    values[~asked] = None
    groups = {"unstated": asked}
    if stated:
        groups = {name: asked & mask for name, mask in _by_times(times, k).items()}
    return _answers(keys if stated else [UNSTATED + key for key in keys], values, groups, image)


def carried_codes(collection: Collection) -> Answers:
    """Return the digits of the codes on every picture: ``records[i]["shortcuts"]``, six digits each."""
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
    asked = values != None  # noqa: E711
    times = asked * np.repeat(stated, n_digits, axis=1)
    groups = {"shortcut": asked, "one caption": times, "task-relevant": times > 0}
    return _answers(keys, values, groups, np.arange(collection.n_images))


def caption_codes(collection: Collection) -> Answers:
    """Return the digits of every caption's own code: ``caption_records[j]["shortcut"]``, empty for none."""
    codes = [record.get("shortcut", "") for record in collection.caption_records or ()]
    n_digits = max((len(code) for code in codes), default=0)
    padded = [[*code, *[None] * (n_digits - len(code))] for code in codes]
    values = np.array(padded, dtype=object).reshape(len(codes), n_digits)
    keys = [f"digit {place + 1}" for place in range(n_digits)]
    groups = {"shortcut": values != None}  # noqa: E711
    return _answers(keys, values, groups, np.asarray(collection.caption_image))


def _answers(
    keys: Sequence[str], values: np.ndarray, groups: Mapping[str, np.ndarray], images: np.ndarray
) -> Answers:
    return Answers(
        tuple(keys), values, {name: one.astype(np.float64) for name, one in groups.items()}, images
    )


def _facts(collection: Collection) -> tuple[list[str], np.ndarray]:
    """Return keys in order of first appearance, and (n_images, q) facts as text or None."""
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
    keys = list(dict.fromkeys(key for facts in found for key in facts))
    values = [[facts.get(key) for key in keys] for facts in found]
    return keys, np.array(values, dtype=object).reshape(len(found), len(keys))


def _states(collection: Collection) -> list[list[str]]:
    found = []
    for record, name in zip(collection.caption_records or (), collection.caption_ids, strict=True):
        given = record.get("states") or ()
        if not isinstance(given, Sequence | Set) or isinstance(given, str):
            raise DataError(
                f"caption {name} of {collection.name} states {given!r}, which is no list of keys of facts",
                'write them as {"states": ["main.colour"]}',
            )
        found.append([str(key) for key in given])
    return found


def _stated(
    collection: Collection, keys: Sequence[str], said: Iterable[Sequence[str]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (n_captions, q) who says what, (n_images, q) how many captions do, and (n_images, 1) of how many."""
    column = {key: number for number, key in enumerate(keys)}
    states = np.zeros((collection.n_captions, len(keys)), dtype=bool)
    for row, given in enumerate(said):
        states[row, [column[key] for key in given if key in column]] = True
    times = np.zeros((collection.n_images, len(keys)), dtype=np.int64)
    np.add.at(times, np.asarray(collection.caption_image), states)
    return states, times, collection.captions_per_image[:, None]


def _by_times(times: np.ndarray, k: np.ndarray) -> dict[str, np.ndarray]:
    """As :func:`diptych.data.scenes.described` sorts them."""
    return {
        "shared": (times == k) & (k > 0),
        "partial": (times > 1) & (times < k),
        "specific": (times == 1) & (k > 1),
    }


MOST_WORDS = 50  # how many words are asked

# A word is in the captions of at least so many training images and at most this share of them
LEAST_IMAGES, MOST_SHARE = 40, 0.5

_FUNCTION_WORDS = """
a about above after against all along an and another are around as at away back be behind being below beside
between both but by can do does doing down each for from front get getting go going has have he her here him
his how i in inside into is it it's its just look looking looks made make near next no not of off on one
onto or other out outside over own picture photo image several she side so some something stand standing
stands such than that the their them then there these they this those through to together top toward towards
two three four under up upon very was way we were what when where which while who will with you your
"""
# words that say little about a picture; the same for every collection
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())

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
    """Return three questions per word about every image: do all, several or one of its captions have it?"""
    _, times, k = _stated(collection, words, map(_words_in, collection.captions))
    none = (times == 0) & (k > 0)
    kinds = _by_times(times, k)
    keys, values, groups = [], [], {}
    named = {"shared": "all captions", "partial": "several captions", "specific": "one caption"}
    for number, (group, which) in enumerate(named.items()):
        keys += [f"{word} ({which})" for word in words]
        values.append(np.full(times.shape, None, dtype=object))
        values[-1][none], values[-1][kinds[group]] = "no", "yes"
        groups[group] = np.zeros((len(times), len(named) * len(words)))
        groups[group][:, number * len(words) : (number + 1) * len(words)] = kinds[group] | none
    return _answers(keys, np.concatenate(values, axis=1), groups, np.arange(len(times)))


def caption_words(collection: Collection, words: Sequence[str]) -> Answers:
    """Return whether every caption has every word."""
    has, _, _ = _stated(collection, words, map(_words_in, collection.captions))
    values = np.where(has, "yes", "no").astype(object)
    return _answers(words, values, {"words": np.ones(values.shape)}, np.asarray(collection.caption_image))


def _words_in(caption: str) -> list[str]:
    return _WORD.findall(caption.lower())
