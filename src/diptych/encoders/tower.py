"""Shared parts of towers: heads, projection, unit length, caption inputs, the choice of a kind in a recipe."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import torch
from pydantic import Field
from pydantic_core import PydanticCustomError
from torch import Tensor, nn

from diptych.core.draws import draw_uniform
from diptych.core.errors import UsageError
from diptych.core.options import Options
from diptych.data.vocabulary import END, PADDING, START, UNKNOWN, Vocabulary
from diptych.encoders.inputs import take_weights
from diptych.encoders.official.checkpoint import Checkpoint

# Of n captions, (n, t) int64 padded token ids or (n, d) float32 vectors, and (n,) int64 lengths.
Batch: TypeAlias = tuple[Tensor, Tensor]
Endings: TypeAlias = Sequence[str] | None


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
    """Return one linear layer (VSE++), or two with a ReLU between (without bias: the head of Bleeker et al. 2022)."""
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
    if config.batch_norm and config.head == "none":
        raise ValueError("batch_norm is of a head, and head is 'none'")
    return config


def text_head(config: Any, features: int, width: int, hidden: int, what: str, fix: str) -> nn.Module:
    """Return the head that a text tower's configuration asks for; ``what`` gives its features."""
    if config.head != "none":
        layer = hidden if config.head == "mlp" else None
        return make_head(features, width, layer, 0.0, config.bias, config.batch_norm)
    if features != width:
        raise UsageError(f"{what} {features} differs from the shared width {width} and there is no head", fix)
    return nn.Identity()


class ProjectionConfig(Options):
    """Linear(base, hidden) → ReLU → Linear(hidden, width) on each tower; the towers below are of width ``base``.

    Source: Jain and Verma, Contrastive Learning of Visual-Semantic Embeddings, 2021, IV-A2.
    """

    base: int = Field(1024, ge=2)  # d of the towers' own output
    hidden: int = Field(2048, ge=1)  # width of the hidden layer
    bias: bool = True  # whether the second layer has one, as in the published code; the first has none


class Tower(nn.Module):
    """Base of all towers: their own layers give rows of width ``base``, :meth:`finish` makes unit rows of them."""

    def __init__(
        self, width: int, *, projection: ProjectionConfig | None = None, absolute: bool = False
    ) -> None:
        super().__init__()
        self.absolute = absolute
        self.base: int = width
        self.projection: nn.Module = nn.Identity()
        if projection is not None:
            self.base = projection.base
            first = nn.Linear(projection.base, projection.hidden, bias=False)
            second = nn.Linear(projection.hidden, width, bias=projection.bias)
            start_uniform(first, second)
            self.projection = nn.Sequential(first, nn.ReLU(), second)

    def take_published(self, weights: Checkpoint, names: dict[str, str]) -> Self:
        """Load weights, in double precision where they are; the first beginning of a name in ``names`` is replaced."""
        state: dict[str, Tensor] = {}
        for name, value in weights.state.items():
            begin = next(begin for begin in names if name.startswith(begin))
            state[names[begin] + name.removeprefix(begin)] = value
        if any(value.dtype == torch.float64 for value in state.values()):
            self.double()
        fix = "give the checkpoint as it was published, or the options that it was trained with"
        take_weights(self, state, f"{weights.name} does not fit the published tower", fix)
        return self.eval()

    def finish(self, rows: Tensor) -> Tensor:
        """Map (n, base) → (n, width) unit rows, without signs where ``absolute``."""
        rows = unit_rows(self.projection(rows))
        return rows.abs() if self.absolute else rows


def choose_kind(*kinds: type[Options]) -> Callable[[Any], Any]:
    """Return a validator that reads a table by its key ``kind``, the first kind when the key is missing."""
    # Other than pydantic's tagged unions it keeps the tag out of the places that errors name.
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
    """Captions as a tower takes them."""

    lengths: np.ndarray  # (n,) int64; captions of like length make batches without padding
    # why no word can be unknown or left out, and the fix, where that is so
    wordless: ClassVar[tuple[str, str]]

    @abstractmethod
    def batch(self, rows: np.ndarray, endings: Endings = None) -> Batch:
        """Return what the tower takes of captions ``rows``, one row each, with their endings."""

    def augmented(
        self, rows: np.ndarray, unknown: float, deleted: float, seed: int, epoch: int, endings: Endings = None
    ) -> Batch:
        """Return the same of captions with noise on their words; see :meth:`TokenInputs.augmented`."""
        why, fix = self.wordless
        raise UsageError(f"{why} (caption_augmentation: unknown {unknown}, deleted {deleted})", fix)


