"""Captions made ready for a caption tower once, batched as often as asked.

Words become token ids here, sentences' vectors come from a target model; either way a batch is two
tensors that the tower takes.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from diptych.core.errors import UsageError
from diptych.data.vocabulary import END, PADDING, START, UNKNOWN

__all__ = ["CaptionInputs", "TargetInputs", "TokenInputs", "pad_tokens"]


class CaptionInputs(Protocol):
    """Captions as a tower takes them."""

    @property
    def lengths(self) -> np.ndarray:
        """(n,) int64; captions of like length make batches without padding."""

    def batch(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """The two tensors that the tower takes of captions ``rows``, one row each."""

    def augmented(
        self, rows: np.ndarray, unknown: float, deleted: float, seed: int, epoch: int
    ) -> tuple[Tensor, Tensor]:
        """The same of captions with noise on their words; see :meth:`TokenInputs.augmented`."""


class TokenInputs:
    """Token ids of captions, end to end.

    Args:
        flat: (n_tokens,) ids.
        starts: (n + 1,) int64, where each caption starts.
    """

    def __init__(self, flat: np.ndarray, starts: np.ndarray) -> None:
        self._flat, self._starts = flat, starts
        self.lengths = np.diff(starts)

    def batch(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """(n, longest) int64 padded token ids, and (n,) lengths."""
        return pad_tokens(self._flat, self._starts, rows)

    def augmented(
        self, rows: np.ndarray, unknown: float, deleted: float, seed: int, epoch: int
    ) -> tuple[Tensor, Tensor]:
        """Noisy captions to train on: some words ``<unk>``, some left out, start and end kept.

        What happens to a caption depends on (seed, epoch, its row) alone, not on its neighbours.

        Args:
            rows: (n,) which captions.
            unknown: probability that a word becomes ``<unk>``.
            deleted: share of a caption's words that is left out, rounded down.
            seed: of the noise.
            epoch: another epoch, other noise.

        Source: Bleeker, Yates, de Rijke, 2022, after PCME (Chun et al. 2021).
        """
        tokens, lengths = (part.numpy() for part in self.batch(rows))
        places = np.arange(tokens.shape[1])
        inside = places < lengths[:, None]
        is_word = inside & (tokens != START) & (tokens != END)
        tokens[is_word & (_uniform(seed, epoch, 0, rows, places) < unknown)] = UNKNOWN
        # The words with the smallest draws are left out. (The small number: 0.29 × 100 is 28.999….)
        leave_out = np.floor(deleted * is_word.sum(axis=1) + 1e-9).astype(np.int64)
        draws = np.where(is_word, _uniform(seed, epoch, 1, rows, places), np.inf)
        rank = np.argsort(np.argsort(draws, axis=1, kind="stable"), axis=1)
        kept = inside & (rank >= leave_out[:, None])
        lengths = kept.sum(axis=1)
        # Kept tokens move to the front in their order.
        order = np.argsort(~kept, axis=1, kind="stable")[:, : int(lengths.max())]
        moved = np.take_along_axis(np.where(kept, tokens, PADDING), order, axis=1)
        return torch.from_numpy(moved), torch.from_numpy(lengths)


class TargetInputs:
    """Captions' vectors from a sentence encoder or an LSA.

    Args:
        vectors: (n, d) float32.
    """

    def __init__(self, vectors: np.ndarray) -> None:
        self._vectors = vectors
        self.lengths = np.ones(len(vectors), dtype=np.int64)

    def batch(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """(n, d) float32 vectors, and (n,) ones."""
        vectors = np.ascontiguousarray(self._vectors[rows], dtype=np.float32)
        return torch.from_numpy(vectors), torch.ones(len(rows), dtype=torch.int64)

    def augmented(
        self, rows: np.ndarray, unknown: float, deleted: float, seed: int, epoch: int
    ) -> tuple[Tensor, Tensor]:
        """Refused.

        Raises:
            UsageError: always: a vector has no words to leave out.
        """
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


def _uniform(seed: int, epoch: int, stream: int, rows: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(n, t) draws in [0, 1): a function of the numbers alone, without a generator per caption."""
    key = np.zeros(1, dtype=np.uint64)
    for number in (seed, epoch, stream):
        key = _mixed(key + np.uint64(number % 2**64))
    keys = _mixed(_mixed(key + rows.astype(np.uint64))[:, None] + places.astype(np.uint64))
    draws: np.ndarray = (keys >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return draws


def _mixed(keys: np.ndarray) -> np.ndarray:
    """One step of SplitMix64 (Steele et al. 2014): every bit of the result depends on every bit given."""
    keys = keys + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = keys ^ (keys >> np.uint64(31))
    return mixed
