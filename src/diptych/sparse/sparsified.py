"""A collection as bags of terms: pictures, captions, the captions' own terms, and which describes which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from diptych.core.artifact import Artifact
from diptych.core.errors import DataError, MismatchError
from diptych.core.fingerprint import fingerprint
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection
from diptych.encoders.sparse_embeddings import SparseEmbeddings, canonical_rows
from diptych.sparse.sparsifier import Sparsifier


@dataclass(frozen=True, eq=False)
class SparsifiedCollection(
    Artifact,
    kind="sparsified_collection",
    recreate="diptych sparse train",
    mapped=("caption_image",),
    parts=("images", "texts", "own_terms"),
):
    """What a head makes of an :class:`~diptych.encoders.encode.EncodedCollection`.

    Attributes:
        images: one row per picture.
        texts: one row per caption; with expansion terms unless the head has none.
        own_terms: one row per caption: ones where it contains a term, special terms left out.
        caption_image: (n_captions,) int64, the picture of each caption.
        about: what reports print beside their numbers: dataset, split, dense encoder, head.
    """

    images: SparseEmbeddings
    texts: SparseEmbeddings
    own_terms: SparseEmbeddings
    caption_image: np.ndarray
    about: dict[str, Any]

    @property
    def unexpanded(self) -> SparseEmbeddings:
        """The captions with their own terms alone, weighted as before (``exp = 0`` in use)."""
        own = canonical_rows(self.texts.rows.multiply(self.caption_terms))
        return replace(self.texts, rows=own, about={**self.texts.about, "expansion": False})

    @property
    def caption_terms(self) -> csr_array:
        """Return (n_captions, |V|) the rows of :attr:`own_terms`."""
        return self.own_terms.rows


def sparsify_collection(
    sparsifier: Sparsifier, encoded: EncodedCollection, captions: Sequence[str], folder: Path | str
) -> SparsifiedCollection:
    """Make sparse rows of all pictures and captions, or open what is there when it is the same."""
    folder = Path(folder)
    if len(captions) != len(encoded.texts):
        raise DataError(f"{len(captions):,} captions for {len(encoded.texts):,} rows of captions")
    about = {
        **encoded.about,
        "head": sparsifier.fingerprint,
        "vocabulary": sparsifier.vocabulary.fingerprint,
        "expansion": sparsifier.options.expansion.mode,
    }
    if SparsifiedCollection.is_at(folder):
        found = SparsifiedCollection.open(folder)
        if found.about == about:
            return found
    texts = sparsifier.embed(encoded.texts, captions)
    own = canonical_rows(sparsifier.vocabulary.caption_terms(captions))
    SparsifiedCollection(
        sparsifier.embed(encoded.images),
        texts,
        replace(texts, rows=own, encoder=sparsifier.vocabulary.fingerprint),
        encoded.caption_image,
        about,
    ).save(folder)
    return SparsifiedCollection.open(folder)


class SparseEncoder:
    """Two encoders with one space of terms."""

    def __init__(self, encoder: DualEncoder, sparsifier: Sparsifier) -> None:
        if encoder.width != sparsifier.width:
            raise MismatchError(
                f"the encoder makes rows of width {encoder.width}, the head takes {sparsifier.width}",
                "use the encoder that the head was trained on",
            )
        if sparsifier.encoder and encoder.fingerprint != sparsifier.encoder:
            raise MismatchError(
                f"the head was trained on rows of encoder {sparsifier.encoder}, this is {encoder.fingerprint}",
                "use that encoder, or train a head on this one's rows: diptych sparse train",
            )
        self.encoder = encoder
        self.sparsifier = sparsifier

    @property
    def terms(self) -> tuple[str, ...]:
        """The vocabulary, one term per column."""
        return self.sparsifier.vocabulary.terms

    @cached_property
    def fingerprint(self) -> str:
        """Name by content, the same as that of sparse embeddings made of this encoder's."""
        return fingerprint(self.encoder.fingerprint, self.sparsifier.fingerprint)

    def encode_images(self, images: Iterable[Any], batch_size: int = 64) -> csr_array:
        """(n, |V|) weights of the terms of pictures, of whatever the dense encoder takes."""
        return self.sparsifier.sparsify(self.encoder.encode_images(images, batch_size), "image")

    def encode_texts(self, texts: Sequence[str], *, expand: bool = True, batch_size: int = 256) -> csr_array:
        """(n, |V|) weights of the terms of texts."""
        rows = self.encoder.encode_texts(texts, batch_size)
        own = None if expand and self.sparsifier.expands else self.caption_terms(texts)
        return self.sparsifier.sparsify(rows, "text", own, expand=expand)

    def caption_terms(self, texts: Sequence[str]) -> csr_array:
        """(n, |V|) ones where a text contains a term."""
        return self.sparsifier.vocabulary.caption_terms(texts)

    def describe(self) -> dict[str, Any]:
        """What has to be printed beside every number that it gave, as JSON-able values."""
        return {**self.encoder.describe(), "head": self.sparsifier.describe()}
