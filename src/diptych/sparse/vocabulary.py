"""The terms that sparse rows are made of: words or WordPiece pieces, learned from captions or read from a model.

The trainer of the ``tokenizers`` library numbers pieces in the order of a hash table, which differs from run to run
and decides ties between equally frequent pairs; here the same captions always give the same pieces.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from diptych.analysis.information.questions import FUNCTION_WORDS
from diptych.core.context import task, track
from diptych.core.errors import DataError, StorageError, UsageError
from diptych.core.files import write_json, write_text
from diptych.core.reading import file_errors, read_json, read_text
from diptych.encoders.embeddings import term_fingerprint
from diptych.encoders.hub import given_folder, loading
from diptych.encoders.inputs import check_texts

_BLOCK = 8192
_MAX_TOKENS = 512
_ORIGINS = "origins.json"
_SHOWN_WORDS = 2  # of those that a piece stood in


class TermVocabulary:
    """Terms and how captions are read as terms.

    Attributes:
        terms: one per column; ``##…`` continues a word.
        special: columns of [PAD], [UNK], [CLS], [SEP], [MASK] and the like; never a caption's terms.
        source_rows: (|V|,) int64, each column's id in the tokenizer: its row in the model's embeddings.
        origins: the most frequent words that each piece of a word stood in, see :meth:`trace`; nothing where not known.
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
        self.source_rows: np.ndarray = rows
        self.origins: dict[str, str] = {}
        self.terms: tuple[str, ...] = tuple(names[row] for row in rows.tolist())
        added = self._tokenizer.get_added_tokens_decoder()
        special = {number for number, token in added.items() if token.special}
        special |= {number for number, term in names.items() if term in SPECIAL_TERMS}
        self._is_special = np.isin(rows, list(special))
        self.special: frozenset[int] = frozenset(np.flatnonzero(self._is_special).tolist())
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
    def of_words(
        cls, captions: Sequence[str], size: int, min_count: int, source: str | Path | None = None
    ) -> TermVocabulary:
        """Take the most frequent whole words of the captions that say something; of a model, those that it has."""
        counts = word_counts(captions)
        frequent = (word for word in counts if counts[word] >= min_count and is_content(word))
        words = sorted(frequent, key=lambda word: (-counts[word], word))
        tokenizer = source_tokenizer(source) if source else bert_tokenizer([*SPECIAL_TERMS, *words[:size]])
        rows = sorted(filter(None, map(tokenizer.token_to_id, words)))
        if not rows:
            raise DataError(
                f"no word occurs {min_count} times in {len(captions)} captions",
                "lower vocabulary.min_count, or check the split",
            )
        return cls(tokenizer, rows)

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

    def caption_terms(self, captions: Sequence[str]) -> csr_array:
        """Return (n, |V|) float32 ones: which terms each caption contains, each once, no special ones.

        Only the first 512 tokens of a caption are read, as published.
        """
        captions = list(check_texts(captions))
        found: list[np.ndarray] = [np.zeros(0, dtype=np.int64)]
        with task("reading captions as terms", len(captions), "captions") as bar:
            for start in range(0, len(captions), _BLOCK):
                block = self._tokenizer.encode_batch_fast(captions[start : start + _BLOCK])
                for encoding in block:
                    columns = np.unique(self._columns[encoding.ids])
                    columns = columns[columns >= 0]
                    found.append(columns[~self._is_special[columns]])
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

    def trace(self, captions: Sequence[str]) -> None:
        """Note the words of captions that each piece stands for, unless it is a word more often than a part of one."""
        uses: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for word, count in word_counts(captions).items():
            for _, columns in self.words_of(word):
                for column in columns:
                    uses[self.terms[column]][word] += count
        for term, words in uses.items():
            if words.total() > 2 * words[term]:
                frequent = sorted(filter(is_content, words), key=lambda word: (-words[word], word))
                self.origins[term] = "/".join(frequent[:_SHOWN_WORDS])

    def shown(self, column: int, word: str | None = None) -> str:
        """Return a term as users read it: a piece as its ``word``, or those it came from; "" if it says nothing.

        Without :attr:`origins` pieces are recognised where they continue a word.
        """
        term = self.terms[column]
        name = word or self.origins.get(term, term)
        return name if is_content(name) and column not in self.special else ""

    def save(self, folder: Path | str) -> None:
        content = json.dumps(json.loads(self._tokenizer.to_str()), ensure_ascii=False)
        write_text(Path(folder) / "tokenizer.json", content)
        write_json(Path(folder) / "terms.json", list(self.terms))
        if self.origins:
            write_json(Path(folder) / _ORIGINS, self.origins)

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
        vocabulary = cls(tokenizer, [ids[term] for term in terms])
        if (folder / _ORIGINS).is_file():
            vocabulary.origins = read_json(folder / _ORIGINS)
            if not isinstance(vocabulary.origins, dict) or not all(
                isinstance(one, str) for one in vocabulary.origins.values()
            ):
                raise StorageError(
                    f"{folder / _ORIGINS} is not a table of pieces and words", "sparsify again"
                )
        return vocabulary


