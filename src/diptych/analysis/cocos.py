"""COCOS, counting contributing samples: which candidates move a query, for any objective.

The gradient of query i's loss with respect to the query is Σ_j w_ij v_j with w_ij = ∂L_i/∂s_ij. A candidate
contributes when |w_ij| > ε, strictly. L_i depends only on row i of the scores, so one backward pass of the sum of
all L_i gives every weight. Weights are measured in a ``unit``: ``temperature``, τ·|∂L_i/∂s_ij| (the gradient by the
logits s/τ, which Eq. 11 and Tables 3 and 4 compare with ε, and which can be compared between temperatures; τ = 1
where there is none), or ``score``, |∂L_i/∂s_ij| with the factor 1/τ of Eq. 13 and 24.

A triplet loss weights a negative by the number of triplets it violates: any ε below 1 counts the same. Among equally
hard negatives the first counts; a triplet exactly on its margin does not. A query without a counted candidate is in
C^0; a batch of such queries has no mean over queries with a gradient (None).

Source: Bleeker and de Rijke, Do Lessons from Metric Learning Generalize to Image-Caption Retrieval?, ECIR 2022,
Sections 4 and 5.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from diptych.analysis.cocos_report import (
    UNITS,
    CocosCompat,
    CocosProtocol,
    CocosReport,
    Counts,
    Spread,
    Unit,
    WeightHistogram,
)
from diptych.analysis.paper_counts import (
    declaration_of,
    each_direction,
    fixed_temperature,
    paper_counts_of,
    paper_loss,
)
from diptych.core.context import track
from diptych.core.errors import UsageError
from diptych.data.batches import Batch
from diptych.metrics.ground_truth import Direction
from diptych.objectives.declaration import Objective, Within, checked
from diptych.objectives.similarity import similarity_of


@dataclass(frozen=True, eq=False)
class Weights:
    """Weight of each candidate in each query's gradient, in one direction."""

    # (queries, candidates) signed ∂L_i/∂s_ij; a negative's is usually above 0 (it is pushed away), a positive's below
    values: Tensor
    positives: Tensor  # (queries, candidates) boolean
    # (queries, queries) by the scores inside the queries' modality, for objectives that have such candidates
    within: Tensor | None = None

    @property
    def unrelated(self) -> Tensor:
        """Return (queries, queries) which queries share no positive, and so are each other's negatives."""
        matches = self.positives.to(torch.float32)
        return (matches @ matches.T) == 0

    def parts(self) -> dict[str, Tensor]:
        """Return (n,) |w| of all ``negatives``, ``positives`` and, if any, those ``within`` a modality."""
        parts = {"negatives": self.values[~self.positives], "positives": self.values[self.positives]}
        if self.within is not None:
            parts["within"] = self.within[self.unrelated]
        return {kind: values.abs() for kind, values in parts.items()}

    def scaled(self, factor: float) -> Weights:
        within = None if self.within is None else self.within * factor
        return Weights(self.values * factor, self.positives, within)


def gradient_weights(
    objective: Objective, scores: Tensor, positives: Tensor, within: Within | None = None
) -> dict[Direction, Weights]:
    """Return ∂L_i/∂s_ij for every query and candidate of a batch, by autograd, per direction of the objective.

    ``scores`` and ``positives`` are (n_images, n_texts), ``within`` the scores inside each modality. L_i is the
    loss of one query before any mean or sum over queries. With an objective of ``compat="pairs"`` every positive
    pair is a query of its own and the matrix is (pairs, pairs).
    """
    if not objective.needs_within:
        within = None
    elif within is None:
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
    found: dict[Direction, Weights] = {}
    for direction, turned, matches in each_direction(objective, scores, positives):
        inputs = [turned]
        if within is not None:
            inputs.append(within.texts if direction == "t2i" else within.images)
        inputs = [one.detach().clone().requires_grad_() for one in inputs]
        own = None if within is None else inputs[1]
        with torch.enable_grad():
            total = objective.per_query(inputs[0], matches, own).sum()
            by_scores, *by_own = torch.autograd.grad(total, inputs)
        found[direction] = Weights(by_scores, matches, *by_own)
    return found


def check_counting(objective: Objective, epsilon: float, unit: str, compat: str) -> float:
    """Return what ∂L/∂s is multiplied by: τ for ``temperature`` where the objective has one, else 1."""
    if not (epsilon >= 0 and math.isfinite(epsilon)):
        raise UsageError(f"epsilon {epsilon}", "give a threshold of at least 0, such as 0.01")
    if unit not in UNITS:
        raise UsageError(f"unit {unit!r}", "'temperature' for τ·|∂L/∂s|, 'score' for |∂L/∂s|")
    if compat not in (known := get_args(CocosCompat)):
        raise UsageError(f"compat {compat!r}", f"one of {', '.join(map(repr, known))}")
    if compat != "none":
        paper_loss(objective)
    if unit == "score" or getattr(objective, "temperature", None) is None:
        return 1.0
    return fixed_temperature(objective)


