"""Measures of sparse rows: what they cost, and what captions' terms mean.

**Co-activation** is how many terms a caption and an image share (Definition 1, Eq. 3.1).

**Semantic deviation** is whether a caption's heaviest terms are what the caption says (Definition 2): Exact@k counts
those that the caption contains (Eq. 3.2), Semantic@k also gives credit for terms near one of its words in a static
embedding, f_enc (Eq. 3.3). Neither the thesis nor its code says what happens to special terms, to terms without
weight and to pieces of words, nor which embedding it used; here:

- terms in ``left_out`` ([CLS], [PAD] …) never count and take no place among the k;
- a row with fewer than k terms has empty places, which add 0 (``positive_only``); the printed equations would fill
  them with terms of weight 0 in the order of the vocabulary, which ``positive_only=False`` does;
- a term that the caption contains is as near as can be, 1, whether the embedding knows it or not;
- a vector belongs to a word: a term that begins one (``dog``) has the vector of that word, one that continues a word
  (``##ing``) has none. A caption says words: its pieces are joined (``mo ##ped`` → ``moped``) and the word's vector is
  looked up, or, where the embedding has vectors of pieces, is the mean of the pieces' vectors.

Source: Nguyen, Hendriksen, Yates and de Rijke, Multimodal learned sparse retrieval with probabilistic expansion
control, ECIR 2024 (thesis ch. 3).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from diptych.core.context import track
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.fingerprint import fingerprint_arrays
from diptych.data.word_vectors import read_word_vectors
from diptych.encoders.embeddings import canonical_rows
from diptych.metrics.products import unit_rows
from diptych.metrics.runs import places
from diptych.sparse.vocabulary import CONTINUATION, TermVocabulary, source_tokenizer


@dataclass(frozen=True, eq=False)
class CaptionWords:
    """The words of captions, and their vectors."""

    rows: csr_array  # (n, words) sparse ones
    vectors: np.ndarray  # (words, d) float32, zeros where the embedding does not know the word
    words: Sequence[str]

    @property
    def unknown(self) -> float:
        """Return the share of all words in captions (each once per caption) that have no vector."""
        known = np.any(self.vectors, axis=1)
        return 0.0 if not self.rows.nnz else float(np.mean(~known[self.rows.indices]))


@dataclass(frozen=True, eq=False)
class StaticEmbedding:
    """Vectors of words, looked up by how they are written."""

    name: str  # for protocols
    rows: Mapping[str, int]  # word → row
    vectors: np.ndarray  # (n, d) float32, finite
    of_pieces: bool = False  # pieces (``##ing``) have vectors too, which words that have none are made of

    @classmethod
    def open(cls, source: str) -> StaticEmbedding:
        """Read an .npz with ``words`` and ``vectors``, or the input embeddings of a BERT-like model (folder, name)."""
        if source.endswith(".npz") or Path(source).is_file():
            rows, vectors = read_word_vectors(source, "the path of the word vectors")
            kind, of_pieces = "word vectors", False
        else:
            from diptych.sparse.initialise import read_head

            vectors = read_head(source).projector  # BERT's output and input embeddings are one matrix
            terms = source_tokenizer(source).get_vocab(with_added_tokens=True)
            rows = {term: row for term, row in terms.items() if row < len(vectors)}
            kind, of_pieces = "input embeddings of", True
        if not np.isfinite(vectors).all():
            raise DataError(
                f"{source}: a vector is not finite", "leave out words whose vectors hold NaN or infinity"
            )
        digest = fingerprint_arrays({"vectors": vectors})
        return cls(f"{kind} {Path(source).name} {digest}", rows, vectors, of_pieces)

    def of_terms(self, terms: Sequence[str], left_out: Collection[int] = ()) -> np.ndarray:
        """Return (|V|, d) float32 vectors of a vocabulary; zeros for unknown, continuing and special terms."""
        found = np.zeros((len(terms), self.vectors.shape[1]), dtype=np.float32)
        for column, term in enumerate(terms):
            if term in self.rows and column not in left_out and not term.startswith(CONTINUATION):
                found[column] = self.vectors[self.rows[term]]
        return found

    def of_word(self, word: str, pieces: Sequence[str]) -> np.ndarray:
        parts = [word] if word in self.rows else pieces if self.of_pieces else []
        known = [self.rows[part] for part in parts if part in self.rows]
        if not known or len(known) < len(parts):
            return np.zeros(self.vectors.shape[1], dtype=np.float32)
        return np.asarray(self.vectors[known].mean(axis=0))

    def of_captions(self, captions: Sequence[str], vocabulary: TermVocabulary) -> CaptionWords:
        """Return the words of captions with their vectors; words are what ``vocabulary`` reads them as."""
        vectors: dict[str, np.ndarray] = {}
        spoken = [dict(vocabulary.words_of(caption)) for caption in captions]
        for words in spoken:
            for word, columns in words.items():
                if word not in vectors:
                    vectors[word] = self.of_word(word, [vocabulary.terms[column] for column in columns])
        place = {word: number for number, word in enumerate(vectors)}
        indices = np.array([place[word] for words in spoken for word in words], dtype=np.int32)
        starts, ones = np.cumsum([0, *map(len, spoken)]), np.ones(len(indices), dtype=np.float32)
        rows = csr_array((ones, indices, starts), shape=(len(spoken), len(place)))
        matrix = np.array(list(vectors.values()), dtype=np.float32).reshape(len(place), self.vectors.shape[1])
        return CaptionWords(canonical_rows(rows), matrix, list(place))


def flops(texts: csr_array, images: csr_array) -> float:
    """Return the mean number of terms that (n, |V|) captions and (m, |V|) images share, over all pairs (Eq. 3.1)."""
    texts, images = canonical_rows(texts, "text"), canonical_rows(images, "image")
    if texts.shape[1] != images.shape[1]:
        raise MismatchError(
            f"captions have rows of {texts.shape[1]} terms, images of {images.shape[1]}",
            "make both with the same head",
        )
    pairs = int(texts.shape[0]) * int(images.shape[0])
    if not pairs:
        raise DataError(f"{texts.shape[0]} captions and {images.shape[0]} images make no pair")
    # A sum over terms of how many captions times how many images have them: whole numbers, exact to 2**53.
    counts = (np.bincount(rows.indices, minlength=rows.shape[1]).astype(float) for rows in (texts, images))
    return float(np.dot(*counts) / pairs)


def nonzeros(rows: csr_array) -> float:
    return float(_terms_per_row(rows).mean())


def empty_share(rows: csr_array) -> float:
    """Return the share of rows without any term: as queries they find nothing, as items they are never found."""
    return float(np.mean(_terms_per_row(rows) == 0))


def _terms_per_row(rows: csr_array) -> np.ndarray:
    counts: np.ndarray = np.diff(canonical_rows(rows).indptr)
    if not len(counts):
        raise DataError("a mean over no rows", "give at least one")
    return counts


def leading_terms(
    rows: csr_array, k: int, *, left_out: Collection[int] = (), positive_only: bool = True
) -> np.ndarray:
    """Return (n, k) int64 columns of the k heaviest terms of (n, |V|) rows, ties to the lower; -1: an empty place."""
    rows = canonical_rows(rows)
    if k < 1:
        raise UsageError(f"k is {k}, it must be at least 1")
    if np.any(rows.data < 0):
        raise DataError(f"a weight is {rows.data.min()}, weights are at least 0")
    count, terms = rows.shape
    counted = np.ones(terms, dtype=bool)
    counted[list(left_out)] = False
    found = np.full((count, k), -1, dtype=np.int64)
    if not positive_only:
        for row in range(count):
            weights = np.where(counted, rows[[row]].toarray()[0], -1.0)
            order = np.argsort(-weights, kind="stable")[: min(k, int(counted.sum()))]
            found[row, : len(order)] = order
        return found
    inside = counted[rows.indices]
    owner = np.repeat(np.arange(count), np.diff(rows.indptr))[inside]
    columns, weights = rows.indices[inside], rows.data[inside]
    order = np.lexsort((columns, -weights, owner))
    place = places(np.bincount(owner, minlength=count))
    found[owner[place < k], place[place < k]] = columns[order][place < k]
    return found


def exact_at(
    rows: csr_array,
    caption_terms: csr_array,
    k: int,
    *,
    left_out: Collection[int] = (),
    positive_only: bool = True,
) -> np.ndarray:
    """Return Exact@k: (n,) shares of the k heaviest terms that the caption contains (Eq. 3.2).

    ``rows`` are (n, |V|) of captions, ``caption_terms`` likewise, not 0 where the caption contains the term.
    """
    _, own = _leading_and_own(rows, caption_terms, k, left_out, positive_only)
    return np.asarray(own.mean(axis=1))


def _leading_and_own(
    rows: csr_array, caption_terms: csr_array, k: int, left_out: Collection[int], positive_only: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the (n, k) leading terms, and which of them captions contain."""
    if rows.shape != caption_terms.shape:
        raise MismatchError(
            f"rows of shape {rows.shape} and caption terms of shape {caption_terms.shape}",
            "take the terms of the same captions, by the vocabulary of the rows",
        )
    leading, terms = leading_terms(rows, k, left_out=left_out, positive_only=positive_only), rows.shape[1]
    own = canonical_rows(caption_terms).tocoo()
    row, column = (one.astype(np.int64) for one in own.coords)
    requested = np.arange(len(leading))[:, None] * terms + leading
    return leading, (leading >= 0) & np.isin(requested, row * terms + column)


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
    """Return Semantic@k: how near the k heaviest terms are to the caption's nearest word, on average (Eq. 3.3).

    Arguments are those of :func:`exact_at`, the terms' (|V|, d) ``vectors``, and the ``words`` that captions say, which
    are their terms when not given. Values are (n,) float64, at least Exact@k where no cosine is below 0.
    """
    if len(vectors) != rows.shape[1]:
        raise MismatchError(
            f"{len(vectors)} vectors for {rows.shape[1]} terms", "take the vectors of the rows' own terms"
        )
    leading, own = _leading_and_own(rows, caption_terms, k, left_out, positive_only)
    units = unit_rows(vectors, np.float64)
    spoken, word_units = canonical_rows(caption_terms), units
    if words is not None:
        spoken, word_units = words.rows, unit_rows(words.vectors, np.float64)
    if spoken.shape != (len(leading), len(word_units)) or word_units.shape[1] != units.shape[1]:
        raise MismatchError(
            f"words of shape {spoken.shape} with vectors of {word_units.shape} for {len(leading)} captions and "
            f"vectors {units.shape[1]} wide",
            "find the captions' words with the same static embedding",
        )
    has_vector, near = np.any(word_units, axis=1), own.astype(np.float64)
    for row in track(range(len(leading)), f"Semantic@{k}", unit="captions"):
        mine = spoken.indices[spoken.indptr[row] : spoken.indptr[row + 1]]
        mine = mine[has_vector[mine]]
        requested = np.flatnonzero((leading[row] >= 0) & ~own[row])
        if len(mine) and len(requested):
            near[row, requested] = (units[leading[row, requested]] @ word_units[mine].T).max(axis=1)
    return np.asarray(near.mean(axis=1))


