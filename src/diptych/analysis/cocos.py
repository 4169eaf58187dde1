"""COCOS, counting contributing samples: which candidates move a query, for any objective.

The gradient of query i's loss with respect to the query is Σ_j w_ij v_j with w_ij = ∂L_i/∂s_ij. A
candidate contributes when its weight is above a threshold, |w_ij| > ε, strictly. One backward pass of
the sum of all L_i gives every weight, since L_i depends on row i of the scores alone.

How a weight is measured is the ``unit``, and every report says which it was:

``temperature`` (the default)
    τ·|∂L_i/∂s_ij|, the gradient by the logits s/τ. For NT-Xent these are the soft-max probabilities
    that Eq. 11 and Table 3 compare with ε, for SmoothAP what Table 4 was counted with. Weights of
    different τ are comparable: none of either loss is above 1 for a query with one positive.
``score``
    |∂L_i/∂s_ij| itself, with the factor 1/τ of Eq. 13 and 24.

Objectives without a temperature have τ = 1. A triplet loss weights a negative by the number of
triplets it violates, so that any ε below 1 counts the same.

Cases without a plain answer: a query without a counted candidate has no gradient and is counted in
C^0; a batch of such queries has no mean over queries with a gradient (None). Among equally hard
negatives the first counts. A triplet exactly on its margin does not (Eq. 9 asks for less).

Source: Bleeker and de Rijke, Do Lessons from Metric Learning Generalize to Image-Caption Retrieval?,
ECIR 2022, Sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from diptych.analysis.cocos_report import (
    DIRECTIONS,
    CocosCompat,
    CocosProtocol,
    CocosReport,
    Counts,
    DirectionName,
    RunningSpread,
    Unit,
    WeightHistogram,
    check_compat,
    check_epsilon,
)
from diptych.analysis.paper_counts import declaration_of, fixed_temperature, paper_counts_of, paper_loss
from diptych.core.context import track
from diptych.core.errors import UsageError
from diptych.data.batches import Batch
from diptych.objectives.declaration import Objective, Within, checked
from diptych.objectives.similarity import similarity_of


@dataclass(frozen=True, eq=False)
class Weights:
    """What each candidate weighs in each query's gradient, in one direction.

    Attributes:
        values: (queries, candidates) signed ∂L_i/∂s_ij; a negative's is usually above 0 (it is pushed
            away), a positive's below.
        positives: (queries, candidates) boolean.
        within: (queries, queries) the same by the scores inside the queries' modality, for objectives
            that have such candidates.
    """

    values: Tensor
    positives: Tensor
    within: Tensor | None = None

    @property
    def of_negatives(self) -> Tensor:
        """(n,) |w| of all cross-modal negatives."""
        return self.values[~self.positives].abs()

    @property
    def of_positives(self) -> Tensor:
        """(n,) |w| of all positives."""
        return self.values[self.positives].abs()

    @property
    def unrelated(self) -> Tensor:
        """(queries, queries) which queries share no positive, and so are each other's negatives."""
        matches = self.positives.to(torch.float32)
        return (matches @ matches.T) == 0

    @property
    def of_within(self) -> Tensor:
        """(n,) |w| of all in-modality negatives; empty without them."""
        if self.within is None:
            return self.values.new_zeros(0)
        return self.within[self.unrelated].abs()

    def scaled(self, factor: float) -> Weights:
        """The same in another unit."""
        return Weights(
            self.values * factor, self.positives, None if self.within is None else self.within * factor
        )


