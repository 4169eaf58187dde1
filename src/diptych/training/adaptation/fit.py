"""From rows of pairs to maps: pure, deterministic, without an encoder."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diptych.core.errors import DataError
from diptych.encoders.linear_maps import LinearMaps
from diptych.encoders.rows import unit_rows
from diptych.training.adaptation import contrastive, gaussian
from diptych.training.adaptation.options import AdaptationOptions, Method
from diptych.training.adaptation.selection import MakeLearner, Selected, select_strength

__all__ = ["Fitted", "fit_linear"]

_METHODS: dict[Method, tuple[MakeLearner, tuple[float, ...], float]] = {
    "gaussian": (gaussian.GaussianMoments.of, gaussian.STRENGTHS, gaussian.USUAL_STRENGTH),
    "infonce": (contrastive.ContrastivePairs.of, contrastive.STRENGTHS, contrastive.USUAL_STRENGTH),
}


class Fitted(NamedTuple):
    """What was learned from pairs.

    Attributes:
        maps: of both sides.
        strength: of the pull towards the encoder as it is; infinite where it won and the maps change nothing.
        losses: mean held-out loss of each strength tried, in nats per query; empty where none was held out.
    """

    maps: LinearMaps
    strength: float
    losses: dict[float, float]


def fit_linear(
    image_rows: np.ndarray,
    text_rows: np.ndarray,
    positives: np.ndarray,
    options: AdaptationOptions | None = None,
) -> Fitted:
    """Learn a linear map per side from rows of pairs.

    Without pairs, where there is nothing to tell a pair from, and where the pairs say that the encoder is
    best as it is, the maps change nothing; see :mod:`~diptych.training.adaptation.selection`.

    Args:
        image_rows: (n, d) rows; divided by their length first.
        text_rows: (m, d) rows of the same encoder.
        positives: (n, m) boolean, who describes whom; every row and column has one.
        options: the defaults when not given.

    Raises:
        DataError: shapes that do not fit, a row without a positive, or nothing but rows of zeros.
        NumericalError: a row is not finite.
    """
    options = options or AdaptationOptions()
    images, texts, positives = _checked(image_rows, text_rows, positives)
    width = images.shape[1]
    if not len(images) or (options.method == "infonce" and positives.all()):  # nothing to tell apart
        return Fitted(LinearMaps.identity(width), np.inf, {})
    learner, strengths, usual = _METHODS[options.method]
    if options.strength is not None:
        selected = Selected(options.strength, {})
    else:
        selected = select_strength(images, texts, positives, learner, strengths, usual)
    if selected.strength == np.inf:
        return Fitted(LinearMaps.identity(width), *selected)
    return Fitted(learner(images, texts, positives).maps(selected.strength), *selected)


def _checked(
    image_rows: np.ndarray, text_rows: np.ndarray, positives: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shapes = [np.shape(image_rows), np.shape(text_rows), np.shape(positives)]
    fits = len(shapes[0]) == len(shapes[1]) == 2 and shapes[0][1] == shapes[1][1]
    if not fits or shapes[2] != (shapes[0][0], shapes[1][0]) or not shapes[0][1]:
        raise DataError(
            f"rows of shapes {shapes[0]} and {shapes[1]} with positives of shape {shapes[2]}",
            "give (n, d) rows of pictures, (m, d) rows of texts and an (n, m) boolean matrix",
        )
    positives = np.asarray(positives)
    if positives.dtype != np.bool_:
        raise DataError(f"positives are {positives.dtype}", "give a boolean matrix")
    for side, axis in (("picture", 1), ("text", 0)):
        alone = np.flatnonzero(~positives.any(axis=axis))
        if len(alone):
            raise DataError(f"{side} {alone[0]} has no positive", "leave it out")
    sides = ((image_rows, "image"), (text_rows, "text"))
    images, texts = (unit_rows(rows, kind, range(len(rows))).astype(np.float64) for rows, kind in sides)
    return images, texts, positives