@dataclass(frozen=True)
class Deviation:
    """Deviation of captions' heaviest terms from what captions say."""

    k: int
    exact: float
    semantic: float | None = None
    embedding: str | None = None
    # of the leading terms that captions do not contain, the share that the embedding does not know (continuations
    # of words among them); they add 0
    unknown_terms: float | None = None
    unknown_words: float | None = None  # the share of the captions' words that the embedding does not know


def measure_deviation(
    rows: csr_array,
    caption_terms: csr_array,
    vocabulary: TermVocabulary,
    k: int,
    embedding: StaticEmbedding | None = None,
    captions: Sequence[str] = (),
) -> tuple[Deviation, dict[str, np.ndarray]]:
    """Return Exact@k and, by an embedding, Semantic@k of captions' rows: means, and values per caption."""
    special = vocabulary.special
    leading, own = _leading_and_own(rows, caption_terms, k, special)
    exact = own.mean(axis=1)
    if embedding is None:
        return Deviation(k, float(exact.mean())), {"exact": exact}
    words = embedding.of_captions(captions, vocabulary)
    vectors = embedding.of_terms(vocabulary.terms, special)
    semantic = semantic_at(rows, caption_terms, vectors, k, words=words, left_out=special)
    others = (leading >= 0) & ~own  # what captions contain needs no vector
    unknown = float((others & ~np.any(vectors, axis=1)[leading]).sum() / max(1, others.sum()))
    found = Deviation(k, float(exact.mean()), float(semantic.mean()), embedding.name, unknown, words.unknown)
    return found, {"exact": exact, "semantic": semantic}
