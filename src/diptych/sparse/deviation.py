"""Exact@k and Semantic@k of the captions of a split, as means and per caption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from diptych.sparse.measures import (
    CaptionWords,
    StaticEmbedding,
    contained,
    exact_at,
    leading_terms,
    semantic_at,
)
from diptych.sparse.vocabulary import TermVocabulary


@dataclass(frozen=True)
class Deviation:
    """Whether captions' heaviest terms are what captions say.

    Attributes:
        k: how many terms.
        exact: mean Exact@k.
        semantic: mean Semantic@k; None without a static embedding.
        embedding: which static embedding.
        unknown_terms: share of the leading terms that the captions do not contain and the embedding does not
            know (continuations of words among them); they add 0.
        unknown_words: share of the captions' words that the embedding does not know.
    """

    k: int
    exact: float
    semantic: float | None = None
    embedding: str | None = None
    unknown_terms: float | None = None
    unknown_words: float | None = None


def measure_deviation(
    rows: csr_array,
    caption_terms: csr_array,
    vocabulary: TermVocabulary,
    k: int = 20,
    *,
    embedding: StaticEmbedding | None = None,
    words: CaptionWords | None = None,
    positive_only: bool = True,
) -> tuple[Deviation, dict[str, np.ndarray]]:
    """Exact@k and, by an embedding, Semantic@k of captions' rows: means, and values per caption.

    Args:
        rows: (n, |V|) sparse rows of captions.
        caption_terms: (n, |V|) which terms each caption contains.
    """
    how: dict[str, Any] = {"left_out": vocabulary.special, "positive_only": positive_only}
    exact = exact_at(rows, caption_terms, k, **how)
    if embedding is None:
        return Deviation(k, float(exact.mean())), {"exact": exact}
    vectors = embedding.of_terms(vocabulary.terms, vocabulary.special)
    semantic = semantic_at(rows, caption_terms, vectors, k, words=words, **how)
    known = np.any(vectors, axis=1)
    leading = leading_terms(rows, k, **how)
    others = (leading >= 0) & ~contained(leading, caption_terms)  # what captions contain needs no vector
    unknown = others & ~known[leading]
    return (
        Deviation(
            k=k,
            exact=float(exact.mean()),
            semantic=float(semantic.mean()),
            embedding=embedding.name,
            unknown_terms=float(unknown.sum() / max(1, others.sum())),
            unknown_words=None if words is None else words.unknown,
        ),
        {"exact": exact, "semantic": semantic},
    )
