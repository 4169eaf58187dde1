"""COCOS by the paper's equations (``compat="equations"``) and as its code counts (``compat="published"``).

Source: Bleeker and de Rijke, ECIR 2022, Section 4 and Tables 2–4. Both are for the losses that the paper has.

The equations (Eq. 9–13) count triplets, so that a negative that violates two positives counts twice, and for
SmoothAP pairs of a positive i and any other candidate j by sim(D_ij)/R(i)² > ε, as a mean over positives. With one
positive per query, triplet losses and NT-Xent count as gradient weights do; with several they are read as
:mod:`diptych.objectives` reads them. The published code reads a batch as pairs (image, caption), for SmoothAP as
images with k captions each. It differs from its equations in this:

Triplet losses
    - t2i is counted on the wrong axis: violations of captions as queries are summed over the captions, so that C^q
      and C^0 are per image (hence Table 2's 14.78 queries without gradient for i2t and 1.14 for t2i). C^B is right.
      The hardest form has no such axis.
    - C^q is the mean over queries with a violation only; with the hardest negative it is always 1. All queries
      without one: 0/0, printed as nan; None here.
NT-Xent
    - As Eq. 11: C^q, W^- and W^+ are means over all queries. C^B and C^0 are not printed; here they are of the same
      counts.
SmoothAP
    - sim(D_ij) is G(1 − G) without the 1/τ of Eq. 24, so that ε is 1/τ times (100 times) stricter.
    - i2t: the pair count is divided by k captions, the mean is over queries with a count only.
    - t2i: query i looks at the candidates k·i … k·i + k − 1, which exist for the first ⌈B/k⌉ of the k·B captions only
      and are not their positives; all others count as without gradient (hence 636–637 of 640 in Table 4). The count is
      not divided. A batch without any count has C^q 0.

In functions of one direction queries are rows.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from diptych.analysis.cocos_report import CocosCompat, Counts, Unit
from diptych.core.errors import UsageError
from diptych.metrics.ground_truth import DIRECTIONS, Direction
from diptych.objectives.declaration import OBJECTIVES, Objective, ObjectiveKind, checked

_LOSSES = {
    "triplet": "triplet",
    "triplet-hardest": "triplet",
    "infonce": "ntxent",
    "nt-xent": "ntxent",
    "smoothap": "smoothap",
}


def declaration_of(objective: Objective) -> ObjectiveKind | None:
    return next((kind for kind in OBJECTIVES if kind.build is type(objective)), None)


def paper_loss(objective: Objective) -> str:
    kind = declaration_of(objective)
    name = type(objective).__name__ if kind is None else kind.name
    if name not in _LOSSES:
        raise UsageError(
            f"objective {name!r} is not among those that the paper counts: {', '.join(_LOSSES)}",
            "leave compat out: gradient weights are counted for any objective",
        )
    return _LOSSES[name]


def fixed_temperature(objective: Objective) -> float:
    temperature: Any = objective.temperature
    return float(temperature.detach()) if isinstance(temperature, Tensor) else float(temperature)


def each_direction(objective: Objective, scores: Any, positives: Any) -> Iterator[tuple[Direction, Any, Any]]:
    """Yield the directions that an objective has, with both matrices turned so that queries are rows."""
    only = getattr(objective, "direction", "both")
    for direction in DIRECTIONS:
        if only in ("both", direction):
            turned = (scores.T, positives.T) if direction == "t2i" else (scores, positives)
            yield direction, turned[0], turned[1]


def paper_counts_of(
    objective: Any,
    scores: Tensor,
    positives: Tensor,
    epsilon: float,
    unit: Unit = "temperature",
    compat: CocosCompat = "equations",
) -> dict[Direction, Counts]:
    """Count one batch by the paper's equations or as its code; shapes as of ``count``."""
    loss = paper_loss(objective)
    if compat == "published":
        if loss == "smoothap":
            ordered, k = _grouped(scores, positives)
            return published_smoothap(ordered, fixed_temperature(objective), epsilon, k)
        own = checked(scores, positives, "pairs")[0].detach().cpu().numpy()
        if loss == "ntxent":
            return published_ntxent(own, fixed_temperature(objective), epsilon)
        return published_triplet(own, float(objective.margin), bool(objective.hardest))
    pairs = getattr(objective, "compat", "none") == "pairs"
    scores, positives = checked(scores, positives, "pairs" if pairs else "none")
    matrix, matches = scores.detach().cpu().numpy(), positives.cpu().numpy()
    found: dict[Direction, Counts] = {}
    for way, rows, right in each_direction(objective, matrix, matches):
        if loss == "triplet":
            found[way] = triplet_counts(rows, right, objective.margin, objective.hardest)
        elif loss == "ntxent":
            found[way] = ntxent_counts(rows, right, fixed_temperature(objective), epsilon)
        else:
            temperature = fixed_temperature(objective)
            found[way] = smoothap_counts(rows, right, temperature, epsilon, unit == "score")
    return found


def triplet_counts(
    scores: np.ndarray, positives: np.ndarray, margin: float = 0.2, hardest: bool = False
) -> Counts:
    """Count violated triplets, Eq. 9, 10 and C^q of the triplet loss."""
    scores = np.asarray(scores, dtype=np.float64)
    query, positive = np.nonzero(positives)
    violates = scores[query, positive][:, None] - scores[query] < margin
    violates &= ~positives[query]
    if hardest:
        first = np.argmax(np.where(positives, -np.inf, scores), axis=1)
        violates &= np.arange(scores.shape[1]) == first[query][:, None]
    each = np.bincount(query, weights=violates.sum(axis=1), minlength=len(scores))
    return Counts.of(each.astype(np.int64))


