"""What every tower ends with, and how a recipe chooses between kinds of tower.

base output → [projection] → unit length → [absolute values]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from pydantic_core import PydanticCustomError
from torch import Tensor, nn

from diptych.core.draws import draw_uniform
from diptych.core.errors import MismatchError, UsageError
from diptych.core.options import Options
from diptych.data.vocabulary import END, PADDING, START, UNKNOWN, Vocabulary
from diptych.data.word_vectors import read_word_vectors, row_of


def unit_rows(rows: Tensor) -> Tensor:
    """Divide rows by their length; one shorter than 1e-12 stays (nearly) zero instead of NaN."""
    return nn.functional.normalize(rows, dim=-1, eps=1e-12)


def start_uniform(*layers: nn.Linear) -> None:
    """Initialise as VSE++: uniform in ± sqrt(6 / (in + out)) (Glorot), bias 0."""
    for layer in layers:
        bound = math.sqrt(6.0 / (layer.in_features + layer.out_features))
        nn.init.uniform_(layer.weight, -bound, bound)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


def make_head(
    features: int,
    width: int,
    hidden: int | None,
    dropout: float = 0.0,
    bias: bool = True,
    batch_norm: bool = False,
) -> nn.Sequential:
    """Return one linear layer, as in VSE++, or two with a ReLU between: (n, features) → (n, width).

    ``bias`` is of all layers, ``batch_norm`` of the last. Two without bias are the head of Bleeker et al. 2022,
    who need the batch norm for a triplet loss.
    """
    sizes = [features, width] if hidden is None else [features, hidden, width]
    layers = [nn.Linear(*pair, bias=bias) for pair in pairwise(sizes)]
    start_uniform(*layers)
    head = nn.Sequential(nn.Dropout(dropout), layers[0])
    for layer in layers[1:]:
        head.extend([nn.ReLU(), nn.Dropout(dropout), layer])
    if batch_norm:
        head.append(nn.BatchNorm1d(width))
    return head


def needs_head(config: Any) -> Any:
    """Validate a text tower's configuration."""
    if config.batch_norm and config.head == "none":
        raise ValueError("batch_norm is of a head, and head is 'none'")
    return config


def text_head(config: Any, features: int, width: int, hidden: int) -> nn.Module:
    """Return the head that a text tower's configuration asks for."""
    if config.head == "none":
        return nn.Identity()
    return make_head(
        features, width, hidden if config.head == "mlp" else None, 0.0, config.bias, config.batch_norm
    )


class ProjectionConfig(Options):
    """A non-linear projection on top of both towers, each with its own weights.

    Linear(base, hidden) → ReLU → Linear(hidden, width). The towers below are then those of a model
    of width ``base`` without projection, so that a trained one's weights fit (ConVSE's warm start).

    Source: Jain and Verma, Contrastive Learning of Visual-Semantic Embeddings, 2021, IV-A2.
    """

    base: int = Field(1024, ge=2)  # d of the towers' own output
    hidden: int = Field(2048, ge=1)  # width of the hidden layer
    bias: bool = True  # whether the second layer has one, as in the published code; the first has none


class Tower(nn.Module):
    """Base of all towers: ``projection`` and the way to unit rows; their own layers give rows of width ``base``."""

    def __init__(
        self, width: int, *, projection: ProjectionConfig | None = None, absolute: bool = False
    ) -> None:
        super().__init__()
        self.absolute = absolute
        self.base = width
        self.projection: nn.Module = nn.Identity()
        if projection is not None:
            self.base = projection.base
            first = nn.Linear(projection.base, projection.hidden, bias=False)
            second = nn.Linear(projection.hidden, width, bias=projection.bias)
            start_uniform(first, second)
            self.projection = nn.Sequential(first, nn.ReLU(), second)

    def finish(self, rows: Tensor) -> Tensor:
        """(n, base) → (n, width) unit rows, without signs where ``absolute``."""
        rows = unit_rows(self.projection(rows))
        return rows.abs() if self.absolute else rows


def choose_kind(*kinds: type[Options]) -> Callable[[Any], Any]:
    """Return a validator that reads a table by its key ``kind``, the first kind when the key is missing.

    Other than pydantic's tagged unions it keeps the tag out of the places that errors name.
    """
    known = {str(kind.model_fields["kind"].default): kind for kind in kinds}

    def chosen(value: Any) -> Any:
        if isinstance(value, kinds):
            return value
        name = value.get("kind", next(iter(known))) if isinstance(value, dict) else next(iter(known))
        if not isinstance(name, str) or name not in known:
            raise PydanticCustomError(
                "unknown_kind",
                "unknown kind {name}, known: {known}",
                {"name": repr(name), "known": ", ".join(known)},
            )
        return known[name].model_validate(value)

    return chosen


class CaptionInputs(ABC):
    """Captions as a tower takes them.

    Attributes:
        wordless: why no word can be unknown or left out, and what to do, where that is so.
    """

    lengths: np.ndarray  # (n,) int64; captions of like length make batches without padding
    wordless: ClassVar[tuple[str, str]]

    @abstractmethod
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
        why, fix = self.wordless
        raise UsageError(f"{why} (caption_augmentation: unknown {unknown}, deleted {deleted})", fix)


class TokenInputs(CaptionInputs):
    """Token ids of captions, end to end; ``starts`` are (n + 1,) int64."""

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


class TargetInputs(CaptionInputs):
    """(n, d) float32 vectors of captions, from a sentence encoder or an LSA."""

    wordless = (
        "captions are vectors of sentences: no word can be unknown or left out",
        "leave caption_augmentation out, or set model.text.kind = 'gru'",
    )

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


def pad_tokens(flat: np.ndarray, starts: np.ndarray, rows: np.ndarray) -> tuple[Tensor, Tensor]:
    """Token ids of captions ``rows`` as a padded (n, longest) int64 tensor, and their lengths (n,)."""
    lengths = starts[rows + 1] - starts[rows]
    longest = int(lengths.max())
    places = starts[rows][:, None] + np.arange(longest)
    inside = np.arange(longest) < lengths[:, None]
    tokens = np.where(inside, flat[np.minimum(places, len(flat) - 1)], PADDING)
    return torch.from_numpy(tokens.astype(np.int64)), torch.from_numpy(lengths)


def word_embedding(vocabulary: Vocabulary, width: int, config: Any, load_weights: bool) -> nn.Embedding:
    """Return embeddings of a vocabulary; words that the file knows start from its vectors.

    These are taken as they are, all else drawn from N(0, 1) (``given``), or scaled to the spread of the others.
    """
    embed = nn.Embedding(len(vocabulary), width)
    nn.init.uniform_(embed.weight, -0.1, 0.1)
    if config.word_vectors is None or not load_weights:
        return embed
    known, vectors = read_word_vectors(Path(config.word_vectors), "model.text.word_vectors in the recipe")
    if vectors.shape[1] > width:
        raise MismatchError(
            f"word vectors of shape {vectors.shape} do not fit word_width {width}",
            f"set model.text.word_width to at least {vectors.shape[-1]}",
        )
    spread = float(embed.weight.detach().std()) / max(float(vectors.std()), 1e-12)
    with torch.no_grad():
        if config.word_vector_scale == "given":
            nn.init.normal_(embed.weight)
            spread = 1.0
        for number, word in enumerate(vocabulary.entries):
            row = row_of(word, known, config.word_vector_lookup == "published")
            if row is not None:
                embed.weight[number, : vectors.shape[1]] = torch.from_numpy(vectors[row] * spread)
    return embed
