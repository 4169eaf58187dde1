"""COCOS to the letter of Eq. 9–13, right where the published code is not: ``compat="equations"``.

For the losses that the paper has. It differs from counting gradient weights, which is for any loss, in
this: the triplet loss counts triplets, so that a negative that violates two positives counts twice; and
SmoothAP counts pairs of a positive i and any other candidate j by sim(D_ij)/R(i)² > ε, pairs of two
positives among them, as a mean over positives, where a weight is the sum of all a candidate's pairs.
With one positive per query, triplet losses and NT-Xent count the same either way.

Source: Bleeker and de Rijke, ECIR 2022, Section 4.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from torch import Tensor

from diptych.analysis.counts import DIRECTIONS, Counts, DirectionName, Unit
from diptych.core.errors import UsageError
from diptych.objectives.declaration import OBJECTIVES, Objective, checked

# Weights and counts of three losses as their equations say them, without autograd and without torch.
#
# The independent check of :mod:`diptych.analysis.cocos`. All functions are of one direction: rows are
# queries; give the transposed matrices for texts as queries. Everything is float64.
#
# Eq. numbers are those of Bleeker and de Rijke, ECIR 2022. Where a query has several positives, the
# paper's triplet and NT-Xent losses (which have one) are read as :mod:`diptych.objectives` reads them:
# a sum over positives for triplets, a mean over positives for NT-Xent, whose soft-max leaves a query's
# other positives out.


def _violations(
    scores: np.ndarray, positives: np.ndarray, margin: float, hardest: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(query, positive) of each pair and (pairs, candidates) whether a negative violates its margin."""
    scores = np.asarray(scores, dtype=np.float64)
    query, positive = np.nonzero(positives)
    violates = scores[query, positive][:, None] - scores[query] < margin
    violates &= ~positives[query]
    if hardest:
        first = np.argmax(np.where(positives, -np.inf, scores), axis=1)
        violates &= np.arange(scores.shape[1]) == first[query][:, None]
    return query, positive, violates


def triplet_weights(
    scores: np.ndarray, positives: np.ndarray, margin: float = 0.2, hardest: bool = False
) -> np.ndarray:
    """Eq. 9: (queries, candidates) how many violated triplets each candidate is in, positives below 0."""
    query, positive, violates = _violations(scores, positives, margin, hardest)
    weights = np.zeros(np.shape(scores))
    np.add.at(weights, query, violates)
    np.subtract.at(weights, (query, positive), violates.sum(axis=1))
    return weights


def triplet_counts(
    scores: np.ndarray, positives: np.ndarray, margin: float = 0.2, hardest: bool = False
) -> np.ndarray:
    """Eq. 10 and C^q of the triplet loss: (queries,) violated triplets per query.

    Their sum is C^B; how many are 0 is C^0.
    """
    query, _, violates = _violations(scores, positives, margin, hardest)
    return np.bincount(query, weights=violates.sum(axis=1), minlength=len(scores)).astype(np.int64)