def ntxent_counts(
    scores: np.ndarray, positives: np.ndarray, temperature: float = 0.1, epsilon: float = 0.01
) -> Counts:
    """Count the three terms below Eq. 11, which compare soft-max probabilities with ε, without 1/τ."""
    logits = np.asarray(scores, dtype=np.float64) / temperature
    query, positive = np.nonzero(positives)
    pair = np.arange(len(query)), positive
    taken = ~positives[query]  # a pair's soft-max leaves the query's other positives out
    taken[pair] = True
    rows = np.where(taken, logits[query], -np.inf)
    rows = np.exp(rows - rows.max(axis=1, keepdims=True))
    share = rows / rows.sum(axis=1, keepdims=True)
    share[pair] -= 1
    weights = np.zeros(np.shape(scores))
    np.add.at(weights, query, share / positives.sum(axis=1)[query][:, None])
    size = np.abs(weights / temperature) * temperature
    counted = (size > epsilon) & ~positives
    negatives, positive_weights = ((size * one).sum(axis=1).mean() for one in (counted, positives))
    return Counts.of(
        counted.sum(axis=1), negatives_weight=float(negatives), positives_weight=float(positive_weights)
    )


def smoothap_counts(
    scores: np.ndarray,
    positives: np.ndarray,
    temperature: float = 0.01,
    epsilon: float = 0.01,
    over_temperature: bool = True,
) -> Counts:
    """Count by Eq. 13 pairs (positive i, any other j) with sim(D_ij)/R(i)² > ε, mean over positives."""
    least = epsilon * temperature if over_temperature else epsilon
    rows = zip(np.asarray(scores, np.float64), positives, strict=True)
    # Beyond 700 the exponential is infinite in float64, and G is 0 or 1 long before.
    counted = [
        (_closeness(row, np.flatnonzero(own), temperature, 700) > least).sum() / own.sum()
        for row, own in rows
    ]
    return Counts.of(np.asarray(counted))


def _closeness(row: np.ndarray, chosen: np.ndarray, temperature: float, most: float) -> np.ndarray:
    """Return (chosen, candidates) G(1 − G)/R(i)², G = G((s_j − s_i)/τ) being how surely j ranks above i."""
    above = 1 / (1 + np.exp(-np.clip((row - row[chosen][:, None]) / temperature, -most, most)))
    above[np.arange(len(chosen)), chosen] = 0
    return np.asarray(above * (1 - above) / (1 + above.sum(axis=1, keepdims=True)) ** 2)


def published_triplet(
    scores: np.ndarray, margin: float = 0.2, hardest: bool = False
) -> dict[Direction, Counts]:
    """Triplet and Triplet SH; ``scores`` (pairs, pairs), image i and caption i belonging together."""
    own, others = np.diag(scores), ~np.eye(len(scores), dtype=bool)
    violates = [np.maximum(margin + scores - one, 0) > 0 for one in (own[:, None], own[None, :])]
    of_images, of_texts = (others & one for one in violates)
    if hardest:
        each = of_images.any(axis=1), of_texts.any(axis=0)
    else:
        # Both along the captions: right for images as queries, wrong for captions.
        each = of_images.sum(axis=1), of_texts.sum(axis=1)
    found: dict[Direction, Counts] = {}
    for direction, counted in zip(DIRECTIONS, each, strict=True):
        active = int((counted > 0).sum())
        # In single precision, as it was divided.
        mean = float(np.float32(counted.sum()) / np.float32(active)) if active else None
        found[direction] = Counts.of(np.asarray(counted, np.int64), per_active_query=mean)
    return found


def published_ntxent(
    scores: np.ndarray, temperature: float = 0.1, epsilon: float = 0.01
) -> dict[Direction, Counts]:
    """NT-Xent; ``scores`` (pairs, pairs)."""
    pairs = np.eye(len(scores), dtype=bool)
    found = {
        way: ntxent_counts(rows, pairs, temperature, epsilon)
        for way, rows in zip(DIRECTIONS, (scores, scores.T), strict=True)
    }
    # In single precision, as it was divided.
    return {
        way: replace(one, per_query=float(np.float32(one.in_batch) / np.float32(one.queries)))
        for way, one in found.items()
    }


def published_smoothap(
    scores: np.ndarray, temperature: float = 0.01, epsilon: float = 0.01, captions_per_image: int = 5
) -> dict[Direction, Counts]:
    """SmoothAP; ``scores`` (images, k·images), the captions of image i being columns k·i … k·i + k − 1."""
    k = captions_per_image
    found: dict[Direction, Counts] = {}
    for direction, rows, divisor in zip(DIRECTIONS, (scores, scores.T), (k, 1), strict=True):
        places = np.arange(rows.shape[1])
        each = np.array(
            [
                # nothing where they do not exist
                (_closeness(row, places[k * i : k * i + k], temperature, 50) > epsilon).sum()
                for i, row in enumerate(rows)
            ]
        )
        mean: dict[str, Any] = {} if (each > 0).any() else {"per_active_query": 0.0}
        found[direction] = Counts.of(each / divisor, **mean)
    return found


def _grouped(scores: Tensor, positives: Tensor) -> tuple[np.ndarray, int]:
    checked(scores, positives)
    per_image, per_text = positives.sum(dim=1), positives.sum(dim=0)
    if int(per_image.min()) != int(per_image.max()) or int(per_text.max()) != 1:
        raise UsageError(
            f"{int(per_image.min())}–{int(per_image.max())} captions per image in a batch",
            "the published counting of SmoothAP wants the same number for each: plan grouped",
        )
    captions = positives.nonzero(as_tuple=True)[1]
    return scores[:, captions].detach().cpu().numpy(), int(per_image[0])
