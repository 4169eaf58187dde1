"""Pictures that a perturbation changed, and their rows; nothing else is encoded.

Two seeds may draw the same pictures, pixel for pixel: then one of them is enough.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from diptych.analysis.perturbations.pictures import PerturbedSource
from diptych.core.context import Task
from diptych.core.fingerprint import fingerprint
from diptych.data.collection import Collection
from diptych.data.loading import read_ahead
from diptych.data.overlay import split_overlay
from diptych.encoders.dual_encoder import DualEncoder
from diptych.evaluation.stress.change import Change, Stop, check_stop

_BATCH = 64
_LOOKED_AT = 16


def look_alike(one: Collection, other: Collection) -> bool:
    """Whether the first pictures of two perturbed views are the same: then all of them may be."""
    first = range(min(_LOOKED_AT, one.n_images))
    return _looked_at(one, first).digests == _looked_at(other, first).digests


def changed_pictures(perturbed: Collection, options: Mapping[str, Any]) -> Change:
    """Which pictures of a perturbed view are changed; each is made once, none is encoded."""
    return _looked_at(perturbed, range(perturbed.n_images)).change(options)


def encode_pictures(
    encoder: DualEncoder, perturbed: Collection, options: Mapping[str, Any], bar: Task, should_stop: Stop
) -> tuple[Change, np.ndarray]:
    """Every picture of a perturbed view is made once; those that are changed are encoded.

    Returns:
        What was changed, and (q, d) rows of those.
    """
    seen, blocks = _Seen(perturbed), []
    for names, items in _batches(encoder, perturbed, seen):
        blocks.append(encoder.encode_prepared(items, names))
        bar.advance(len(items))
        check_stop(should_stop)
    empty = np.empty((0, encoder.width), dtype=np.float32)
    return seen.change(options), np.concatenate(blocks) if blocks else empty


def _batches(
    encoder: DualEncoder, perturbed: Collection, seen: _Seen
) -> Iterator[tuple[list[str], list[Any]]]:
    def made(row: int) -> tuple[str, str, Any]:
        item, name = perturbed.item(row), perturbed.image_ids[row]
        reason = seen.reason(row)
        return _digest(item), reason, None if reason else encoder.prepared(item, name)

    names: list[str] = []
    items: list[Any] = []
    for row, (digest, reason, prepared) in enumerate(read_ahead(made, range(perturbed.n_images))):
        seen.note(digest, reason)
        if not reason:
            names.append(perturbed.image_ids[row])
            items.append(prepared)
        if len(items) == _BATCH:
            yield names, items
            names, items = [], []
    if items:
        yield names, items


class _Seen:
    """What was seen of a view's pictures, in order."""

    def __init__(self, perturbed: Collection) -> None:
        assert isinstance(perturbed.source, PerturbedSource)
        self._source, self._rows = perturbed.source, perturbed.source_rows
        self.digests: list[str] = []
        self._reasons: list[str] = []

    def reason(self, row: int) -> str:
        """Why a picture that was read stays as it is; empty when it is changed."""
        return self._source.outcome(int(self._rows[row]))

    def note(self, digest: str, reason: str) -> None:
        self.digests.append(digest)
        self._reasons.append(reason)

    def change(self, options: Mapping[str, Any]) -> Change:
        changed = np.array([not reason for reason in self._reasons], dtype=bool)
        reasons = Counter(reason for reason in self._reasons if reason)
        return Change(changed, fingerprint(self.digests), options, dict(reasons.most_common()))


def _looked_at(perturbed: Collection, rows: Iterable[int]) -> _Seen:
    seen = _Seen(perturbed)

    def look(row: int) -> tuple[str, str]:
        return _digest(perturbed.item(row)), seen.reason(row)

    for digest, reason in read_ahead(look, rows):
        seen.note(digest, reason)
    return seen


def _digest(item: Any) -> str:
    """A fingerprint of a picture's pixels, and of what is laid over it."""
    picture, overlay = split_overlay(item)
    hasher = hashlib.blake2b(repr(picture.size).encode(), digest_size=16)
    hasher.update(picture.tobytes())
    hasher.update(b"" if overlay is None else overlay.key.encode())
    return hasher.hexdigest()
