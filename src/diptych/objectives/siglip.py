"""SigLIP: every pair on its own, as a yes-or-no question.

With logit scale t = 1/τ and bias b, and z = +1 for a positive pair and −1 for any other::

    L = −(1/|B|) Σ_i Σ_j log σ( z_ij (t·s_ij + b) )

|B| is the number of images. In a rectangular batch (k texts per image) the sum is over all of its pairs,
each counted once, and is still divided by the number of images; with texts as queries (``t2i``) by
the number of texts. Both are the published loss when there are as many of one as of the other. Pairs
do not compete, so several positives per query are nothing special, and a batch of only positives still
teaches; it is refused all the same, because every pair would only be pulled together.

Source: Zhai et al., Sigmoid Loss for Language Image Pre-Training, ICCV 2023, Algorithm 1.
"""

import math
from typing import Unpack

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from diptych.objectives.declaration import LossOptions, OneWay, Tempered, checked_number, declared


@declared(
    "siglip", "every pair on its own in a sigmoid with learned temperature and bias", "Zhai et al. 2023"
)
class SigLIP(Tempered):
    """Sigmoid loss with a learned or fixed temperature and bias.

    The temperature is learned without a ceiling, as the paper does; the bias starts low, because nearly all
    pairs are negatives.
    """

    ceiling = math.inf
    combined = "first"

    def __init__(
        self,
        temperature: float | Tensor = 0.1,
        learn_temperature: bool = True,
        bias: float | Tensor = -10.0,
        learn_bias: bool = True,
        **choices: Unpack[LossOptions],
    ) -> None:
        super().__init__(temperature, learn_temperature, **choices)
        checked_number("bias", bias, -10, positive=False)
        self.bias: nn.Parameter | float | Tensor = (
            nn.Parameter(torch.tensor(float(bias))) if learn_bias else bias
        )

    def of_logits(self, temperature: float | Tensor) -> OneWay:
        bias = checked_number("bias", self.bias, -10, positive=False)

        def per_query(scaled: Tensor, positives: Tensor) -> Tensor:
            logits = scaled + bias
            truth = positives.to(logits.dtype)
            return binary_cross_entropy_with_logits(logits, truth, reduction="none").sum(dim=1)

        return per_query

    def logged(self) -> dict[str, float]:
        bias = {"bias": float(self.bias.detach())} if isinstance(self.bias, nn.Parameter) else {}
        return super().logged() | bias


def siglip(
    scores: Tensor,
    positives: Tensor,
    temperature: float | Tensor = 0.1,
    bias: float | Tensor = -10.0,
    **choices: Unpack[LossOptions],
) -> Tensor:
    """Sigmoid loss over one score matrix; every pair counts once, whatever the direction.

    ``temperature`` is τ = 1/t > 0 and ``bias`` b, numbers or scalar tensors that are trained. ``direction="t2i"``
    sums over a text's images, the others over an image's texts; ``reduction`` is over those queries.
    """
    return SigLIP(temperature, False, bias, False, **choices).forward(scores, positives)
