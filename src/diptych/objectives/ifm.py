"""Implicit feature modification: InfoNCE on scores that were made harder, with or without InfoNCE.

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

from typing import Unpack

from torch import Tensor

from diptych.objectives.declaration import LossOptions, OneWay, Tempered, declared, not_negative
from diptych.objectives.infonce import log_sum_of_negatives, softmax_per_query


@declared("ifm", "InfoNCE with positives made lower and negatives higher by ε", "Robinson et al. 2021")
class IFM(Tempered):
    """IFM without InfoNCE, with a fixed or learned temperature."""

    weight: float | None = None  # of IFM added to InfoNCE; None: IFM only

    def __init__(
        self,
        temperature: float | Tensor = 0.07,
        learn_temperature: bool = False,
        epsilon: float = 0.1,
        **choices: Unpack[LossOptions],
    ) -> None:
        super().__init__(temperature, learn_temperature, **choices)
        self.epsilon = not_negative("epsilon", epsilon, 0.1)

    def of_logits(self, temperature: float | Tensor) -> OneWay:
        budget, weight = self.epsilon / temperature, self.weight

        def per_query(logits: Tensor, positives: Tensor) -> Tensor:
            negatives = log_sum_of_negatives(logits, positives)
            plain = None if weight is None else softmax_per_query(logits, positives, negatives)
            # p down by ε and N up by ε is N up by 2ε: one addition per query, not one per score.
            harder = softmax_per_query(logits, positives, negatives + 2 * budget)
            return harder if plain is None or weight is None else (plain + weight * harder) / (1 + weight)

        return per_query


@declared("infonce-ifm", "InfoNCE and IFM, half of each", "Robinson et al. 2021; Bleeker et al. 2024")
class InfoNCEIFM(IFM):
    """InfoNCE and IFM mixed, with a fixed or learned temperature; one sum over negatives serves both."""

    def __init__(
        self,
        temperature: float | Tensor = 0.07,
        learn_temperature: bool = False,
        epsilon: float = 0.1,
        weight: float = 1.0,
        **choices: Unpack[LossOptions],
    ) -> None:
        super().__init__(temperature, learn_temperature, epsilon, **choices)
        self.weight = not_negative("weight", weight, 1.0)


def ifm(
    scores: Tensor,
    positives: Tensor,
    temperature: float | Tensor = 0.07,
    epsilon: float = 0.1,
    **choices: Unpack[LossOptions],
) -> Tensor:
    """Return IFM over one score matrix, the mean of both directions; ε ≥ 0 is in units of the score."""
    return IFM(temperature, False, epsilon, **choices).forward(scores, positives)


def infonce_ifm(
    scores: Tensor,
    positives: Tensor,
    temperature: float | Tensor = 0.07,
    epsilon: float = 0.1,
    weight: float = 1.0,
    **choices: Unpack[LossOptions],
) -> Tensor:
    """(InfoNCE + α·IFM)/(1 + α) over one score matrix; ``weight`` is α ≥ 0."""
    return InfoNCEIFM(temperature, False, epsilon, weight, **choices).forward(scores, positives)
