"""COCOS by the paper's equations (``compat="equations"``) and as its code counts (``compat="published"``).

Source: Bleeker and de Rijke, ECIR 2022, Section 4 and Tables 2–4. Both are for the losses that the paper has.

The equations (Eq. 9–13) differ from counting gradient weights, which is for any loss, in this: the triplet loss counts
triplets, so that a negative that violates two positives counts twice; and SmoothAP counts pairs of a positive i and
any other candidate j by sim(D_ij)/R(i)² > ε, pairs of two positives among them, as a mean over positives, where a
weight is the sum of all a candidate's pairs. With one positive per query, triplet losses and NT-Xent count the same
either way. Where a query has several positives, the paper's triplet and NT-Xent losses (which have one) are read as
:mod:`diptych.objectives` reads them: a sum over positives for triplets, a mean over positives for NT-Xent, whose
soft-max leaves a query's other positives out.

The published code differs from its equations in this:

Triplet losses
    - t2i is counted on the wrong axis: the violations of captions as queries are summed over the
      captions, so that C^q and C^0 are per image, not per caption (hence Table 2's 14.78 queries
      without gradient for i2t and 1.14 for t2i). C^B is right. The hardest form has no such axis.
    - C^q is the mean over queries with a violation only; with the hardest negative it is always 1.
    - All queries without one: 0/0, printed as nan; None here.
NT-Xent
    - As Eq. 11: C^q, W^- and W^+ are means over all queries. C^B and C^0 are not printed; here they
      are taken from the same counts.
SmoothAP
    - sim(D_ij) is G(1 − G) without the 1/τ of Eq. 24, so that ε is 1/τ times (100 times) stricter.
    - i2t: the pair count is divided by k captions, the mean is over queries with a count only.
    - t2i: query i looks at the candidates k·i … k·i + k − 1, which exist for the first ⌈B/k⌉ of the
      k·B captions only and are not their positives; all others count as without gradient (hence
      636–637 of 640 in Table 4). The count is not divided.
    - A batch without any count has C^q 0.

All of them read a batch as pairs (image, caption), other captions of an image being negatives;
SmoothAP reads it as images with k captions each.

All functions of one direction have queries as rows; give transposed matrices for texts as queries.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, cast

import numpy as np
from torch import Tensor

from diptych.analysis.cocos_report import DIRECTIONS, CocosCompat, Counts, DirectionName, Unit
from diptych.core.errors import UsageError
from diptych.objectives.declaration import OBJECTIVES, Objective, ObjectiveKind, checked

PaperLoss = Literal["triplet", "ntxent", "smoothap"]

_LOSSES: dict[str, PaperLoss] = {
    "triplet": "triplet",
    "triplet-hardest": "triplet",
    "infonce": "ntxent",
    "nt-xent": "ntxent",
    "smoothap": "smoothap",
}


def declaration_of(objective: Objective) -> ObjectiveKind | None:
    """Return an objective's declaration; None where it is not of the registry."""
    return next((kind for kind in OBJECTIVES if kind.build is type(objective)), None)


def paper_loss(objective: Objective) -> PaperLoss:
    """Return which of the paper's losses an objective is."""
    kind = declaration_of(objective)
    name = type(objective).__name__ if kind is None else kind.name
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


def paper_counts_of(
    objective: Objective,
    scores: Tensor,
    positives: Tensor,
    epsilon: float,
    unit: Unit = "temperature",
    compat: CocosCompat = "equations",
) -> dict[DirectionName, Counts]:
    """Count one batch by the paper's equations or as its code, per direction.

    Args:
        objective: of the paper's losses.
        scores: (n_images, n_texts).
        positives: (n_images, n_texts) boolean.
    """
    loss, options = paper_loss(objective), cast(Any, objective)
    if compat == "published":
        return _published_counts_of(loss, objective, scores, positives, epsilon)
    pairs = getattr(objective, "compat", "none") == "pairs"
    scores, positives = checked(scores, positives, "pairs" if pairs else "none")
    matrix, matches = scores.detach().cpu().numpy(), positives.cpu().numpy()
    found: dict[DirectionName, Counts] = {}
    for direction in DIRECTIONS:
        if options.direction not in ("both", direction):
            continue
        s, p = (matrix.T, matches.T) if direction == "t2i" else (matrix, matches)
        if loss == "triplet":
            found[direction] = _counts(triplet_counts(s, p, options.margin, options.hardest))
        elif loss == "smoothap":
            temperature = fixed_temperature(objective)
            found[direction] = _counts(smoothap_counts(s, p, temperature, epsilon, unit == "score"))
        else:
            each, negatives, positive = ntxent_counts(s, p, fixed_temperature(objective), epsilon)
            weights = {"negatives_weight": float(negatives.mean()), "positives_weight": positive}
            found[direction] = _counts(each, **weights)
    return found


def _counts(each: np.ndarray, **given: float | None) -> Counts:
    """Counts of (queries,) contributing negatives; ``given`` replaces what is counted otherwise."""
    active, total = int((each > 0).sum()), float(each.sum())
    counted: dict[str, Any] = {
        "per_query": total / len(each),
        "per_active_query": total / active if active else None,
        **given,
    }
    return Counts(
        queries=len(each), each=each, in_batch=total, without_gradient=len(each) - active, **counted
    )


