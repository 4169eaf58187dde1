"""What an item is on a Qdrant server: a point with a number made from its id, and a payload."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from diptych.core.errors import DataError, StorageError
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.sparse_embeddings import SparseEmbeddings

Record = Mapping[str, Any]

OWN = "diptych"
"""The payload's field of this package; beside it lie the fields of the item's metadata."""

_NAMESPACE = uuid.UUID("6f0f3f66-4f0a-5d0e-9d3b-9a1f6f1c2d57")  # of this package; never change it


def point_id(name: str) -> str:
    """The point of item ``name``: the same on every server and in every run (UUID version 5)."""
    return str(uuid.uuid5(_NAMESPACE, name))


@dataclass(frozen=True)
class Stamp:
    """Where items come from.

    Attributes:
        encoder: fingerprint of what made their vectors.
        source: fingerprint of the embeddings they were built from, or ``"added"``.
        vocabulary: fingerprint of the terms of sparse vectors.
    """

    encoder: str
    source: str
    vocabulary: str = ""

    @classmethod
    def of(cls, embeddings: Embeddings | SparseEmbeddings) -> Self:
        """The stamp of all items of ``embeddings``."""
        vocabulary = embeddings.vocabulary if isinstance(embeddings, SparseEmbeddings) else ""
        said = (embeddings.encoder, vocabulary, embeddings.data, embeddings.kind, embeddings.width)
        return cls(embeddings.encoder, fingerprint(*said), vocabulary)


def payload_of(name: str, order: int, stamp: Stamp, content: str, record: Record | None) -> dict[str, Any]:
    """The payload of an item; ``order`` grows with insertion, ``content`` see :func:`content_of`."""
    own = {"id": name, "order": order, "content": content, **vars(stamp)}
    return {OWN: own, **(record or {})}


def content_of(parts: Mapping[str, np.ndarray], encoder: str, record: Record | None) -> str:
    """Fingerprint of one item: its vector, what made it, its metadata."""
    return fingerprint(fingerprint_arrays(parts), encoder, record or {})


def read_payload(payload: Record | None, place: str) -> dict[str, Any]:
    """This package's part of a payload."""
    own = (payload or {}).get(OWN)
    if not isinstance(own, dict) or "id" not in own:
        raise StorageError(
            f"{place} holds points that diptych did not write", "keep the collection to one index"
        )
    return own


def check_records(records: Sequence[Record] | None, ids: Sequence[str]) -> list[dict[str, Any]] | None:
    """The metadata of each id as JSON gives it back; None without any."""
    if records is None:
        return None
    if len(records) != len(ids):
        raise DataError(f"metadata of {len(records):,} items given for {len(ids):,}", "give one per item")
    checked = []
    for name, record in zip(ids, records, strict=True):
        if OWN in record:
            raise DataError(
                f"the metadata of {name!r} has a field {OWN!r}, which is taken", "give the field another name"
            )
        try:
            checked.append(json.loads(json.dumps(dict(record), allow_nan=False)))
        except (TypeError, ValueError) as error:
            raise DataError(
                f"the metadata of {name!r} is not JSON: {error}", "give texts, numbers, lists, mappings"
            ) from None
    return checked


@dataclass(frozen=True, eq=False)
class DescribedEmbeddings(Embeddings):
    """Embeddings with metadata.

    Attributes:
        records: per row, fields that searches can be restricted by.
    """

    records: Sequence[Record] | None = None

    @classmethod
    def of(cls, embeddings: Embeddings | SparseEmbeddings, records: Sequence[Record] | None) -> Self:
        """``embeddings`` with ``records``, whose number and form are checked."""
        return cls(**_values(embeddings), records=check_records(records, embeddings.ids))


@dataclass(frozen=True, eq=False)
class DescribedSparseEmbeddings(SparseEmbeddings):
    """Sparse embeddings with metadata, as :class:`DescribedEmbeddings`."""

    records: Sequence[Record] | None = None

    @classmethod
    def of(cls, embeddings: Embeddings | SparseEmbeddings, records: Sequence[Record] | None) -> Self:
        """``embeddings`` with ``records``, whose number and form are checked."""
        return cls(**_values(embeddings), records=check_records(records, embeddings.ids))


def _values(embeddings: Embeddings | SparseEmbeddings) -> dict[str, Any]:
    kind = Embeddings if isinstance(embeddings, Embeddings) else SparseEmbeddings
    return {field.name: getattr(embeddings, field.name) for field in fields(kind)}
