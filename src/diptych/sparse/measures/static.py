"""Static embeddings of terms and of captions' words: what Semantic@k measures nearness by (f_enc).

The thesis does not say which embedding it used, nor what pieces of words are compared by. Here a vector
belongs to a word:

- a term that begins a word (``dog``) has the vector of that word, if the embedding knows it;
- a term that continues one (``##ing``) has none by itself;
- a caption says words, not pieces: its pieces are joined (``mo ##ped`` → ``moped``) and the word's vector is
  looked up, or, where the embedding has vectors of pieces (a masked language model), is the mean of the
  pieces' vectors;
- special terms ([CLS], [UNK] …) have none, and are no words of captions.

A term that the caption contains needs no vector: see :mod:`diptych.sparse.measures.deviation`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from diptych.core.errors import DataError
from diptych.core.fingerprint import fingerprint_arrays
from diptych.data.word_vectors import read_word_vectors
from diptych.encoders.sparse_embeddings import canonical_rows
from diptych.sparse.wordpiece import CONTINUATION

if TYPE_CHECKING:
    from diptych.sparse.vocabulary import TermVocabulary


@dataclass(frozen=True, eq=False)
class CaptionWords:
    """Which words captions say, and the vectors of these.

    Attributes:
        rows: (n, words) sparse ones.
        vectors: (words, d) float32, zeros where the embedding does not know the word.
        words: the words.
    """

    rows: csr_array
    vectors: np.ndarray
    words: Sequence[str]

    @property
    def unknown(self) -> float:
        """The share of all words said (each once per caption) that have no vector."""
        known = np.any(self.vectors, axis=1)
        return 0.0 if not self.rows.nnz else float(np.mean(~known[self.rows.indices]))


@dataclass(frozen=True, eq=False)
class StaticEmbedding:
    """Vectors of words, looked up by how they are written.

    Attributes:
        name: what it is, for protocols.
        rows: word → row.
        vectors: (n, d) float32.
        of_pieces: pieces of words (``##ing``) have vectors too, which words that have none are made of.
    """

    name: str
    rows: Mapping[str, int]
    vectors: np.ndarray
    of_pieces: bool = False

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or not np.all(np.isfinite(self.vectors)):
            raise DataError(
                f"{self.name}: vectors of shape {self.vectors.shape} must be finite rows",
                "leave out words whose vectors hold NaN or infinity",
            )

    @classmethod
    def from_file(cls, path: Path | str) -> StaticEmbedding:
        """Word vectors from an .npz with ``words`` and ``vectors``."""
        rows, vectors = read_word_vectors(path, "the path of the word vectors")
        digest = fingerprint_arrays({"vectors": vectors})
        return cls(f"word vectors {Path(path).name} {digest}", rows, vectors)

    @classmethod
    def from_model(cls, source: str) -> StaticEmbedding:
        """The input embeddings of a BERT-like masked language model: a folder, or a hub name."""
        from diptych.sparse.initialise import read_head
        from diptych.sparse.wordpiece import source_tokenizer

        vectors = read_head(source).projector  # BERT's output and input embeddings are one matrix
        rows = source_tokenizer(source).get_vocab(with_added_tokens=True)
        known = {term: row for term, row in rows.items() if row < len(vectors)}
        digest = fingerprint_arrays({"vectors": vectors})
        return cls(f"input embeddings of {Path(source).name} {digest}", known, vectors, of_pieces=True)

    @classmethod
    def open(cls, source: str) -> StaticEmbedding:
        """:meth:`from_file` for a file and for a name that ends in ``.npz``, else :meth:`from_model`."""
        is_file = source.endswith(".npz") or Path(source).is_file()
        return cls.from_file(source) if is_file else cls.from_model(source)

    def of_terms(self, terms: Sequence[str], left_out: Collection[int] = ()) -> np.ndarray:
        """(|V|, d) float32 vectors of a vocabulary; zeros for unknown, continuing and special terms."""
        found = np.zeros((len(terms), self.vectors.shape[1]), dtype=np.float32)
        without = set(left_out)
        for column, term in enumerate(terms):
            row = self.rows.get(term)
            if row is not None and column not in without and not term.startswith(CONTINUATION):
                found[column] = self.vectors[row]
        return found

    def of_word(self, word: str, pieces: Sequence[str]) -> np.ndarray | None:
        """(d,) the vector of a word; None where the embedding has none."""
        if word in self.rows:
            own: np.ndarray = self.vectors[self.rows[word]]
            return own
        rows = [self.rows[piece] for piece in pieces if piece in self.rows]
        if not self.of_pieces or not rows or len(rows) < len(pieces):
            return None
        mean: np.ndarray = self.vectors[rows].mean(axis=0)
        return mean

    def of_captions(self, captions: Sequence[str], vocabulary: TermVocabulary) -> CaptionWords:
        """The words of captions with their vectors; words are what ``vocabulary`` reads them as."""
        places: dict[str, int] = {}
        vectors: list[np.ndarray] = []
        indices: list[int] = []
        counts = [0]
        nothing = np.zeros(self.vectors.shape[1], dtype=np.float32)
        for caption in captions:
            said = set()
            for word, columns in vocabulary.words_of(caption):
                if word not in places:
                    found = self.of_word(word, [vocabulary.terms[column] for column in columns])
                    places[word] = len(vectors)
                    vectors.append(nothing if found is None else found)
                said.add(places[word])
            indices += sorted(said)
            counts.append(len(indices))
        matrix = np.stack(vectors) if vectors else nothing[None][:0]
        ones = np.ones(len(indices), dtype=np.float32)
        rows = csr_array(
            (ones, np.array(indices, dtype=np.int32), counts), shape=(len(captions), len(places))
        )
        return CaptionWords(canonical_rows(rows), matrix, list(places))
