"""From a file's ids to a collection's rows: who is found, who is not, what is added and taken away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import DataError, UsageError
from diptych.data.extended_positives.declaration import EXTENDED_POSITIVES, Listed, Pair
from diptych.data.rows_by_id import RowsById, caption_name, image_name


@dataclass(frozen=True, eq=False)
class ExtendedPositives:
    """Relevant pairs of a collection, by its rows; the two directions need not agree.

    Attributes:
        what: format and options, in a few words.
        i2t: (image rows, caption rows), (n_pairs,) int64 each: captions relevant to images that ask.
        t2i: (image rows, caption rows): images relevant to captions that ask.
        asked: per direction, the rows that ask; empty when all do.
        before: per direction, pairs of the collection's own among the queries that ask.
        added: per direction, pairs that the collection does not have.
        removed: per direction, the collection's own pairs that are no longer relevant.
        missing: what the file names and the collection does not hold: images, captions, and pairs.
        silent: per direction, the file's queries that are not asked because no positive is left to them.
        grades: (image rows, caption rows, grades), (n_graded,) each; None where the format has none.
    """

    what: str
    i2t: tuple[np.ndarray, np.ndarray]
    t2i: tuple[np.ndarray, np.ndarray]
    asked: dict[str, np.ndarray]
    before: dict[str, int]
    added: dict[str, int]
    removed: dict[str, int]
    missing: dict[str, int]
    silent: dict[str, int]
    grades: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def line(self) -> str:
        """What the protocol says: what was added to how many, what was taken away, what was not found."""
        changes = [
            f"{name} {self.before[name]:,} + {self.added[name]:,} − {self.removed[name]:,}"
            for name in ("i2t", "t2i")
        ]
        if changes[0].removeprefix("i2t ") == changes[1].removeprefix("t2i "):
            changes = [changes[0].removeprefix("i2t ")]
        parts = [f"{', '.join(changes)} pairs"]
        parts += [f"{count:,} {name} queries lost all" for name, count in self.silent.items() if count]
        lost = [f"{count:,} {what}" for what, count in self.missing.items() if count]
        if lost:
            parts.append(f"not in the collection: {', '.join(lost)}")
        return f"{self.what} ({'; '.join(parts)})"


def match(
    listed: Listed,
    image_ids: Sequence[str],
    caption_ids: Sequence[str],
    caption_image: np.ndarray,
    *,
    originals: bool = False,
) -> ExtendedPositives:
    """What a file says of one collection.

    Args:
        caption_image: (n_captions,) the collection's own pairs.
    """
    images, captions = RowsById(image_ids, image_name), RowsById(caption_ids, caption_name)
    n_captions = max(len(caption_ids), 1)

    def codes(pairs: Iterable[Pair]) -> np.ndarray:
        rows = ((images.of(image), captions.of(caption)) for image, caption in pairs)
        return np.array(sorted({i * n_captions + c for i, c in rows if i >= 0 and c >= 0}), dtype=np.int64)

    relevant = {"i2t": codes(listed.i2t), "t2i": codes(listed.t2i)}
    if not len(relevant["i2t"]) and not len(relevant["t2i"]):
        raise DataError(_nothing(listed, image_ids, caption_ids), "give the file of this very split")
    own = np.asarray(caption_image, dtype=np.int64) * n_captions + np.arange(len(caption_ids))
    judged = None if listed.judged is None else codes(listed.judged)
    asked: dict[str, np.ndarray] = {}
    silent = {"i2t": 0, "t2i": 0}
    for name, part, rows in (("i2t", 0, images), ("t2i", 1, captions)):
        wanted = np.array(
            sorted({rows.of(one) for one in (listed.images if part == 0 else listed.captions)} - {-1}),
            dtype=np.int64,
        )
        if originals:
            relevant[name] = np.union1d(relevant[name], own)
            continue
        # Queries that do not ask keep their own pairs: no number depends on them.
        of_wanted = np.isin(np.divmod(own, n_captions)[part], wanted)
        seen = of_wanted if judged is None else np.isin(own, judged)
        relevant[name] = np.union1d(relevant[name], own[~seen])
        answered = np.isin(wanted, np.divmod(relevant[name], n_captions)[part])
        asked[name], silent[name] = wanted[answered], int(np.sum(~answered))
    counts: dict[str, dict[str, int]] = {"before": {}, "added": {}, "removed": {}}
    for name, part in (("i2t", 0), ("t2i", 1)):

        def asking(pairs: np.ndarray, name: str = name, part: int = part) -> np.ndarray:
            return pairs if originals else pairs[np.isin(np.divmod(pairs, n_captions)[part], asked[name])]

        counts["before"][name] = len(asking(own))
        counts["added"][name] = len(asking(np.setdiff1d(relevant[name], own)))
        counts["removed"][name] = len(asking(np.setdiff1d(own, relevant[name])))
    named = listed.i2t | listed.t2i
    return ExtendedPositives(
        what=f"{listed.what}, originals kept" if originals else listed.what,
        i2t=(relevant["i2t"] // n_captions, relevant["i2t"] % n_captions),
        t2i=(relevant["t2i"] // n_captions, relevant["t2i"] % n_captions),
        asked=asked,
        missing={
            "images": sum(images.of(one) < 0 for one in listed.images | {image for image, _ in named}),
            "captions": sum(captions.of(one) < 0 for one in listed.captions | {text for _, text in named}),
            "pairs": sum(images.of(image) < 0 or captions.of(text) < 0 for image, text in named),
        },
        silent=silent,
        grades=None if listed.grades is None else _graded(listed.grades, images, captions),
        **counts,
    )


def _graded(
    grades: Mapping[Pair, float], images: RowsById, captions: RowsById
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and grade of each pair of the collection; of two names for one pair, their mean."""
    found: dict[tuple[int, int], list[float]] = {}
    for (image, caption), grade in grades.items():
        pair = images.of(image), captions.of(caption)
        if min(pair) >= 0:
            found.setdefault(pair, []).append(grade)
    pairs = sorted(found)
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1], np.array([sum(found[pair]) / len(found[pair]) for pair in pairs])


