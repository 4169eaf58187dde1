"""Implicit feature modification: InfoNCE on scores that were made harder, alone or beside InfoNCE.

With a perturbation budget ε, positives lose ε and negatives gain ε before the division by τ::

    ℓ_IFM(q, p) = −log( exp((s_qp − ε)/τ) / (exp((s_qp − ε)/τ) + Σ_{n ∈ N} exp((s_qn + ε)/τ)) )
    ℓ           = (ℓ_InfoNCE + α·ℓ_IFM) / (1 + α)

which is the worst that moving each candidate's embedding by ε can do to a unit query; a model must then
use more than the features that tell the batch apart most easily. With α = 1 it is half of each, as both papers
train it. Other positives of q are in no sum; a query's loss is the mean over its positives. A query
without negatives has a loss and a gradient of 0.

Sources: Robinson et al., Can contrastive learning avoid shortcut solutions?, NeurIPS 2021; Bleeker et
al., Demonstrating and Reducing Shortcuts in Vision-Language Representation Learning, TMLR 2024,
appendix. The latter prints the loss without its minus sign and the image→text negatives with the
indices of text→image; its code, and this one, have both right.
"""

from __future__ import annotations

from torch import Tensor

from diptych.objectives.declaration import (
    OBJECTIVES,
    Compat,
    Direction,
    ObjectiveKind,
    Reduction,
    Tempered,
    Within,
    checked,
    checked_temperature,
    in_directions,
    not_negative,
    together,
)
from diptych.objectives.infonce import log_sum_of_negatives, softmax_per_query


def _perturbed(logits: Tensor, positives: Tensor, budget: float | Tensor) -> Tensor:
    """(queries,) IFM; ``budget`` is ε/τ."""
    # p down by ε and N up by ε is N up by 2ε: one addition per query, not one per score.
    return softmax_per_query(logits, positives, log_sum_of_negatives(logits, positives) + 2 * budget)


def _mixed(logits: Tensor, positives: Tensor, budget: float | Tensor, weight: float) -> Tensor:
    """(queries,) (InfoNCE + α·IFM)/(1 + α), with one sum over negatives for both."""
    negatives = log_sum_of_negatives(logits, positives)
    plain = softmax_per_query(logits, positives, negatives)
    harder = softmax_per_query(logits, positives, negatives + 2 * budget)
    return (plain + weight * harder) / (1 + weight)


def ifm(
    scores: Tensor,
    positives: Tensor,
    temperature: float | Tensor = 0.07,
    epsilon: float = 0.1,
    *,
    direction: Direction = "both",
    reduction: Reduction = "mean",
    compat: Compat = "none",
) -> Tensor:
    """IFM alone, over one score matrix.

    Args:
        scores: (n_images, n_texts) cosine scores.
        positives: (n_images, n_texts) boolean; several per row and column are allowed.
        temperature: τ > 0, a number or a scalar tensor that is trained.
        epsilon: ε ≥ 0, in units of the score.
        direction: ``both`` averages image→text and text→image.
        reduction: ``mean`` or ``sum`` over queries; ``none`` gives one value per query, image
            queries first, not halved.
        compat: ``pairs`` treats other captions of an image as negatives, as published.

    Raises:
        UsageError: τ ≤ 0, ε < 0, shapes that differ, a query without a positive, a batch without a
            negative.
        NumericalError: a score or a learned τ has become NaN or infinite.
    """
    checked_temperature(temperature)
    budget = not_negative("epsilon", epsilon, 0.1) / temperature
    scores, positives = checked(scores, positives, compat)
    losses = in_directions(
        lambda logits, p: _perturbed(logits, p, budget), scores / temperature, positives, direction
    )
    return together(losses, reduction, "mean")


def infonce_ifm(
    scores: Tensor,
    positives: Tensor,
    temperature: float | Tensor = 0.07,
    epsilon: float = 0.1,
    weight: float = 1.0,
    *,
    direction: Direction = "both",
    reduction: Reduction = "mean",
    compat: Compat = "none",
) -> Tensor:
    """InfoNCE and IFM mixed, over one score matrix.

    Args:
        scores: (n_images, n_texts) cosine scores.
        positives: (n_images, n_texts) boolean; several per row and column are allowed.
        temperature: τ > 0, a number or a scalar tensor that is trained.
        epsilon: ε ≥ 0, in units of the score.
        weight: α ≥ 0: the loss is (InfoNCE + α·IFM)/(1 + α).
        direction: ``both`` averages image→text and text→image.
        reduction: ``mean`` or ``sum`` over queries; ``none`` gives one value per query, image
            queries first, not halved.
        compat: ``pairs`` treats other captions of an image as negatives, as published.

    Raises:
        UsageError: τ ≤ 0, ε < 0, α < 0, shapes that differ, a query without a positive, a batch
            without a negative.
        NumericalError: a score or a learned τ has become NaN or infinite.
    """
    checked_temperature(temperature)
    budget = not_negative("epsilon", epsilon, 0.1) / temperature
    not_negative("weight", weight, 1.0)
    scores, positives = checked(scores, positives, compat)
    losses = in_directions(
        lambda logits, p: _mixed(logits, p, budget, weight), scores / temperature, positives, direction
    )
    return together(losses, reduction, "mean")


class IFM(Tempered):
    """IFM alone, with a fixed or learned temperature.

    Args:
        learn_temperature: train log(1/τ) with the model; 1/τ is capped at 100, as in CLIP.

    The other options are those of the function.
    """

    def __init__(
        self,
        temperature: float = 0.07,
        learn_temperature: bool = False,
        epsilon: float = 0.1,
        direction: Direction = "both",
        reduction: Reduction = "mean",
        compat: Compat = "none",
    ) -> None:
        super().__init__(temperature, learn_temperature, direction, reduction, compat)
        self.epsilon = not_negative("epsilon", epsilon, 0.1)

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        return ifm(scores, positives, self.temperature, self.epsilon, **self.choices)

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        """(queries,) mean over a query's positives."""
        scores, positives = checked(scores, positives, self.compat)
        temperature = checked_temperature(self.temperature)
        return _perturbed(scores / temperature, positives, self.epsilon / temperature)


class InfoNCEIFM(IFM):
    """InfoNCE and IFM mixed, with a fixed or learned temperature.

    Args:
        learn_temperature: train log(1/τ) with the model; 1/τ is capped at 100, as in CLIP.

    The other options are those of the function.
    """

    def __init__(
        self,
        temperature: float = 0.07,
        learn_temperature: bool = False,
        epsilon: float = 0.1,
        weight: float = 1.0,
        direction: Direction = "both",
        reduction: Reduction = "mean",
        compat: Compat = "none",
    ) -> None:
        super().__init__(temperature, learn_temperature, epsilon, direction, reduction, compat)
        self.weight = not_negative("weight", weight, 1.0)

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        return infonce_ifm(scores, positives, self.temperature, self.epsilon, self.weight, **self.choices)

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        """(queries,) mean over a query's positives."""
        scores, positives = checked(scores, positives, self.compat)
        temperature = checked_temperature(self.temperature)
        return _mixed(scores / temperature, positives, self.epsilon / temperature, self.weight)


OBJECTIVES.add(
    ObjectiveKind(
        "ifm",
        "InfoNCE with positives made lower and negatives higher by ε",
        "Robinson et al. 2021",
        IFM,
    )
)
OBJECTIVES.add(
    ObjectiveKind(
        "infonce-ifm",
        "InfoNCE and IFM, half of each",
        "Robinson et al. 2021; Bleeker et al. 2024",
        InfoNCEIFM,
    )
)
