"""Static embeddings of terms and of captions' words: what Semantic@k measures nearness by (f_enc).

The thesis does not say which embedding it used, nor what pieces of words are compared by. Here a vector belongs to a
word: a term that begins one (``dog``) has the vector of that word, if the embedding knows it; a term that continues one
(``##ing``) has none by itself, and special terms ([CLS], [UNK] …) have none. A caption says words, not pieces: its
pieces are joined (``mo ##ped`` → ``moped``) and the word's vector is looked up, or, where the embedding has vectors of
pieces (a masked language model), is the mean of the pieces' vectors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from diptych.core.errors import DataError
from diptych.core.fingerprint import fingerprint_arrays
from diptych.data.word_vectors import read_word_vectors
from diptych.encoders.sparse_embeddings import canonical_rows
from diptych.sparse.vocabulary import TermVocabulary
from diptych.sparse.wordpiece import CONTINUATION, source_tokenizer


@dataclass(frozen=True, eq=False)
class CaptionWords:
    """Which words captions say, and the vectors of these."""

    rows: csr_array  # (n, words) sparse ones
    vectors: np.ndarray  # (words, d) float32, zeros where the embedding does not know the word
    words: Sequence[str]

    @property
    def unknown(self) -> float:
        """The share of all words said (each once per caption) that have no vector."""
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
            fix = "leave out words whose vectors hold NaN or infinity"
            raise DataError(f"{source}: a vector is not finite", fix)
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
        """Return the (d,) vector of a word; zeros where the embedding has none."""
        parts = [word] if word in self.rows else pieces if self.of_pieces else []
        known = [self.rows[part] for part in parts if part in self.rows]
        if not known or len(known) < len(parts):
            return np.zeros(self.vectors.shape[1], dtype=np.float32)
        return np.asarray(self.vectors[known].mean(axis=0))

    def of_captions(self, captions: Sequence[str], vocabulary: TermVocabulary) -> CaptionWords:
        """Return the words of captions with their vectors; words are what ``vocabulary`` reads them as."""
        vectors: dict[str, np.ndarray] = {}
        said = [dict(vocabulary.words_of(caption)) for caption in captions]
        for words in said:
            for word, columns in words.items():
                if word not in vectors:
                    vectors[word] = self.of_word(word, [vocabulary.terms[column] for column in columns])
        place = {word: number for number, word in enumerate(vectors)}
        indices = np.array([place[word] for words in said for word in words], dtype=np.int32)
        starts, ones = np.cumsum([0, *map(len, said)]), np.ones(len(indices), dtype=np.float32)
        rows = csr_array((ones, indices, starts), shape=(len(said), len(place)))
        matrix = np.array(list(vectors.values()), dtype=np.float32).reshape(len(place), self.vectors.shape[1])
        return CaptionWords(canonical_rows(rows), matrix, list(place))