def is_content(word: str) -> bool:
    """Return whether a word says something: no mark, piece of a word, single letter or function word (English)."""
    return word[:1].isalnum() and word not in FUNCTION_WORDS and (len(word) > 1 or not word.isascii())


CONTINUATION = "##"
_UNKNOWN, _BEGIN, _END = "[UNK]", "[CLS]", "[SEP]"
SPECIAL_TERMS = ("[PAD]", _UNKNOWN, _BEGIN, _END, "[MASK]")

Pair = tuple[str, str]


def word_counts(captions: Iterable[str]) -> Counter[str]:
    """Count how often each word occurs, as BERT's normaliser and pre-tokeniser (lower case) see words."""
    from tokenizers import normalizers, pre_tokenizers

    normalise, split = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for caption in track(captions, "words of captions", unit="captions"):
        counts.update(word for word, _ in split.pre_tokenize_str(normalise.normalize_str(caption)))
    return counts


def learn_pieces(counts: Mapping[str, int], size: int, min_count: int) -> list[str]:
    """Return at most ``size`` pieces from which words are made: letters, then the pairs that occur most often.

    Pairs of neighbouring pieces are joined, most frequent first, of equally frequent ones the first by their text
    (Sennrich et al. 2016). A piece that no word is made of any more gives its place up; letters stay, for new words.

    >>> learn_pieces({"dog": 5, "dogs": 3, "cat": 1}, 8, 2)
    ['dog', 'dogs', 'd', '##g', '##o', '##s']
    """
    letters = _Splits(counts).uses
    frequent = [piece for piece in letters if letters[piece] >= min_count]
    always = frozenset(sorted(frequent, key=lambda piece: (-letters[piece], piece))[:size])
    splits = _Splits({word: counts[word] for word in sorted(counts) if always.issuperset(_letters(word))})
    pieces = set(always)
    queue = [(-count, pair) for pair, count in splits.pairs.items()]
    heapq.heapify(queue)
    while queue and len(pieces) < size:
        negative, pair = heapq.heappop(queue)
        count = splits.pairs[pair]
        if min_count <= count < -negative:  # fewer than when it was queued
            heapq.heappush(queue, (-count, pair))
        if count < min_count or count != -negative:
            continue
        for changed in splits.join(pair):
            heapq.heappush(queue, (-splits.pairs[changed], changed))
        pieces.add(_joined(pair))
        pieces -= {piece for piece in pair if piece not in always and not splits.uses[piece]}
    return sorted(pieces, key=lambda piece: (piece.startswith(CONTINUATION), -splits.uses[piece], piece))