def counts_of(weights: Weights, epsilon: float) -> Counts:
    """Return C^q, C^B, C^0, W^- and W^+ of weights that are in their unit already."""
    size = weights.values.abs()
    counted = (size > epsilon) & ~weights.positives
    each = counted.sum(dim=1)
    summed = (size * counted).sum(dim=1)
    active = (size > epsilon).any(dim=1)
    within_per_query = None
    negatives = (size * ~weights.positives).double()
    if weights.within is not None:
        own = weights.within.abs()
        own_counted = (own > epsilon) & weights.unrelated
        within_each = own_counted.sum(dim=1)
        each = each + within_each
        summed = summed + (own * own_counted).sum(dim=1)
        active = active | own_counted.any(dim=1)
        within_per_query = float(within_each.double().mean())
        negatives = torch.cat([negatives, (own * weights.unrelated).double()], dim=1)
    moved = negatives[negatives.sum(dim=1) > 0]
    shares = moved / moved.sum(dim=1, keepdim=True)
    effective = torch.special.entr(shares).sum(dim=1).exp()
    return Counts.of(
        each.cpu().numpy(),
        int(active.sum()),
        negatives_weight=float(summed.double().mean()),
        positives_weight=float((size * weights.positives).sum(dim=1).double().mean()),
        within_per_query=within_per_query,
        effective=float(effective.mean()) if len(effective) else None,
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
) -> dict[Direction, Counts]:
    """Return COCOS of one batch, per direction; ``scores`` and ``positives`` are (n_images, n_texts)."""
    factor = check_counting(objective, epsilon, unit, compat)
    if compat != "none":
        return paper_counts_of(objective, scores, positives, epsilon, unit, compat)
    return {
        direction: counts_of(weights.scaled(factor), epsilon)
        for direction, weights in gradient_weights(objective, scores, positives, within).items()
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
    similarity: Callable[[Tensor, Tensor], Tensor] | None = None,
    about: dict[str, Any] | None = None,
) -> CocosReport:
    """Count contributing samples in every batch; mean ± sd over batches, and weight distributions.

    As in Section 5 of the paper: the embeddings, (n_images, d) and (n_captions, d), perhaps memory-mapped, come
    from a frozen encoder in evaluation mode, and the batches are those of training.
    """
    factor = check_counting(objective, epsilon, unit, compat)
    similar = similarity or similarity_of("cosine")
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    histograms: dict[str, dict[str, WeightHistogram]] = defaultdict(lambda: defaultdict(WeightHistogram))
    sizes: list[tuple[int, int]] = []
    for batch in track(batches, "counting contributing samples", unit="batches"):
        left, right = _rows(images, batch.images), _rows(texts, batch.captions)
        scores = similar(left, right)
        within = Within(similar(left, left), similar(right, right)) if objective.needs_within else None
        places = torch.arange(len(batch.images))
        positives = torch.from_numpy(batch.caption_image)[None, :] == places[:, None]
        counted: dict[Direction, Counts] = {}
        for direction, found in gradient_weights(objective, scores, positives, within).items():
            weighed = found.scaled(factor)
            counted[direction] = counts_of(weighed, epsilon)
            for kind, part in weighed.parts().items():
                histograms[direction][kind].add(part.numpy(), len(weighed.values))
        if compat != "none":
            counted = paper_counts_of(objective, scores, positives, epsilon, unit, compat)
        for direction, counts in counted.items():
            for name, value in counts.values().items():
                values[direction][name].append(value)
        sizes.append((len(batch.images), len(batch.captions)))
    if not sizes:
        raise UsageError("no batch to count in", "give at least one batch")
    declared = declaration_of(objective)
    # as they are now, a learned temperature by value; without the reduction, before which is counted
    known = [] if declared is None else [name for name in declared.options if name != "reduction"]
    options = {name: getattr(objective, name) for name in known if hasattr(objective, name)}
    n_images, n_captions = ((min(each), max(each)) for each in zip(*sizes, strict=True))
    protocol = CocosProtocol(
        objective=type(objective).__name__ if declared is None else declared.name,
        options={
            key: float(one.detach()) if isinstance(one, Tensor) else one for key, one in options.items()
        },
        similarity=str(getattr(similar, "name", getattr(similar, "__name__", "given"))),
        epsilon=epsilon,
        unit=unit,
        compat=compat,
        batches=len(sizes),
        images=n_images,
        captions=n_captions,
        about=dict(about or {}),
    )
    spreads = {way: {name: Spread.of(one) for name, one in named.items()} for way, named in values.items()}
    return CocosReport(protocol, spreads, {way: dict(kinds) for way, kinds in histograms.items()})


def _rows(stored: np.ndarray, rows: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(stored[rows], dtype=np.float32))
