from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from diptych.core.errors import MismatchError
from diptych.encoders.dual_encoder import DualEncoder
from diptych.sparse.head import fresh_heads
from diptych.sparse.sparsified import SparseEncoder
from diptych.sparse.sparsifier import Sparsifier
from diptych.sparse.vocabulary import TermVocabulary

from .small_pairs import WIDTH, options, small_pairs

DATA = small_pairs()
ROW_OF = {caption: row for caption, row in zip(DATA.captions, DATA.texts.rows, strict=True)}


class Known(DualEncoder):
    """Rows of captions that it has heard of, and of pictures by number."""

    family: ClassVar[str] = "known"

    def __init__(self, fingerprint: str = "e0") -> None:
        self._fingerprint = fingerprint

    def encode_images(self, images: Iterable[Any], batch_size: int = 64) -> np.ndarray:
        return np.array([DATA.images.rows[number] for number in images])

    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        return np.array([ROW_OF.get(text, np.eye(WIDTH, dtype=np.float32)[0]) for text in texts])

    @property
    def width(self) -> int:
        return WIDTH

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def describe(self) -> dict[str, Any]:
        return {"family": "known"}

    def _write(self, folder: Path) -> None:
        raise NotImplementedError


def head(width: int = WIDTH, encoder: str = "e0", mode: str = "c") -> Sparsifier:
    vocabulary = TermVocabulary.learned(DATA.captions, 60)
    heads = fresh_heads(width, 6, len(vocabulary.terms), shared=True, bias=True, eps=1e-12, seed=0)
    return Sparsifier(heads, vocabulary, options(expansion={"mode": mode}), encoder, device="cpu")


def test_it_makes_the_rows_that_embeddings_have() -> None:
    sparsifier = head()
    encoder = SparseEncoder(Known(), sparsifier)
    embedded = sparsifier.embed(DATA.images)
    assert np.array_equal(encoder.encode_images(range(24)).toarray(), embedded.rows.toarray())
    texts = sparsifier.embed(DATA.texts)
    known = sorted({caption: row for row, caption in enumerate(DATA.captions)}.values())  # some occur twice
    found = encoder.encode_texts([DATA.captions[row] for row in known])
    np.testing.assert_allclose(found.toarray(), texts.rows.toarray()[known], atol=1e-5)
    assert encoder.fingerprint == embedded.encoder == texts.encoder
    assert encoder.terms == embedded.terms
    assert encoder.describe()["head"]["fingerprint"] == sparsifier.fingerprint


def test_without_expansion_texts_keep_their_own_terms() -> None:
    for encoder, expand in (
        (SparseEncoder(Known(), head()), False),
        (SparseEncoder(Known(), head(mode="0")), True),
    ):
        rows = encoder.encode_texts(["", *DATA.captions[:3]], expand=expand)
        own = encoder.caption_terms(["", *DATA.captions[:3]])
        assert rows.shape == own.shape
        assert rows[[0]].nnz == 0  # an empty text has no terms
        assert not (rows.toarray() * (own.toarray() == 0)).any()


def test_a_head_of_another_encoder_is_refused() -> None:
    with pytest.raises(MismatchError, match="rows of encoder e9, this is e0"):
        SparseEncoder(Known(), head(encoder="e9"))
    with pytest.raises(MismatchError, match="rows of width 8, the head takes 5"):
        SparseEncoder(Known(), head(width=5))
    assert SparseEncoder(Known("any"), head(encoder="")).terms
