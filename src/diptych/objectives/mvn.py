"""The multi-modal NCE of MVN: negatives from the other modality and from the query's own.

All images and texts of a batch are anchors, as in SimCLR. For an anchor q and one of its positives p, with
its negatives N in the other modality and M in its own::

    ℓ(q, p) = −log( exp(s_qp/τ) / (exp(s_qp/τ) + Σ_{n ∈ N} exp(s_qn/τ) + Σ_{m ∈ M} exp(s_qm/τ)) )

An anchor's loss is the mean over its positives, the batch's the mean over all anchors of both modalities
(2N of them for N pairs). Texts of one image, and images that share a text, are neither positives nor
negatives of each other; with ``compat="pairs"`` they are negatives, and so are the copies of an image that
is in the batch with several of its captions, as published.

Sources: Alayrac et al., Self-Supervised MultiModal Versatile Networks, NeurIPS 2020; in the form that
Jain and Verma 2021 adapt to images and captions (III-B), which is SimCLR's (Chen et al. 2020).
"""

from __future__ import annotations

import torch
from torch import Tensor

from diptych.core.errors import UsageError
from diptych.objectives.declaration import (
    OBJECTIVES,
    Compat,
    Direction,
    ObjectiveKind,
    Reduction,
    Tempered,
    Within,
    all_finite,
    checked,
    checked_temperature,
    together,
)
from diptych.objectives.infonce import log_sum_of_negatives, softmax_per_query


def _related(positives: Tensor) -> Tensor:
    """(queries, queries) which queries have a positive in common; each has with itself."""
    queries, places = positives.nonzero(as_tuple=True)
    if len(queries) == len(positives) == positives.shape[1]:  # one each, both ways
        return torch.eye(len(queries), dtype=torch.bool, device=positives.device)
    # Row q gathers, for each of its positives, the queries that have that positive too.
    shared = positives.T.contiguous()[places].to(torch.int32)
    return shared.new_zeros(len(positives), len(positives)).index_add_(0, queries, shared) > 0


def _per_query(logits: Tensor, positives: Tensor, inside: Tensor, related: Tensor) -> Tensor:
    """(queries,) with ``related`` marking the queries that are no negatives in the logits ``inside``."""
    negatives = torch.logaddexp(
        log_sum_of_negatives(logits, positives), log_sum_of_negatives(inside, related)
    )
    return softmax_per_query(logits, positives, negatives)


def _inside(
    within: Tensor | None, positives: Tensor, copies: Tensor, compat: Compat, side: str
) -> tuple[Tensor, Tensor]:
    """Scores among queries and which of them are no negatives, as ``compat`` wants them.

    ``positives`` is as it was given, with the queries as rows; ``copies`` is, for each of its positive
    pairs in image order, which query that pair repeats.
    """
    n = len(positives)
    if within is None:
        raise UsageError(
            "mvn wants the scores inside each modality",
            "give within=Within(images @ images.T, texts @ texts.T)",
        )
    if within.shape != (n, n):
        raise UsageError(
            f"the scores among {n} {side}s have shape {tuple(within.shape)}", f"they are ({n}, {n})"
        )
    all_finite(within, (side, side))
    if compat == "pairs":
        within = within.index_select(0, copies).index_select(1, copies)
        return within, torch.eye(len(copies), dtype=torch.bool, device=within.device)
    return within, _related(positives)


def mvn(
    scores: Tensor,
    positives: Tensor,
    within: Within | None,
    temperature: float | Tensor = 0.1,
    *,
    direction: Direction = "both",
    reduction: Reduction = "mean",
    compat: Compat = "none",
) -> Tensor:
    """Multi-modal NCE over the scores between and inside the modalities.

    Args:
        scores: (n_images, n_texts) cosine scores.
        positives: (n_images, n_texts) boolean; several per row and column are allowed.
        within: (n_images, n_images) and (n_texts, n_texts) cosine scores; diagonals only have to be finite.
        temperature: τ > 0, a number or a scalar tensor that is trained.
        direction: ``both`` takes images and texts as anchors, ``i2t`` images, ``t2i`` texts; the
            scores inside the other modality may then be anything.
        reduction: ``mean`` or ``sum`` over all anchors; ``none`` gives one value per anchor, images
            first.
        compat: ``pairs`` treats captions of the same image as negatives, as published.

    Raises:
        UsageError: τ ≤ 0, shapes that differ, no ``within``, a query without a positive, a batch
            without a negative.
        NumericalError: a score or a learned τ has become NaN or infinite.
    """
    checked_temperature(temperature)
    given = positives
    scores, positives = checked(scores, positives, compat)
    if direction not in ("both", "i2t", "t2i"):
        raise UsageError(f"direction {direction!r}", "one of 'both', 'i2t', 't2i'")
    images, texts = given.nonzero(as_tuple=True)
    logits = scores / temperature
    losses = []
    if direction in ("both", "i2t"):
        inside, related = _inside(within and within.images, given, images, compat, "image")
        losses.append(_per_query(logits, positives, inside / temperature, related))
    if direction in ("both", "t2i"):
        inside, related = _inside(within and within.texts, given.T, texts, compat, "text")
        losses.append(_per_query(logits.T, positives.T, inside / temperature, related))
    return together([torch.cat(losses)], reduction, "mean")


class MVN(Tempered):
    """Multi-modal NCE with a fixed or learned temperature; wants the scores inside each modality.

    Args:
        learn_temperature: train log(1/τ) with the model; 1/τ is capped at 100, as in CLIP.

    The other options are those of the function.
    """

    needs_within = True

    def __init__(
        self,
        temperature: float = 0.1,
        learn_temperature: bool = False,
        direction: Direction = "both",
        reduction: Reduction = "mean",
        compat: Compat = "none",
    ) -> None:
        super().__init__(temperature, learn_temperature, direction, reduction, compat)

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        return mvn(scores, positives, within, self.temperature, **self.choices)

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        """(queries,) mean over a query's positives."""
        temperature = checked_temperature(self.temperature)
        given = positives
        scores, positives = checked(scores, positives, self.compat)
        copies = given.nonzero(as_tuple=True)[0]
        inside, related = _inside(within, given, copies, self.compat, "query")
        return _per_query(scores / temperature, positives, inside / temperature, related)


OBJECTIVES.add(
    ObjectiveKind(
        "mvn",
        "soft-max over the negatives of both modalities, as in SimCLR",
        "Alayrac et al. 2020; Jain and Verma 2021, III-B",
        MVN,
    )
)
