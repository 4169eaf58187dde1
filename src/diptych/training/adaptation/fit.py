"""From rows of pairs to maps: pure, deterministic, without an encoder."""

import math
from typing import Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field

from diptych.core.context import track
from diptych.core.errors import DataError
from diptych.core.options import Options
from diptych.encoders.adapted import LinearMaps
from diptych.encoders.dual_encoder import unit_rows
from diptych.objectives.infonce import infonce_per_query
from diptych.training.adaptation.maps import ContrastivePairs, GaussianMoments

Method = Literal["gaussian", "infonce"]


class AdaptationOptions(Options):
    """Options of :func:`~diptych.training.adaptation.fit.fit_linear`.

    Attributes:
        method: ``gaussian`` is in closed form: the rows of a pair are taken as jointly normal, with a
            prior under which the encoder is right as it is; ``infonce`` lowers the InfoNCE loss of the
            pairs from the identity, with a penalty on leaving it.
        strength: of the pull towards the encoder as it is: the number of pairs that the prior is worth
            (``gaussian``), or the weight of the penalty (``infonce``). Chosen by the pairs when not
            given: see :mod:`~diptych.training.adaptation.fit`.
    """

    method: Method = "gaussian"
    strength: float | None = Field(None, ge=1e-6, allow_inf_nan=False)


# How strong the pull towards the encoder as it is should be, as the pairs themselves say.
#
# *Few pairs* cannot be held out: what a handful says is mostly chance. But how often the encoder takes one
# of the pairs for another says how much there is to learn, and the pull is the usual one divided by the
# square of that share: an encoder that confuses none of them stays as it is.
#
# *Many pairs* are cross-validated: dealt into folds, maps learned without a fold and judged on it by InfoNCE
# among the fold's own pairs, at the temperature that suits them best, so that only the order and the
# proportions of scores count. The best pull is taken when it beats the encoder as it is by two standard
# errors; otherwise that stays as it is.
#
# No other data is looked at. Both rules were chosen on validation splits (``benchmarks/results.md``): plain
# cross-validation of 16 to 64 pairs cost an encoder that knew them already up to 60 points of recall sum.

# From so many pairs on they are cross-validated; and so many held-out ones are enough.
MANY = 128

_FOLDS = 5
_STANDARD_ERRORS = 2.0
_TEMPERATURES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)


Learner = GaussianMoments | ContrastivePairs


def confused_share(scores: np.ndarray, positives: np.ndarray) -> float:
    """Return the share of queries that find something else first, the mean of both directions."""
    shares = []
    for queries, relevant in ((scores, positives), (scores.T, positives.T)):
        best = np.where(relevant, queries, -np.inf).max(axis=1)
        other = np.where(relevant, -np.inf, queries).max(axis=1)
        shares.append(float((other >= best).mean()))
    return sum(shares) / 2


def select_strength(
    images: np.ndarray,
    texts: np.ndarray,
    positives: np.ndarray,
    learner: type[Learner],
) -> tuple[float, dict[float, float]]:
    """Return a strength chosen only by the pairs, and the losses it was chosen by; both as of :class:`Fitted`."""
    if len(images) < MANY:
        confused = confused_share(images @ texts.T, positives)
        return (learner.usual / confused**2 if confused else np.inf), {}
    held_out = _held_out(images, texts, positives, learner)
    losses = {strength: float(found.mean()) for strength, found in held_out.items()}
    best = min(losses, key=losses.__getitem__)
    gain = held_out[np.inf] - held_out[best]
    sure = gain.mean() > _STANDARD_ERRORS * gain.std(ddof=1) / math.sqrt(len(gain))
    return (best if sure else np.inf), losses


def _held_out(
    images: np.ndarray,
    texts: np.ndarray,
    positives: np.ndarray,
    learner: type[Learner],
) -> dict[float, np.ndarray]:
    losses: dict[float, list[np.ndarray]] = {strength: [] for strength in (np.inf, *learner.strengths)}
    enough = min(_FOLDS, math.ceil(MANY * _FOLDS / len(images)))
    for fold in track(range(enough), "choosing the pull", unit="folds"):
        out = np.arange(len(images)) % _FOLDS == fold
        seen, kept = positives[~out].any(axis=0), positives[out].any(axis=0)
        able = learner.of(images[~out], texts[seen], positives[~out][:, seen])
        for strength, found in losses.items():
            maps = LinearMaps.identity(images.shape[1]) if strength == np.inf else able.maps(strength)
            x = maps.image(images[out], "image", np.flatnonzero(out))
            y = maps.text(texts[kept], "text", np.flatnonzero(kept))
            found.append(_losses(x.astype(np.float64) @ y.T.astype(np.float64), positives[out][:, kept]))
    return {strength: _at_best_temperature(found) for strength, found in losses.items()}


def _at_best_temperature(losses: list[np.ndarray]) -> np.ndarray:
    together = np.concatenate(losses, axis=1)
    return np.asarray(together[together.mean(axis=1).argmin()])


def _losses(scores: np.ndarray, positives: np.ndarray) -> np.ndarray:
    weights = torch.from_numpy(positives / positives.sum(axis=1, keepdims=True))
    relevant = torch.from_numpy(positives)
    found = []
    for temperature in _TEMPERATURES:
        logits = torch.from_numpy(scores / temperature)
        texts = infonce_per_query(logits.T, relevant.T)
        found.append((infonce_per_query(logits, relevant) + weights @ texts) / 2)
    return torch.stack(found).numpy()


_METHODS: dict[Method, type[Learner]] = {"gaussian": GaussianMoments, "infonce": ContrastivePairs}


class Fitted(NamedTuple):
    """Hold what was learned from pairs.

    Attributes:
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
    best as it is, the maps change nothing; see :mod:`~diptych.training.adaptation.fit`.
    """
    options = options or AdaptationOptions()
    images, texts, positives = _checked(image_rows, text_rows, positives)
    width = images.shape[1]
    if not len(images) or (options.method == "infonce" and positives.all()):  # nothing to tell apart
        return Fitted(LinearMaps.identity(width), np.inf, {})
    learner = _METHODS[options.method]
    strength, losses = options.strength, dict[float, float]()
    if strength is None:
        strength, losses = select_strength(images, texts, positives, learner)
    if strength == np.inf:
        return Fitted(LinearMaps.identity(width), strength, losses)
    return Fitted(learner.of(images, texts, positives).maps(strength), strength, losses)


def _checked(
    image_rows: np.ndarray, text_rows: np.ndarray, positives: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shapes = [np.shape(image_rows), np.shape(text_rows), np.shape(positives)]
    fits = len(shapes[0]) == len(shapes[1]) == 2 and shapes[0][1] == shapes[1][1]
    if not fits or shapes[2] != (shapes[0][0], shapes[1][0]) or not shapes[0][1]:
        raise DataError(
            f"rows of shapes {shapes[0]} and {shapes[1]} with positives of shape {shapes[2]}",
            "give (n, d) rows of images, (m, d) rows of texts and an (n, m) boolean matrix",
        )
    positives = np.asarray(positives)
    if positives.dtype != np.bool_:
        raise DataError(f"positives are {positives.dtype}", "give a boolean matrix")
    for side, axis in (("image", 1), ("text", 0)):
        unmatched = np.flatnonzero(~positives.any(axis=axis))
        if len(unmatched):
            raise DataError(f"{side} {unmatched[0]} has no positive", "leave it out")
    sides = ((image_rows, "image"), (text_rows, "text"))
    images, texts = (unit_rows(rows, kind, range(len(rows))).astype(np.float64) for rows, kind in sides)
    return images, texts, positives
