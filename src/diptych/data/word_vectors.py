"""Pretrained word vectors (GloVe, word2vec): an .npz file, made of their text files."""

import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np

from diptych.core.context import task
from diptych.core.errors import DataError, StorageError
from diptych.core.files import atomic_path
from diptych.core.reading import file_errors, read_arrays, read_lines

_LONGEST = 64  # characters of a word; longer ones are addresses and noise
_FIX = "give a text file with a word and its numbers on each line, e.g. glove.840B.300d.txt"


def read_word_vectors(path: Path | str, setting: str) -> tuple[dict[str, int], np.ndarray]:
    """Return the rows of words and the vectors of an .npz with ``words`` (n,) and ``vectors`` (n, width).

    Returns:
        Word → row, and (n, width) float32.
    """
    noun, fix = "a file of word vectors", f"check {setting}: an .npz with 'words' and 'vectors'"
    with file_errors(path, fix=fix, noun=noun):
        names, numbers = read_arrays(path, ("words", "vectors"), fix=fix, noun=noun).values()
        rows = {str(word): row for row, word in enumerate(names)}
        words, vectors = len(names), np.asarray(numbers, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != words:
        raise StorageError(
            f"{path} is not a file of word vectors: {words} words, vectors of shape {vectors.shape}",
            "an .npz with as many rows in 'vectors' as there are 'words'",
        )
    return rows, vectors


def row_of(word: str, rows: Mapping[str, int], published: bool = False) -> int | None:
    """Return the row of a word; None for an unknown one.

    Args:
        published: look again without hyphens, dots and apostrophes, and before a slash, as published code does.
    """
    return rows.get(stripped(word) if published and word not in rows else word)


def stripped(word: str) -> str:
    """Return a word without hyphens, dots and apostrophes, and before a slash."""
    return word.replace("-", "").replace(".", "").replace("'", "").partition("/")[0]


def convert_word_vectors(source: Path | str, target: Path | str, keep: Collection[str] = ()) -> int:
    """Write the .npz that :func:`read_word_vectors` reads, of a text file of any size, in bounded memory.

    Args:
        source: GloVe's or word2vec's text form, plain or ``.gz``: a word and its numbers per line.
        target: the .npz.
        keep: the words to keep; all that have at most 64 characters when empty.

    Returns:
        How many words were written.

    Raises:
        DataError: a line has another number of numbers than the first, or no word is one of ``keep``.
    """
    words, width, folder = list[str](), 0, Path(target).resolve().parent
    with tempfile.NamedTemporaryFile(dir=folder) as raw:
        for word, vector in _vectors(source, keep):
            words.append(word)
            raw.write(vector.tobytes())
            width = len(vector)
        if not words:
            raise DataError(f"{source} has none of the {len(keep):,} words to keep", _FIX)
        raw.flush()
        vectors = np.memmap(raw.name, np.float32, "r", shape=(len(words), width))
        with atomic_path(target) as temporary, open(temporary, "wb") as file:
            np.savez(file, words=np.array(words), vectors=vectors)
    return len(words)


def _vectors(source: Path | str, keep: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield words and their vectors; a word may have spaces in it, and occur once."""
    kept, seen, width = frozenset(keep), set[str](), 0
    with task("converting", None, "lines") as bar:
        for number, line in read_lines(source, error=DataError, fix=_FIX):
            bar.advance(1)
            parts = line.rstrip(" ").split(" ")
            if number == 1 and len(parts) == 2 and all(part.isdecimal() for part in parts):
                continue  # word2vec's first line: how many words, how many numbers
            width = width or len(parts) - 1
            wrong = DataError(f"{source}, line {number} is no word with {width or 'its'} numbers", _FIX)
            if not 0 < width < len(parts):
                raise wrong
            word = " ".join(parts[:-width])
            if word in seen or (word not in kept if kept else len(word) > _LONGEST):
                continue
            try:
                vector = np.array(parts[-width:], dtype=np.float32)
            except ValueError:
                raise wrong from None
            if not np.isfinite(vector).all():
                raise wrong
            seen.add(word)
            yield word, vector