class TokenInputs(CaptionInputs):
    """Token ids of captions, end to end; ``starts`` are (n + 1,) int64."""

    def __init__(
        self, flat: np.ndarray, starts: np.ndarray, vocabulary: Vocabulary, max_tokens: int | None = None
    ) -> None:
        self._flat, self._starts = flat, starts
        self._vocabulary, self._max_tokens = vocabulary, max_tokens
        self.lengths: np.ndarray = np.diff(starts)

    def batch(self, rows: np.ndarray, endings: Endings = None) -> Batch:
        starts = self._starts[rows]
        lengths = self._starts[rows + 1] - starts
        inside, places = _inside(lengths)
        flat = self._flat[np.minimum(starts[:, None] + places, len(self._flat) - 1)]
        tokens = np.where(inside, flat, PADDING).astype(np.int64)
        return self._ended(torch.from_numpy(tokens), torch.from_numpy(lengths), endings)

    def augmented(
        self, rows: np.ndarray, unknown: float, deleted: float, seed: int, epoch: int, endings: Endings = None
    ) -> Batch:
        """Return captions with some words ``<unk>``, some left out, as a function of (seed, epoch, row).

        Source: Bleeker, Yates, de Rijke, 2022, after PCME (Chun et al. 2021).
        """
        tokens, lengths = (part.numpy() for part in self.batch(rows))
        inside, places = _inside(lengths)
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

    def _ended(self, tokens: Tensor, lengths: Tensor, endings: Endings) -> Batch:
        if endings is None or not any(endings):
            return tokens, lengths
        ids = [self._vocabulary.encode(ending)[1:] for ending in endings]
        kept = lengths.numpy() - 1
        if self._max_tokens is not None:
            room = self._max_tokens - np.array([len(part) for part in ids])
            check_room(self._max_tokens, int(room.min()) - 1, endings[int(room.argmin())])
            kept = np.minimum(kept, room)
        rows = zip(tokens.tolist(), kept.tolist(), ids, strict=True)
        return pad_tokens([[*row[:count], *part] for row, count, part in rows], PADDING)


def check_room(most: int, room: int, ending: str) -> None:
    """Refuse captions of at most ``most`` tokens that have ``room`` below 0 next to an ending."""
    if room < 0:
        raise UsageError(
            f"captions of {most} tokens have no room for the ending {ending!r}",
            f"set model.text.max_tokens to at least {most - room}",
        )


def _inside(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (n, longest) bool, whether a place is before the end, and the (longest,) places."""
    places = np.arange(int(lengths.max()))
    return places < lengths[:, None], places


def pad_tokens(
    rows: Sequence[Sequence[int] | np.ndarray], padding: int, width: int | None = None, left: bool = False
) -> Batch:
    """Return rows of token ids filled to ``width``, or to the longest, and their lengths."""
    lengths = np.asarray([len(row) for row in rows], dtype=np.int64)
    padded = np.full((len(rows), width or int(lengths.max())), padding, dtype=np.int64)
    for place, row in zip(padded, rows, strict=True):
        begin = len(place) - len(row) if left else 0
        place[begin : begin + len(row)] = row
    return torch.from_numpy(padded), torch.from_numpy(lengths)


class TargetInputs(CaptionInputs):
    """(n, d) float32 vectors of captions, from a sentence encoder or an LSA."""

    wordless: ClassVar[tuple[str, str]] = (
        "captions are vectors of sentences: no word can be unknown or left out",
        "leave caption_augmentation out, or set model.text.kind = 'gru'",
    )

    def __init__(self, vectors: np.ndarray) -> None:
        self._vectors = vectors
        self.lengths: np.ndarray = np.ones(len(vectors), dtype=np.int64)

    def batch(self, rows: np.ndarray, endings: Endings = None) -> Batch:
        if endings is not None and any(endings):
            raise UsageError(
                "captions are vectors of sentences, made before training: they cannot end with digits "
                "that change",
                "set shortcuts.setup = 'images', or model.text.kind = 'gru'",
            )
        vectors = np.ascontiguousarray(self._vectors[rows], dtype=np.float32)
        return torch.from_numpy(vectors), torch.ones(len(rows), dtype=torch.int64)
