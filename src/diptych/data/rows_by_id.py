"""Labels of pairs in files: their formats, and the rows of a collection by a file's names of images and captions."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.core.registry import Registry

_NUMBERED = re.compile(r"(?:COCO_[a-z]+[0-9]{4}_)?0*([0-9]+)")
_SENTENCE = ":sentid:"


def image_name(name: str) -> str:
    """Return an image's name without folders and suffix; COCO's ``COCO_val2014_000000391895`` as ``391895``."""
    stem = name.rsplit("/", 1)[-1]
    stem = stem.rsplit(".", 1)[0] if "." in stem else stem
    found = _NUMBERED.fullmatch(stem)
    return found[1] if found else stem


def caption_name(name: str) -> str:
    """Return a caption's number in CxC's ``COCO_val2014:sentid:732091``; any other id as it is."""
    return name.rsplit(_SENTENCE, 1)[-1]


class RowsById:
    """Rows by id: the same id, or else the only one with the same plain name."""

    def __init__(self, ids: Sequence[str], plain: Callable[[str], str]) -> None:
        self._plain = plain
        self._exact = {name: row for row, name in enumerate(ids)}
        self._by_plain: dict[str, int] = {}
        for row, name in enumerate(ids):
            key = plain(name)
            self._by_plain[key] = -1 if key in self._by_plain else row

    def of(self, name: str) -> int:
        """Return the row, -1 for none or for several that could be meant."""
        row = self._exact.get(name)
        return self._by_plain.get(self._plain(name), -1) if row is None else row


def mean_per_pair(rows: np.ndarray, values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct pairs of (n, 2) rows and the mean of each one's values; pairs with a row of -1 are left out."""
    there = (rows >= 0).all(axis=1)
    pairs, which = np.unique(rows[there], axis=0, return_inverse=True)
    sums = np.bincount(which.reshape(-1), weights=np.asarray(values, dtype=np.float64)[there])
    return pairs, sums / np.bincount(which.reshape(-1))


@dataclass(frozen=True)
class Format:
    name: str  # of NAME:PATH
    description: str
    citation: str
    read: Callable[..., Any]  # from a path and keyword options to what the file says
    options: Mapping[str, str] = field(default_factory=dict)  # the keyword options and what each means


Read = TypeVar("Read", bound=Callable[..., Any])


def declared(
    registry: Registry[Format], name: str, description: str, citation: str, **options: str
) -> Callable[[Read], Read]:
    """Register the decorated function as the reader of a format."""

    def registered(read: Read) -> Read:
        registry.add(Format(name, description, citation, read, options))
        return read

    return registered


def format_and_path(source: str, formats: Registry[Format], what: str, example: str) -> tuple[Format, Path]:
    name, colon, path = source.partition(":")
    if not colon or not path:
        known = ", ".join(formats.names())
        raise UsageError(f"{what} {source!r} are not FORMAT:PATH", f"for example {example}; formats: {known}")
    return formats.get(name), Path(path)


def in_none(
    what: str, pairs: Collection[tuple[str, str]], ids: Sequence[Sequence[str]], fix: str
) -> DataError:
    """Return the error of a file of which no pair of image and caption is in the collection."""
    images, captions = ids
    named = next(iter(pairs), ("none", "none"))
    n_images, n_captions = (len({pair[side] for pair in pairs}) for side in (0, 1))
    theirs = f"{next(iter(images), 'none')!r} and {next(iter(captions), 'none')!r}"
    return DataError(
        f"{what}: none of its {len(pairs):,} pairs of {n_images:,} images and {n_captions:,} captions is in the "
        f"collection of {len(images):,} images and {len(captions):,} captions: it names {named[0]!r} and "
        f"{named[1]!r}, the collection {theirs}",
        fix,
    )


def line_of(what: str, parts: Sequence[str], missing: Mapping[str, int]) -> str:
    """Return what a protocol says of a file: its parts, and what the collection does not hold."""
    lost = [f"{count:,} {kind}" for kind, count in missing.items() if count]
    more = [f"not in the collection: {', '.join(lost)}"] if lost else []
    return f"{what} ({'; '.join([*parts, *more])})"
