"""Words of captions and their numbers.

The four special words come first, as in VSE++ (Faghri et al., BMVC 2018): 0 padding, 1 start, 2 end,
3 unknown. Which captions the words are counted on is the caller's choice; only the training split is
the honest one (the published vocabularies also counted validation and test captions).
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from diptych.core.errors import DataError, StorageError
from diptych.core.files import write_json
from diptych.core.reading import read_json

PADDING, START, END, UNKNOWN = range(4)
SPECIAL = ("<pad>", "<start>", "<end>", "<unk>")

# Words with inner apostrophes and hyphens, numbers, and single marks of punctuation.
_WORD = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")


def words(text: str) -> list[str]:
    """Lower-case words and punctuation marks of a caption.

    >>> words("A man's T-shirt, red.")
    ['a', "man's", 't-shirt', ',', 'red', '.']
    """
    return _WORD.findall(text.lower())


def first_words(text: str, count: int) -> str:
    """Return the beginning of ``text`` that has its first ``count`` words; all of it when it has no more.

    >>> first_words("A man's T-shirt, red.", 3)
    "A man's T-shirt"
    """
    whole = words(text)
    if len(whole) <= count:
        return text
    ends = [match.end() for match in _WORD.finditer(text)]
    head = text[: ends[min(count, len(ends)) - 1]] if count else ""
    # Lower case can have more letters (İ) and more words: then the words themselves are what is left.
    return head if words(head) == whole[:count] else " ".join(whole[:count])


class Vocabulary:
    """A fixed list of words; a word's place is its id."""

    def __init__(self, entries: Sequence[str]) -> None:
        self.entries: tuple[str, ...] = tuple(entries)
        if self.entries[: len(SPECIAL)] != SPECIAL:
            raise DataError(f"a vocabulary starts with {SPECIAL}, got {self.entries[: len(SPECIAL)]}")
        self._ids = {word: number for number, word in enumerate(self.entries)}
        if len(self._ids) != len(self.entries):
            raise DataError("a word occurs twice in the vocabulary")

    def __len__(self) -> int:
        return len(self.entries)

    @classmethod
    def build(cls, captions: Iterable[str], min_count: int = 4, always: Sequence[str] = ()) -> Self:
        """Count words and keep those seen at least ``min_count`` times, most frequent first."""
        counts = Counter(word for caption in captions for word in words(caption))
        kept = [word for word, count in counts.items() if count >= min_count]
        if not kept:
            raise DataError(
                f"no word occurs {min_count} times in the captions", "lower min_count, or check the split"
            )
        kept.sort(key=lambda word: (-counts[word], word))
        for word in always:
            if words(word) != [word]:
                raise DataError(f"{word!r} is read as {words(word)}, not as itself", "give single words")
        return cls([*SPECIAL, *always, *(word for word in kept if word not in always)])

    def encode(self, caption: str, max_tokens: int | None = None) -> list[int]:
        """Ids of a caption between start and end; unknown words become ``<unk>``.

        With ``max_tokens`` the caption is cut so that start and end included it is no longer.
        """
        ids = [self._ids.get(word, UNKNOWN) for word in words(caption)]
        if max_tokens is not None:
            ids = ids[: max(0, max_tokens - 2)]
        return [START, *ids, END]

    def encode_all(
        self, captions: Iterable[str], max_tokens: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return all captions' ids end to end, (n_tokens,) int32, and where each starts, (n + 1,) int64."""
        flat: list[int] = []
        starts = [0]
        for caption in captions:
            flat.extend(self.encode(caption, max_tokens))
            starts.append(len(flat))
        return np.asarray(flat, dtype=np.int32), np.asarray(starts, dtype=np.int64)

    def save(self, path: Path | str) -> None:
        write_json(path, list(self.entries))

    @classmethod
    def load(cls, path: Path | str) -> Self:
        entries = read_json(path)
        if not isinstance(entries, list) or not all(isinstance(word, str) for word in entries):
            raise StorageError(f"{path} is not a list of words")
        return cls(entries)
