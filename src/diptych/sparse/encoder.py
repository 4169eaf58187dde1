"""SparseEncoder: a dual encoder and its head, from pictures and texts to bags of terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from scipy.sparse import csr_array

from diptych.core.errors import MismatchError
from diptych.core.fingerprint import fingerprint
from diptych.encoders.dual_encoder import DualEncoder
from diptych.sparse.sparsifier import Sparsifier


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
                "use that encoder, or train a head on this one's rows: diptych sparsify",
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
