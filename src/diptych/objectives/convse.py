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

from typing import Unpack

from torch import Tensor

from diptych.objectives.declaration import LossOptions, Within, checked_temperature, declared
from diptych.objectives.infonce import NTXent
from diptych.objectives.triplet import TripletHardest


@declared(
    "convse",
    "soft-max over all in-batch negatives of the other modality, both directions added",
    "Jain and Verma 2021, Eq. 6–8",
)
class ConVSE(NTXent):
    """ConVSE with a fixed or learned temperature."""

    combined = "sum"


@declared(
    "convse++",
    "hinge of the hardest in-batch negative over τ: VSE++'s loss / (pairs · τ)",
    "Jain and Verma 2021, Eq. 12–14",
)
class ConVSEPlusPlus(TripletHardest):
    """ConVSE++: VSE++'s loss divided by the number of pairs and by τ; no exponential is taken."""

    reduction = "mean"

    def __init__(self, temperature: float = 0.1, margin: float = 0.2, **choices: Unpack[LossOptions]) -> None:
        super().__init__(margin, **choices)
        checked_temperature(temperature)
        self.temperature = temperature

    def forward(self, scores: Tensor, positives: Tensor, within: Within | None = None) -> Tensor:
        return super().forward(scores, positives) / self.temperature

    def per_query(self, scores: Tensor, positives: Tensor, within: Tensor | None = None) -> Tensor:
        return super().per_query(scores, positives) / self.temperature


def convse(
    scores: Tensor, positives: Tensor, temperature: float | Tensor = 0.1, **choices: Unpack[LossOptions]
) -> Tensor:
    """ConVSE (sum of negatives) over one score matrix: InfoNCE of both directions, added.

    ``temperature`` is τ > 0, a number or a scalar tensor that is trained.
    """
    return ConVSE(temperature, **choices).forward(scores, positives)


def convse_plus_plus(
    scores: Tensor,
    positives: Tensor,
    temperature: float = 0.1,
    margin: float = 0.2,
    **choices: Unpack[LossOptions],
) -> Tensor:
    """ConVSE++ (hardest negative with a margin) over one score matrix.

    ``temperature`` is τ > 0, which only scales the loss, so it cannot be learned; ``margin`` is α ≥ 0, added to
    the hardest negative before the division by τ. The reduction is over (query, positive) pairs.
    """
    return ConVSEPlusPlus(temperature, margin, **choices).forward(scores, positives)
