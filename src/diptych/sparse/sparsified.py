"""A collection as bags of terms: pictures, captions, the captions' own terms, and which describes which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from diptych.core.artifact import Artifact
from diptych.core.errors import DataError
from diptych.encoders.encoded import EncodedCollection
from diptych.encoders.sparse_embeddings import SparseEmbeddings, canonical_rows

if TYPE_CHECKING:
    from diptych.sparse.sparsifier import Sparsifier


@dataclass(frozen=True, eq=False)
class SparsifiedCollection(
    Artifact,
    kind="sparsified_collection",
    recreate="diptych sparsify",
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