def gradient_weights(
    objective: Objective, scores: Tensor, positives: Tensor, within: Within | None = None
) -> dict[DirectionName, Weights]:
    """∂L_i/∂s_ij for every query and candidate of a batch, by autograd.

    L_i is the loss of one query before any mean or sum over queries. With an objective of
    ``compat="pairs"`` every positive pair is a query of its own and the matrix is (pairs, pairs).

    Args:
        objective: any of the registry, or any other with ``per_query``.
        scores: (n_images, n_texts).
        positives: (n_images, n_texts) boolean.
        within: scores inside each modality, for objectives with ``needs_within``.

    Returns:
        Images as queries (``i2t``) and texts as queries (``t2i``), or the one the objective has.

    Raises:
        UsageError: the objective needs in-modality scores and has none; shapes that differ; a query
            without a positive; no negative at all.
        NumericalError: a score is NaN or infinite.
    """
    if objective.needs_within and within is None:
        raise UsageError(
            f"{type(objective).__name__} has in-modality candidates and no scores of them were given",
            "give within=Within(images @ images.T, texts @ texts.T)",
        )
    pairs = getattr(objective, "compat", "none") == "pairs"
    rows, columns = positives.nonzero(as_tuple=True)
    # Before the texts' turn, so that a message calls an image an image.
    scores, positives = checked(scores, positives, "pairs" if pairs else "none", objective.needs_negatives)
    if within is not None and pairs:
        within = Within(within.images[rows][:, rows], within.texts[columns][:, columns])
    only = getattr(objective, "direction", "both")
    found: dict[DirectionName, Weights] = {}
    for direction in DIRECTIONS:
        if only not in ("both", direction):
            continue
        turned = direction == "t2i"
        matches = positives.T if turned else positives
        own = None
        if within is not None and objective.needs_within:
            own = (within.texts if turned else within.images).detach().clone().requires_grad_()
        given = (scores.T if turned else scores).detach().clone().requires_grad_()
        with torch.enable_grad():
            total = objective.per_query(given, matches, own).sum()
            inputs = [given] if own is None else [given, own]
            by_scores, *by_own = torch.autograd.grad(total, inputs)
        found[direction] = Weights(by_scores, matches, by_own[0] if by_own else None)
    return found


def unit_factor(objective: Objective, unit: Unit) -> float:
    """What ∂L/∂s is multiplied by: τ for ``temperature`` where the objective has one, else 1."""
    if unit not in ("temperature", "score"):
        raise UsageError(f"unit {unit!r}", "'temperature' for τ·|∂L/∂s|, 'score' for |∂L/∂s|")
    if unit == "score" or getattr(objective, "temperature", None) is None:
        return 1.0
    return fixed_temperature(objective)


def counts_of(weights: Weights, epsilon: float = 0.01) -> Counts:
    """C^q, C^B, C^0, W^- and W^+ of weights that are in their unit already."""
    size = weights.values.abs()
    counted = (size > epsilon) & ~weights.positives
    each = counted.sum(dim=1)
    summed = (size * counted).sum(dim=1)
    active = (size > epsilon).any(dim=1)
    within_each = None
    if weights.within is not None:
        own = weights.within.abs()
        own_counted = (own > epsilon) & weights.unrelated
        within_each = own_counted.sum(dim=1)
        each = each + within_each
        summed = summed + (own * own_counted).sum(dim=1)
        active = active | own_counted.any(dim=1)
    n_active = int(active.sum())
    in_batch = int(each.sum())
    return Counts(
        queries=len(size),
        each=each.cpu().numpy(),
        per_query=in_batch / len(size),
        per_active_query=in_batch / n_active if n_active else None,
        in_batch=in_batch,
        without_gradient=len(size) - n_active,
        negatives_weight=float(summed.double().mean()),
        positives_weight=float((size * weights.positives).sum(dim=1).double().mean()),
        within_per_query=None if within_each is None else float(within_each.double().mean()),
    )


def count(
    objective: Objective,
    scores: Tensor,
    positives: Tensor,
    epsilon: float = 0.01,
    *,
    unit: Unit = "temperature",
    within: Within | None = None,
    compat: CocosCompat = "none",
) -> dict[DirectionName, Counts]:
    """COCOS of one batch, per direction.

    Args:
        scores: (n_images, n_texts).
        positives: (n_images, n_texts) boolean.
    """
    check_epsilon(epsilon)
    factor = unit_factor(objective, unit)
    if check_compat(compat) != "none":
        return paper_counts_of(objective, scores, positives, epsilon, unit, compat)
    return {
        direction: counts_of(weights.scaled(factor), epsilon)
        for direction, weights in gradient_weights(objective, scores, positives, within).items()
    }


