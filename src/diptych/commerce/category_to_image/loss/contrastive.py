"""The bidirectional contrastive loss of category–product pairs (thesis Eq. 7.7–7.9).

With s_jk = cos(c_j, p_k), temperature τ and β pairs in a batch::

    ℓ_j(c→p) = −log( exp(s_jj/τ) / Σ_k exp(s_jk/τ) )                                (7.7)
    ℓ_j(p→c) = −log( exp(s_jj/τ) / Σ_k exp(s_kj/τ) )                                (7.8)
    L        = 1/β · Σ_j ( λ·ℓ_j(p→c) + (1 − λ)·ℓ_j(c→p) )                          (7.9)

Two pairs of a batch may be of one category; then p_k is a product of c_j too, and Eq. 7.7 pushes it away.
``duplicates`` says what becomes of such k: ``negatives``, as published, or ``masked`` out of both sums. To count them
as further positives, as :class:`diptych.objectives.infonce.InfoNCE` does, is the same as masking: pairs of one
category share its row.

The loss is that of van den Oord et al., 2018; both ways: Zhang et al., ConVIRT, 2022.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from diptych.core.errors import UsageError
from diptych.objectives.declaration import checked_temperature

Duplicates = Literal["negatives", "masked"]
"""What other pairs of the same category are to a pair."""


def pair_losses(
    scores: Tensor,
    temperature: float | Tensor = 1.0,
    same: Tensor | None = None,
    *,
    duplicates: Duplicates = "negatives",
    margins: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The losses of each pair, from cosines.

    Args:
        scores: (β, β), category j and product k; pairs are on the diagonal.
        same: (β, β) booleans: whether pairs j and k are of one category.
        margins: (β, β) non-negative, symmetric, 0 on the diagonal, added to the scores of other pairs; see
            :mod:`diptych.commerce.category_to_image.loss.tree_distance`.

    Returns:
        (β,) ℓ(p→c) of Eq. 7.8 and (β,) ℓ(c→p) of Eq. 7.7.
    """
    checked_temperature(temperature)
    if scores.dim() != 2 or scores.shape[0] != scores.shape[1]:
        raise UsageError(f"scores of shape {tuple(scores.shape)}", "give one row and one column per pair")
    if margins is not None:
        scores = scores + margins
    logits = scores / temperature
    if duplicates == "negatives":
        return _against_all(logits.T), _against_all(logits)
    if duplicates != "masked":
        raise UsageError(f"duplicates {duplicates!r}", "'negatives' or 'masked'")
    if same is None:
        raise UsageError("duplicates are masked, and nobody says which they are", "give same")
    own = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    logits = logits.masked_fill(same & ~own, -math.inf)
    return _against_all(logits.T), _against_all(logits)


def _against_all(logits: Tensor) -> Tensor:
    """(β,) −log of the share of the diagonal in each row's sum of exponentials."""
    return logits.logsumexp(dim=1) - logits.diagonal()


def category_product_loss(
    categories: Tensor,
    products: Tensor,
    temperature: float | Tensor = 1.0,
    balance: float = 0.5,
    same: Tensor | None = None,
    *,
    duplicates: Duplicates = "negatives",
    margins: Tensor | None = None,
) -> Tensor:
    """Eq. 7.9, a scalar.

    Args:
        categories: (β, d) rows c of any length but 0; their cosines are the scores.
        products: (β, d) rows p; p_j is a product of c_j.
        balance: λ in [0, 1], the weight of product→category.
    """
    if categories.dim() != 2 or categories.shape != products.shape:
        raise UsageError(
            f"categories are {tuple(categories.shape)}, products {tuple(products.shape)}",
            "give (pairs, width) rows of both",
        )
    if not 0 <= balance <= 1:
        raise UsageError(f"balance {balance}", "give λ between 0 and 1")
    scores = normalize(categories, dim=1) @ normalize(products, dim=1).T
    to_category, to_product = pair_losses(scores, temperature, same, duplicates=duplicates, margins=margins)
    return (balance * to_category + (1 - balance) * to_product).mean()


class CategoryProductLoss(nn.Module):
    """Eq. 7.9 over cosines, with its hyper-parameters and, where it is learned, the temperature."""

    ceiling = 100.0

    def __init__(
        self,
        temperature: float = 1.0,
        learn_temperature: bool = False,
        balance: float = 0.5,
        duplicates: Duplicates = "negatives",
    ) -> None:
        super().__init__()
        checked_temperature(temperature)
        self._fixed = temperature
        self.balance = balance
        self.duplicates: Duplicates = duplicates
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature))) if learn_temperature else None

    @property
    def temperature(self) -> float | Tensor:
        """τ: a number, or the scalar tensor that is learned."""
        if self.log_scale is None:
            return self._fixed
        with torch.no_grad():  # projected after a step, for a clamp in the graph has no gradient beyond it
            self.log_scale.clamp_(max=math.log(self.ceiling))
        return torch.exp(-self.log_scale)

    def forward(self, scores: Tensor, same: Tensor | None = None, margins: Tensor | None = None) -> Tensor:
        """The loss of (β, β) cosines of categories and products, a scalar."""
        to_category, to_product = pair_losses(
            scores, self.temperature, same, duplicates=self.duplicates, margins=margins
        )
        return (self.balance * to_category + (1 - self.balance) * to_product).mean()