class _Splits:
    """Words cut into pieces; ``uses``: occurrences of each piece, ``pairs``: of each pair of neighbours."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._words, self._counts = [_letters(word) for word in counts], list(counts.values())
        self._rows: defaultdict[Pair, set[int]] = defaultdict(set)
        self.uses: Counter[str] = Counter()
        self.pairs: Counter[Pair] = Counter()
        for row in range(len(self._words)):
            self._count(row, 1)

    def _count(self, row: int, sign: int) -> None:
        word, count = self._words[row], sign * self._counts[row]
        for piece in word:
            self.uses[piece] += count
        for pair in pairwise(word):
            self.pairs[pair] += count
            self._rows[pair].add(row)

    def join(self, pair: Pair) -> list[Pair]:
        """Join ``pair`` wherever it stands; return the pairs that this made, in their order."""
        changed: set[Pair] = set()
        # A row is listed from the first time a pair stood in it: some have lost it since.
        for row in sorted(self._rows.pop(pair)):
            joined: list[str] = []
            for piece in self._words[row]:
                if joined and (joined[-1], piece) == pair:
                    joined[-1] = _joined(pair)
                else:
                    joined.append(piece)
            if len(joined) < len(self._words[row]):
                self._count(row, -1)
                self._words[row] = joined
                self._count(row, 1)
                changed.update(pairwise(joined))
        return sorted(changed)


def _letters(word: str) -> list[str]:
    return [letter if place == 0 else CONTINUATION + letter for place, letter in enumerate(word)]


def _joined(pair: Pair) -> str:
    return pair[0] + pair[1].removeprefix(CONTINUATION)


def bert_tokenizer(pieces: Sequence[str], lower_case: bool = True) -> Any:
    """Return a ``tokenizers.Tokenizer`` that reads captions as BERT does, with these pieces."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    ids = {piece: place for place, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token=_UNKNOWN, continuing_subword_prefix=CONTINUATION))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower_case)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing((_END, ids[_END]), (_BEGIN, ids[_BEGIN]))
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUATION)
    tokenizer.add_special_tokens([AddedToken(piece, special=True) for piece in SPECIAL_TERMS if piece in ids])
    return tokenizer


def read_tokenizer(path: Path | str) -> Any:
    from tokenizers import Tokenizer

    content = read_json(path)
    try:
        return Tokenizer.from_str(json.dumps(content))
    except Exception as error:  # the library raises nothing narrower
        raise StorageError(f"{path} is not a tokenizer: {error}", "download or sparsify again") from error


def source_tokenizer(source: str | Path) -> Any:
    """Read the tokenizer of a BERT-like model: a folder with tokenizer.json or vocab.txt, or a name on a hub.

    A vocab.txt is read in lower case unless the tokenizer_config.json next to it says otherwise.
    """
    if (folder := given_folder(source)) is None:
        return _downloaded(str(source))
    if (folder / "tokenizer.json").is_file():
        return read_tokenizer(folder / "tokenizer.json")
    vocabulary, settings = folder / "vocab.txt", folder / "tokenizer_config.json"
    again = "download the model again"
    if not vocabulary.is_file():
        raise StorageError(f"{source} holds no vocabulary: neither tokenizer.json nor vocab.txt", again)
    pieces = read_text(vocabulary, fix=again).removesuffix("\n").split("\n")
    lacking = [piece for piece in (_UNKNOWN, _BEGIN, _END) if piece not in pieces]
    if lacking or len(set(pieces)) != len(pieces):
        reason = f"lacks {', '.join(lacking)}" if lacking else "has a term twice"
        raise StorageError(f"{vocabulary} {reason}", again)
    lower_case = True
    if settings.is_file():
        with file_errors(settings, fix=again):
            lower_case = bool(read_json(settings).get("do_lower_case", True))
    return bert_tokenizer(pieces, lower_case)


def _downloaded(source: str) -> Any:
    import transformers

    with loading(source, None):
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise UsageError(
            f"{source} has a {type(tokenizer).__name__}, which cannot be saved as tokenizer.json",
            "take a BERT or DistilBERT model",
        )
    return backend
