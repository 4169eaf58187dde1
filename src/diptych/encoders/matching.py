"""MatchingEncoder: a dual encoder whose model also has a head that reads image and text together.

The head is slow: it scores the few candidates that the rows of the dual encoder chose (:mod:`diptych.encoders.rerank`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from diptych.core.errors import NumericalError

PairInputs = dict[str, np.ndarray]
"""What the head reads, by name: arrays with the item first, every item's part of the same shape and type."""


class MatchingEncoder(ABC):
    """The matching head of a :class:`~diptych.encoders.dual_encoder.DualEncoder`."""

    adds_contrastive: ClassVar[bool]  # whether the final score is matching + contrastive (BLIP)

    @abstractmethod
    def image_inputs(self, images: Iterable[Any], batch_size: int = 32) -> PairInputs:
        """Return what the head reads of images: the image encoder's output tokens."""

    @abstractmethod
    def text_inputs(self, texts: Sequence[str], batch_size: int = 256) -> PairInputs:
        """Return what the head reads of texts: the text encoder's states, or token ids, and their mask."""

    @abstractmethod
    def match(self, images: PairInputs, texts: PairInputs) -> np.ndarray:
        """Score image i with text i: (n,) float32, the head's raw output for "they belong together"."""

    def match_rows(self, images: PairInputs, rows: np.ndarray, texts: PairInputs) -> np.ndarray:
        """Score image ``rows[i]``, which do not decrease, with text i; a head may read each image only once for it."""
        return self.match({name: values[rows] for name, values in images.items()}, texts)


def finite_scores(scores: np.ndarray) -> np.ndarray:
    """Return the scores of pairs when all are numbers."""
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise NumericalError(
            f"the matching score of pair {int(bad[0])} is {scores[bad[0]]}",
            "the weights are corrupt or diverged, or its inputs are: load or make them again",
        )
    return np.ascontiguousarray(scores)
