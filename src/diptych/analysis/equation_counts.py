"""COCOS to the letter of Eq. 9–13, right where the published code is not: ``compat="equations"``.

For the losses that the paper has. It differs from counting gradient weights, which is for any loss, in
this: the triplet loss counts triplets, so that a negative that violates two positives counts twice; and
SmoothAP counts pairs of a positive i and any other candidate j by sim(D_ij)/R(i)² > ε, pairs of two
positives among them, as a mean over positives, where a weight is the sum of all a candidate's pairs.
With one positive per query, triplet losses and NT-Xent count the same either way.

Source: Bleeker and de Rijke, ECIR 2022, Section 4.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from torch import Tensor

from diptych.analysis.closed_forms import ntxent_counts, smoothap_counts, triplet_counts
from diptych.analysis.counts import DIRECTIONS, Counts, DirectionName, Unit
from diptych.core.errors import UsageError
from diptych.objectives.declaration import OBJECTIVES, Objective, checked

__all__ = ["PaperLoss", "equation_counts_of", "fixed_temperature", "paper_loss"]

PaperLoss = Literal["triplet", "ntxent", "smoothap"]

_LOSSES: dict[str, PaperLoss] = {
    "triplet": "triplet",
    "triplet-hardest": "triplet",
    "infonce": "ntxent",
    "nt-xent": "ntxent",
    "smoothap": "smoothap",
}


def paper_loss(objective: Objective) -> PaperLoss:
    """Which of the paper's losses an objective is.

    Raises:
        UsageError: none of them.
    """
    name = next((kind.name for kind in OBJECTIVES if kind.build is type(objective)), type(objective).__name__)
    if name not in _LOSSES:
        raise UsageError(
            f"objective {name!r} is not among those that the paper counts: {', '.join(_LOSSES)}",
            "leave compat out: gradient weights are counted for any objective",
        )
    return _LOSSES[name]


def fixed_temperature(objective: Objective) -> float:
    """τ as a number."""
    temperature: Any = objective.temperature
    return float(temperature.detach()) if isinstance(temperature, Tensor) else float(temperature)


def equation_counts_of(
    objective: Objective, scores: Tensor, positives: Tensor, epsilon: float = 0.01, unit: Unit = "temperature"
) -> dict[DirectionName, Counts]:
    """The counts of Eq. 9–13 of one batch, per direction.

    Args:
        objective: one of the paper's losses.
        scores: (n_images, n_texts).
        positives: (n_images, n_texts) boolean.
        epsilon: ε.
        unit: of SmoothAP: ``score`` with the 1/τ of Eq. 24, ``temperature`` without it, as Table 4 was
            counted. NT-Xent's probabilities have none in Eq. 11's counts either way.

    Raises:
        UsageError: another objective; shapes that differ; a query without a positive.
        NumericalError: a score is NaN or infinite.
    """
    loss = paper_loss(objective)
    options: Any = objective
    pairs = getattr(objective, "compat", "none") == "pairs"
    scores, positives = checked(scores, positives, "pairs" if pairs else "none")
    matrix, matches = scores.detach().cpu().numpy(), positives.cpu().numpy()
    found: dict[DirectionName, Counts] = {}
    for direction in DIRECTIONS:
        if options.direction not in ("both", direction):
            continue
        s, p = (matrix.T, matches.T) if direction == "t2i" else (matrix, matches)
        if loss == "triplet":
            found[direction] = _of(triplet_counts(s, p, options.margin, options.hardest))
        elif loss == "smoothap":
            temperature = fixed_temperature(objective)
            found[direction] = _of(smoothap_counts(s, p, temperature, epsilon, unit == "score"))
        else:
            each, negatives, positive = ntxent_counts(s, p, fixed_temperature(objective), epsilon)
            found[direction] = _of(each, float(negatives.mean()), positive)
    return found


def _of(
    each: np.ndarray, negatives_weight: float | None = None, positives_weight: float | None = None
) -> Counts:
    active = int((each > 0).sum())
    total = float(each.sum())
    return Counts(
        queries=len(each),
        each=each,
        per_query=total / len(each),
        per_active_query=total / active if active else None,
        in_batch=total,
        without_gradient=len(each) - active,
        negatives_weight=negatives_weight,
        positives_weight=positives_weight,
    )