def _nothing(listed: Listed, image_ids: Sequence[str], caption_ids: Sequence[str]) -> str:
    pairs = listed.i2t | listed.t2i
    named = ({image for image, _ in pairs}, {caption for _, caption in pairs})
    example = next(iter(sorted(pairs)), ("none", "none"))
    theirs = f"{next(iter(image_ids), 'none')!r} and {next(iter(caption_ids), 'none')!r}"
    return (
        f"{listed.what}: none of its {len(pairs):,} pairs of {len(named[0]):,} images and "
        f"{len(named[1]):,} captions is in the collection of {len(image_ids):,} images and "
        f"{len(caption_ids):,} captions: it names {example[0]!r} and {example[1]!r}, the collection {theirs}"
    )


_ORIGINALS = "originals"


def read_extended_positives(
    source: str,
    image_ids: Sequence[str],
    caption_ids: Sequence[str],
    caption_image: np.ndarray,
    **options: Any,
) -> ExtendedPositives:
    """Read relevant pairs beyond a collection's own.

    Args:
        caption_image: (n_captions,) the picture of each caption.
    """
    name, colon, path = source.partition(":")
    if not colon or not path:
        known = ", ".join(EXTENDED_POSITIVES.names())
        raise UsageError(
            f"positives {source!r} are not FORMAT:PATH", f"for example cxc:FOLDER; formats: {known}"
        )
    reader = EXTENDED_POSITIVES.get(name)
    originals = options.pop(_ORIGINALS, False)
    if not isinstance(originals, bool):
        raise UsageError(f"{_ORIGINALS} is {originals!r}, it must be true or false")
    for key in options:
        if key not in reader.options:
            own = ", ".join([*reader.options, _ORIGINALS])
            raise UsageError(f"positives {name!r} have no option {key!r}", f"their options: {own}")
    listed = reader.read(Path(path), **options)
    return match(listed, image_ids, caption_ids, caption_image, originals=originals)
