"""Which terms a caption's vector may have while a head learns (thesis ch. 3, Algorithm 1 and Eq. 3.6).

A head that may use any term from the start makes the vocabulary a second dense space; one that may use
the caption's own terms only learns what terms mean. Training goes from the second to the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.sparse import issparse

from diptych.core.draws import draw_uniform
from diptych.core.errors import MismatchError, UsageError

if TYPE_CHECKING:
    from diptych.sparse.options import ExpansionOptions

_CAPTION_STREAM, _WORD_STREAM = 101, 102
_PUBLISHED_SHARE = 0.95

Form = Literal["prose", "printed"]
Schedule = Literal["thesis", "published"]


def allowed_terms(in_caption: Any, caption_draw: Any, word_draws: Any = None, form: Form = "prose") -> Any:
    """Where EXPAND leaves a weight as it is; everything else becomes 0.

    Args:
        in_caption: (B, |V|) NumPy array or tensor, boolean or numbers, not 0 where a caption contains a term.
        caption_draw: E_C, 0 or 1, one number or (B,).
        word_draws: E_k^v, (|V|,) or (B, |V|) of 0 and 1; None: all 1.

    Returns:
        (B, |V|) boolean, of the kind of ``in_caption``.
    """
    if form not in ("prose", "printed"):
        raise UsageError(f"form {form!r} of EXPAND", "prose or printed")
    own = _boolean(in_caption, in_caption)
    expansion = _boolean(caption_draw, own)
    if expansion.ndim == 1:
        expansion = expansion[:, None]
    _check_shape("caption draws", expansion, own, (), (len(own), 1))
    if word_draws is None:
        return own | expansion
    words = _boolean(word_draws, own)
    _check_shape("word draws", words, own, tuple(own.shape[-1:]))
    if form == "prose":
        return own | (expansion & words)
    return (own | expansion) & words


def _boolean(values: Any, like: Any) -> Any:
    """Where values are not 0, in the library and on the device of ``like``."""
    if issparse(values) or issparse(like):
        raise UsageError("EXPAND takes no sparse matrices", "give rows.toarray()")
    if isinstance(like, np.ndarray | Sequence):
        return np.asarray(values) != 0
    import torch

    return torch.as_tensor(values, device=like.device) != 0


def _check_shape(what: str, values: Any, like: Any, *shapes: tuple[int, ...]) -> None:
    if tuple(values.shape) not in (tuple(like.shape), *shapes):
        raise MismatchError(
            f"{what} of shape {tuple(values.shape)} for captions of shape {tuple(like.shape)}",
            "give one per batch or caption, and per term or caption and term",
        )


def expand(
    sparse_text: Any, in_caption: Any, caption_draw: Any, word_draws: Any = None, form: Form = "prose"
) -> Any:
    """EXPAND of Algorithm 1: (B, |V|) weights with those that the draws forbid set to 0.

    Args:
        sparse_text: (B, |V|) weights, NumPy or torch; gradients pass.
    """
    own = _boolean(in_caption, sparse_text)
    _check_shape("captions", own, sparse_text)
    return sparse_text * allowed_terms(own, caption_draw, word_draws, form)


def caption_probability(epoch: int, epochs: int, schedule: Schedule = "thesis") -> float:
    """p_C in ``epoch`` (from 0): 0 at first, + 1 / epochs after each (Eq. 3.6), at most 1.

    ``published``: + 1 / (0.95 · epochs).
    """
    return min(1.0, epoch / _rise(epochs, schedule))


def word_probability(
    document_frequency: np.ndarray, epoch: int, epochs: int, schedule: Schedule = "thesis"
) -> np.ndarray:
    """(|V|,) p_i^v in ``epoch`` (from 0): 1 − df at first, + df / epochs after each (Eq. 3.6), at most 1."""
    risen = min(1.0, epoch / _rise(epochs, schedule))
    probability: np.ndarray = 1.0 - np.asarray(document_frequency, dtype=np.float64) * (1.0 - risen)
    return probability


def _rise(epochs: int, schedule: Schedule) -> float:
    return epochs if schedule == "thesis" else _PUBLISHED_SHARE * epochs


class ExpansionControl:
    """The draws of one training, each a function of (seed, epoch, step)."""

    def __init__(
        self, options: ExpansionOptions, document_frequency: np.ndarray | None, epochs: int, seed: int
    ) -> None:
        if options.mode == "c+w" and document_frequency is None:
            raise UsageError("expansion mode c+w needs document frequencies", "give the training captions'")
        self.options = options
        self.epochs = epochs
        self._frequency = document_frequency
        self._seed = seed

    def caption_draw(self, epoch: int, step: int) -> bool:
        """E_C of one batch: whether its captions may have other terms than their own."""
        mode = self.options.mode
        if mode in ("0", "1"):
            return mode == "1"
        probability = caption_probability(epoch, self.epochs, self.options.schedule)
        return bool(draw_uniform(self._seed, _CAPTION_STREAM, epoch, step) < probability)

    def word_draws(self, epoch: int, step: int) -> np.ndarray | None:
        """E^v of one batch, (|V|,) boolean; None where the mode has none."""
        if self.options.mode != "c+w" or self._frequency is None:
            return None
        probability = word_probability(self._frequency, epoch, self.epochs, self.options.schedule)
        places = np.arange(len(probability))
        drawn: np.ndarray = draw_uniform(self._seed, _WORD_STREAM, epoch, step, places) < probability
        return drawn

    def allowed(self, epoch: int, step: int, in_caption: Any) -> Any:
        """(B, |V|) boolean of the kind of ``in_caption``: which weights stay; None when all do."""
        caption, words = self.caption_draw(epoch, step), self.word_draws(epoch, step)
        if words is not None and words.all():
            words = None
        if caption and words is None:
            return None
        return allowed_terms(in_caption, caption, words, self.options.form)
