"""Semantic deviation: whether a caption's heaviest terms are what the caption says.

Exact@k counts those that the caption contains, Semantic@k also gives credit for terms that are near one of
its words in a static embedding. Neither the thesis nor its code says what happens to special terms, to terms
without weight and to pieces of words; here:

- terms in ``left_out`` ([CLS], [PAD] …) never count and take no place among the k;
- a row with fewer than k terms has empty places, which add 0 (``positive_only``); the printed equations
  would fill them with terms of weight 0 in the order of the vocabulary, which ``positive_only=False`` does;
- a term that the caption contains is as near as can be, 1, whether the embedding knows it or not, so that
  Semantic@k is never less than Exact@k; pieces of words: see :mod:`diptych.sparse.measures.static`.

Source: Nguyen et al., ECIR 2024 (thesis ch. 3, Definition 2, Eq. 3.2 and 3.3).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from diptych.core.context import track
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.encoders.sparse_embeddings import canonical_rows
from diptych.metrics.products import unit_rows
from diptych.sparse.measures.static import CaptionWords, StaticEmbedding
from diptych.sparse.vocabulary import TermVocabulary


def leading_terms(
    rows: csr_array, k: int, *, left_out: Collection[int] = (), positive_only: bool = True
) -> np.ndarray:
    """The k heaviest terms of each row, ties to the lower column.

    Args:
        rows: (n, |V|) sparse rows of weights of at least 0.

    Returns:
        (n, k) int64 columns, -1 where a place is empty.
    """
    if k < 1:
        raise UsageError(f"k is {k}, it must be at least 1")
    rows = canonical_rows(rows)
    if np.any(rows.data < 0):
        raise DataError(f"a weight is {rows.data.min()}, weights are at least 0")
    out = np.zeros(rows.shape[1], dtype=bool)
    if any(not 0 <= column < len(out) for column in left_out):
        raise UsageError(
            f"columns {sorted(left_out)} of {len(out)} are to be left out", "give columns there are"
        )
    out[list(left_out)] = True
    out_any = bool(out.any())
    found = np.full((rows.shape[0], k), -1, dtype=np.int64)
    for row, (begin, end) in enumerate(pairwise(rows.indptr.tolist())):
        columns, weights = rows.indices[begin:end], rows.data[begin:end]
        if out_any:
            kept = ~out[columns]
            columns, weights = columns[kept], weights[kept]
        if len(columns) > k:  # only those that can be among the k are sorted
            near = weights >= np.partition(weights, len(weights) - k)[len(weights) - k]
            columns, weights = columns[near], weights[near]
        order = np.argsort(-weights, kind="stable")[:k]  # columns ascend, so the lower comes first
        found[row, : len(order)] = columns[order]
    if not positive_only:
        spare = np.flatnonzero(~out)
        for row in np.flatnonzero(found[:, -1] < 0).tolist():
            have = int(np.sum(found[row] >= 0))
            here = rows.indices[rows.indptr[row] : rows.indptr[row + 1]]
            fill = spare[: have + k + len(here)]
            fill = fill[~np.isin(fill, here)][: k - have]
            found[row, have : have + len(fill)] = fill
    return found


def exact_at(
    rows: csr_array,
    caption_terms: csr_array,
    k: int,
    *,
    left_out: Collection[int] = (),
    positive_only: bool = True,
) -> np.ndarray:
    """Exact@k: the share of the k heaviest terms that the caption contains (Eq. 3.2).

    Args:
        rows: (n, |V|) sparse rows of captions.
        caption_terms: (n, |V|) sparse, not 0 where the caption contains the term.

    Returns:
        (n,) float64 in [0, 1].
    """
    _check_same(rows, caption_terms)
    leading = leading_terms(rows, k, left_out=left_out, positive_only=positive_only)
    share: np.ndarray = contained(leading, caption_terms).mean(axis=1)
    return share


def semantic_at(
    rows: csr_array,
    caption_terms: csr_array,
    vectors: np.ndarray,
    k: int,
    *,
    words: CaptionWords | None = None,
    left_out: Collection[int] = (),
    positive_only: bool = True,
) -> np.ndarray:
    """Semantic@k: how near the k heaviest terms are to the caption's nearest word, on average (Eq. 3.3).

    Args:
        rows: (n, |V|) sparse rows of captions.
        caption_terms: (n, |V|) sparse, not 0 where the caption contains the term.

    Returns:
        (n,) float64, at most 1 and at least Exact@k where no cosine is below 0.
    """
    _check_same(rows, caption_terms)
    if len(vectors) != rows.shape[1]:
        raise MismatchError(
            f"{len(vectors)} vectors for {rows.shape[1]} terms", "take the vectors of the rows' own terms"
        )
    caption_terms = canonical_rows(caption_terms)
    leading = leading_terms(rows, k, left_out=left_out, positive_only=positive_only)
    said_so = contained(leading, caption_terms)
    units = unit_rows(vectors, np.float64)
    said, said_units = (
        (caption_terms, units) if words is None else (words.rows, unit_rows(words.vectors, np.float64))
    )
    if said.shape != (rows.shape[0], len(said_units)) or said_units.shape[1] != units.shape[1]:
        raise MismatchError(
            f"words of shape {said.shape} with vectors of {said_units.shape} for {rows.shape[0]} captions and "
            f"vectors {units.shape[1]} wide",
            "find the captions' words with the same static embedding",
        )
    has_vector = np.any(said_units, axis=1)
    values = np.empty(rows.shape[0])
    for row in track(range(rows.shape[0]), f"Semantic@{k}", unit="captions"):
        near = said_so[row].astype(np.float64)
        mine = said.indices[said.indptr[row] : said.indptr[row + 1]]
        mine = mine[has_vector[mine]]
        asked = np.flatnonzero((leading[row] >= 0) & ~said_so[row])
        if len(mine) and len(asked):
            near[asked] = (units[leading[row, asked]] @ said_units[mine].T).max(axis=1)
        values[row] = near.mean()
    return values


def contained(leading: np.ndarray, caption_terms: csr_array) -> np.ndarray:
    """Which leading terms the captions contain.

    Args:
        leading: (n, k) columns, -1 for an empty place.
        caption_terms: (n, |V|) sparse, not 0 where the caption contains the term.

    Returns:
        (n, k) booleans, False for an empty place.
    """
    caption_terms = canonical_rows(caption_terms)
    width = caption_terms.shape[1]
    owner = np.repeat(np.arange(caption_terms.shape[0]), np.diff(caption_terms.indptr))
    have = owner.astype(np.int64) * width + caption_terms.indices
    asked = np.arange(len(leading))[:, None] * width + leading
    found: np.ndarray = (leading >= 0) & np.isin(asked, have)
    return found


def _check_same(rows: csr_array, caption_terms: csr_array) -> None:
    if rows.shape != caption_terms.shape:
        raise MismatchError(
            f"rows of shape {rows.shape} and caption terms of shape {caption_terms.shape}",
            "take the terms of the same captions, by the vocabulary of the rows",
        )


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
