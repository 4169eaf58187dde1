"""A collection as bags of terms: pictures, captions, the captions' own terms, and which describes which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from diptych.core.errors import DataError, StorageError
from diptych.core.files import atomic_path, write_json
from diptych.core.reading import opening, read_array, read_json
from diptych.encoders.encoded import EncodedCollection
from diptych.encoders.sparse_embeddings import SparseEmbeddings, canonical_rows

if TYPE_CHECKING:
    from diptych.sparse.sparsifier import Sparsifier


@dataclass(frozen=True, eq=False)
class SparsifiedCollection:
    """What a head makes of an :class:`~diptych.encoders.encode.EncodedCollection`.

    Attributes:
        images: one row per picture.
        texts: one row per caption; with expansion terms unless the head has none.
        caption_terms: (n_captions, |V|) ones where a caption contains a term, special terms out.
        caption_image: (n_captions,) int64, the picture of each caption.
        about: what reports print beside their numbers: dataset, split, dense encoder, head.
    """

    images: SparseEmbeddings
    texts: SparseEmbeddings
    caption_terms: csr_array
    caption_image: np.ndarray
    about: dict[str, Any]

    @property
    def unexpanded(self) -> SparseEmbeddings:
        """The captions with their own terms alone, weighted as before (``exp = 0`` in use)."""
        own = canonical_rows(self.texts.rows.multiply(self.caption_terms))
        return replace(self.texts, rows=own, about={**self.texts.about, "expansion": False})

    @classmethod
    @opening("sparsify again: diptych sparsify")
    def open(cls, folder: Path | str) -> SparsifiedCollection:
        """Memory-map what :func:`sparsify_collection` wrote."""
        folder = Path(folder)
        about = read_json(folder / "about.json")
        images = SparseEmbeddings.open(folder / "images")
        texts = SparseEmbeddings.open(folder / "texts")
        if images.encoder != texts.encoder:
            raise StorageError(
                f"{folder}: pictures were made by {images.encoder}, captions by {texts.encoder}",
                "make them again with diptych sparsify",
            )
        own = SparseEmbeddings.open(folder / "caption_terms").rows
        caption_image = read_array(
            folder / "caption_image.npy", shape=(None,), fix="sparsify again: diptych sparsify"
        )
        return cls(images, texts, own, caption_image, about)


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
    if (folder / "about.json").is_file() and read_json(folder / "about.json") == about:
        return SparsifiedCollection.open(folder)
    (folder / "about.json").unlink(missing_ok=True)
    sparsifier.embed(encoded.images).save(folder / "images")
    texts = sparsifier.embed(encoded.texts, captions)
    texts.save(folder / "texts")
    own = canonical_rows(sparsifier.vocabulary.caption_terms(captions))
    replace(texts, rows=own, encoder=sparsifier.vocabulary.fingerprint).save(folder / "caption_terms")
    with atomic_path(folder / "caption_image.npy") as temporary, open(temporary, "wb") as handle:
        np.save(handle, encoded.caption_image)
    # Written last: a folder with it is complete.
    write_json(folder / "about.json", about)
    return SparsifiedCollection.open(folder)
