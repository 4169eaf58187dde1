"""InfoNCE and NT-Xent: each positive against all negatives, as a soft-max over cosine scores.

For a query q, a positive p and its negatives N, with temperature τ::

    ℓ(q, p) = −log( exp(s_qp/τ) / (exp(s_qp/τ) + Σ_{n ∈ N} exp(s_qn/τ)) )

Other positives of q are in neither sum. A query's loss is the mean over its positives; a query for
which everything in the batch is positive has a loss and a gradient of 0. NT-Xent between modalities is
the same function; it has its own name and the temperature it was studied with, 0.1.

Sources: van den Oord et al., Representation Learning with Contrastive Predictive Coding, 2018;
Radford et al., Learning Transferable Visual Models (CLIP), 2021, for the symmetric form; Bleeker and
de Rijke, Do Lessons from Metric Learning Generalize to Image-Caption Retrieval?, ECIR 2022, Eq. 4.
"""

from typing import Unpack

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from diptych.objectives.declaration import LossOptions, OneWay, Tempered, declared
from diptych.objectives.pairs import mean_per_query


def log_sum_of_negatives(logits: Tensor, others: Tensor) -> Tensor:
    """(queries,) log Σ exp over each row's negatives: the candidates that ``others`` does not mark."""
    # The lowest finite number, not −inf: a query without negatives then has a loss of 0 and a
    # gradient of 0 instead of NaN.
    return logits.masked_fill(others, torch.finfo(logits.dtype).min).logsumexp(dim=1)


def softmax_per_query(logits: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """(queries,) mean over each query's positives of −log p(positive against its negatives)."""
    queries, places = positives.nonzero(as_tuple=True)
    pairs = -logsigmoid(logits[queries, places] - negatives[queries])
    return mean_per_query(pairs, queries, len(logits))


def infonce_per_query(logits: Tensor, positives: Tensor) -> Tensor:
    """(queries,) InfoNCE of each row of ``logits``, scores divided by τ."""
    return softmax_per_query(logits, positives, log_sum_of_negatives(logits, positives))


@declared(
    "infonce",
    "each positive against all negatives in a soft-max at temperature τ",
    "van den Oord et al. 2018; Radford et al. 2021",
)
class InfoNCE(Tempered):
    """InfoNCE with a fixed or learned temperature."""

    def of_logits(self, temperature: float | Tensor) -> OneWay:
        return infonce_per_query


@declared(
    "nt-xent",
    "InfoNCE at τ = 0.1, as in the comparison of metric-learning losses",
    "Chen et al. 2020; Bleeker and de Rijke 2022, Eq. 4",
)
class NTXent(InfoNCE):
    """NT-Xent between modalities: InfoNCE at τ = 0.1."""

    def __init__(
        self,
        temperature: float | Tensor = 0.1,
        learn_temperature: bool = False,
        **choices: Unpack[LossOptions],
    ) -> None:
        super().__init__(temperature, learn_temperature, **choices)


def infonce(
    scores: Tensor, positives: Tensor, temperature: float | Tensor = 0.07, **choices: Unpack[LossOptions]
) -> Tensor:
    """InfoNCE over one score matrix, the mean of image→text and text→image.

    ``temperature`` is τ > 0, a number or a scalar tensor that is trained.
    """
    return InfoNCE(temperature, **choices).forward(scores, positives)
