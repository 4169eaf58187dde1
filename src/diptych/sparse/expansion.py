"""Expansion control: the terms a caption's vector may have while a head learns (thesis ch. 3, Algorithm 1 and Eq. 3.6).

A head that may use any term from the start makes the vocabulary a second dense space; one that may use the caption's
own terms only learns what terms mean. Training goes from the second to the first.
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


def expand(
    sparse_text: Any, in_caption: Any, caption_draw: Any, word_draws: Any = None, form: Form = "prose"
) -> Any:
    """Return EXPAND of Algorithm 1: (B, |V|) weights with those that the draws forbid set to 0.

    Args:
        sparse_text: (B, |V|) weights, NumPy or torch; gradients pass.
        in_caption: (B, |V|) boolean or numbers, not 0 where a caption contains a term.
        caption_draw: E_C, 0 or 1, one number or (B,).
        word_draws: E_k^v, (|V|,) or (B, |V|) of 0 and 1; None: all 1.
        form: ``prose``: draws are about other terms than the caption's own; ``printed``: as Algorithm 1 is printed.
    """
    if form not in ("prose", "printed"):
        raise UsageError(f"form {form!r} of EXPAND", "prose or printed")
    if issparse(sparse_text) or issparse(in_caption):
        raise UsageError("EXPAND takes no sparse matrices", "give rows.toarray()")
    shape = tuple(sparse_text.shape)
    for what, values, shapes in (
        ("captions", in_caption, (shape,)),
        ("caption draws", caption_draw, ((), shape[:1], shape)),
        ("word draws", word_draws, ((), shape[-1:], shape)),
    ):
        if values is not None and tuple(np.shape(values)) not in shapes:
            raise MismatchError(
                f"{what} of shape {tuple(np.shape(values))} for weights of shape {shape}",
                "give one per batch or caption, and per term or caption and term",
            )
    return sparse_text * allowed_terms(_boolean(in_caption, sparse_text), caption_draw, word_draws, form)


def allowed_terms(own: Any, caption_draw: Any, word_draws: Any, form: Form) -> Any:
    """Return (B, |V|) booleans, where EXPAND leaves a weight as it is; ``own``: the captions' terms."""
    expansion = _boolean(caption_draw, own)
    if expansion.ndim == 1 and own.ndim == 2:
        expansion = expansion[:, None]
    if word_draws is None:
        return own | expansion
    words = _boolean(word_draws, own)
    return own | (expansion & words) if form == "prose" else (own | expansion) & words


def _boolean(values: Any, like: Any) -> Any:
    """Return where values are not 0, in the library and on the device of ``like``."""
    if isinstance(like, np.ndarray | Sequence):
        return np.asarray(values) != 0
    import torch

    return torch.as_tensor(values, device=like.device) != 0


def caption_probability(epoch: int, epochs: int, schedule: Schedule = "thesis") -> float:
    """Return p_C in ``epoch`` (from 0): 0 at first, + 1 / epochs (published: / 0.95 epochs) after each (Eq. 3.6)."""
    return min(1.0, epoch / (epochs if schedule == "thesis" else _PUBLISHED_SHARE * epochs))


def word_probability(
    document_frequency: np.ndarray, epoch: int, epochs: int, schedule: Schedule = "thesis"
) -> np.ndarray:
    """Return (|V|,) p_i^v in ``epoch`` (from 0): 1 − df at first, + df / epochs after each (Eq. 3.6), at most 1."""
    left = 1.0 - caption_probability(epoch, epochs, schedule)
    return np.asarray(1.0 - np.asarray(document_frequency, dtype=np.float64) * left)


class ExpansionControl:
    """The draws of one training, each a function of (seed, epoch, step); ``frequency``: (|V|,) shares of captions."""

    def __init__(self, options: ExpansionOptions, frequency: np.ndarray, epochs: int, seed: int) -> None:
        self.options, self.epochs, self._frequency, self._seed = options, epochs, frequency, seed

    def probability(self, epoch: int) -> float:
        """Return how probable it is that a batch's captions may have other terms than their own."""
        if self.options.mode in ("0", "1"):
            return float(self.options.mode)
        return caption_probability(epoch, self.epochs, self.options.schedule)

    def caption_draw(self, epoch: int, step: int) -> bool:
        """Return E_C of one batch: whether its captions may have other terms than their own."""
        return bool(draw_uniform(self._seed, _CAPTION_STREAM, epoch, step) < self.probability(epoch))

    def word_draws(self, epoch: int, step: int) -> np.ndarray | None:
        """Return E^v of one batch, (|V|,) boolean; None where the mode has none."""
        if self.options.mode != "c+w":
            return None
        probability = word_probability(self._frequency, epoch, self.epochs, self.options.schedule)
        draws = draw_uniform(self._seed, _WORD_STREAM, epoch, step, np.arange(len(probability)))
        return np.asarray(draws < probability)

    def allowed(self, epoch: int, step: int, in_caption: Any) -> Any:
        """Return (B, |V|) booleans of the kind of ``in_caption``: which weights stay; None when all do."""
        caption, words = self.caption_draw(epoch, step), self.word_draws(epoch, step)
        if words is not None and words.all():
            words = None
        if caption and words is None:
            return None
        return allowed_terms(in_caption, caption, words, self.options.form)
