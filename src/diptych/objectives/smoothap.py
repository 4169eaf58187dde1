"""SmoothAP: average precision with the step of "ranked above" made smooth.

For a query q with positives P and negatives N, and the sigmoid G(x; τ) = 1/(1 + e^(−x/τ))::

    R_P(i) = 1 + Σ_{j ∈ P, j ≠ i} G(s_j − s_i)        R_N(i) = Σ_{j ∈ N} G(s_j − s_i)
    AP_q   = mean over i ∈ P of R_P(i) / (R_P(i) + R_N(i))         loss = 1 − AP_q

G counts the candidates scored *above* i (Eq. 6 and 15 of Bleeker and de Rijke: s_i − s_j < 0), as the
code of both papers does. Their Eq. 17 and the one after 6 write 1{D_ij > 0} with D_ij = s_i − s_j, which
counts those scored below; ``compat="positive-sign"`` takes that literally and rewards a reversed
ranking. A query without negatives has a loss and a gradient of 0.

Memory grows with positives × candidates at most, and works in blocks of those; the published code
holds queries × candidates × candidates.

Sources: Brown et al., Smooth-AP: Smoothing the Path Towards Large-Scale Image Retrieval, ECCV 2020;
Bleeker and de Rijke, ECIR 2022, Eq. 5–8 and appendix A.
"""

from dataclasses import dataclass
from typing import Unpack

import torch
from torch import Tensor

from diptych.objectives.declaration import Directed, LossOptions, OneWay, checked_temperature, declared
from diptych.objectives.pairs import PairBlock, mean_per_query, pair_losses


@dataclass(frozen=True)
class _Imprecision:
    """For each (query, positive i) one minus the precision at i: R_N / (R_P + R_N)."""

    # ±1/τ; the sign says whether better or worse candidates are counted.
    scale: float

    def _gates(self, block: PairBlock) -> tuple[Tensor, Tensor, Tensor]:
        """G of every candidate but i itself, R_P (pairs, 1) and R_N (pairs, 1)."""
        gates = (block.rows - block.own).mul_(self.scale).sigmoid_().scatter_(1, block.places, 0.0)
        among_positives = 1 + gates.masked_fill(~block.relevant, 0.0).sum(dim=1, keepdim=True)
        among_negatives = gates.masked_fill(block.relevant, 0.0).sum(dim=1, keepdim=True)
        return gates, among_positives, among_negatives

    def value(self, block: PairBlock) -> Tensor:
        _, positives, negatives = self._gates(block)
        # Not 1 − R_P/R: near a perfect ranking that would lose every digit of a small loss.
        return (negatives / (positives + negatives)).squeeze(1)

    def slope(self, block: PairBlock) -> Tensor:
        gates, positives, negatives = self._gates(block)
        squared = (positives + negatives).square_()
        steepness = torch.where(block.relevant, -negatives / squared, positives / squared)
        return steepness.mul_(gates).mul_(1 - gates).mul_(self.scale)


@declared(
    "smoothap",
    "one minus a smooth average precision, in memory linear in positives × candidates",
    "Brown et al. 2020; Bleeker and de Rijke 2022, Eq. 5–8",
)
class SmoothAP(Directed):
    """1 − smooth average precision, for any number of positives per query."""

    compats = ("none", "pairs", "positive-sign")

    def __init__(self, temperature: float = 0.01, **choices: Unpack[LossOptions]) -> None:
        super().__init__(**choices)
        checked_temperature(temperature)
        self.temperature: float = float(temperature)

    def one_way(self, scores: Tensor) -> tuple[Tensor, OneWay]:
        sign = -1 if self.compat == "positive-sign" else 1
        precision = _Imprecision(sign / self.temperature)

        def per_query(scores: Tensor, positives: Tensor) -> Tensor:
            queries = positives.nonzero(as_tuple=True)[0]
            return mean_per_query(pair_losses(precision, scores, positives), queries, len(scores))

        return scores, per_query


def smoothap(
    scores: Tensor, positives: Tensor, temperature: float = 0.01, **choices: Unpack[LossOptions]
) -> Tensor:
    """1 − smooth average precision over one score matrix, the mean of image→text and text→image.

    ``temperature`` is τ > 0 of the sigmoid, a number. ``compat="positive-sign"`` is as the papers' Eq. 17 reads;
    a second derivative (``create_graph``) is refused.
    """
    return SmoothAP(temperature, **choices).forward(scores, positives)
