"""ConVSE and ConVSE++: soft-max over all negatives, and hinge of the hardest one over τ.

For a query q and one of its positives p, with margin α, temperature τ and [x]₊ = max(0, x)::

    ConVSE    −log( exp(s_qp/τ) / (exp(s_qp/τ) + Σ_{n ∈ N} exp(s_qn/τ)) )                    (Eq. 6–8)
    ConVSE++  [ −log( exp(s_qp/τ) / exp((max_{n ∈ N} s_qn + α)/τ) ) ]₊                      (Eq. 12–14)

Both add the means of the two directions; ConVSE is InfoNCE without the half.

The logarithm undoes the exponentials of ConVSE++: its term is [α − s_qp + max s_qn]₊ / τ, so over N
pairs its value and gradient are those of VSE++ (``triplet-hardest``, summed) divided by N·τ, measured to
the last bits on the authors' code. An optimizer that is blind to scale, such as Adam, follows the same
path with either, except where scale is seen: gradient clipping at a norm of 2 (the summed loss hits
it, the mean rarely), Adam's ε, weight decay. What else differs between published results of the two
is the projection head and the warm start that ConVSE++ was trained with, not the loss.

Source: Jain and Verma, Contrastive Learning of Visual-Semantic Embeddings, 2021.
"""

from __future__ import annotations

from torch import Tensor

from diptych.objectives.declaration import (
    OBJECTIVES,
    Compat,
    Direction,
    ObjectiveKind,
    Reduction,
    Within,
    checked,
    checked_temperature,
    in_directions,
    together,
)
from diptych.objectives.infonce import InfoNCE, infonce_per_query
from diptych.objectives.triplet import TripletHardest, triplet


def convse(
    scores: Tensor,
    positives: Tensor,
    temperature: float | Tensor = 0.1,
    *,
    direction: Direction = "both",
    reduction: Reduction = "mean",
    compat: Compat = "none",
) -> Tensor:
    """ConVSE (sum of negatives) over one score matrix.

    Args:
        scores: (n_images, n_texts) cosine scores.
        positives: (n_images, n_texts) boolean; several per row and column are allowed. Other
            positives of a query are in no sum; a query's loss is the mean over its positives.
        temperature: τ > 0, a number or a scalar tensor that is trained.
        direction: ``both`` adds image→text and text→image.
        reduction: ``mean`` or ``sum`` over the queries of each direction; ``none`` gives one value
            per query, image queries first.
        compat: ``pairs`` treats other captions of an image as negatives, as published.

    Raises:
        UsageError: τ ≤ 0, shapes that differ, a query without a positive, a batch without a negative.
        NumericalError: a score or a learned τ has become NaN or infinite.
    """
    checked_temperature(temperature)
    scores, positives = checked(scores, positives, compat)
    losses = in_directions(infonce_per_query, scores / temperature, positives, direction)
    return together(losses, reduction, "sum")


def convse_plus_plus(
    scores: Tensor,
    positives: Tensor,
    temperature: float = 0.1,
    margin: float = 0.2,
    *,
    direction: Direction = "both",
    reduction: Reduction = "mean",
    compat: Compat = "none",
) -> Tensor:
    """ConVSE++ (hardest negative with a margin) over one score matrix; no exponential is taken.

    Args:
        scores: (n_images, n_texts) cosine scores.
        positives: (n_images, n_texts) boolean; several per row and column are allowed.
        temperature: τ > 0, a number. It only scales the loss, so it cannot be learned.
        margin: α ≥ 0, added to the hardest negative before the division by τ.
        direction: ``both`` adds image→text and text→image.
        reduction: ``mean`` (published) or ``sum`` over (query, positive) pairs of each direction;
            ``none`` gives one value per pair, image queries first.
        compat: ``pairs`` treats other captions of an image as negatives, as published.

    Raises:
        UsageError: τ ≤ 0, α < 0, shapes that differ, a query without a positive, a batch without a
            negative.
        NumericalError: a score is NaN or infinite.
    """
    checked_temperature(temperature)
    hinges = triplet(
        scores,
        positives,
        margin,
        hardest=True,
        direction=direction,
        reduction=reduction,
        compat=compat,
    )
    return hinges / temperature


class ConVSE(InfoNCE):
    """ConVSE with a fixed or learned temperature.

    Args:
        learn_temperature: train log(1/τ) with the model; 1/τ is capped at 100, as in CLIP.

    The other options are those of the function.
    """

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
        return convse(scores, positives, self.temperature, **self.choices)


class ConVSEPlusPlus(TripletHardest):
    """ConVSE++: VSE++'s loss divided by the number of pairs and by τ. Options are those of the function."""

    def __init__(
        self,
        temperature: float = 0.1,
        margin: float = 0.2,
        direction: Direction = "both",
        reduction: Reduction = "mean",
        compat: Compat = "none",
    ) -> None:
        super().__init__(margin, direction, reduction, compat)
        checked_temperature(temperature)
        self.temperature = temperature

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        return super().forward(scores, positives) / self.temperature

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        """(queries,) sum over a query's positives."""
        return super().per_query(scores, positives) / self.temperature


OBJECTIVES.add(
    ObjectiveKind(
        "convse",
        "soft-max over all in-batch negatives of the other modality, both directions added",
        "Jain and Verma 2021, Eq. 6–8",
        ConVSE,
    )
)
OBJECTIVES.add(
    ObjectiveKind(
        "convse++",
        "hinge of the hardest in-batch negative over τ: VSE++'s loss / (pairs · τ)",
        "Jain and Verma 2021, Eq. 12–14",
        ConVSEPlusPlus,
    )
)