Scoring = Callable[[Tensor, Tensor], Tensor]
"""Rows (n, d) and rows (m, d) to scores (n, m); one of ``objectives.similarity`` or any other."""


def described_objective(objective: Objective) -> tuple[str, dict[str, Any]]:
    """Its name in the registry and its options as they are now, a learned temperature by value.

    The reduction is left out: what is counted is before it.
    """
    kind = declaration_of(objective)
    if kind is None:
        return type(objective).__name__, {}
    options = {
        name: getattr(objective, name)
        for name in kind.options
        if name != "reduction" and hasattr(objective, name)
    }
    return kind.name, {
        name: float(value.detach()) if isinstance(value, Tensor) else value for name, value in options.items()
    }


def cocos_over(
    images: np.ndarray,
    texts: np.ndarray,
    batches: Iterable[Batch],
    objective: Objective,
    epsilon: float = 0.01,
    *,
    unit: Unit = "temperature",
    compat: CocosCompat = "none",
    similarity: Scoring | None = None,
    about: dict[str, Any] | None = None,
) -> CocosReport:
    """Count contributing samples in every batch; mean ± sd over batches, and weight distributions.

    As in Section 5 of the paper: the rows come from a frozen encoder in evaluation mode, without
    dropout and augmentation, and the batches are those of training.

    Args:
        images: (n_images, d) rows, may be memory-mapped.
        texts: (n_captions, d) rows.
    """
    check_epsilon(epsilon)
    if check_compat(compat) != "none":
        paper_loss(objective)
    factor = unit_factor(objective, unit)
    similar = similarity or similarity_of("cosine")
    spreads: dict[str, dict[str, RunningSpread]] = {}
    weights: dict[str, dict[str, WeightHistogram]] = {}
    n_batches, n_images, n_captions = 0, [], []
    for batch in track(batches, "counting contributing samples", unit="batches"):
        left, right = _rows(images, batch.images), _rows(texts, batch.captions)
        scores = similar(left, right)
        within = Within(similar(left, left), similar(right, right)) if objective.needs_within else None
        places = torch.arange(len(batch.images))
        positives = torch.from_numpy(batch.caption_image)[None, :] == places[:, None]
        weighed = {
            direction: found.scaled(factor)
            for direction, found in gradient_weights(objective, scores, positives, within).items()
        }
        if compat != "none":
            counted = paper_counts_of(objective, scores, positives, epsilon, unit, compat)
        else:
            counted = {direction: counts_of(found, epsilon) for direction, found in weighed.items()}
        for direction, counts in counted.items():
            named = spreads.setdefault(direction, {})
            for name, value in counts.values().items():
                named.setdefault(name, RunningSpread()).add(value)
        for direction, found in weighed.items():
            kinds = weights.setdefault(direction, {})
            parts = {"negatives": found.of_negatives, "positives": found.of_positives}
            if found.within is not None:
                parts["within"] = found.of_within
            for kind, part in parts.items():
                kinds.setdefault(kind, WeightHistogram()).add(part.numpy(), len(found.values))
        n_batches += 1
        n_images.append(len(batch.images))
        n_captions.append(len(batch.captions))
    if not n_batches:
        raise UsageError("no batch to count in", "give at least one batch")
    name, options = described_objective(objective)
    return CocosReport(
        CocosProtocol(
            objective=name,
            options=options,
            similarity=str(getattr(similar, "name", getattr(similar, "__name__", "given"))),
            epsilon=epsilon,
            unit=unit,
            compat=compat,
            batches=n_batches,
            images=(min(n_images), max(n_images)),
            captions=(min(n_captions), max(n_captions)),
            about=dict(about or {}),
        ),
        {
            direction: {name: running.spread() for name, running in named.items()}
            for direction, named in spreads.items()
        },
        weights,
    )


def _rows(stored: np.ndarray, rows: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(stored[rows], dtype=np.float32))
