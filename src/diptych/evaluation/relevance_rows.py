"""How relevant an item is by another model: its rows of what is evaluated, found by id."""

from __future__ import annotations

import numpy as np

from diptych.core.errors import MismatchError
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.encoded import EncodedCollection
from diptych.encoders.given_rows import GivenRows
from diptych.metrics import Relevance


def relevance_of(encoded: EncodedCollection, by: EncodedCollection) -> Relevance:
    """How relevant an item is by another model's rows of the same pictures and captions."""
    if by.similarity != "cosine":
        raise MismatchError(
            f"the relevance model compares by similarity {by.similarity!r}, which gives penalties and no gains",
            "name a model of cosines, for example hf:openai/clip-vit-base-patch32",
        )
    encoder = by.about.get("encoder", {})
    name = f"{encoder.get('name', encoder.get('family', 'relevance model'))} {by.images.encoder}"
    images = _rows_of(encoded.images, by.images, name)
    texts = _rows_of(encoded.texts, by.texts, name)
    mine, theirs = encoded.about["data"], by.about["data"]
    if mine == theirs:
        return Relevance(images, texts, name)
    if images is by.images.rows and texts is by.texts.rows and _comparable(encoded, by):
        raise MismatchError(
            f"relevance model {name} has rows of other pictures or captions of the same ids: of data {theirs}, "
            f"and {mine} is evaluated",
            "embed the same data and split with it",
        )
    return Relevance(images, texts, f"{name} (rows of data {theirs})")


def _comparable(encoded: EncodedCollection, by: EncodedCollection) -> bool:
    """Whether both fingerprints of data are of files of one kind: not of rows that were given."""
    mine, theirs = _read(encoded), _read(by)
    return mine == theirs and mine != GivenRows.family


def _read(encoded: EncodedCollection) -> str:
    """What the fingerprint of the data is of: ``"pictures"``, ``"regions"`` or ``"rows"``."""
    encoder = encoded.about.get("encoder", {})
    image = encoder.get("image")
    if encoder.get("family") == GivenRows.family:
        return GivenRows.family
    return str(image.get("takes", "pictures")) if isinstance(image, dict) else "pictures"


def _rows_of(wanted: Embeddings, there: Embeddings, name: str) -> np.ndarray:
    if list(wanted.ids) == list(there.ids):
        return there.rows
    place = {one: row for row, one in enumerate(there.ids)}
    missing = [one for one in wanted.ids if one not in place]
    if missing:
        raise MismatchError(
            f"relevance model {name} has no row for {wanted.kind} {missing[0]!r} ({len(missing):,} of "
            f"{len(wanted):,} are missing)",
            "embed the same data and split with it",
        )
    rows: np.ndarray = there.rows[[place[one] for one in wanted.ids]]
    return rows