def _probabilities(
    scores: np.ndarray, positives: np.ndarray, temperature: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(query, positive) of each pair and (pairs, candidates) its soft-max, 0 at other positives."""
    logits = np.asarray(scores, dtype=np.float64) / temperature
    query, positive = np.nonzero(positives)
    taken = ~positives[query]
    taken[np.arange(len(query)), positive] = True
    rows = np.where(taken, logits[query], -np.inf)
    rows = np.exp(rows - rows.max(axis=1, keepdims=True))
    return query, positive, rows / rows.sum(axis=1, keepdims=True)


def ntxent_weights(scores: np.ndarray, positives: np.ndarray, temperature: float = 0.1) -> np.ndarray:
    """Eq. 11: (queries, candidates) p_j/τ for negatives, −(1 − p_+)/τ for the positive."""
    query, positive, share = _probabilities(scores, positives, temperature)
    share[np.arange(len(query)), positive] -= 1
    weights = np.zeros(np.shape(scores))
    np.add.at(weights, query, share / positives.sum(axis=1)[query][:, None])
    by_scores: np.ndarray = weights / temperature
    return by_scores


class NTXentCounts(NamedTuple):
    """What Table 3 reports.

    Attributes:
        each: (queries,) C^qv-, negatives whose probability is above ε.
        negatives_weight: (queries,) W^qv-, the sum of those probabilities.
        positives_weight: W^qv+, mean over queries of 1 − p_+.
    """

    each: np.ndarray
    negatives_weight: np.ndarray
    positives_weight: float


def ntxent_counts(
    scores: np.ndarray, positives: np.ndarray, temperature: float = 0.1, epsilon: float = 0.01
) -> NTXentCounts:
    """The three terms below Eq. 11, which compare soft-max probabilities with ε, without 1/τ."""
    share = np.abs(ntxent_weights(scores, positives, temperature)) * temperature
    counted = (share > epsilon) & ~positives
    return NTXentCounts(
        each=counted.sum(axis=1),
        negatives_weight=(share * counted).sum(axis=1),
        positives_weight=float((share * positives).sum(axis=1).mean()),
    )


def _above(scores: np.ndarray, i: int, temperature: float) -> np.ndarray:
    """(candidates,) G((s_j − s_i)/τ), how surely j ranks above i; 0 for i itself."""
    # Beyond 700 the exponential is infinite in float64, and G is 0 or 1 long before.
    above: np.ndarray = 1 / (1 + np.exp(np.clip((scores[i] - scores) / temperature, -700, 700)))
    above[i] = 0.0
    return above


def smoothap_weights(scores: np.ndarray, positives: np.ndarray, temperature: float = 0.01) -> np.ndarray:
    """−∂AP_q/∂s by Eq. 12, (queries, candidates): SmoothAP's loss is 1 − AP.

    Two corrections: a rank sums G((s_j − s_i)/τ), as Eq. 6 has it; the D_ij of Eq. 7 and 17 has the
    other sign. And R(i, S_N) − 1 is meant as Σ_{j ∈ N} G, with nothing left of the 1.
    """
    scores = np.asarray(scores, dtype=np.float64)
    weights = np.zeros(scores.shape)
    for row, matches, out in zip(scores, positives, weights, strict=True):
        for i in np.flatnonzero(matches).tolist():
            above = _above(row, i, temperature)
            closeness = above * (1 - above) / temperature  # sim(D_ij) of Eq. 24
            among_positives = 1 + above[matches].sum()
            among_negatives = above[~matches].sum()
            share = np.where(matches, -among_negatives, among_positives) * closeness
            share /= (among_positives + among_negatives) ** 2
            # Each term is share_j (v_i − v_j) in ∂AP/∂q; the loss has the other sign.
            out += share
            out[i] -= share.sum()
        out /= matches.sum()
    return weights


def smoothap_counts(
    scores: np.ndarray,
    positives: np.ndarray,
    temperature: float = 0.01,
    epsilon: float = 0.01,
    over_temperature: bool = True,
) -> np.ndarray:
    """Eq. 13: (queries,) pairs (positive i, any other j) with sim(D_ij)/R(i)² > ε, mean over positives.

    Not the same as counting weights: Eq. 13 counts pairs, leaves the ranks in front of Eq. 12's sums
    out, and counts pairs of two positives.

    Args:
        scores: (queries, candidates).
        positives: (queries, candidates) boolean.
    """
    scores = np.asarray(scores, dtype=np.float64)
    each = np.zeros(len(scores))
    for query, (row, matches) in enumerate(zip(scores, positives, strict=True)):
        for i in np.flatnonzero(matches).tolist():
            above = _above(row, i, temperature)
            closeness = above * (1 - above) / (temperature if over_temperature else 1.0)
            each[query] += int((closeness / (1 + above.sum()) ** 2 > epsilon).sum())
        each[query] /= matches.sum()
    return each


PaperLoss = Literal["triplet", "ntxent", "smoothap"]

_LOSSES: dict[str, PaperLoss] = {
    "triplet": "triplet",
    "triplet-hardest": "triplet",
    "infonce": "ntxent",
    "nt-xent": "ntxent",
    "smoothap": "smoothap",
}


def paper_loss(objective: Objective) -> PaperLoss:
    """Which of the paper's losses an objective is."""
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
        scores: (n_images, n_texts).
        positives: (n_images, n_texts) boolean.
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
