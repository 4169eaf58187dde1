"""Captions made ready for a caption tower once, batched as often as asked.

Words become token ids here, sentences' vectors come from a target model; either way a batch is two
tensors that the tower takes. A batch's captions can be given endings, such as the digits of a shortcut:
they stand behind the last word, are never lost to noise, and make a caption that would be too long lose
words of its own instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from diptych.core.draws import draw_uniform
from diptych.core.errors import MismatchError, UsageError
from diptych.data.vocabulary import END, PADDING, START, UNKNOWN, Vocabulary
from diptych.data.word_vectors import read_word_vectors


class CaptionInputs(Protocol):
    """Captions as a tower takes them."""

    @property
    def lengths(self) -> np.ndarray:
        """(n,) int64; captions of like length make batches without padding."""

    def batch(self, rows: np.ndarray, endings: Sequence[str] | None = None) -> tuple[Tensor, Tensor]:
        """The two tensors that the tower takes of captions ``rows``, one row each, with their endings."""

    def augmented(
        self,
        rows: np.ndarray,
        unknown: float,
        deleted: float,
        seed: int,
        epoch: int,
        endings: Sequence[str] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The same of captions with noise on their words; see :meth:`TokenInputs.augmented`."""


class TokenInputs:
    """Token ids of captions, end to end.

    Args:
        flat: (n_tokens,) ids.
        starts: (n + 1,) int64, where each caption starts.
    """

    def __init__(
        self,
        flat: np.ndarray,
        starts: np.ndarray,
        vocabulary: Vocabulary | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._flat, self._starts = flat, starts
        self._vocabulary, self._max_tokens = vocabulary, max_tokens
        self.lengths = np.diff(starts)

    def batch(self, rows: np.ndarray, endings: Sequence[str] | None = None) -> tuple[Tensor, Tensor]:
        """(n, longest) int64 padded token ids, and (n,) lengths."""
        return self._ended(*pad_tokens(self._flat, self._starts, rows), endings)

    def augmented(
        self,
        rows: np.ndarray,
        unknown: float,
        deleted: float,
        seed: int,
        epoch: int,
        endings: Sequence[str] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Noisy captions to train on: some words ``<unk>``, some left out, start and end kept.

        What happens to a caption depends on (seed, epoch, its row) alone, not on its neighbours.

        Source: Bleeker, Yates, de Rijke, 2022, after PCME (Chun et al. 2021).
        """
        tokens, lengths = (part.numpy() for part in self.batch(rows))
        places = np.arange(tokens.shape[1])
        inside = places < lengths[:, None]
        is_word = inside & (tokens != START) & (tokens != END)
        tokens[is_word & (draw_uniform(seed, epoch, 0, rows[:, None], places) < unknown)] = UNKNOWN
        # The words with the smallest draws are left out. (The small number: 0.29 × 100 is 28.999….)
        leave_out = np.floor(deleted * is_word.sum(axis=1) + 1e-9).astype(np.int64)
        draws = np.where(is_word, draw_uniform(seed, epoch, 1, rows[:, None], places), np.inf)
        rank = np.argsort(np.argsort(draws, axis=1, kind="stable"), axis=1)
        kept = inside & (rank >= leave_out[:, None])
        lengths = kept.sum(axis=1)
        # Kept tokens move to the front in their order.
        order = np.argsort(~kept, axis=1, kind="stable")[:, : int(lengths.max())]
        moved = np.take_along_axis(np.where(kept, tokens, PADDING), order, axis=1)
        return self._ended(torch.from_numpy(moved), torch.from_numpy(lengths), endings)

    def _ended(self, tokens: Tensor, lengths: Tensor, endings: Sequence[str] | None) -> tuple[Tensor, Tensor]:
        """Padded captions with the words of their endings before each END."""
        if endings is None or not any(endings):
            return tokens, lengths
        if self._vocabulary is None:
            raise UsageError(
                "endings without a vocabulary", "give TokenInputs the vocabulary of its captions"
            )
        ids = [self._vocabulary.encode(ending)[1:] for ending in endings]
        kept = lengths.numpy() - 1
        if self._max_tokens is not None:
            room = self._max_tokens - np.array([len(part) for part in ids])
            if room.min() < 1:
                raise UsageError(
                    f"captions of {self._max_tokens} tokens have no room for the ending "
                    f"{endings[int(room.argmin())]!r}",
                    f"set model.text.max_tokens to at least {self._max_tokens + 1 - room.min()}",
                )
            kept = np.minimum(kept, room)
        rows = [
            [*row[:count], *part]
            for row, count, part in zip(tokens.tolist(), kept.tolist(), ids, strict=True)
        ]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        flat = np.concatenate([np.array(row) for row in rows])
        return pad_tokens(flat, starts, np.arange(len(rows)))


class TargetInputs:
    """Captions' vectors from a sentence encoder or an LSA.

    Args:
        vectors: (n, d) float32.
    """

    def __init__(self, vectors: np.ndarray) -> None:
        self._vectors = vectors
        self.lengths = np.ones(len(vectors), dtype=np.int64)

    def batch(self, rows: np.ndarray, endings: Sequence[str] | None = None) -> tuple[Tensor, Tensor]:
        """(n, d) float32 vectors, and (n,) ones."""
        if endings is not None and any(endings):
            raise UsageError(
                "captions are vectors of sentences, made before training: they cannot end with digits "
                "that change",
                "set shortcuts.setup = 'images', or model.text.kind = 'gru'",
            )
        vectors = np.ascontiguousarray(self._vectors[rows], dtype=np.float32)
        return torch.from_numpy(vectors), torch.ones(len(rows), dtype=torch.int64)

    def augmented(
        self,
        rows: np.ndarray,
        unknown: float,
        deleted: float,
        seed: int,
        epoch: int,
        endings: Sequence[str] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Refused."""
        raise UsageError(
            f"captions are vectors of sentences: no word can be unknown ({unknown}) or left out ({deleted})",
            "leave caption_augmentation out, or set model.text.kind = 'gru'",
        )


def pad_tokens(flat: np.ndarray, starts: np.ndarray, rows: np.ndarray) -> tuple[Tensor, Tensor]:
    """Token ids of captions ``rows`` as a padded (n, longest) int64 tensor, and their lengths (n,)."""
    lengths = starts[rows + 1] - starts[rows]
    longest = int(lengths.max())
    places = starts[rows][:, None] + np.arange(longest)
    inside = np.arange(longest) < lengths[:, None]
    tokens = np.where(inside, flat[np.minimum(places, len(flat) - 1)], PADDING)
    return torch.from_numpy(tokens.astype(np.int64)), torch.from_numpy(lengths)


def start_from_vectors(embed: nn.Embedding, vocabulary: Vocabulary, path: Path, as_given: bool) -> None:
    """Words that the file knows get its vector, narrower ones in the first places of a row."""
    known, vectors = read_word_vectors(path, "model.text.word_vectors in the recipe")
    width = embed.embedding_dim
    if vectors.shape[1] > width:
        raise MismatchError(
            f"word vectors of shape {vectors.shape} do not fit word_width {width}",
            f"set model.text.word_width to at least {vectors.shape[-1]}",
        )
    spread = 1.0 if as_given else float(embed.weight.detach().std()) / max(float(vectors.std()), 1e-12)
    with torch.no_grad():
        if as_given:
            nn.init.normal_(embed.weight)
        for number, word in enumerate(vocabulary.entries):
            if word in known:
                embed.weight[number, : vectors.shape[1]] = torch.from_numpy(vectors[known[word]] * spread)
