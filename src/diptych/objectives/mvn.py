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

from typing import Unpack

import torch
from torch import Tensor

from diptych.core.errors import UsageError
from diptych.objectives.declaration import (
    Compat,
    LossOptions,
    Within,
    all_finite,
    checked,
    checked_temperature,
    declared,
    reduced,
)
from diptych.objectives.infonce import NTXent, log_sum_of_negatives, softmax_per_query


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


@declared(
    "mvn",
    "soft-max over the negatives of both modalities, as in SimCLR",
    "Alayrac et al. 2020; Jain and Verma 2021, III-B",
)
class MVN(NTXent):
    """Multi-modal NCE with a fixed or learned temperature; wants the scores inside each modality.

    Their diagonals only have to be finite. With one direction, the scores inside the other modality may be anything.
    """

    needs_within = True

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        temperature, given = checked_temperature(self.temperature), positives
        scores, positives = checked(scores, positives, self.compat)
        images, texts = given.nonzero(as_tuple=True)
        logits = scores / temperature
        losses = []
        if self.direction in ("both", "i2t"):
            inside, related = _inside(within and within.images, given, images, self.compat, "image")
            losses.append(_per_query(logits, positives, inside / temperature, related))
        if self.direction in ("both", "t2i"):
            inside, related = _inside(within and within.texts, given.T, texts, self.compat, "text")
            losses.append(_per_query(logits.T, positives.T, inside / temperature, related))
        return reduced([torch.cat(losses)], self.reduction, "mean")

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        """Return (queries,) means over a query's positives."""
        temperature, given = checked_temperature(self.temperature), positives
        scores, positives = checked(scores, positives, self.compat)
        copies = given.nonzero(as_tuple=True)[0]
        inside, related = _inside(within, given, copies, self.compat, "query")
        return _per_query(scores / temperature, positives, inside / temperature, related)


def mvn(
    scores: Tensor,
    positives: Tensor,
    within: Within | None,
    temperature: float | Tensor = 0.1,
    **choices: Unpack[LossOptions],
) -> Tensor:
    """Multi-modal NCE over the scores between and inside the modalities.

    ``direction`` says whose rows are anchors, and ``reduction`` is over all anchors, images first.
    """
    return MVN(temperature, **choices).forward(scores, positives, within)
