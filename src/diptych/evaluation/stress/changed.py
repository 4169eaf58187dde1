"""Changed queries: which ones a perturbation changed, and their embeddings; nothing else is encoded.

Embeddings of the same text or image differ in their last digits with the batch that they were encoded in. So a
changed query whose embedding lies within rounding of the clean one keeps the clean one: to the encoder it is the
same query, and it is counted. An encoder that does not see a change is then indifferent to it exactly. Two seeds
may draw the same images, pixel for pixel: then one of them is enough.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diptych.analysis.perturbations import TextPerturbation, perturb_captions
from diptych.analysis.perturbations.declaration import options_of
from diptych.analysis.perturbations.pictures import PerturbedSource
from diptych.core.context import check_stop, report_to, task
from diptych.core.errors import CaptionError, NumericalError
from diptych.core.fingerprint import fingerprint
from diptych.data.collection import Collection
from diptych.data.images import split_overlay
from diptych.data.loading import read_ahead
from diptych.encoders.dual_encoder import DualEncoder

_ROUNDING = 2.0**-20  # of every number: unit rows that differ by no more are the same row


@dataclass(frozen=True, eq=False)
class Change:
    changed: np.ndarray  # (n,) booleans
    content: str  # a fingerprint of the changed queries
    options: Mapping[str, Any]
    reasons: Mapping[str, int]  # how many queries stayed, by reason
    texts: Sequence[str] = ()  # the changed texts in order, of captions

    @property
    def places(self) -> np.ndarray:
        """Return (q,) which queries were changed."""
        return np.flatnonzero(self.changed)


def same_rows(rows: np.ndarray, clean: np.ndarray) -> np.ndarray:
    """Return (n,) booleans: which of (n, d) rows lie within rounding of the clean ones."""
    found: np.ndarray = (np.abs(rows - clean) <= _ROUNDING).all(axis=1)
    return found


_BLOCK = 2048


def changed_captions(
    perturbation: TextPerturbation,
    captions: Sequence[str],
    ids: Sequence[str],
    options: Mapping[str, Any],
    **how: Any,
) -> Change:
    """Return what :func:`~diptych.analysis.perturbations.perturb_captions` makes of captions."""
    with report_to(None):
        found = perturb_captions(perturbation, captions, ids, options=options, **how)
    places = np.flatnonzero(found.changed).tolist()
    texts = [found.texts[place] for place in places]
    values = options_of(perturbation, options).model_dump(mode="json")
    return Change(found.changed, fingerprint(places, texts), values, found.reasons, texts)


def encode_captions(
    encoder: DualEncoder, texts: Sequence[str], names: Sequence[str], what: str
) -> np.ndarray:
    """Return (n, d) rows of texts, each distinct text encoded once."""
    places: dict[str, int] = {}
    which = np.array([places.setdefault(text, len(places)) for text in texts], dtype=np.int64)
    distinct, counts = list(places), np.bincount(which, minlength=len(places))
    rows = np.empty((len(distinct), encoder.width), dtype=np.float32)
    with task(what, len(texts), "captions") as bar:
        for start in range(0, len(distinct), _BLOCK):
            block = distinct[start : start + _BLOCK]
            try:
                with report_to(None):
                    rows[start : start + len(block)] = encoder.encode_texts(block)
            except (CaptionError, NumericalError) as error:
                first = names[int(np.argmax(which >= start))]
                raise type(error)(f"changed captions from {first} on: {error.message}", error.fix) from None
            bar.advance(int(counts[start : start + len(block)].sum()))
            check_stop()
    return rows[which]


_BATCH = 64
_LOOKED_AT = 16


def look_alike(one: Collection, other: Collection) -> bool:
    """Return whether the first images of two perturbed views are the same: then all of them may be."""
    first = range(min(_LOOKED_AT, one.n_images))
    mine, theirs = ([digest for digest, *_ in _looked_at(view, first)] for view in (one, other))
    return mine == theirs


def changed_pictures(perturbed: Collection, options: Mapping[str, Any]) -> Change:
    """Return which images of a perturbed view are changed; each is made once, none is encoded."""
    found = _looked_at(perturbed, range(perturbed.n_images))
    return _change([(digest, reason) for digest, reason, _ in found], options)


def encode_pictures(
    encoder: DualEncoder, perturbed: Collection, options: Mapping[str, Any], what: str
) -> tuple[Change, np.ndarray]:
    """Make every image of a perturbed view once; return what was changed, and (q, d) rows of that."""
    seen, blocks, n = [], [np.empty((0, encoder.width), dtype=np.float32)], perturbed.n_images
    batch: list[tuple[Any, str]] = []
    with task(what, n, "images") as bar:
        for row, (digest, reason, prepared) in enumerate(_looked_at(perturbed, range(n), encoder)):
            seen.append((digest, reason))
            if not reason:
                batch.append((prepared, perturbed.image_ids[row]))
            if batch and (len(batch) == _BATCH or row == n - 1):
                items, names = [item for item, _ in batch], [name for _, name in batch]
                blocks.append(encoder.encode_prepared(items, names))
                bar.advance(len(batch))
                check_stop()
                batch = []
    return _change(seen, options), np.concatenate(blocks)


def _looked_at(
    perturbed: Collection, rows: Iterable[int], encoder: DualEncoder | None = None
) -> Iterator[tuple[str, str, Any]]:
    """Yield a view's images: digest, why it stays as it is (empty when changed), and prepared for an encoder."""
    source, places = perturbed.source, perturbed.source_rows
    assert isinstance(source, PerturbedSource)

    def look(row: int) -> tuple[str, str, Any]:
        item = perturbed.item(row)
        reason = source.outcome(int(places[row]))
        if encoder is None or reason:
            return _digest(item), reason, None
        return _digest(item), reason, encoder.prepared(item, perturbed.image_ids[row])

    return read_ahead(look, rows)


def _change(seen: Sequence[tuple[str, str]], options: Mapping[str, Any]) -> Change:
    reasons = Counter(reason for _, reason in seen if reason)
    changed = np.array([not reason for _, reason in seen], dtype=bool)
    digests = [digest for digest, _ in seen]
    return Change(changed, fingerprint(digests), options, dict(reasons.most_common()))


def _digest(item: Any) -> str:
    """Return a fingerprint of an image's pixels, and of what is laid over it."""
    picture, overlay = split_overlay(item)
    hasher = hashlib.blake2b(repr(picture.size).encode(), digest_size=16)
    hasher.update(picture.tobytes())
    hasher.update(b"" if overlay is None else overlay.key.encode())
    return hasher.hexdigest()
