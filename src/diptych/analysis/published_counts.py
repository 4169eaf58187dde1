"""COCOS as the published code counts it (the ECIR 2022 repository), faults included: ``compat="published"``.

For comparing with Tables 2–4 of Bleeker and de Rijke (2022), which it printed. It differs from the
paper's equations in this:

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
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from diptych.analysis.counts import Counts, DirectionName
from diptych.analysis.equation_counts import fixed_temperature, paper_loss
from diptych.core.errors import UsageError
from diptych.objectives.declaration import Objective, checked


def published_triplet(
    scores: np.ndarray, margin: float = 0.2, hardest: bool = False
) -> dict[DirectionName, Counts]:
    """Triplet and Triplet SH.

    Args:
        scores: (pairs, pairs), image i and caption i belonging together.
    """
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
    return Counts(
        queries=len(each),
        each=each,
        per_query=float(each.mean()),
        # In single precision, as it was divided.
        per_active_query=float(np.float32(each.sum()) / np.float32(active)) if active else None,
        in_batch=int(each.sum()),
        without_gradient=len(each) - active,
    )


def published_ntxent(
    scores: np.ndarray, temperature: float = 0.1, epsilon: float = 0.01
) -> dict[DirectionName, Counts]:
    """NT-Xent; ``scores`` (pairs, pairs)."""
    found: dict[DirectionName, Counts] = {}
    for direction, rows in (("i2t", scores), ("t2i", np.asarray(scores).T)):
        share = _softmax(rows, temperature)
        negatives = np.where(np.eye(len(share), dtype=bool), 0, share)
        counted = negatives > epsilon
        each = counted.sum(axis=1)
        active = int((each > 0).sum())
        found[direction] = Counts(  # type: ignore[index]
            queries=len(each),
            each=each,
            per_query=float(np.float32(each.sum()) / np.float32(len(each))),
            per_active_query=float(each.sum() / active) if active else None,
            in_batch=int(each.sum()),
            without_gradient=len(each) - active,
            negatives_weight=float((negatives * counted).sum(axis=1).mean()),
            positives_weight=float(1 - np.diag(share).mean()),
        )
    return found


def _softmax(scores: np.ndarray, temperature: float) -> np.ndarray:
    logits = np.asarray(scores) / temperature
    share = np.exp(logits - logits.max(axis=1, keepdims=True))
    normed: np.ndarray = share / share.sum(axis=1, keepdims=True)
    return normed


def published_smoothap(
    scores: np.ndarray, temperature: float = 0.01, epsilon: float = 0.01, captions_per_image: int = 5
) -> dict[DirectionName, Counts]:
    """SmoothAP.

    Args:
        scores: (images, k·images), the captions of image i being columns k·i … k·i + k − 1.
    """
    k = captions_per_image
    found: dict[DirectionName, Counts] = {}
    for direction, rows, divisor in (("i2t", scores, k), ("t2i", np.asarray(scores).T, 1)):
        each = np.array(
            [_close(row, slice(k * i, k * i + k), temperature, epsilon) for i, row in enumerate(rows)]
        )
        active = int((each > 0).sum())
        total = float((each / divisor).sum())
        found[direction] = Counts(  # type: ignore[index]
            queries=len(each),
            each=each / divisor,
            per_query=total / len(each),
            per_active_query=total / active if active else 0.0,
            in_batch=total,
            without_gradient=len(each) - active,
        )
    return found


def _close(row: np.ndarray, rows: slice, temperature: float, epsilon: float) -> int:
    """How many G(1 − G)/R² are above ε for the candidates in ``rows``, none when they do not exist."""
    chosen = np.arange(len(row))[rows]
    difference = np.clip((row[None, :] - row[chosen, None]) / temperature, -50, 50)
    above = 1 / (1 + np.exp(-difference))
    above[np.arange(len(chosen)), chosen] = 0
    rank = 1 + above.sum(axis=1, keepdims=True)
    return int((above * (1 - above) / rank**2 > epsilon).sum())


def published_counts_of(
    objective: Objective, scores: Tensor, positives: Tensor, epsilon: float = 0.01
) -> dict[DirectionName, Counts]:
    """The published counts of a batch for an objective that the paper has."""
    kind = paper_loss(objective)
    if kind == "smoothap":
        ordered, k = _grouped(scores, positives)
        return published_smoothap(ordered, fixed_temperature(objective), epsilon, k)
    pairs, _ = checked(scores, positives, "pairs")
    matrix = pairs.detach().cpu().numpy()
    if kind == "ntxent":
        return published_ntxent(matrix, fixed_temperature(objective), epsilon)
    options: Any = objective
    return published_triplet(matrix, float(options.margin), bool(options.hardest))


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


def published_counts(
    objective: Objective, scores: Tensor, positives: Tensor, epsilon: float = 0.01
) -> dict[str, float]:
    """The same under the names that the published code prints, nan where it divides 0 by 0.

    ``i2t_grads_mean``, ``i2t_grads_sum``, ``zeros_i2t``, ``t2i_grads_mean``, ``t2i_grad_sum``,
    ``zeros_t2i`` of triplets; ``1-s_i2t.diag.mean``, ``i2t_low_grad``, ``i2t_high_grad``,
    ``i2t_n_high_grad`` and those of t2i of NT-Xent; ``sum_i2t``, ``zeros_i2t`` and those of t2i of
    SmoothAP.
    """
    kind = paper_loss(objective)
    printed: dict[str, float] = {}
    for direction, counts in published_counts_of(objective, scores, positives, epsilon).items():
        mean = np.nan if counts.per_active_query is None else counts.per_active_query
        if kind == "ntxent":
            positives_weight = counts.positives_weight or 0.0
            negatives_weight = counts.negatives_weight or 0.0
            printed[f"1-s_{direction}.diag.mean"] = positives_weight
            # What a soft-max leaves: all the negatives' weight is what the positive lacks.
            printed[f"{direction}_low_grad"] = positives_weight - negatives_weight
            printed[f"{direction}_high_grad"] = negatives_weight
            printed[f"{direction}_n_high_grad"] = counts.per_query
            continue
        if kind == "smoothap":
            printed[f"sum_{direction}"] = mean
        else:
            printed[f"{direction}_grads_mean"] = mean
            # One of the two names is in the singular.
            printed[f"{direction}_grad{'s' if direction == 'i2t' else ''}_sum"] = float(counts.in_batch)
        printed[f"zeros_{direction}"] = float(counts.without_gradient)
    return printed