def triplet_counts(
    scores: np.ndarray, positives: np.ndarray, margin: float = 0.2, hardest: bool = False
) -> np.ndarray:
    """Eq. 9, 10 and C^q of the triplet loss: (queries,) violated triplets per query.

    Their sum is C^B; how many are 0 is C^0.
    """
    scores = np.asarray(scores, dtype=np.float64)
    query, positive = np.nonzero(positives)
    violates = scores[query, positive][:, None] - scores[query] < margin
    violates &= ~positives[query]
    if hardest:
        first = np.argmax(np.where(positives, -np.inf, scores), axis=1)
        violates &= np.arange(scores.shape[1]) == first[query][:, None]
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


def _published_counts_of(
    loss: PaperLoss, objective: Objective, scores: Tensor, positives: Tensor, epsilon: float
) -> dict[DirectionName, Counts]:
    if loss == "smoothap":
        ordered, k = _grouped(scores, positives)
        return published_smoothap(ordered, fixed_temperature(objective), epsilon, k)
    pairs, _ = checked(scores, positives, "pairs")
    matrix = pairs.detach().cpu().numpy()
    if loss == "ntxent":
        return published_ntxent(matrix, fixed_temperature(objective), epsilon)
    options: Any = objective
    return published_triplet(matrix, float(options.margin), bool(options.hardest))


def published_triplet(
    scores: np.ndarray, margin: float = 0.2, hardest: bool = False
) -> dict[DirectionName, Counts]:
    """Triplet and Triplet SH; ``scores`` (pairs, pairs), image i and caption i belonging together."""
    scores = np.asarray(scores)
    own = np.diag(scores)
    others = ~np.eye(len(scores), dtype=bool)
    of_images = np.where(others, np.maximum(margin + scores - own[:, None], 0), 0)
    of_texts = np.where(others, np.maximum(margin + scores - own[None, :], 0), 0)
    if hardest:
        each_i2t, each_t2i = of_images.max(axis=1) > 0, of_texts.max(axis=0) > 0
    else:
        # Both along the captions: right for images as queries, wrong for captions.
        each_i2t, each_t2i = (of_images > 0).sum(axis=1), (of_texts > 0).sum(axis=1)
    return {"i2t": _of_triplets(each_i2t), "t2i": _of_triplets(each_t2i)}


def _of_triplets(each: np.ndarray) -> Counts:
    each = each.astype(np.int64)
    active = int((each > 0).sum())
    # In single precision, as it was divided.
    mean = float(np.float32(each.sum()) / np.float32(active)) if active else None
    return _counts(each, per_active_query=mean)


def published_ntxent(
    scores: np.ndarray, temperature: float = 0.1, epsilon: float = 0.01
) -> dict[DirectionName, Counts]:
    """NT-Xent; ``scores`` (pairs, pairs)."""
    found: dict[DirectionName, Counts] = {}
    for direction, rows in (("i2t", scores), ("t2i", np.asarray(scores).T)):
        logits = np.asarray(rows) / temperature
        share = np.exp(logits - logits.max(axis=1, keepdims=True))
        share = share / share.sum(axis=1, keepdims=True)
        negatives = np.where(np.eye(len(share), dtype=bool), 0, share)
        counted = negatives > epsilon
        each = counted.sum(axis=1)
        found[direction] = _counts(  # type: ignore[index]
            each,
            per_query=float(np.float32(each.sum()) / np.float32(len(each))),
            negatives_weight=float((negatives * counted).sum(axis=1).mean()),
            positives_weight=float(1 - np.diag(share).mean()),
        )
    return found


def published_smoothap(
    scores: np.ndarray, temperature: float = 0.01, epsilon: float = 0.01, captions_per_image: int = 5
) -> dict[DirectionName, Counts]:
    """SmoothAP; ``scores`` (images, k·images), the captions of image i being columns k·i … k·i + k − 1."""
    k = captions_per_image
    found: dict[DirectionName, Counts] = {}
    for direction, rows, divisor in (("i2t", scores, k), ("t2i", np.asarray(scores).T, 1)):
        each = np.array(
            [_close(row, slice(k * i, k * i + k), temperature, epsilon) for i, row in enumerate(rows)]
        )
        mean = {} if (each > 0).any() else {"per_active_query": 0.0}
        found[direction] = _counts(each / divisor, **mean)  # type: ignore[index]
    return found


def _close(row: np.ndarray, rows: slice, temperature: float, epsilon: float) -> int:
    """How many G(1 − G)/R² are above ε for the candidates in ``rows``, none when they do not exist."""
    chosen = np.arange(len(row))[rows]
    difference = np.clip((row[None, :] - row[chosen, None]) / temperature, -50, 50)
    above = 1 / (1 + np.exp(-difference))
    above[np.arange(len(chosen)), chosen] = 0
    rank = 1 + above.sum(axis=1, keepdims=True)
    return int((above * (1 - above) / rank**2 > epsilon).sum())


def _grouped(scores: Tensor, positives: Tensor) -> tuple[np.ndarray, int]:
    """The matrix with each image's captions next to each other, in image order, and k."""
    checked(scores, positives)
    per_image, per_text = positives.sum(dim=1), positives.sum(dim=0)
    if int(per_image.min()) != int(per_image.max()) or int(per_text.max()) != 1:
        raise UsageError(
            f"{int(per_image.min())}–{int(per_image.max())} captions per image in a batch",
            "the published counting of SmoothAP wants the same number for each: plan grouped",
        )
    captions = positives.nonzero(as_tuple=True)[1]
    return scores[:, captions].detach().cpu().numpy(), int(per_image[0])
