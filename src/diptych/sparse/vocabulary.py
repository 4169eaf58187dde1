"""The terms that sparse rows are made of: WordPiece pieces, and which of them a caption contains."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from diptych.core.context import task
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.files import write_json, write_text
from diptych.core.reading import read_json
from diptych.encoders.inputs import check_texts
from diptych.encoders.sparse_embeddings import term_fingerprint
from diptych.sparse.wordpiece import (
    CONTINUATION,
    SPECIAL_TERMS,
    bert_tokenizer,
    learn_pieces,
    read_tokenizer,
    source_tokenizer,
    word_counts,
)

_BLOCK = 8192
_MAX_TOKENS = 512


class TermVocabulary:
    """Terms and how captions are read as terms.

    Attributes:
        terms: one per column; ``##…`` continues a word.
        special: columns of [PAD], [UNK], [CLS], [SEP], [MASK] and the like; never a caption's terms.
        source_rows: (|V|,) int64, each column's id in the tokenizer: its row in the model's embeddings.
    """

    def __init__(self, tokenizer: Any, source_rows: np.ndarray | Sequence[int] | None = None) -> None:
        from tokenizers import Tokenizer

        kind = type(tokenizer.model).__name__
        if kind != "WordPiece":
            raise UsageError(
                f"the vocabulary is of a {kind} tokenizer, terms need WordPiece",
                "take a BERT or DistilBERT model, or learn a vocabulary from the captions",
            )
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        names = {number: term for term, number in self._tokenizer.get_vocab(with_added_tokens=True).items()}
        rows = np.asarray(sorted(names) if source_rows is None else source_rows, dtype=np.int64)
        self.source_rows, self.terms = rows, tuple(names[row] for row in rows.tolist())
        added = self._tokenizer.get_added_tokens_decoder()
        special = {number for number, token in added.items() if token.special}
        special |= {number for number, term in names.items() if term in SPECIAL_TERMS}
        self._is_special = np.isin(rows, list(special))
        self.special = frozenset(np.flatnonzero(self._is_special).tolist())
        self._columns = np.full(max(names) + 1, -1, dtype=np.int64)
        self._columns[rows] = np.arange(len(rows))

    def __len__(self) -> int:
        return len(self.terms)

    @cached_property
    def fingerprint(self) -> str:
        """Name by content of the columns, the same as of sparse embeddings with these terms."""
        return term_fingerprint(self.terms)

    @classmethod
    def learned(cls, captions: Sequence[str], size: int = 8000, min_count: int = 2) -> TermVocabulary:
        """Learn a WordPiece vocabulary of the captions; the same captions give the same one."""
        pieces = learn_pieces(word_counts(captions), size - len(SPECIAL_TERMS), min_count)
        if not pieces:
            raise DataError(
                f"no letter occurs {min_count} times in {len(captions)} captions",
                "lower vocabulary.min_count, or check the split",
            )
        whole = cls(bert_tokenizer([*SPECIAL_TERMS, *pieces]))
        # Captions are read by the longest pieces first, not by the order in which pairs were joined.
        letters = [len(piece.removeprefix(CONTINUATION)) == 1 for piece in whole.terms]
        kept = np.flatnonzero(whole._occurring(captions) | letters)
        return cls(bert_tokenizer([whole.terms[column] for column in kept]))

    @classmethod
    def pretrained(cls, source: str | Path) -> TermVocabulary:
        """Take that of a BERT-like model: a folder with tokenizer.json or vocab.txt, or a hub name."""
        return cls(source_tokenizer(source))

    def restricted(self, captions: Sequence[str]) -> TermVocabulary:
        """Keep only the terms that occur in ``captions`` and the special ones, in their order."""
        return TermVocabulary(self._tokenizer, self.source_rows[self._occurring(captions)])

    def _occurring(self, captions: Sequence[str]) -> np.ndarray:
        """Return (|V|,) which terms occur, and the special ones."""
        found: np.ndarray = self._is_special.copy()
        found[self.caption_terms(captions).indices] = True
        return found

    def caption_terms(
        self, captions: Sequence[str], *, compat: Literal["published"] | None = None
    ) -> csr_array:
        """Return (n, |V|) float32 ones: which terms each caption contains, each once.

        Only the first 512 tokens of a caption are read, as published, and no special ones but with ``compat``.
        """
        captions = list(check_texts(captions))
        found: list[np.ndarray] = [np.zeros(0, dtype=np.int64)]
        with task("reading captions as terms", len(captions), "captions") as bar:
            for start in range(0, len(captions), _BLOCK):
                block = self._tokenizer.encode_batch_fast(captions[start : start + _BLOCK])
                for encoding in block:
                    columns = np.unique(self._columns[encoding.ids])
                    columns = columns[columns >= 0]
                    found.append(columns if compat else columns[~self._is_special[columns]])
                bar.advance(len(block))
        flat = np.concatenate(found).astype(np.int32)
        starts = np.cumsum([len(columns) for columns in found]).astype(np.int32)
        shape, ones = (len(captions), len(self)), np.ones(len(flat), dtype=np.float32)
        rows = csr_array((ones, flat, starts), shape=shape)
        rows.has_canonical_format = True
        return rows

    def words_of(self, caption: str) -> list[tuple[str, tuple[int, ...]]]:
        """Return the words of a caption in their order and the columns of each; none for an unknown word."""
        encoding, normalizer = self._tokenizer.encode(caption), self._tokenizer.normalizer
        words: dict[int, tuple[int, int, tuple[int, ...]]] = {}
        for number, word, (start, end) in zip(encoding.ids, encoding.word_ids, encoding.offsets, strict=True):
            if word is None:
                continue
            column = int(self._columns[number])
            first, _, columns = words.get(word, (start, end, ()))
            own = () if column < 0 or column in self.special else (column,)
            words[word] = first, end, (*columns, *own)
        texts = [(caption[start:end], columns) for start, end, columns in words.values()]
        return texts if normalizer is None else [(normalizer.normalize_str(text), own) for text, own in texts]

    def save(self, folder: Path | str) -> None:
        """Write ``tokenizer.json`` and ``terms.json`` into a folder."""
        content = json.dumps(json.loads(self._tokenizer.to_str()), ensure_ascii=False)
        write_text(Path(folder) / "tokenizer.json", content)
        write_json(Path(folder) / "terms.json", list(self.terms))

    @classmethod
    def load(cls, folder: Path | str) -> TermVocabulary:
        """Read what :meth:`save` wrote; a folder without ``terms.json`` has all of the tokenizer's terms."""
        folder = Path(folder)
        tokenizer = read_tokenizer(folder / "tokenizer.json")
        if not (folder / "terms.json").is_file():
            return cls(tokenizer)
        terms, ids = read_json(folder / "terms.json"), tokenizer.get_vocab(with_added_tokens=True)
        known = isinstance(terms, list) and all(isinstance(term, str) and term in ids for term in terms)
        if not known or len(set(terms)) < len(terms):
            raise StorageError(
                f"{folder}: terms.json is not a list of terms that tokenizer.json has", "sparsify again"
            )
        return cls(tokenizer, [ids[term] for term in terms])
